//! Page faults: programs whose time can be worked out by hand, and random ones on which the engine and the reference model
//! agree.

use machine::{Core, Machine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use results::ProgramChange;
use trace::{Allocation, Event, Op};

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::{machines, overlapping_machines};
use crate::oracle::textbook;
use crate::reference::Program;

const PAGE: u64 = 4096;
const AT: u64 = 1 << 30;

/// A clock of 1 ns, an instruction a clock, memory at no cost; a fault takes 500 ns, and 40 for each further 4 KiB.
fn machine() -> Machine {
    let mut machine = textbook::machine(1, 1024);
    machine.memory.local_ns = 0.0;
    machine.core = Some(Core {
        instructions_per_clock: 1.0,
        window: 100,
        outstanding: 10,
        outstanding_of_bank: 0,
        line_ns: 0.0,
        memory_line_ns: 0.0,
        huge_memory_line_ns: 0.0,
        store_buffer: 8,
        set_refill_ns: 0.0,
        bank_refill_ns: 0.0,
        set_rewrite_ns: 0.0,
        misprediction_ns: 0.0,
    });
    (machine.memory.fault_ns, machine.memory.clear_ns) = (500.0, 40.0);
    machine
}

fn map(start: u64, pages: u64, kind: Allocation) -> Event {
    Event::Alloc {
        addr: start,
        bytes: pages * PAGE,
        stack: 0,
        kind,
    }
}

/// Writes to the first word of some pages, one after the other.
fn touch(program: &mut Program, pages: std::ops::Range<u64>) {
    pages.for_each(|page| program.write(0, AT + page * PAGE));
}

fn faults(outcome: &Agreed, first: u64, again: u64) {
    let counted = &outcome.value()["memory"]["page_faults"];
    assert_eq!(
        (counted["first"].as_u64(), counted["again"].as_u64()),
        (Some(first), Some(again))
    );
}

#[test]
fn a_page_faults_once() {
    let mut program = Program::new(1);
    touch(&mut program, 0..3);
    touch(&mut program, 0..3);
    let outcome = both::run(&machine(), &program, "page-coloring");
    faults(&outcome, 3, 0);
    outcome.time("page_faults", 3 * 500);
    outcome.time("total", 3 * 500 + 6);
}

#[test]
fn larger_pages_have_more_to_clear() {
    let mut machine = machine();
    machine.page_bytes = 4 * PAGE;
    let mut program = Program::new(1);
    touch(&mut program, 0..8);
    both::run(&machine, &program, "page-coloring").time("page_faults", 2 * (500 + 3 * 40));
}

/// An array that is mapped again for each of three rounds faults in all of them; one of the heap that is freed does
/// not.
#[test]
fn memory_that_was_unmapped_faults_again() {
    for (kind, again) in [(Allocation::Map, 8), (Allocation::Heap, 0)] {
        let mut program = Program::new(1);
        for _ in 0..3 {
            program.event(0, map(AT, 4, kind));
            touch(&mut program, 0..4);
            program.event(0, Event::Free { addr: AT });
            // A mapping with no instruction in between would be left of the earlier mapping.
            program.event(0, Event::Work { instructions: 1 });
        }
        let outcome = both::run(&machine(), &program, "page-coloring");
        faults(&outcome, 4, again);
        outcome.memory("pages", 4);
    }
}

/// The first page of four is unmapped: the recorder says that all end, and that three are there.
#[test]
fn what_is_left_of_a_mapping_stays() {
    let mut program = Program::new(1);
    program.event(0, map(AT, 4, Allocation::Map));
    touch(&mut program, 0..4);
    program.event(0, Event::Free { addr: AT });
    program.event(0, map(AT + PAGE, 3, Allocation::Map));
    touch(&mut program, 0..4);
    faults(&both::run(&machine(), &program, "page-coloring"), 4, 1);
}

#[test]
fn pages_of_files_do_not_fault() {
    let mut program = Program::new(1);
    program.event(0, map(AT, 2, Allocation::File));
    touch(&mut program, 0..3);
    faults(&both::run(&machine(), &program, "page-coloring"), 1, 0);
}

/// Data that a change puts on huge pages faults once for each of them, with all of it to clear.
#[test]
fn huge_pages_fault_whole() {
    let mut program = Program::new(1);
    touch(&mut program, 0..600);
    let setup = Setup {
        changes: &[ProgramChange::HugePages { data: None }],
        ..Setup::default()
    };
    let outcome = both::run_with(&machine(), &program, "page-coloring", &setup);
    faults(&outcome, 2, 0);
    outcome.time("page_faults", 2 * (500 + 511 * 40));
}

/// Touches between two windows are not in the trace.
#[test]
fn traces_with_windows_have_none() {
    let mut program = Program::new(1);
    program.event(0, Event::Window { index: 0 });
    touch(&mut program, 0..3);
    let outcome = both::run(&machine(), &program, "page-coloring");
    outcome.time("total", 3);
    assert!(outcome.value()["memory"]["page_faults"].is_null());
}

/// A page that is unmapped where faults end is the same page when it is touched again.
#[test]
fn windows_end_faults_and_leave_pages_alone() {
    let mut program = Program::new(1);
    program.event(0, map(AT, 2, Allocation::Map));
    touch(&mut program, 0..2);
    program.event(0, Event::Free { addr: AT });
    program.event(0, Event::Window { index: 0 });
    touch(&mut program, 0..4);
    let outcome = both::run(&machine(), &program, "page-coloring");
    outcome.memory("pages", 4);
    outcome.memory("pages_max", 4);
}

/// A block of the heap that begins where a mapping does is freed, and the mapping stays.
#[test]
fn blocks_of_the_heap_are_no_mappings() {
    let mut program = Program::new(1);
    program.event(0, map(AT, 4, Allocation::Map));
    program.event(0, map(AT, 1, Allocation::Heap));
    touch(&mut program, 0..4);
    program.event(0, Event::Free { addr: AT });
    program.event(0, Event::Work { instructions: 1 });
    touch(&mut program, 0..4);
    faults(&both::run(&machine(), &program, "page-coloring"), 4, 0);
}

/// Programs that map, touch and unmap, in part and whole, in two processes.
fn programs() -> impl Strategy<Value = Program> {
    let kind = select(vec![
        Allocation::Map,
        Allocation::Map,
        Allocation::Stack,
        Allocation::File,
        Allocation::Heap,
    ]);
    let draw = (0..3u32, 0..8u32, 0..10u64, 1..6u64, kind, 0..PAGE, 0..2u32);
    vec(draw, 1..150).prop_map(|draws| {
        let mut program = Program::new(3);
        program.spaces[2] = 1;
        for (thread, what, page, pages, kind, offset, stack) in draws {
            let start = AT + page * PAGE;
            match what {
                0 => program.event(
                    thread,
                    Event::Alloc {
                        addr: start + offset / 2048 * 8,
                        bytes: pages * PAGE,
                        stack,
                        kind,
                    },
                ),
                1 => program.event(
                    thread,
                    Event::Free {
                        addr: start + offset / 2048 * 8,
                    },
                ),
                _ => program.push_at(
                    thread,
                    what,
                    [Op::Read, Op::Write][offset as usize % 2],
                    start + offset,
                    8,
                ),
            }
        }
        program
    })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn both_count_the_same_faults(
        machine in prop_oneof![machines(vec![1, 2]), overlapping_machines(vec![1, 2, 3])],
        fault_ns in select(vec![1.5, 700.0]),
        clear_ns in select(vec![0.0, 90.0]),
        program in programs(),
        huge: bool,
        recorded: bool,
    ) {
        let mut machine = machine;
        (machine.memory.fault_ns, machine.memory.clear_ns) = (fault_ns, clear_ns);
        let changes = [ProgramChange::HugePages { data: None }];
        let changes = if huge { &changes[..] } else { &[] };
        let setup = Setup { recorded, changes, ..Setup::default() };
        agree(&machine, &program, &setup)?;
    }
}
