//! OpenMP by gcc, clang and flang: who waited for whom, and that waiting leaves no references.
#![forbid(unsafe_code)]

use crate::workshop;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use capture::Exit;
use machine::Machine;
use sim::{Config, PolicySpec};
use trace::{Event, Op, Trace};
use workshop::{Bench, compile_by, events, record, stream, symbol, threads, touches};

// As in `openmp.c`.
const ROUNDS: u64 = 3;
const N: u64 = 1000;
const ALONE: u64 = 100_000;
const ORDERED: u64 = 20;

/// What the program writes with so many threads, unrecorded.
fn native(bench: &Bench, threads: &str, output: &Path) -> String {
    let mut command = std::process::Command::new(&bench.program);
    assert!(command.arg(threads).arg(output).status().unwrap().success());
    std::fs::read_to_string(output).unwrap()
}

/// Records with so many threads; the program writes what it does unrecorded.
fn record_team(bench: &Bench, size: u32) -> Trace {
    let output = bench.folder.path().join("output");
    let size_text = size.to_string();
    let expected = native(bench, &size_text, &output);
    std::fs::remove_file(&output).unwrap();
    let (outcome, trace) = record(&bench.options(&[&size_text, output.to_str().unwrap()]));
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(std::fs::read_to_string(&output).unwrap(), expected, "{size} threads");
    assert!(!expected.trim().is_empty());
    assert_eq!(trace.threads().len(), size as usize);
    trace
}

fn count(trace: &Trace, thread: u32, which: impl Fn(&Event) -> bool) -> u64 {
    let (_, events) = stream(trace, thread);
    events.iter().filter(|timed| which(&timed.event)).count() as u64
}

/// Iterations of `0..n` that a thread has of an even static schedule.
fn share(n: u64, size: u32, thread: u32) -> std::ops::Range<u64> {
    let (size, thread) = (u64::from(size), u64::from(thread));
    let (each, more) = (n / size, n % size);
    let from = thread * each + thread.min(more);
    from..from + each + u64::from(thread < more)
}

/// Every wait is for a post that came before it.
fn waits_follow_posts(trace: &Trace) {
    let mut posted = HashSet::new();
    for (_, event) in events(trace) {
        match event {
            Event::Post { ticket } => assert!(posted.insert(ticket)),
            Event::Wait { ticket } => assert!(posted.contains(&ticket)),
            _ => {}
        }
    }
}

/// All that `openmp.c` says must be seen. `barriers`: those of each region that are not its end.
fn regions_are_seen(compiler: &str, sizes: &[u32], barriers: u64) {
    let Some(bench) = compile_by(compiler, "openmp.c", &[]) else {
        return;
    };
    for &size in sizes {
        let trace = record_team(&bench, size);
        waits_follow_posts(&trace);
        let others = u64::from(size) - 1;
        let happened: Vec<Event> = events(&trace).into_iter().map(|(_, event)| event).collect();
        let begins = happened.iter().filter(|event| matches!(event, Event::TeamBegin { .. }));
        assert!(
            begins
                .clone()
                .all(|event| matches!(event, Event::TeamBegin { threads, .. } if *threads == size))
        );
        // Nobody is a team alone.
        let regions = if size > 1 { ROUNDS } else { 0 };
        assert_eq!(begins.count() as u64, regions);
        assert_eq!(
            count(&trace, 0, |event| matches!(event, Event::TeamBegin { .. })),
            regions
        );
        assert_eq!(
            count(&trace, 0, |event| matches!(event, Event::TeamEnd { .. })),
            regions
        );
        for thread in threads(&trace) {
            // The numbers are those of OpenMP, and so is the share of each.
            let slots: HashSet<u64> = touches(&trace, thread, "who").iter().map(|t| t.1 / 64).collect();
            assert!(slots.contains(&u64::from(thread)) && (thread == 0 || slots.len() == 1));
            let written: BTreeSet<u64> = touches(&trace, thread, "data")
                .into_iter()
                .filter_map(|(op, at, _)| (op == Op::Write).then_some(at / 4))
                .collect();
            assert_eq!(written, share(N, size, thread).collect(), "thread {thread} of {size}");
            // Nobody waits in a team of one.
            let met = count(
                &trace,
                thread,
                |event| matches!(event, Event::Barrier { threads, .. } if *threads == size),
            );
            assert_eq!(met, if size > 1 { ROUNDS * barriers } else { 0 });
            let locks = locks_around(&trace, thread, "critical");
            assert_eq!(locks, ROUNDS);
            if thread > 0 {
                // While it waited for thread 0, which did `ALONE` and more each round, it did nothing.
                let (refs, _) = stream(&trace, thread);
                let own = written.len() as u64 * ROUNDS;
                assert!(
                    (refs.len() as u64) < own + 30_000,
                    "{} by thread {thread} of {size}",
                    refs.len()
                );
            }
        }
        for (name, times) in [("alone", ALONE), ("turns", ALONE), ("order", ORDERED), ("singles", 1)] {
            let all: u64 = threads(&trace)
                .map(|thread| {
                    let writes = touches(&trace, thread, name).into_iter().filter(|t| t.0 != Op::Read);
                    writes.count() as u64
                })
                .sum();
            assert_eq!(all, times * ROUNDS, "{name}");
        }
        regions_are_simulated(&trace, size, others);
    }
}

