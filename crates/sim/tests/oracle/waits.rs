//! The waits of cpus: imbalance, sequential parts, locks and the code of barriers.

use machine::Machine;
use proptest::prelude::*;
use trace::Event;

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::Program;

const TEAM: u64 = 9;

fn work(program: &mut Program, thread: u32, instructions: u64) {
    program.event(thread, Event::Work { instructions });
}

/// A region in which each thread works for the given time: the recorder's events for an OpenMP team. `ticket`: the
/// first of its tickets.
fn region(program: &mut Program, work_of: &[u64], ticket: u64) {
    let threads = work_of.len() as u32;
    program.event(0, Event::Post { ticket });
    program.event(0, Event::TeamBegin { object: TEAM, threads });
    work(program, 0, work_of[0]);
    for thread in 1..threads {
        program.event(thread, Event::Wait { ticket });
        work(program, thread, work_of[thread as usize]);
        let left = ticket + u64::from(thread);
        program.event(thread, Event::Post { ticket: left });
        program.event(0, Event::Wait { ticket: left });
    }
    program.event(0, Event::TeamEnd { object: TEAM });
}

fn run(machine: &Machine, program: &Program, barrier_ns: u32) -> Agreed {
    let setup = Setup {
        barrier_ns,
        ..Setup::default()
    };
    both::run_with(machine, program, "page-coloring", &setup)
}

/// An instruction each ns: alone for 100, a region of 50, 30 and 80, alone for 40, a region of 20 each, alone for 7.
#[test]
fn a_master_and_its_workers() {
    let mut program = Program::new(3);
    work(&mut program, 0, 100);
    region(&mut program, &[50, 30, 80], 1);
    work(&mut program, 0, 40);
    region(&mut program, &[20, 20, 20], 11);
    work(&mut program, 0, 7);
    let outcome = run(&textbook::machine(3, 8), &program, 0);
    outcome.time("wall", 100 + 80 + 40 + 20 + 7);
    outcome.time("sequential", 2 * (100 + 40 + 7));
    outcome.time("imbalance", 30 + 50);
    outcome.time("synchronization", 0);
    outcome.time("total", 3 * 247);
}

/// The end of a region takes its master 5 ns, which its workers wait for too.
#[test]
fn the_code_of_a_regions_end() {
    let mut program = Program::new(2);
    region(&mut program, &[50, 30], 1);
    work(&mut program, 0, 40);
    let outcome = run(&textbook::machine(2, 8), &program, 5);
    outcome.time("wall", 95);
    outcome.time("synchronization", 5 + 5);
    outcome.time("imbalance", 20);
    outcome.time("sequential", 40);
}

/// Without teams the reason is unknown: all is imbalance.
#[test]
fn threads_without_teams_are_out_of_balance() {
    let mut program = Program::new(2);
    program.event(0, Event::Spawn { child: 1 });
    work(&mut program, 0, 100);
    program.event(0, Event::Post { ticket: 1 });
    program.event(1, Event::Wait { ticket: 1 });
    work(&mut program, 1, 60);
    program.event(0, Event::Join { child: 1 });
    let outcome = run(&textbook::machine(2, 8), &program, 0);
    outcome.time("imbalance", 160);
    outcome.time("sequential", 0);
}

#[test]
fn a_lock_is_synchronization() {
    let mut program = Program::new(2);
    for thread in 0..2 {
        program.event(thread, Event::Lock { object: 1 });
        work(&mut program, thread, 30);
        program.event(thread, Event::Unlock { object: 1 });
    }
    let outcome = run(&textbook::machine(2, 8), &program, 0);
    outcome.time("synchronization", 30);
    outcome.time("imbalance", 30);
}

/// Each thread pays for the barrier's code; the difference of their arrivals is imbalance.
#[test]
fn a_barrier_has_a_cost() {
    let mut program = Program::new(2);
    work(&mut program, 0, 10);
    work(&mut program, 1, 25);
    program.barrier();
    work(&mut program, 0, 1);
    work(&mut program, 1, 1);
    let outcome = run(&textbook::machine(2, 8), &program, 8);
    outcome.time("synchronization", 16);
    outcome.time("imbalance", 15);
    outcome.time("wall", 25 + 8 + 1);
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn with_teams(machine in machines(vec![1, 2, 4]), program in programs(6, 300), slice_ns in 1..2000u64) {
        agree(&machine, &program, &Setup { slice_ns, ..Setup::default() })?;
    }

    /// A thread for each cpu.
    #[test]
    fn with_barriers_that_cost(machine in machines(vec![4]), program in programs(4, 300), barrier_ns in 1..300u32) {
        agree(&machine, &program, &Setup { barrier_ns, ..Setup::default() })?;
    }
}
