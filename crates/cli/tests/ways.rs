//! `run --slots` where the probe found no colors and resctrl is mounted: on a folder that stands for the tree, with the kernel's part
//! played by programs/resctrl.c.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::house::library::built;
use crate::house::{Room, domicile};

const PLAN: &str = "[[slot]]\nname = \"a\"\nbytes = \"1 MiB\"\nkind = \"private\"\n\
                    [[slot]]\nname = \"b\"\nbytes = \"2200 KiB\"\nkind = \"private\"\n\
                    [[slot]]\nname = \"c\"\nbytes = \"8 MiB\"\nkind = \"shared\"\n";

/// A machine of one cache of 16 ways of 1 MiB, on which no colors were found.
struct Server {
    room: Room,
    kernel: String,
}

impl Server {
    /// `None` (counted as skipped) without a compiler, and on a machine that keeps nothing from run to
    /// run.
    fn new() -> Option<Server> {
        let room = Room::new();
        let kernel = room.path("resctrl.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/resctrl.c");
        let compiled = Command::new("gcc")
            .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", &kernel])
            .arg(source)
            .arg("-ldl")
            .status();
        match compiled {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                harness::not_installed(format_args!("there is no gcc"));
                return None;
            }
            status => assert!(status.unwrap().success()),
        }
        let server = Server { room, kernel };
        server.write("info/L3/cbm_mask", "ffff\n");
        server.write("info/L3/min_cbm_bits", "1\n");
        server.write("info/L3/num_closids", "16\n");
        server.write("info/L3/shareable_bits", "0\n");
        server.write("schemata", "L3:0=ffff\n");
        server.write("size", "L3:0=16777216\n");
        server.write("tasks", "");
        let at = |path: &str| server.room.folder().join(path);
        fs::write(at("fresh"), "L3:0=ffff\n").unwrap();
        for cpu in sys::cpus::cpus(&sys::Root::default()).unwrap().online {
            let folder = at(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3"));
            fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("level", "3"), ("type", "Unified"), ("id", "0")] {
                fs::write(folder.join(file), text).unwrap();
            }
        }
        fs::create_dir_all(at("proc")).unwrap();
        let mounts = format!("resctrl {} resctrl rw,relatime 0 0\n", server.tree().display());
        fs::write(at("proc/mounts"), mounts).unwrap();
        server.has_no_colors().then_some(server)
    }

    /// Keeps the probe's results of this machine, except that it found no colors.
    fn has_no_colors(&self) -> bool {
        let mut probe = domicile(&["probe", "--quick", "--json"]);
        probe
            .env("XDG_CACHE_HOME", self.room.folder())
            .env_remove("DOMICILE_COLORS");
        assert!(probe.output().unwrap().status.success());
        let kept = self.room.folder().join("domicile/colors.toml");
        let Ok(text) = fs::read_to_string(&kept) else {
            harness::not_here("the boot is not identified, so nothing is kept");
            return false;
        };
        let mut all: toml::Table = toml::from_str(&text).unwrap();
        let report = all["measured"].as_table_mut().unwrap();
        report.remove("validated");
        report.insert("reason".to_string(), "the index is hashed".into());
        fs::write(kept, toml::to_string(&all).unwrap()).unwrap();
        true
    }

    fn tree(&self) -> PathBuf {
        self.room.folder().join("sys/fs/resctrl")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.tree().join(path)).unwrap()
    }

    /// The ways that are everybody's.
    fn default_ways(&self) -> u64 {
        mask(&self.read("schemata"))
    }

    fn groups(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tree()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("domicile.")).collect()
    }

    /// A command in the tree, with the kernel's part played.
    fn within(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.tree())
            .env("LD_PRELOAD", &self.kernel)
            .env("FAKE", self.room.folder())
            .env("XDG_CACHE_HOME", self.room.folder())
            .env("DOMICILE_SOCKET", "/nonexistent/socket")
            .env("DOMICILE_PRELOAD", "/nonexistent/runtime")
            .env_remove("DOMICILE_COLORS");
        command
    }

    /// `domicile run` with a plan, options, and a command of a shell.
    fn command(&self, plan: &str, options: &[&str], script: &str) -> Command {
        let plan = self.room.file("plan.toml", plan);
        let mut run = self.within(env!("CARGO_BIN_EXE_domicile"));
        run.args(["run", "--slots", &plan])
            .args(options)
            .args(["--", "sh", "-c", script]);
        run
    }

    fn run(&self, plan: &str, options: &[&str], script: &str) -> Output {
        self.command(plan, options, script).output().unwrap()
    }
}