/// How many references to a variable lie between a lock and its unlock, at most one counted for each lock.
fn locks_around(trace: &Trace, thread: u32, name: &str) -> u64 {
    let (at, bytes) = symbol(trace, name);
    let (refs, happened) = stream(trace, thread);
    let mut held = None;
    let mut around = 0;
    for timed in happened {
        match (&timed.event, held) {
            (Event::Lock { object }, None) => held = Some((*object, timed.at)),
            (Event::Unlock { object }, Some((of, from))) if of == *object => {
                let inside = &refs[from as usize..timed.at as usize];
                around += u64::from(inside.iter().any(|r| r.addr.wrapping_sub(at) < bytes));
                held = None;
            }
            _ => {}
        }
    }
    around
}

fn machine(cpus: u32) -> Machine {
    let preset = machine::presets()
        .iter()
        .find(|preset| preset.name == "simos-r4400")
        .unwrap();
    let machine = machine::from_toml(preset.text, preset.name).unwrap();
    machine.with_cpus(cpus).unwrap()
}

/// On a machine with a cpu for each thread they run side by side: what thread 0 does alone is what the others wait
/// for.
fn regions_are_simulated(trace: &Trace, size: u32, others: u64) {
    let config = Config::new(machine(size), vec![PolicySpec::new("page-coloring".parse().unwrap())]);
    let outcome = sim::simulate(trace, &config, &|_| {}).unwrap().remove(0);
    let time = &outcome.outcome.time_ns;
    // Two references and two more instructions at least, at 400 MHz, in and between the regions; nobody else works.
    let alone = 2 * ALONE * ROUNDS * 4 * 5 / 2;
    assert!(time.wall >= alone, "{} of {alone}", time.wall);
    let waited = time.total - time.busy - time.cache_stall - time.local_stall - time.remote_stall - time.tlb_stall;
    assert!(
        waited >= alone * others && (others == 0 || waited <= time.wall * others),
        "{time:?}"
    );
}

#[test]
fn teams_of_gcc_are_seen() {
    // The loop, the barrier and `single`; at the ordered loop's end the region ends, too.
    regions_are_seen("gcc", &[1, 2, 4, 7, 8, 16], 3);
}

#[test]
fn teams_of_clang_are_seen() {
    regions_are_seen("clang-19", &[1, 2, 4, 7, 8, 16], 4);
}

