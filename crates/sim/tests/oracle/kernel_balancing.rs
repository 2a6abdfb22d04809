//! Policy `kernel-balancing`: cases worked out by hand, and random programs in both simulators.

use machine::Machine;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use trace::Event;

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::conservation;
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::{asking_machines, machines, prefetching_machines};
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::Program;

const POLICY: &str = "kernel-balancing";
const PAGE: u64 = 4096;

/// Closes after 1 us all pages that there are, and again each 10 us; a fault takes 100 ns.
fn sets() -> Vec<String> {
    [
        "delay=1",
        "scan-min=10",
        "scan-max=10",
        "scan-rate=0",
        "tick=1",
        "fault=100",
    ]
    .map(|set| format!("{POLICY}.{set}"))
    .to_vec()
}

fn run(machine: &Machine, program: &Program) -> Agreed {
    let sets = sets();
    let setup = Setup {
        sets: &sets,
        recorded: true,
        ..Setup::default()
    };
    both::run_with(machine, program, POLICY, &setup)
}

fn work(program: &mut Program, thread: u32, instructions: u64) {
    program.event(thread, Event::Work { instructions });
}

fn two_nodes() -> Machine {
    let mut machine = textbook::machine(2, 64);
    machine.memory.nodes = 2;
    machine
}

#[test]
fn a_page_that_was_closed_moves_to_who_touches_it_first() {
    let mut program = Program::new(2);
    program.read(0, 0);
    work(&mut program, 0, 2000);
    // The tick of this touch finds the delay over, and closes both pages.
    program.read(0, PAGE);
    program.read(1, 0);
    program.read(1, 64);
    program.read(0, PAGE);
    let outcome = run(&two_nodes(), &program);
    // Thread 1 faults on page 0 and gets it. That took so long that it is time to close pages again: it faults once more, and
    // thread 0 on its own page.
    outcome.memory("migrations", 1);
    let overhead = 3.0 * 100.0 + sim::VERGHESE96.move_page_ns;
    assert_eq!(outcome.value()["time_ns"]["policy_overhead"].as_f64(), Some(overhead));
}

/// With the kernel's own times no page is closed in a run of less than a second.
#[test]
fn a_short_run_sees_nothing_of_it() {
    let mut program = Program::new(2);
    program.read(0, 0);
    work(&mut program, 1, 900_000_000);
    (0..100).for_each(|line| program.read(1, line % 64 * 64));
    let setup = Setup {
        recorded: true,
        ..Setup::default()
    };
    let outcome = both::run_with(&two_nodes(), &program, POLICY, &setup);
    outcome.memory("migrations", 0);
    outcome.time("policy_overhead", 0);
}

fn random_sets([delay, least, most, pages, tick, rate]: [u64; 6]) -> Vec<String> {
    let set = |name: &str, value: u64| format!("{POLICY}.{name}={value}");
    vec![
        set("delay", delay),
        set("scan-min", least),
        set("scan-max", most),
        set("scan-size", pages * PAGE),
        set("scan-rate", 0),
        set("tick", tick),
        set("rate", rate),
        set("fault", 200),
    ]
}

/// The random programs below give it something to do.
#[test]
fn random_programs_move_pages() {
    let sets = random_sets([1, 2, 20, 2, 1, 0]);
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let mut runner = TestRunner::deterministic();
    let mut moved = 0;
    for _ in 0..40 {
        let machine = machines(vec![3, 4, 6]).new_tree(&mut runner).expect("a machine");
        let program = programs(6, 500).new_tree(&mut runner).expect("a program");
        let outcome = engine::simulate(&machine.current(), &program.current(), &[POLICY], &setup);
        let Ok(outcome) = outcome else { continue };
        moved += outcome[0]["memory"]["migrations"].as_u64().expect("a number");
    }
    assert!(moved >= 20, "{moved}");
}

fn agree(machine: &Machine, program: &Program, setup: &Setup) -> Result<(), TestCaseError> {
    match both::agree(machine, program, POLICY, setup)? {
        Some(outcome) => conservation::check(machine, program, &outcome, setup.classes),
        None => Ok(()),
    }
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn both_simulators_agree(
        machine in machines(vec![2, 3, 4, 6]),
        program in programs(6, 500),
        times in (0..5u64, 1..10u64, 1..40u64, 1..6u64, 1..4u64, 0..4u64),
        recorded: bool,
        classes: bool,
        slice_ns in 1..2_000_000u64,
    ) {
        let (delay, least, most, pages, tick, rate) = times;
        let sets = random_sets([delay, least, most, pages, tick, rate]);
        agree(&machine, &program, &Setup { recorded, classes, slice_ns, sets: &sets, ..Setup::default() })?;
    }

    /// Closed pages are not prefetched.
    #[test]
    fn with_prefetches(machine in asking_machines(vec![2, 4]), program in programs(4, 400)) {
        let sets = random_sets([0, 1, 10, 4, 1, 0]);
        agree(&machine, &program, &Setup { sets: &sets, ..Setup::default() })?;
    }

    #[test]
    fn with_streams(machine in prefetching_machines(vec![1, 2]), program in programs(3, 400)) {
        let sets = random_sets([0, 1, 10, 4, 1, 0]);
        agree(&machine, &program, &Setup { sets: &sets, ..Setup::default() })?;
    }
}
