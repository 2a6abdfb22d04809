//! The command under test, and a folder for its files.

pub mod library;
pub mod sweep;

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::Value;

/// `domicile` with arguments, in an environment of its own.
pub fn domicile(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_domicile"));
    command
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("COLUMNS");
    command
}

/// The command's output, if it ended with `code`.
pub fn output(arguments: &[&str], code: i32) -> (String, String) {
    let output = domicile(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(code),
        "domicile {arguments:?}\n--- printed\n{out}\n--- said\n{err}"
    );
    (out, err)
}

/// The lines of JSON that a command prints.
pub fn json(arguments: &[&str]) -> Vec<Value> {
    let (out, _) = output(arguments, 0);
    assert!(!out.is_empty(), "domicile {arguments:?} printed nothing");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder that goes away with the test.
pub struct Room(tempfile::TempDir);

impl Room {
    pub fn new() -> Self {
        Room(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_string()
    }

    pub fn folder(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs commands of a shell that find a new disk of so many KiB at `$disk`, and the command as `$domicile`. Root alone may.
    pub fn on_small_disk(&self, kilobytes: u32, commands: &str) -> std::process::Output {
        let disk = self.path("disk");
        fs::create_dir_all(&disk).unwrap();
        let script = format!("mount -t tmpfs -o size={kilobytes}k none $disk || exit 99\n{commands}");
        std::process::Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .env("disk", disk)
            .env("domicile", env!("CARGO_BIN_EXE_domicile"))
            .output()
            .unwrap()
    }

    /// A trace of references in the text format.
    pub fn trace(&self, name: &str, text: &str) -> String {
        let source = self.file(&format!("{name}.txt"), text);
        let trace = self.path(name);
        output(&["import", "--format", "text", &source, "-o", &trace], 0);
        trace
    }
}

/// A folder of programs; each is a shell script that prints its arguments and the time that it "took".
pub fn programs(room: &Room, programs: &[(&str, f64)]) -> String {
    for build in ["count", "time"] {
        fs::create_dir_all(room.folder().join("programs").join(build)).unwrap();
        for (name, seconds) in programs {
            let (program, version) = name.split_once('-').unwrap();
            let script = format!(
                "#!/bin/sh\necho '{{\"program\":\"{program}\",\"version\":\"{version}\",\"n\":'$2',\"seconds\":9.0,\
                 \"cpu_seconds\":{seconds},\"checksum\":1.0,\"threads\":12,\"bins\":3}}'\n"
            );
            let path = room.folder().join("programs").join(build).join(name);
            harness::write_program(&path, &script);
        }
    }
    room.path("programs")
}
