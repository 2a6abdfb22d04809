//! What is recorded is what the program did, reference for reference.
#![forbid(unsafe_code)]

use crate::workshop;

use std::process::Command;

use trace::{Event, Op};
use workshop::{compile, events, record, stream, symbol, threads, touches};

const COUNT: u64 = 1000;

#[test]
fn references_of_a_threaded_program_are_known_exactly() {
    let (outcome, trace) = compile("known", &[]).record(&[]);
    assert_eq!(outcome.exit, capture::Exit::Code(0));
    assert_eq!(trace.threads().len(), 3);
    let forwards = (0..COUNT).map(|i| (Op::Write, 8 * i, 8));
    let backwards = (0..COUNT).rev().map(|i| (Op::Read, 8 * i, 8));
    assert_eq!(
        touches(&trace, 1, "array_a"),
        forwards.chain(backwards).collect::<Vec<_>>()
    );
    // `array_b[i]++` is a load, an addition in a register and a store, or one instruction.
    let b = touches(&trace, 2, "array_b");
    let modified: Vec<_> = (0..COUNT).step_by(2).map(|i| (Op::Modify, 4 * i, 4)).collect();
    let apart: Vec<_> = (0..COUNT)
        .step_by(2)
        .flat_map(|i| [(Op::Read, 4 * i, 4), (Op::Write, 4 * i, 4)])
        .collect();
    assert!(b == modified || b == apart, "{:?}", &b[..4]);
    for (thread, other) in [(0, "array_a"), (0, "array_b"), (1, "array_b"), (2, "array_a")] {
        assert_eq!(touches(&trace, thread, other), []);
    }
}

/// A processor fills and copies by lines and vectors, whichever instruction the C library has for it.
#[test]
fn memory_is_not_filled_byte_by_byte() {
    for flags in [&["-fno-builtin"][..], &["-fno-builtin", "-static"]] {
        let (outcome, trace) = compile("filled", flags).record(&[]);
        assert_eq!(outcome.exit, capture::Exit::Code(0));
        for array in ["array_a", "array_b"] {
            let touched = touches(&trace, 0, array);
            let written: u64 = touched
                .iter()
                .filter(|touch| touch.0 == Op::Write)
                .map(|touch| u64::from(touch.2))
                .sum();
            assert!(written >= 1 << 20, "{written} bytes of {array}");
            assert!(
                touched.len() < 3 * (1 << 20) / 16,
                "{} accesses of {array}",
                touched.len()
            );
        }
    }
}

#[test]
fn synchronization_of_a_threaded_program_is_seen() {
    synchronization_is_seen(&[]);
}

#[test]
fn synchronization_of_a_static_program_is_seen() {
    synchronization_is_seen(&["-static"]);
}

fn synchronization_is_seen(flags: &[&str]) {
    let (_, trace) = compile("known", flags).record(&[]);
    let (mutex, _) = symbol(&trace, "mutex");
    let (barrier, _) = symbol(&trace, "barrier");
    let all = events(&trace);
    let at = |event: Event| {
        all.iter()
            .filter(|(_, e)| *e == event)
            .map(|(t, _)| *t)
            .collect::<Vec<_>>()
    };
    assert_eq!(at(Event::Spawn { child: 1 }), [0]);
    assert_eq!(at(Event::Spawn { child: 2 }), [0]);
    assert_eq!(at(Event::Join { child: 1 }), [0]);
    assert_eq!(at(Event::Join { child: 2 }), [0]);
    let mut barriers = at(Event::Barrier {
        object: barrier,
        threads: 2,
    });
    barriers.sort_unstable();
    assert_eq!(barriers, [1, 2]);
    assert_eq!(at(Event::Lock { object: mutex }), at(Event::Unlock { object: mutex }));
    assert_eq!(at(Event::Lock { object: mutex }).len(), 2);
    let ends = at(Event::Exit);
    assert!(ends.len() == 3 && ends[2] == 0, "{ends:?}");
    for thread in 1..3 {
        // What is under the lock lies between its events; what is before the barrier before it.
        let (refs, events) = stream(&trace, thread);
        let place = |event: &Event| events.iter().find(|e| e.event == *event).unwrap().at as usize;
        let (from, to) = (
            place(&Event::Lock { object: mutex }),
            place(&Event::Unlock { object: mutex }),
        );
        let (shared, _) = symbol(&trace, "shared");
        let touched: Vec<_> = (0..refs.len()).filter(|i| refs[*i].addr == shared).collect();
        assert!(!touched.is_empty() && touched.iter().all(|i| from <= *i && *i < to));
        assert!(
            place(&Event::Barrier {
                object: barrier,
                threads: 2
            }) < from
        );
    }
}