/// The mask of the machine's only cache.
fn mask(schemata: &str) -> u64 {
    let digits = schemata.trim().strip_prefix("L3:0=");
    u64::from_str_radix(digits.unwrap_or_else(|| panic!("{schemata}")), 16).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_has_the_ways_of_its_private_slots_until_it_ends() {
    let Some(server) = Server::new() else { return };
    let script = "cat domicile.*/schemata schemata domicile.*/tasks; echo $PPID; exit 3";
    let output = server.run(PLAN, &[], script);
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{said}");
    let lines: Vec<&str> = printed.lines().collect();
    let [own, default, task, parent] = lines.as_slice() else {
        panic!("{printed}{said}")
    };
    // 1 MiB and 2200 KiB are three ways and a bit.
    assert_eq!((mask(own).count_ones(), mask(own) | mask(default)), (3, 0xffff));
    assert_eq!(mask(own) & mask(default), 0);
    // The process that starts the program is in the group, and its children are, too.
    assert_eq!(task, parent);
    for about in ["the index is hashed", "L3", "by resctrl", "on no hardware"] {
        assert!(said.contains(about), "{about}: {said}");
    }
    assert!(said.contains("had 3.00 MB of each L3 cache for itself"), "{said}");
    assert!(server.groups().is_empty());
    assert_eq!(server.default_ways(), 0xffff);
    assert_eq!(server.read("tasks").trim(), *task);

    let output = server.run(PLAN, &["--json"], "exit 0");
    let said = text(&output.stderr);
    let report = said.lines().find(|line| line.starts_with('{'));
    let report: Value = serde_json::from_str(report.unwrap_or_else(|| panic!("{said}"))).unwrap();
    assert_eq!(report["colors"], 0);
    assert_eq!(
        (&report["ways"]["level"], &report["ways"]["bytes"]),
        (&3.into(), &(3 << 20).into())
    );
    assert_eq!(report["ways"]["asked_bytes"], (1 << 20) + (2200 << 10));
    assert_eq!(report["ways"]["caches"].as_array().unwrap().len(), 1);
}

#[test]
fn ways_of_a_run_that_was_killed_come_back_with_the_next_one() {
    let Some(server) = Server::new() else { return };
    let mut command = server.command(PLAN, &[], "echo there; exec sleep 1000");
    let mut killed = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(killed.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "there\n");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let left = server.groups();
    assert!(
        left.len() == 1 && left[0].contains(&format!(".{}.", killed.id())),
        "{left:?}"
    );
    // The kernel's file has the bytes of the default group's ways.
    let bytes = u64::from(server.default_ways().count_ones()) << 20;
    assert_eq!(bytes, 13 << 20);
    server.write("size", &format!("L3:0={bytes}\n"));
    let output = server.run(PLAN, &[], "echo domicile.*");
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(
        printed.starts_with("domicile.") && !printed.contains(&left[0]),
        "{printed}{said}"
    );
    assert_eq!((server.groups(), server.default_ways()), (Vec::new(), 0xffff));
}

#[test]
fn what_cannot_be_had_by_ways_is_refused_or_left_alone() {
    let Some(server) = Server::new() else { return };
    let large = PLAN.replace("1 MiB", "30 MiB");
    let output = server.run(&large, &[], "echo ran");
    let said = text(&output.stderr);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(1), String::new()),
        "{said}"
    );
    assert!(
        said.contains("cache 0 can give 15 of 32 ways") && said.contains("not started"),
        "{said}"
    );
    assert_eq!((server.groups(), server.default_ways()), (Vec::new(), 0xffff));

    // Shared slots take nothing.
    let output = server.run(&PLAN.replace("private", "shared"), &[], "echo domicile.*");
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "domicile.*\n", "{said}");
    assert!(said.contains("the plan has no private slot"), "{said}");

    // Colors come first: their run-time is looked for, and no group is made.
    let output = server.run(PLAN, &["--force-colors", "12:4:65536"], "echo ran");
    let said = text(&output.stderr);
    assert!(said.contains("DOMICILE_PRELOAD: there is no file"), "{said}");

    // Without the tree all is as ever.
    fs::write(server.room.folder().join("proc/mounts"), "proc /proc proc rw 0 0\n").unwrap();
    let output = server.run(PLAN, &[], "echo ran");
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    let words =
        "page colors: the index is hashed\nThe program was not started. `domicile probe` says more; --force-colors";
    assert!(said.contains(words) && !said.contains("resctrl"), "{said}");
}

#[test]
fn a_program_of_the_papers_functions_has_ways_for_its_threads() {
    let Some(server) = Server::new() else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = built("libdomicile.so");
    for name in ["libdomicile.so", "libdomicile.so.0"] {
        fs::copy(&library, server.room.folder().join(name)).unwrap();
    }
    let (program, folder) = (server.room.path("ways"), server.room.folder());
    let compiled = Command::new("gcc")
        .args(["-Wall", "-Werror", "-pthread", "-o", &program])
        .arg(package.join("tests/programs/ways.c"))
        .arg("-I")
        .arg(package.join("../capi/headers"))
        .arg("-I")
        .arg(package.join("../capi/include"))
        .arg(format!("-L{}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-ldomicile")
        .status();
    assert!(compiled.unwrap().success());
    let output = server.within(&program).output().unwrap();
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let lines: Vec<&str> = printed.lines().collect();
    let [note, available, own, default, task, process] = lines.as_slice() else {
        panic!("{printed}")
    };
    assert!(
        note.contains("the index is hashed") && note.contains("on no hardware"),
        "{note}"
    );
    // The default group keeps one.
    assert_eq!(*available, format!("{} KB", 15 << 10));
    assert_eq!((mask(own).count_ones(), mask(own) ^ mask(default)), (2, 0xffff));
    assert_eq!(task, process);
    assert_eq!((server.groups(), server.default_ways()), (Vec::new(), 0xffff));
}
