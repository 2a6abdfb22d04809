//! Windows: counting begins at one phase and ends at another.

use machine::Machine;
use proptest::prelude::*;
use proptest::sample::Index;
use sim::{Detail, Scheduling};
use trace::Event;

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::conservation;
use crate::oracle::engine;
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::{asking_machines, machines, prefetching_machines};
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::{Item, Program};

fn enter(program: &mut Program, thread: u32, name: &str) {
    program.event(thread, Event::Phase { name: name.to_string() });
}

const WINDOW: Setup = Setup {
    sets: &[],
    seed: 1,
    classes: true,
    recorded: false,
    schedule: Scheduling::Stay,
    placement: None,
    slice_ns: 10_000_000,
    barrier_ns: 0,
    from_phase: Some("compute"),
    to_phase: Some("end"),
    changes: &[],
};

fn run(machine: &Machine, program: &Program) -> Agreed {
    both::run_with(machine, program, "page-coloring", &WINDOW)
}

/// Four lines are read before the window and again in it: they are hits, and a fifth is a cold miss.
#[test]
fn caches_are_warm() {
    let mut program = Program::new(1);
    let read = |program: &mut Program, lines: u64| (0..lines).for_each(|line| program.read(0, line * 64));
    enter(&mut program, 0, "init");
    read(&mut program, 4);
    enter(&mut program, 0, "compute");
    read(&mut program, 5);
    enter(&mut program, 0, "end");
    read(&mut program, 8);
    let outcome = run(&textbook::machine(1, 8), &program);
    outcome.cache("L1", "accesses", 5);
    outcome.cache("L1", "hits", 4);
    outcome.cache("L1", "cold", 1);
    outcome.time("local_stall", 100);
    outcome.time("wall", 105);
    outcome.memory("pages", 1);
    assert_eq!(outcome.value()["references"].as_u64(), Some(5));
}

/// A phase that comes again: the window is from its first time to its second.
#[test]
fn from_a_phase_to_itself() {
    let mut program = Program::new(1);
    for _ in 0..3 {
        enter(&mut program, 0, "step");
        program.event(0, Event::Work { instructions: 10 });
    }
    let setup = Setup {
        from_phase: Some("step"),
        to_phase: Some("step"),
        ..WINDOW
    };
    let outcome = both::run_with(&textbook::machine(1, 8), &program, "page-coloring", &setup);
    outcome.time("wall", 10);
    let to_the_end = Setup {
        to_phase: None,
        ..setup
    };
    let outcome = both::run_with(&textbook::machine(1, 8), &program, "page-coloring", &to_the_end);
    outcome.time("wall", 30);
    let from_the_start = Setup {
        from_phase: None,
        to_phase: Some("step"),
        ..WINDOW
    };
    let outcome = both::run_with(&textbook::machine(1, 8), &program, "page-coloring", &from_the_start);
    outcome.time("wall", 0);
}

/// A worker waits from before the window's begin to after its end: the part in the window counts.
#[test]
fn waits_are_cut_at_both_ends() {
    let mut program = Program::new(2);
    program.event(0, Event::Work { instructions: 50 });
    enter(&mut program, 0, "compute");
    program.event(0, Event::Work { instructions: 30 });
    enter(&mut program, 0, "end");
    program.event(0, Event::Work { instructions: 20 });
    program.event(0, Event::Post { ticket: 1 });
    program.event(1, Event::Wait { ticket: 1 });
    let outcome = run(&textbook::machine(2, 8), &program);
    outcome.time("imbalance", 30);
    outcome.time("busy", 30);
    outcome.time("wall", 30);
    outcome.time("total", 60);
}

/// The miss of before the window turns out as true sharing within it, and counts nowhere.
#[test]
fn a_miss_of_before_does_not_count() {
    let mut program = Program::new(2);
    program.read(0, 0);
    program.write(1, 32);
    program.read(0, 0); // a sharing miss
    enter(&mut program, 0, "compute");
    program.read(0, 32); // which was essential
    enter(&mut program, 0, "end");
    let setup = Setup {
        recorded: true,
        ..WINDOW
    };
    let outcome = both::run_with(&textbook::machine(2, 8), &program, "page-coloring", &setup);
    outcome.cache("L1", "misses", 0);
    outcome.cache("L1", "true_sharing", 0);
    outcome.cache("L1", "hits", 1);
}

