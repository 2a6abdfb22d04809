//! Advice on programs that break off, are interrupted, or write to where the advice would go.

use crate::house;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use house::{Room, domicile, output};
use serde_json::Value;

/// Writes 4096 numbers, and then obeys its argument.
const PROGRAM: &str = "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
    volatile int data[4096];\n\
    int main(int count, char **words) {\n\
      const char *how = count > 1 ? words[1] : \"\";\n\
      for (int i = 0; i < 4096; i++) data[i] = i;\n\
      if (!strcmp(how, \"crash\"))\n\
        *(volatile int *)8 = 1;\n\
      if (!strcmp(how, \"refuse\")) { fputs(\"no\\n\", stderr); return 3; }\n\
      if (!strcmp(how, \"binary\")) { for (int i = 0; i < 256; i++) putchar(i); return 0; }\n\
      if (!strcmp(how, \"stubborn\")) {\n\
        signal(SIGINT, SIG_IGN); signal(SIGTERM, SIG_IGN); alarm(600);\n\
        fputs(\"begun\\n\", stdout); fflush(stdout);\n\
        for (unsigned i = 0;; i++) data[i % 4096] += 1;\n\
      }\n\
      return 0; }\n";

fn compiled(room: &Room) -> String {
    let source = room.file("odd.c", PROGRAM);
    let program = room.path("odd");
    let done = Command::new("gcc")
        .args(["-O1", "-g", "-o", &program, &source])
        .status();
    assert!(done.unwrap().success());
    program
}

fn advise(room: &Room, options: &[&str], command: &[&str]) -> assert_cmd::Command {
    let machine = ["advise", "--machine", "simos-r4400", "--cpus", "1", "--force"];
    let result = room.path("advice.json");
    let words = [&machine[..], &["-o", &result], options, &["--"], command].concat();
    domicile(&words)
}

#[test]
fn the_first_line_says_that_a_run_broke_off_and_the_status_is_the_programs() {
    let room = Room::new();
    let program = compiled(&room);
    let why = "the program was killed by signal 11 (SIGSEGV), at main (odd.c:11)";
    let run = advise(&room, &["--quiet"], &[&program, "crash"]).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(128 + 11), "{said}");
    assert!(said.starts_with("Not a whole run: the program"), "{said}");
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("Not a whole run: {why}")), "{said}");
    assert!(text.contains(", broken run"), "{said}");
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(room.path("advice.json")).unwrap()).unwrap();
    assert!(saved["broke"].as_str().unwrap().starts_with(why), "{saved}");
    let verdict = saved["verdict"].as_str().unwrap();
    assert!(verdict.contains(&format!("Not of a whole run ({why});")), "{verdict}");
    // Shown again it says so, too, as a page as well.
    let (again, _) = output(&["report", &room.path("advice.json")], 0);
    assert!(again.starts_with("Not a whole run: "), "{again}");
    let (page, _) = output(&["report", &room.path("advice.json"), "--html", "-"], 0);
    assert!(
        page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"),
        "{page}"
    );
    assert!(page.contains("Not a whole run: "), "{page}");
    // The program's status passes through, whatever it means.
    for (command, status) in [(&[&*program][..], 0), (&[&program, "refuse"], 3)] {
        let run = advise(&room, &[], command).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(status), "{said}");
        // However the lines are broken.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            !said.contains("Not a whole run") && said.contains(&format!(", whole run, exit {status}")),
            "{said}"
        );
    }
}

/// A trace that was recorded before says it of itself.
#[test]
fn a_trace_keeps_that_its_run_broke_off() {
    let room = Room::new();
    let program = compiled(&room);
    let trace = room.path("crash.trace");
    let (_, said) = output(&["record", "-o", &trace, "--", &program, "crash"], 128 + 11);
    assert!(
        said.starts_with("domicile: the program was killed by signal 11 (SIGSEGV), at main (odd.c:11)"),
        "{said}"
    );
    let words = [
        "advise",
        "--machine",
        "simos-r4400",
        "--cpus",
        "1",
        "-o",
        &room.path("a.json"),
        &trace,
    ];
    let (text, _) = output(&words, 0);
    assert!(
        text.starts_with("Not a whole run: the program was killed by signal 11"),
        "{text}"
    );
}

#[test]
fn advice_on_what_a_full_disk_could_hold_says_so_first() {
    if !harness::root() {
        return harness::not_allowed("a small file system can be mounted by root alone");
    }
    let room = Room::new();
    let script = format!(
        "$domicile advise --machine simos-r4400 --cpus 1 -o {} --keep $disk/a.trace -- \
         sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'",
        room.path("advice.json"),
    );
    let run = room.on_small_disk(128, &script);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("Not a whole run: the trace could not be written to its end: "),
        "{said}"
    );
    assert!(said.contains("No space left"), "{said}");
}

#[test]
fn advice_does_not_mix_with_what_a_program_writes() {
    let room = Room::new();
    let program = compiled(&room);
    let run = advise(&room, &[], &[&program, "binary"]).output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    assert_eq!(run.stdout, (0..=255).collect::<Vec<u8>>());
    assert!(String::from_utf8_lossy(&run.stderr).contains("More: domicile report "));
    // JSON has standard output to itself.
    let run = advise(&room, &["--json"], &[&program, "binary"]).output().unwrap();
    let advice: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(advice.get("broke"), None);
}

/// It goes on whatever it is sent. (A signal, so that it has begun when that comes.)
fn stubborn(room: &Room, program: &str) -> std::process::Child {
    let mut child = Command::new("env")
        .args([
            "--default-signal",
            env!("CARGO_BIN_EXE_domicile"),
            "advise",
            "--machine",
            "simos-r4400",
        ])
        .args([
            "--cpus",
            "1",
            "-o",
            &room.path("advice.json"),
            "--",
            program,
            "stubborn",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "begun\n");
    // Something is to be recorded after that.
    std::thread::sleep(Duration::from_millis(500));
    child
}

fn interrupt(child: &std::process::Child) {
    sys::signals::send(child.id(), 2).unwrap();
}

#[test]
fn an_interrupt_ends_the_recording_of_a_program_that_goes_on() {
    let room = Room::new();
    let program = compiled(&room);
    let child = stubborn(&room, &program);
    interrupt(&child);
    let run = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(130), "{said}");
    assert!(
        said.contains("Not a whole run: the program was interrupted (signal 2 (SIGINT))"),
        "{said}"
    );
    assert!(said.contains("More: domicile report "), "{said}");
}

#[test]
fn a_second_interrupt_ends_all_at_once() {
    let room = Room::new();
    let program = compiled(&room);
    let mut child = stubborn(&room, &program);
    // Two that come at once may arrive as one.
    while child.try_wait().unwrap().is_none() {
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(100));
    }
    let run = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    // By itself, or by the signal where the program had ended before.
    let ended = (run.status.code(), run.status.signal());
    assert!(matches!(ended, (Some(130), None) | (None, Some(2))), "{ended:?} {said}");
    assert!(!said.contains("More: domicile report "), "{said}");
    assert!(!std::path::Path::new(&room.path("advice.json")).exists());
}
