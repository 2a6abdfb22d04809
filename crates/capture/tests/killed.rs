//! What was written before a process is killed is in the recording: once, and all of it.
#![forbid(unsafe_code)]

use crate::workshop;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sys::signals::send;
use trace::{Op, Trace};
use workshop::{compile, recorder, threads, touches, unfinished};

const SIGKILL: i32 = 9;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

/// Starts recording `program`, which works until it is killed; its process.
fn begin(program: &Path, path: &Path) -> (Child, u32) {
    let (recorder, arguments) = recorder(path);
    let mut child = Command::new(recorder)
        .args(arguments.iter().filter(|argument| *argument != "--quiet"))
        .arg(program)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, line.trim().parse().unwrap())
}

/// The recording of a program that was killed has its writes in turn, without a gap and none twice.
fn in_turn(child: Child, path: &Path) -> usize {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + SIGKILL), "{said}");
    assert!(!said.contains("left out"), "{said}");
    let trace = Trace::open(path).unwrap();
    assert!(trace.damage().is_empty());
    let written: Vec<_> = touches(&trace, 0, "data");
    for (number, &(op, offset, _)) in written.iter().enumerate() {
        assert_eq!((op, offset), (Op::Write, 4 * (number as u64 % 4096)), "write {number}");
    }
    written.len()
}

/// Whether the process sleeps.
fn sleeps(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Waits for something that takes as long as it takes, on a machine that is busy.
fn eventually(what: &str, pause: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(pause);
    }
}

/// The recorder lags behind, so that the program waits for an empty slot when it is killed: the last full one is neither
/// lost nor there twice.
#[test]
fn a_process_killed_while_it_waits_is_recorded_once() {
    let bench = compile("killed", &[]);
    let path = bench.folder.path().join("waits.dtr");
    let (child, pid) = begin(&bench.program, &path);
    send(child.id(), SIGSTOP).unwrap();
    let mut asleep = 0;
    eventually("the program waits for a slot", Duration::from_millis(10), || {
        asleep = if sleeps(pid) { asleep + 1 } else { 0 };
        asleep == 20
    });
    send(pid, SIGKILL).unwrap();
    send(child.id(), SIGCONT).unwrap();
    // The slots that it had filled hold that many at least.
    assert!(in_turn(child, &path) > 60_000);
}

#[test]
fn a_process_killed_at_work_is_recorded_up_to_there() {
    let bench = compile("killed", &[]);
    for round in 0..6 {
        let path = bench.folder.path().join(format!("{round}.dtr"));
        let (child, pid) = begin(&bench.program, &path);
        eventually("the program is at work", Duration::from_millis(5), || {
            std::fs::metadata(unfinished(&path)).is_ok_and(|m| m.len() >= 4096)
        });
        std::thread::sleep(Duration::from_micros(1700 * round));
        send(pid, SIGKILL).unwrap();
        assert!(in_turn(child, &path) > 4096);
    }
}

/// Children speak when they come to it; meanwhile their parent goes on in code that is new.
#[test]
fn children_that_speak_late_are_understood() {
    let (outcome, trace) = compile("killed", &[]).record(&["forks"]);
    let lost: Vec<_> = outcome.notes.iter().filter(|note| note.contains("left out")).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(trace.processes().len(), 17);
    for thread in threads(&trace).skip(1) {
        let written: Vec<_> = touches(&trace, thread, "data")
            .into_iter()
            .filter(|(op, offset, _)| *op == Op::Write && (400..800).contains(offset))
            .map(|(_, offset, _)| offset)
            .collect();
        let wanted: Vec<_> = (100..200).map(|k| 4 * k).collect();
        assert_eq!(written, wanted, "thread {thread}");
    }
}