/// A thread that waits may run a task: it is the program's.
#[test]
fn tasks_run_by_threads_that_wait_are_seen() {
    for compiler in ["gcc", "clang-19"] {
        let Some(bench) = compile_by(compiler, "tasks.c", &[]) else {
            continue;
        };
        let mut options = bench.options(&[]);
        options.discard_output = true;
        let (outcome, trace) = record(&options);
        assert_eq!(outcome.exit, Exit::Code(0));
        waits_follow_posts(&trace);
        let written = |thread| {
            let touched = touches(&trace, thread, "touched").into_iter();
            touched
                .filter(|t| t.0 == Op::Write)
                .map(|t| t.1 / 4)
                .collect::<Vec<_>>()
        };
        let mut all: Vec<u64> = threads(&trace).flat_map(written).collect();
        all.sort_unstable();
        assert_eq!(all, (0..4000).collect::<Vec<_>>(), "{compiler}");
        for thread in threads(&trace) {
            let lone = touches(&trace, thread, "lone").into_iter().filter(|t| t.0 != Op::Read);
            assert_eq!(lone.count(), 2, "{compiler}, thread {thread}");
            // As many locks let go as taken, the nested one as well.
            let balance: i64 = stream(&trace, thread)
                .1
                .iter()
                .map(|timed| match timed.event {
                    Event::Lock { .. } => 1,
                    Event::Unlock { .. } => -1,
                    _ => 0,
                })
                .sum();
            assert_eq!(balance, 0, "{compiler}, thread {thread}");
        }
    }
}

/// Fortran, with reductions: each thread touches its columns, and no others.
#[test]
fn teams_of_flang_are_seen() {
    const SIDE: u64 = 128;
    let Some(bench) = compile_by("flang-new-19", "openmp.f90", &[]) else {
        return;
    };
    for size in [1, 2, 4, 7, 8, 16] {
        let trace = record_team(&bench, size);
        waits_follow_posts(&trace);
        let field = SIDE * SIDE * 8;
        for thread in threads(&trace) {
            assert_eq!(
                count(&trace, thread, |e| matches!(e, Event::TeamBegin { .. })),
                10 * u64::from(thread == 0 && size > 1)
            );
            assert_eq!(
                count(&trace, thread, |e| matches!(e, Event::TeamEnd { .. })),
                10 * u64::from(thread == 0 && size > 1)
            );
            // Thread 0 sets the first field to 1 beforehand; the second is written in the loops only.
            let columns: BTreeSet<u64> = touches(&trace, thread, "fields_")
                .into_iter()
                .filter(|(op, at, _)| *op == Op::Write && *at >= field)
                .map(|(_, at, _)| (at - field) / (8 * SIDE))
                .collect();
            let own: BTreeSet<u64> = share(SIDE - 2, size, thread).map(|j| j + 1).collect();
            assert_eq!(columns, own, "thread {thread} of {size}");
            if thread > 0 {
                let to_fields = touches(&trace, thread, "fields_").len();
                let (refs, _) = stream(&trace, thread);
                assert!(refs.len() < to_fields * 3 + 20_000, "{} of {to_fields}", refs.len());
            }
        }
        let config = Config::new(machine(size), vec![PolicySpec::new("page-coloring".parse().unwrap())]);
        let time = sim::simulate(&trace, &config, &|_| {})
            .unwrap()
            .remove(0)
            .outcome
            .time_ns;
        assert!(
            time.wall > 0 && time.total.abs_diff(time.wall * u64::from(size)) < 1000,
            "{time:?}"
        );
    }
}

/// The cursor of a process whose last thread was waiting when it died is elsewhere: what was recorded is found.
#[test]
fn a_program_that_dies_while_threads_wait_leaves_what_they_did() {
    for compiler in ["gcc", "clang-19"] {
        let Some(bench) = compile_by(compiler, "waiting.c", &[]) else {
            continue;
        };
        let (outcome, trace) = bench.record(&[]);
        assert_eq!(outcome.exit, Exit::Signal(9));
        for thread in threads(&trace) {
            let touched = touches(&trace, thread, "data");
            let own: Vec<_> = (0..64)
                .map(|i| (Op::Write, 256 * u64::from(thread) + 4 * i, 4))
                .collect();
            assert_eq!(touched, own, "{compiler}");
        }
        let barriers = threads(&trace).map(|thread| count(&trace, thread, |e| matches!(e, Event::Barrier { .. })));
        assert_eq!(barriers.collect::<Vec<_>>(), [1, 1, 0]);
    }
}