/// lackey prints every reference as it is made. It counts the plain read by which a locked
/// instruction begins apart from the compare-and-swap that ends it; we say one modification. Nothing
/// else differs: not the order, not an address, not a size.
#[test]
fn references_are_those_that_lackey_sees() {
    let bench = compile("mixed", &["-static"]);
    // The same environment and folder for both tools: the stack begins where they end. Without the
    // preloaded library, which lackey does not have.
    let both = bench.folder.path().join("both");
    std::fs::create_dir(&both).unwrap();
    for (folder, file) in [
        ("/usr/libexec/valgrind", "lackey-amd64-linux"),
        ("/usr/libexec/valgrind", "default.supp"),
        ("/usr/libexec/valgrind", "vgpreload_core-amd64-linux.so"),
        (workshop::tool().to_str().unwrap(), "domicile-amd64-linux"),
    ] {
        std::os::unix::fs::symlink(format!("{folder}/{file}"), both.join(file)).unwrap();
    }
    let log = bench.folder.path().join("lackey.log");
    let lackey = Command::new("valgrind")
        .env("VALGRIND_LIB", &both)
        // What a recorded program is given: the stack begins below it.
        .envs([("OMP_WAIT_POLICY", "passive"), ("KMP_BLOCKTIME", "0")])
        .env(
            "GLIBC_TUNABLES",
            "glibc.cpu.x86_rep_stosb_threshold=2147483647:glibc.cpu.x86_rep_movsb_threshold=2147483647",
        )
        .args([
            "--tool=lackey",
            "--trace-mem=yes",
            "--vgdb=no",
            "--vex-guest-chase=no",
            "-q",
        ])
        .arg(format!("--log-file={}", log.display()))
        .arg(&bench.program)
        .output()
        .unwrap();
    assert!(lackey.status.success());
    let mut options = bench.options(&[]);
    options.tool = Some(both);
    let (outcome, trace) = record(&options);
    let theirs: Vec<(Op, u64, u16)> = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter_map(|line| {
            let op = match line.get(..3)? {
                " L " => Op::Read,
                " S " => Op::Write,
                " M " => Op::Modify,
                _ => return None,
            };
            let (addr, size) = line[3..].trim().split_once(',')?;
            Some((op, u64::from_str_radix(addr, 16).ok()?, size.parse().ok()?))
        })
        .collect();
    let ours: Vec<_> = stream(&trace, 0).0.iter().map(|r| (r.op, r.addr, r.size)).collect();
    let mut apart = 0;
    let mut next = theirs.iter();
    for (index, mine) in ours.iter().enumerate() {
        let mut other = next.next();
        if mine.0 == Op::Modify && other == Some(&(Op::Read, mine.1, mine.2)) {
            apart += 1;
            other = next.next();
        }
        assert_eq!(other, Some(mine), "reference {index}");
    }
    assert_eq!(next.next(), None);
    // 50 times two locked instructions, and a few of the C library's own.
    assert!((100..200).contains(&apart), "{apart}");
    let instructions = std::fs::read_to_string(&log)
        .unwrap()
        .lines()
        .filter(|l| l.starts_with("I "))
        .count() as u64;
    // lackey prints instructions as it enters pieces of a superblock; the last piece may not be run.
    let mine = outcome.summary.instructions;
    assert!(
        mine.abs_diff(instructions) <= 10,
        "{mine} instructions, lackey {instructions}"
    );
}

#[test]
fn fetches_are_references_on_request() {
    let bench = compile("ends", &[]);
    let (_, without) = bench.record(&["code"]);
    let mut options = bench.options(&["code"]);
    options.fetches = true;
    let (outcome, with) = record(&options);
    assert!(with.header().has_fetches && !without.header().has_fetches);
    let (refs, _) = stream(&with, 0);
    let fetches = refs.iter().filter(|r| r.op == Op::Fetch).count() as u64;
    assert_eq!(fetches, outcome.summary.instructions);
    assert_eq!(without.instructions(), with.instructions());
    assert_eq!(refs.len() as u64 - fetches, without.references());
    // A fetch comes before what its instruction does, at the same program counter.
    let mut pc = 0;
    for r in &refs {
        let site = with.sites()[r.site as usize];
        match r.op {
            Op::Fetch => {
                assert_eq!((r.addr, r.insns), (site.pc, 1));
                pc = r.addr;
            }
            _ => assert_eq!((site.pc, r.insns), (pc, 0)),
        }
    }
}

#[test]
fn program_counters_can_be_left_out() {
    let bench = compile("ends", &[]);
    let mut options = bench.options(&["code"]);
    options.pcs = false;
    let (_, trace) = record(&options);
    assert!(trace.sites().iter().all(|s| s.pc == 0));
    assert!(trace.sites().len() < 100);
    assert_eq!(touches(&trace, 0, "data").len(), 4096);
}

#[test]
fn static_programs_have_references_and_symbols() {
    let (outcome, trace) = compile("known", &["-static"]).record(&[]);
    assert_eq!(outcome.exit, capture::Exit::Code(0));
    assert_eq!(threads(&trace).len(), 3);
    assert_eq!(touches(&trace, 1, "array_a").len(), 2 * COUNT as usize);
    assert!(touches(&trace, 2, "array_b").len() >= COUNT as usize / 2);
}
