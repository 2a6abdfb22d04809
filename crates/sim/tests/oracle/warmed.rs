//! Windows of a trace: everything before the point from which each is counted warms caches, and counts nowhere.

use proptest::prelude::*;
use proptest::sample::Index;
use sim::Detail;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::{asking_machines, machines, prefetching_machines};
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::{Item, Program};

fn window(program: &mut Program, index: u32) {
    program.event(0, Event::Window { index });
}

fn counted(program: &mut Program, index: u32) {
    program.event(0, Event::Counted { index });
}

fn read(program: &mut Program, lines: std::ops::Range<u64>) {
    lines.for_each(|line| program.read(0, line * 64));
}

/// Two windows of four and two references after the references that warm caches for them.
fn two_windows() -> Program {
    let mut program = Program::new(1);
    window(&mut program, 0);
    read(&mut program, 0..3);
    counted(&mut program, 0);
    read(&mut program, 0..4); // one of them cold
    window(&mut program, 1);
    read(&mut program, 20..28); // all eight lines of the cache
    counted(&mut program, 1);
    read(&mut program, 27..29); // one of them cold
    program
}

#[test]
fn what_warms_caches_counts_nowhere() {
    let program = two_windows();
    let machine = textbook::machine(1, 8);
    let outcome = both::run(&machine, &program, "page-coloring");
    assert_eq!(outcome.value()["references"].as_u64(), Some(6));
    outcome.cache("L1", "accesses", 6);
    outcome.cache("L1", "hits", 4);
    outcome.cache("L1", "cold", 2);
    outcome.time("local_stall", 200);
    outcome.time("wall", 206);
    let windows = &outcome.value()["windows"];
    let field = |window: usize, field: &str| windows["counted"][window][field].clone();
    assert_eq!((field(0, "references"), field(1, "references")), (4.into(), 2.into()));
    assert_eq!((field(0, "wall_ns"), field(1, "wall_ns")), (104.into(), 102.into()));
    assert_eq!(windows["ns_per_reference"]["mean"].as_f64(), Some(206.0 / 6.0));
    assert_eq!(windows["misses_per_reference"][0]["mean"].as_f64(), Some(2.0 / 6.0));
    assert!(windows["ns_per_reference"]["low"].as_f64() < Some(206.0 / 6.0));
}

#[test]
fn a_trace_without_windows_reports_none() {
    let mut program = Program::new(1);
    read(&mut program, 0..3);
    let outcome = both::run(&textbook::machine(1, 8), &program, "page-coloring");
    assert!(outcome.value()["windows"].is_null());
}

/// Two threads on two cpus, of which the second one is later.
#[test]
fn the_last_thread_that_comes_begins_and_ends_a_window() {
    let mut program = Program::new(2);
    for thread in [0, 1] {
        program.event(thread, Event::Window { index: 0 });
        program.event(
            thread,
            Event::Work {
                instructions: 10 + 5 * u64::from(thread),
            },
        );
        program.event(thread, Event::Counted { index: 0 });
        program.event(
            thread,
            Event::Work {
                instructions: 100 + 30 * u64::from(thread),
            },
        );
        program.event(thread, Event::Window { index: 1 });
        program.event(thread, Event::Work { instructions: 1000 });
    }
    let outcome = both::run(&textbook::machine(2, 8), &program, "page-coloring");
    // Both begin at 15. Thread 0 reaches the end at 115 and waits until 145.
    outcome.time("busy", 230);
    outcome.time("imbalance", 30);
    outcome.time("wall", 130);
    assert_eq!(outcome.value()["windows"]["counted"].as_array().map(Vec::len), Some(1));
}

/// Two windows that a thread sleeps through, until the other one, which does all the work in both, has ended.
fn slept_through(join_first: bool) -> Program {
    let mut program = Program::new(2);
    let waits = Event::Join { child: 1 };
    if join_first {
        program.event(0, waits.clone());
    }
    for index in [0, 1] {
        for thread in [0, 1] {
            program.event(thread, Event::Window { index });
        }
        (0..2).for_each(|line| program.read(1, line * 64));
        for thread in [0, 1] {
            program.event(thread, Event::Counted { index });
        }
        (0..4).for_each(|line| program.read(1, line * 64));
    }
    if !join_first {
        program.event(0, waits);
    }
    program
}

#[test]
fn a_thread_that_waits_does_not_run_through_the_windows_alone() {
    // True if it came to the wait before the windows (then no thread could go on), false if after them.
    for join_first in [true, false] {
        let outcome = both::run(&textbook::machine(2, 8), &slept_through(join_first), "page-coloring");
        let counted = &outcome.value()["windows"]["counted"];
        let references = |window: usize| counted[window]["references"].as_u64();
        assert_eq!((references(0), references(1)), (Some(4), Some(4)), "{join_first}");
        outcome.cache("L1", "cold", 2);
        // Two misses and two hits, then four hits.
        outcome.time("wall", 208);
    }
}

