//! The ends of recordings: the program gets the signals, its status is passed on, and nothing is left
//! behind.

use crate::house;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use house::{Room, domicile, json};
use sys::signals::send;

const KILL: i32 = 9;
const INTERRUPT: i32 = 2;

/// Compiles a program of the tests.
fn compiled(room: &Room, source: &str, name: &str) -> String {
    let program = room.path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let done = Command::new("gcc")
        .args(["-O1", "-g", "-o", &program])
        .arg(source)
        .status();
    assert!(done.unwrap().success());
    program
}

/// Says which signals arrive, and ends with 7 at SIGTERM.
fn signals(room: &Room) -> String {
    compiled(room, "tests/slow/run/programs/signals.c", "signals")
}

/// The command under way, with its temporary files in a folder of its own.
struct Going {
    command: Child,
    lines: BufReader<ChildStdout>,
}

impl Going {
    /// In the background of a shell some signals would be ignored, and stay so.
    fn start(room: &Room, words: &[&str]) -> Going {
        let mut command = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_domicile")])
            .args(words)
            .env("TMPDIR", temporary(room))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(command.stdout.take().unwrap());
        Going { command, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim().to_string()
    }

    fn send(&self, number: i32) {
        send(self.command.id(), number).unwrap();
    }

    fn ends(mut self) -> Option<i32> {
        self.command.wait().unwrap().code()
    }
}

fn temporary(room: &Room) -> PathBuf {
    let folder = room.folder().join("temporary");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn left_behind(room: &Room) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(temporary(room)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Waits for something that comes about soon, or never.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came about: {what}");
}

#[test]
fn every_signal_is_the_programs() {
    let room = Room::new();
    let program = signals(&room);
    let trace = room.path("signals.trace");
    let mut going = Going::start(&room, &["record", "-o", &trace, "--", &program]);
    assert!(going.line().starts_with("process "));
    for number in [1, 2, 3, 10, 12, 13, 14, 18, 23, 28, 34, 40] {
        going.send(number);
        assert_eq!(going.line(), number.to_string());
    }
    let sent = Command::new(&program)
        .args(["send", &going.command.id().to_string(), "41", "-5"])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(going.line(), "41 with -5");
    going.send(15);
    assert_eq!(going.line(), "15");
    assert_eq!(going.ends(), Some(7));
    assert!(json(&["trace", "info", &trace, "--json"])[0]["references"].as_u64() > Some(1000));
    assert!(left_behind(&room).is_empty());
}

#[test]
fn what_a_killed_recorder_left_goes_with_the_next_when_its_program_is_gone() {
    let room = Room::new();
    let program = signals(&room);
    let record = |name: &str| Going::start(&room, &["record", "-o", &room.path(name), "--", &program]);
    let mut killed = record("killed.trace");
    let said = killed.line();
    let process: u32 = said.strip_prefix("process ").unwrap().parse().unwrap();
    assert_eq!(left_behind(&room).len(), 1);
    killed.send(KILL);
    // It has to be over before the next look, and its output is the program's, which goes on.
    killed.command.wait().unwrap();
    let mut next = record("next.trace");
    next.line();
    assert_eq!(left_behind(&room).len(), 2, "the program that goes on may need it");
    next.send(15);
    next.line();
    assert_eq!(next.ends(), Some(7));
    assert_eq!(left_behind(&room).len(), 1);
    send(process, KILL).unwrap();
    until("the program is gone", || {
        !Path::new(&format!("/proc/{process}")).exists()
    });
    let mut last = record("last.trace");
    last.line();
    assert_eq!(left_behind(&room).len(), 1, "its own");
    last.send(15);
    last.line();
    assert_eq!(last.ends(), Some(7));
    assert!(left_behind(&room).is_empty());
}

#[test]
fn where_nothing_can_be_written_that_is_said_and_the_program_not_begun() {
    let output = domicile(&["record", "-o", "/dev/full", "--", "echo", "begun"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no reference could be written"), "{said}");
    assert!(!said.contains("references in") && !said.contains("are kept"), "{said}");
    assert_eq!(output.stdout, b"");
}

/// On a disk that is full in the middle.
#[test]
fn the_status_is_the_programs_where_half_could_be_written() {
    if !harness::root() {
        return harness::not_allowed("a small file system can be mounted by root alone");
    }
    let room = Room::new();
    let output = room.on_small_disk(
        128,
        "$domicile record -o $disk/a.trace -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7'\n\
         code=$?\n\
         $domicile trace info --json --salvage $disk/a.trace || exit 98\n\
         exit $code",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(
        said.contains("No space left") && said.contains("are kept and can be read"),
        "{said}"
    );
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(info["references"].as_u64() > Some(0), "{info}");
}

/// The disk is full when names of processes, stacks or functions come, and not references.
#[test]
fn what_was_written_is_kept_where_the_tables_do_not_fit() {
    if !harness::root() {
        return harness::not_allowed("a small file system can be mounted by root alone");
    }
    let room = Room::new();
    let source = room.file(
        "many.c",
        "#include <pthread.h>\n#include <stdlib.h>\n\
         static void *w(void *a) { volatile long *p = calloc(1 << 16, 8);\n\
         for (int i = 0; i < 1 << 16; i += 8) p[i] += 1; return (void *)p; }\n\
         int main(void) { for (int r = 0; r < 10; r++) { pthread_t t[20];\n\
         for (int i = 0; i < 20; i++) pthread_create(t + i, 0, w, 0);\n\
         for (int i = 0; i < 20; i++) pthread_join(t[i], 0); } return 5; }\n",
    );
    let program = compiled(&room, &source, "many");
    for kilobytes in [60, 68, 80, 100, 120] {
        let script = format!(
            "$domicile record -o $disk/a.trace -- {program}\n\
             code=$?\n\
             $domicile trace info --json --salvage $disk/a.trace || exit 98\n\
             exit $code"
        );
        let output = room.on_small_disk(kilobytes, &script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{kilobytes} KB: {said}");
        assert!(said.contains("are kept and can be read"), "{kilobytes} KB: {said}");
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(info["references"].as_u64() > Some(0), "{info}");
    }
}

#[test]
fn advice_on_an_interrupted_program_says_so() {
    let room = Room::new();
    let program = compiled(&room, "../capture/tests/programs/ends.c", "ends");
    let mut going = Going::start(
        &room,
        &[
            "advise",
            "--machine",
            "simos-r4400",
            "--cpus",
            "1",
            "--json",
            "--",
            &program,
            "wait",
        ],
    );
    until("it records", || {
        let recording = |folder: &PathBuf| std::fs::metadata(folder.join("advise.trace.partial"));
        left_behind(&room)
            .iter()
            .any(|folder| recording(folder).is_ok_and(|file| file.len() > 4096))
    });
    going.send(INTERRUPT);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut going.lines, &mut text).unwrap();
    assert!(
        text.contains("interrupted (signal 2 (SIGINT))") && text.contains("what was recorded says"),
        "{text}"
    );
    assert_eq!(going.ends(), Some(128 + INTERRUPT));
    assert!(left_behind(&room).is_empty());
}
