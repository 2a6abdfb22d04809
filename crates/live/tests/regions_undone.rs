//! Cpus that real processes get back: those that were given them, and those that they started meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use live::regions::{Here, Linux, Undo};

/// A shell that starts a process at each line that it reads.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    started: Vec<u32>,
}

impl Shell {
    fn new() -> Shell {
        let mut child = Command::new("sh")
            .args(["-c", "while read line; do sleep 1000 >/dev/null & echo $!; done"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Shell {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            started: Vec::new(),
        }
    }

    fn number(&self) -> u32 {
        self.child.id()
    }

    fn start(&mut self) -> u32 {
        writeln!(self.input).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let started = line.trim().parse().unwrap();
        self.started.push(started);
        started
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let all: Vec<String> = self.started.iter().map(u32::to_string).collect();
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = Command::new("kill").args(all).status();
    }
}

/// The ticks of the clock go on.
fn next_tick(linux: &mut Here) {
    let before = linux.ticks();
    while linux.ticks() == before {
        std::thread::yield_now();
    }
}

#[test]
fn who_was_started_meanwhile_is_free_afterwards_and_an_owner_s_pin_stays() {
    let all = sys::affinity::allowed(None).unwrap();
    if all.len() < 2 {
        harness::not_here("this test gives processes one of several cpus");
        return;
    }
    let one = [all[0]];
    let folder = tempfile::tempdir().unwrap();
    let mut linux = Here::new(None);
    let mut undo = Undo::open(folder.path()).unwrap();
    let mut shell = Shell::new();
    let parent = shell.number();
    let early = shell.start();
    let before = linux.mask(parent, parent).unwrap();
    next_tick(&mut linux);
    for freed_at_once in [true, false] {
        undo.give(&mut linux, parent, &one).unwrap().unwrap();
        linux.allow(early, &one).unwrap();
        let late = shell.start();
        let mask = |linux: &mut Here, process| linux.mask(process, process).unwrap();
        assert_eq!(
            (mask(&mut linux, parent), mask(&mut linux, late)),
            (one.to_vec(), one.to_vec())
        );
        if freed_at_once {
            undo.free(&mut linux).unwrap();
            assert_eq!(
                (mask(&mut linux, parent), mask(&mut linux, late)),
                (one.to_vec(), before.clone())
            );
        }
        undo.restore_all(&mut linux).unwrap();
        assert_eq!(
            [mask(&mut linux, parent), mask(&mut linux, late)],
            [before.clone(), before.clone()]
        );
        assert_eq!(mask(&mut linux, early), one, "its owner has pinned it");
        assert!(!undo.file().exists());
    }
}