#[test]
fn phases_that_are_not_there() {
    let machine = textbook::machine(1, 8);
    let mut program = Program::new(1);
    for name in ["init", "end", "compute"] {
        enter(&mut program, 0, name);
    }
    let error = |from_phase, to_phase| {
        let setup = Setup {
            from_phase,
            to_phase,
            ..WINDOW
        };
        engine::simulate(&machine, &program, &["page-coloring", "random"], &setup).unwrap_err()
    };
    assert_eq!(
        error(Some("computed"), None),
        "the window cannot be simulated: there is no phase `computed`; the trace has the phases `init`, `end`, `compute`"
    );
    assert_eq!(
        error(Some("compute"), Some("end")),
        "the window cannot be simulated: no thread entered phase `end` after phase `compute` had begun; name phases in \
         the order in which they come"
    );
}

/// A program in which one thread enters both phases, in their order.
fn phased(threads: u32, length: usize) -> impl Strategy<Value = Program> {
    let places = (0..threads, any::<Index>(), any::<Index>());
    (programs(threads, length), places).prop_map(|(mut program, (thread, from, to))| {
        let thread = thread % program.spaces.len() as u32;
        let (from, to) = (from.index(program.items.len() + 1), to.index(program.items.len() + 1));
        let phase = |name: &str| (thread, Item::Event(Event::Phase { name: name.to_string() }));
        program.items.insert(from.max(to), phase("end"));
        program.items.insert(from.min(to), phase("compute"));
        program
    })
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn one_cpu(machine in machines(vec![1]), program in phased(3, 300), classes: bool, recorded: bool) {
        agree(&machine, &program, &Setup { classes, recorded, ..WINDOW })?;
    }

    #[test]
    fn several_cpus(machine in machines(vec![2, 4]), program in phased(6, 400), classes: bool, recorded: bool) {
        agree(&machine, &program, &Setup { classes, recorded, ..WINDOW })?;
    }

    #[test]
    fn with_prefetches(machine in asking_machines(vec![1, 2]), program in phased(3, 300)) {
        agree(&machine, &program, &WINDOW)?;
    }

    #[test]
    fn with_streams(machine in prefetching_machines(vec![1]), program in phased(2, 300)) {
        agree(&machine, &program, &WINDOW)?;
    }

    /// A window that is all of the run is the run.
    #[test]
    fn all_of_the_run(machine in machines(vec![1, 2, 4]), program in programs(5, 300)) {
        let mut framed = program.clone();
        framed.items.insert(0, (0, Item::Event(Event::Phase { name: "compute".into() })));
        let policies = ["page-coloring", "round-robin+random"];
        let window = Setup { recorded: true, to_phase: None, ..WINDOW };
        let without = Setup { from_phase: None, ..window };
        let with = engine::simulate(&machine, &framed, &policies, &window);
        let without = engine::simulate(&machine, &program, &policies, &without);
        prop_assert_eq!(with, without);
    }

    /// In the window everything adds up, and a closer look changes nothing.
    #[test]
    fn adds_up(machine in machines(vec![1, 2, 4]), program in phased(6, 1000)) {
        let policies = ["round-robin+random"];
        let Ok(plain) = engine::simulate(&machine, &program, &policies, &WINDOW) else { return Ok(()) };
        let counted = plain[0]["references"].as_u64().unwrap_or(u64::MAX);
        prop_assert!(counted <= program.references());
        let mut same = Program { items: Vec::new(), ..program.clone() };
        (0..counted).for_each(|_| same.read(0, 0));
        conservation::check(&machine, &same, &plain[0], true)?;
        let detail = Detail { structures: true, pages: 1000, threads: true, false_sharing: 10, ..Detail::default() };
        let close = engine::simulate_closely(&machine, &program, &policies, &WINDOW, detail, None);
        let close = close.map_err(TestCaseError::fail)?;
        for field in ["caches", "memory", "tlb", "time_ns"] {
            prop_assert_eq!(&plain[0][field], &close[0][field]);
        }
        // Threads, structures and pages have the misses of all.
        for (number, cache) in plain[0]["caches"].as_array().into_iter().flatten().enumerate() {
            for of in ["threads", "structures", "pages"] {
                let parts = close[0][of].as_array().into_iter().flatten();
                let misses: u64 = parts.filter_map(|part| part["caches"][number]["misses"].as_u64()).sum();
                prop_assert_eq!(Some(misses), cache["misses"].as_u64(), "{} in {}", number, of);
            }
        }
        let threads = close[0]["threads"].as_array().into_iter().flatten();
        prop_assert_eq!(threads.filter_map(|thread| thread["references"].as_u64()).sum::<u64>(), counted);
    }
}