/// By the clocks, the thread that holds the lock at the window is not the one that held it before as recorded.
#[test]
fn a_lock_that_is_held_at_a_window_is_no_deadlock() {
    let mut program = Program::new(2);
    program.event(1, Event::Work { instructions: 50 });
    program.event(1, Event::Lock { object: 1 });
    program.event(1, Event::Unlock { object: 1 });
    program.event(0, Event::Lock { object: 1 });
    for thread in [0, 1] {
        program.event(thread, Event::Window { index: 0 });
        program.event(thread, Event::Counted { index: 0 });
    }
    program.event(0, Event::Work { instructions: 10 });
    program.event(0, Event::Unlock { object: 1 });
    program.event(1, Event::Work { instructions: 10 });
    let outcome = both::run(&textbook::machine(2, 8), &program, "page-coloring");
    // Thread 0 goes on from the window at 50, where thread 1 waits for the lock, and again from where it is counted.
    outcome.time("busy", 20);
    outcome.time("synchronization", 10);
    outcome.time("wall", 20);
}

/// A program with up to four windows, of which each thread that is given says where they begin and are counted from.
fn windowed(threads: u32, length: usize) -> impl Strategy<Value = Program> {
    let places = prop::collection::vec((any::<Index>(), any::<Index>(), 0..threads), 1..5);
    (programs(threads, length), places, any::<bool>()).prop_map(|(mut program, places, all)| {
        let threads = program.spaces.len() as u32;
        let end = program.items.len() + 1;
        let mut places: Vec<_> = places
            .into_iter()
            .map(|(a, b, thread)| {
                let (a, b) = (a.index(end), b.index(end));
                (a.min(b), a.max(b), thread % threads)
            })
            .collect();
        places.sort_unstable();
        // From the last one on, so that earlier events stay where they are.
        let mut events: Vec<(usize, usize, u32, Event)> = Vec::new();
        for (index, (begin, from, thread)) in places.into_iter().enumerate() {
            for thread in (0..threads).filter(|other| all || *other == thread) {
                let index = index as u32;
                events.push((begin, 2 * index as usize, thread, Event::Window { index }));
                events.push((from, 2 * index as usize + 1, thread, Event::Counted { index }));
            }
        }
        events.sort_by_key(|(place, number, thread, _)| (*place, *number, *thread));
        for (place, _, thread, event) in events.into_iter().rev() {
            program.items.insert(place, (thread, Item::Event(event)));
        }
        program
    })
}

fn setup(classes: bool, recorded: bool) -> Setup<'static> {
    Setup {
        classes,
        recorded,
        ..Setup::default()
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn one_cpu(machine in machines(vec![1]), program in windowed(3, 300), classes: bool, recorded: bool) {
        agree(&machine, &program, &setup(classes, recorded))?;
    }

    #[test]
    fn several_cpus(machine in machines(vec![2, 4]), program in windowed(6, 400), classes: bool, recorded: bool) {
        agree(&machine, &program, &setup(classes, recorded))?;
    }

    #[test]
    fn with_prefetches(machine in asking_machines(vec![1, 2]), program in windowed(3, 300)) {
        agree(&machine, &program, &Setup::default())?;
    }

    #[test]
    fn with_streams(machine in prefetching_machines(vec![1]), program in windowed(2, 300)) {
        agree(&machine, &program, &Setup::default())?;
    }

    /// A closer look changes nothing, and covers what was counted.
    #[test]
    fn adds_up(machine in machines(vec![1, 2, 4]), program in windowed(6, 1000)) {
        let policies = ["round-robin+random"];
        let Ok(plain) = engine::simulate(&machine, &program, &policies, &Setup::default()) else { return Ok(()) };
        let detail = Detail { structures: true, pages: 1000, threads: true, false_sharing: 10, ..Detail::default() };
        let close = engine::simulate_closely(&machine, &program, &policies, &Setup::default(), detail, None);
        let close = close.map_err(TestCaseError::fail)?;
        for field in ["caches", "memory", "tlb", "time_ns", "windows"] {
            prop_assert_eq!(&plain[0][field], &close[0][field]);
        }
        for (number, cache) in plain[0]["caches"].as_array().into_iter().flatten().enumerate() {
            for of in ["threads", "structures", "pages"] {
                let parts = close[0][of].as_array().into_iter().flatten();
                let misses: u64 = parts.filter_map(|part| part["caches"][number]["misses"].as_u64()).sum();
                prop_assert_eq!(Some(misses), cache["misses"].as_u64(), "{} in {}", number, of);
            }
        }
        let threads = close[0]["threads"].as_array().into_iter().flatten();
        let references = threads.filter_map(|thread| thread["references"].as_u64()).sum::<u64>();
        prop_assert_eq!(Some(references), plain[0]["references"].as_u64());
    }
}
