//! Processors that overlap: programs whose time can be worked out by hand, and random machines and programs on which
//! the engine and the reference model agree.

use machine::{Core, Machine, Prefetch};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use results::ProgramChange;
use sim::Detail;
use trace::{Array, Dependence, Event, Misprediction, Op, Pace};

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::conservation;
use crate::oracle::engine;
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::overlapping_machines;
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::Program;

const LINE: u64 = 64;

/// One cache of 1024 lines, memory at 100 ns, a clock of 1 ns and an instruction a clock.
fn machine(window: u32, outstanding: u32, store_buffer: u32) -> Machine {
    let mut machine = textbook::machine(1, 1024);
    machine.caches[0].ways = 1024;
    machine.core = Some(Core {
        instructions_per_clock: 1.0,
        window,
        outstanding,
        outstanding_of_bank: 0,
        line_ns: 0.0,
        memory_line_ns: 0.0,
        huge_memory_line_ns: 0.0,
        store_buffer,
        set_refill_ns: 0.0,
        bank_refill_ns: 0.0,
        set_rewrite_ns: 0.0,
        misprediction_ns: 0.0,
    });
    machine
}

fn run(machine: &Machine, program: &Program) -> Agreed {
    both::run(machine, program, "page-coloring")
}

/// Loads of lines that none has touched, by one instruction, `Work` between them.
fn loads(count: u64, between: u64) -> Program {
    let mut program = Program::new(1);
    for line in 0..count {
        program.push_at(0, 1, Op::Read, line * LINE, 8);
        if between > 0 {
            program.event(0, Event::Work { instructions: between });
        }
    }
    program
}

/// The addresses of a site come from those of others, all together.
fn waits(site: u32, on: &[u32]) -> Dependence {
    Dependence {
        site,
        on: on.to_vec(),
        either: false,
    }
}

/// Each load takes its address from the one before it: the list of the textbooks.
fn chased(mut program: Program) -> Program {
    program.dependences = vec![waits(1, &[1])];
    program
}

#[test]
fn loads_that_wait_for_nothing_come_together() {
    // All are under way within 10 ns: the last comes 100 ns after the tenth instruction, at 110.
    let outcome = run(&machine(100, 10, 8), &loads(10, 0));
    outcome.time("busy", 10);
    outcome.time("local_stall", 100);
    outcome.memory("local", 10);
}

#[test]
fn loads_that_wait_for_one_another_do_not() {
    let outcome = run(&machine(100, 10, 8), &chased(loads(10, 0)));
    // The first is asked for at 1 ns; each other one when the one before it has come.
    outcome.time("total", 1 + 10 * 100);
    outcome.time("busy", 10);
    // Without the model each waits by itself, whether or not it has to.
    let mut plain = machine(100, 10, 8);
    plain.core = None;
    run(&plain, &loads(10, 0)).time("total", 10 * 101);
}

/// Of lines that are four apart, fewer are on their way at once.
#[test]
fn lines_of_one_bank() {
    let mut machine = machine(224, 8, 48);
    machine.core = machine.core.map(|core| Core {
        outstanding_of_bank: 2,
        ..core
    });
    let apart = |lines: u64| {
        let mut program = Program::new(1);
        for line in 0..200 {
            program.push_at(0, 1, Op::Read, line * lines * LINE, 8);
        }
        run(&machine, &program).value()["time_ns"]["wall"].as_u64().unwrap_or(0)
    };
    // Memory takes 100 ns: eight, four and two at a time.
    let [all, halves, fourths] = [1, 2, 4].map(apart);
    assert!(all.abs_diff(200 * 100 / 8) < 300, "{all}");
    assert!(halves.abs_diff(200 * 100 / 4) < 300, "{halves}");
    assert!(fourths.abs_diff(200 * 100 / 2) < 300, "{fourths}");
}

/// A core gets lines of memory one after the other, and others of memory on huge pages.
#[test]
fn lines_of_memory_have_turns() {
    let total = |line_ns, memory_line_ns, huge_memory_line_ns, changes: &[ProgramChange]| {
        let mut machine = machine(100, 10, 8);
        machine.core = machine.core.map(|core| Core {
            line_ns,
            memory_line_ns,
            huge_memory_line_ns,
            ..core
        });
        let setup = Setup {
            changes,
            ..Setup::default()
        };
        let outcome = both::run_with(&machine, &loads(10, 0), "page-coloring", &setup);
        outcome.value()["time_ns"]["wall"].as_u64().unwrap_or(0)
    };
    // The first is asked for at 1 ns, the last has its turn nine lines later and comes 100 ns after that.
    let small: &[ProgramChange] = &[];
    let huge: &[ProgramChange] = &[ProgramChange::HugePages { data: None }];
    assert_eq!(total(5.0, 20.0, 7.0, small), 1 + 9 * 20 + 100);
    assert_eq!(total(5.0, 20.0, 7.0, huge), 1 + 9 * 7 + 100);
    assert_eq!(total(5.0, 20.0, 0.0, huge), 1 + 9 * 20 + 100);
    assert_eq!(total(5.0, 0.0, 0.0, small), 1 + 9 * 5 + 100);
}

/// The book's figures for a list and an array: 100 ns a line, and ten.
#[test]
fn a_list_and_an_array() {
    let mut machine = machine(224, 10, 48);
    machine.core = machine.core.map(|core| Core {
        instructions_per_clock: 3.0,
        ..core
    });
    let per_line = |program: &Program| {
        let outcome = run(&machine, program);
        outcome.value()["time_ns"]["wall"].as_u64().unwrap_or(0) as f64 / 1000.0
    };
    let (array, list) = (per_line(&loads(1000, 5)), per_line(&chased(loads(1000, 5))));
    assert!((10.0..10.5).contains(&array), "{array} ns a line of the array");
    assert!((100.0..100.5).contains(&list), "{list} ns a line of the list");
}

#[test]
fn a_hit_in_a_line_on_its_way_hands_the_wait_on() {
    // value, then next, of each node: only the first of the two misses.
    let mut program = Program::new(1);
    for node in 0..10 {
        program.push_at(0, 1, Op::Read, node * LINE, 8);
        program.push_at(0, 2, Op::Read, node * LINE + 8, 8);
    }
    program.dependences = [1, 2].map(|site| waits(site, &[2])).to_vec();
    run(&machine(100, 10, 8), &program).time("total", 1 + 10 * 100 + 1);
}

/// Lists of three nodes, whose heads are in an array: a list's first node does not wait for the list before.
#[test]
fn a_list_begins_at_its_head() {
    let mut program = Program::new(1);
    for list in 0..4 {
        // The heads are side by side.
        program.push_at(0, 1, Op::Read, list * 8, 8);
        for node in 1..=3 {
            program.push_at(0, 2, Op::Read, (list * 3 + node) * LINE, 8);
        }
    }
    let total = |either| {
        let mut program = program.clone();
        program.dependences = vec![Dependence {
            either,
            ..waits(2, &[1, 2])
        }];
        let outcome = run(&machine(100, 100, 8), &program);
        outcome.value()["time_ns"]["wall"].as_u64().unwrap()
    };
    // The heads come at 101 ns. All lists then go on side by side, and twelve more instructions leave; or one list after the other.
    assert_eq!(total(true), 101 + 3 * 100 + 12);
    assert_eq!(total(false), 101 + 4 * 3 * 100);
}

#[test]
fn so_many_are_on_their_way_at_once() {
    // Ten loads, two at a time, asked for at 1 and 2 ns, 101 and 102, and so on.
    run(&machine(100, 2, 8), &loads(10, 0)).time("total", 502);
    run(&machine(100, 1, 8), &loads(10, 0)).time("total", 1001);
}

/// A store is asked for when it leaves. A load behind it has entered long before, and takes the room that is there by then.
#[test]
fn loads_do_not_wait_for_room_behind_stores() {
    let mut program = loads(1, 0);
    program.push_at(0, 2, Op::Write, LINE, 8);
    program.push_at(0, 3, Op::Read, 2 * LINE, 8);
    // The loads are asked for at 1 and 3 ns, the store at 101 ns. The last one leaves when its line has come, at 103 ns.
    run(&machine(100, 2, 8), &program).time("total", 103);
    // One at a time: the load is asked for when the first line has come, 1 ns before the store, whose time was known before and stays.
    run(&machine(100, 1, 8), &program).time("total", 201);
}

#[test]
fn the_window_bounds_what_goes_on() {
    // An instruction at a time: each load waits by itself.
    run(&machine(1, 10, 8), &loads(10, 0)).time("total", 10 * 101);
    // Twenty instructions from load to load: within a window of 100, five; the next one enters when the first leaves.
    let outcome = run(&machine(100, 10, 8), &loads(10, 19));
    outcome.time("busy", 200);
    // The sixth load is instruction 101, which enters when the first one has left, at 101, and comes at 202; the first
    // five and their work are done by then at 200.
    outcome.time("local_stall", 100 + 1);
}

/// Additions that wait for each other take their time, but do not hold back loads that they do not concern.
#[test]
fn instructions_that_wait_for_each_other() {
    let paced = |mut program: Program, clocks| {
        program.paces = vec![Pace { site: 1, clocks }];
        program
    };
    // Ten instructions of a clock each, four clocks where they wait for each other.
    let near = || {
        let mut program = Program::new(1);
        for _ in 0..10 {
            program.push_at(0, 1, Op::Read, 0, 8);
        }
        program
    };
    run(&machine(100, 10, 8), &paced(near(), 4 * 1024)).time("busy", 40);
    run(&machine(100, 10, 8), &paced(near(), 512)).time("busy", 10);
    // Ten misses are under way together meanwhile: the first comes at 101 ns, all others while instructions wait.
    let outcome = run(&machine(100, 10, 8), &paced(loads(10, 0), 4 * 1024));
    outcome.time("busy", 40);
    outcome.time("total", 101 + 9 * 4);
    // Nor does a machine that does not overlap know of it.
    let mut plain = machine(100, 10, 8);
    plain.core = None;
    run(&plain, &paced(near(), 4 * 1024)).time("busy", 10);
}

/// A branch before each second reference of one of two sites is mispredicted, and waits for the load before it.
#[test]
fn branches_foretold_wrongly_hold_back_what_follows() {
    let mut machine = machine(1000, 10, 8);
    let program = |on: Vec<u32>| {
        let mut program = Program::new(1);
        for line in 0..4 {
            program.push_at(0, 1, Op::Read, 2 * line * LINE, 8);
            program.push_at(0, 2, Op::Read, (2 * line + 1) * LINE, 8);
        }
        program.mispredictions = vec![Misprediction {
            site: 2,
            per_1024: 512,
            on,
        }];
        program
    };
    // All eight misses are on their way at once, the last one 8 ns later than the beginning.
    run(&machine, &program(vec![1])).time("total", 8 + 100);
    machine.core = machine.core.map(|core| Core {
        misprediction_ns: 5.0,
        ..core
    });
    // Two of four times, 5 ns are lost before the entering goes on.
    run(&machine, &program(vec![])).time("total", 8 + 10 + 100);
    // If the branch waits for the load before it, the entering goes on after that: the fourth reference is asked for at 103 + 5,
    // and the last one when the seventh, asked for after 3 more, has come.
    run(&machine, &program(vec![1])).time("total", 103 + 5 + 3 + 100 + 5 + 100);
}

/// Locked instructions run ahead of nothing: two misses come one after the other, and a load after each with it.
#[test]
fn locked_instructions_run_ahead_of_nothing() {
    let machine = machine(1000, 10, 8);
    let mut program = Program::new(1);
    for line in 0..4 {
        program.push_at(0, 1 + line as u32 % 2, Op::Modify, line * LINE, 8);
    }
    // Each waits for itself only; all are on their way at once where the input does not say that they are locked.
    run(&machine, &program).time("total", 4 + 100);
    program.dependences = [1, 2].map(|site| waits(site, &[site])).to_vec();
    run(&machine, &program).time("total", 4 + 4 * 100);
}

/// Instructions before a reference that make none of their own take its pace.
#[test]
fn instructions_between_references_have_the_pace_of_the_next() {
    let machine = machine(1000, 10, 8);
    let mut program = Program::new(1);
    program.event(0, Event::Work { instructions: 300 });
    program.push_at(0, 1, Op::Read, 0, 8);
    program.push_at(0, 2, Op::Read, 0, 8);
    program.paces = vec![Pace {
        site: 1,
        clocks: 3 * 1024,
    }];
    run(&machine, &program).time("busy", 3 * 301 + 1);
}

/// The same with sets of two ways that take a line each `refill` ns, and the lines of a walk down a column, which go to one.
fn of_one_set(refill: f64, rewrite: f64, rows: u64, columns: u64, op: Op) -> (Machine, Program) {
    let mut machine = machine(1000, 256, 8);
    machine.caches[0].ways = 2;
    machine.core = machine.core.map(|core| Core {
        set_refill_ns: refill,
        set_rewrite_ns: rewrite,
        ..core
    });
    let mut program = Program::new(1);
    for column in 0..columns {
        for row in 0..rows {
            program.push_at(0, 1, op, row * 512 * LINE + column * 8, 8);
        }
    }
    (machine, program)
}

#[test]
fn a_set_takes_one_line_after_the_other() {
    // The first is asked for at 1 ns, the others 20 ns after one another.
    let (machine, program) = of_one_set(20.0, 0.0, 10, 1, Op::Read);
    run(&machine, &program).time("total", 1 + 9 * 20 + 100);
    let (machine, program) = of_one_set(0.0, 0.0, 10, 1, Op::Read);
    run(&machine, &program).time("total", 110);
    // Lines of different sets take no turns.
    let (machine, _) = of_one_set(20.0, 0.0, 10, 1, Op::Read);
    run(&machine, &loads(10, 0)).time("total", 110);
}

#[test]
fn a_bank_takes_one_line_after_the_other() {
    let mut machine = machine(1000, 256, 8);
    machine.core = machine.core.map(|core| Core {
        bank_refill_ns: 20.0,
        ..core
    });
    let lines_apart = |lines: u64| {
        let mut program = Program::new(1);
        for line in 0..10 {
            program.push_at(0, 1, Op::Read, line * lines * LINE, 8);
        }
        program
    };
    // Every fourth line is of one bank: the first is asked for at 1 ns, the others 20 ns after one another.
    run(&machine, &lines_apart(4)).time("total", 1 + 9 * 20 + 100);
    // Every other one is of two: the ninth and the tenth are asked for at 81 and 82.
    run(&machine, &lines_apart(2)).time("total", 2 + 4 * 20 + 100);
    // Of four banks the first two take three lines each; the last line is in the second, and is asked for at 42.
    run(&machine, &lines_apart(1)).time("total", 2 + 2 * 20 + 100);
    machine.core = machine.core.map(|core| Core {
        bank_refill_ns: 0.0,
        ..core
    });
    run(&machine, &lines_apart(4)).time("total", 110);
}

#[test]
fn a_line_that_has_a_turn_takes_no_other() {
    // The ten turns of the first column begin at 1, 21, ... 181 ns. The second column enters from 11 ns on: the first
    // row's turn is over, and its next one at 201; all others join. All join in the third column too, from 21 ns on,
    // except the second row, which enters at 22: its next turn is at 221. The eight instructions after that leave one
    // after the other.
    let (machine, program) = of_one_set(20.0, 0.0, 10, 3, Op::Read);
    let outcome = run(&machine, &program);
    outcome.time("busy", 30);
    outcome.time("total", 221 + 100 + 8);
}

#[test]
fn a_store_whose_line_is_replaced_before_it_leaves_takes_its_set_for_longer() {
    // Turns begin at 1 ns; each line is loaded and written by one instruction. From the second on there were as many turns as ways:
    // each takes 20 and 50 ns.
    let (machine, program) = of_one_set(20.0, 50.0, 5, 1, Op::Modify);
    run(&machine, &program).time("total", 21 + 3 * (20 + 50) + 100);
    let (machine, program) = of_one_set(20.0, 50.0, 5, 1, Op::Read);
    run(&machine, &program).time("total", 1 + 4 * 20 + 100);
}

#[test]
fn work_hides_what_fits_into_the_window() {
    let outcome = run(&machine(1000, 10, 8), &loads(10, 99));
    // The first load delays all by 100 ns, and everything after it runs behind that.
    outcome.time("local_stall", 100);
}

#[test]
fn stores_wait_without_the_cpu() {
    let mut program = Program::new(1);
    for line in 0..4 {
        program.write(0, line * LINE);
    }
    run(&machine(100, 10, 4), &program).time("total", 4);
    // With room for two the third waits until the first is done, at 101.
    let outcome = run(&machine(100, 10, 2), &program);
    outcome.time("local_stall", 101 - 3);
}

#[test]
fn a_wait_for_others_lets_nothing_run_ahead() {
    let barrier = |program: &mut Program| program.event(0, Event::Barrier { object: 1, threads: 1 });
    let mut machine = machine(100, 10, 8);
    let mut program = loads(2, 0);
    barrier(&mut program);
    program.push_at(0, 1, Op::Read, 5 * LINE, 8);
    // The barrier takes no time: the third goes with the others.
    run(&machine, &program).time("local_stall", 100);
    let setup = Setup {
        barrier_ns: 7,
        ..Setup::default()
    };
    let outcome = both::run_with(&machine, &program, "page-coloring", &setup);
    outcome.time("local_stall", 200);
    machine.caches[0].hit_ns = 2.0;
    run(&machine, &program).time("local_stall", 100);
}

/// Of one entry, which takes 30 ns to refill.
fn tlb(walkers: u32) -> Option<machine::Tlb> {
    Some(machine::Tlb {
        entries: 1,
        ways: 1,
        wired: 0,
        refill_ns: 30.0,
        walkers,
        huge_refill_ns: None,
        far: Vec::new(),
    })
}

/// A load of each of four pages.
fn four_pages() -> Program {
    let mut program = Program::new(1);
    for page in 0..4 {
        program.push_at(0, 1, Op::Read, page * 1024 * LINE, 8);
    }
    program
}

#[test]
fn a_translation_is_part_of_what_a_load_takes() {
    let mut machine = machine(100, 10, 8);
    machine.tlb = tlb(0);
    let program = four_pages();
    let outcome = run(&machine, &program);
    outcome.time("total", 4 + 130);
    outcome.time("tlb_stall", 30);
    outcome.time("local_stall", 100);
    // The same lines again, which are there: only the translations are.
    let mut again = program.clone();
    again.items.extend(program.items.clone());
    run(&machine, &again).time("tlb_stall", 30);
}

/// Four loads of other pages are under way together: as many of their walks at a time as there are walkers.
#[test]
fn page_walks_wait_for_a_walker() {
    let of = |walkers| {
        let mut machine = machine(100, 10, 8);
        machine.tlb = tlb(walkers);
        run(&machine, &four_pages())
    };
    // One instruction enters each nanosecond, from 1 on. By one walker the fourth walk ends at 1 + 4 * 30.
    of(1).time("total", 1 + 4 * 30 + 100);
    // By two: the third walk begins when the first ends, at 31, and the fourth when the second does, at 32.
    of(2).time("total", 32 + 30 + 100);
    of(3).time("total", 31 + 30 + 100);
    // The fourth load begins at 4.
    of(4).time("total", 4 + 30 + 100);
    of(0).time("total", 4 + 30 + 100);
}

/// The lines of a walk come in time where memory keeps up with the program.
#[test]
fn what_is_prefetched_takes_its_time() {
    let mut machine = machine(1, 10, 8);
    machine.caches[0].prefetch = Some(Prefetch::new(1, 4));
    let fast = run(&machine, &loads(64, 0));
    // Lines 0 and 1 miss; 2 to 5 are asked for with line 1, and so on.
    fast.cache("L1", "misses", 2);
    let late = fast.value()["time_ns"]["stall_by_class"]["late_prefetch"].as_u64();
    assert!(late > Some(1000), "{late:?}");
    let slow = run(&machine, &loads(64, 99));
    assert_eq!(
        slow.value()["time_ns"]["stall_by_class"]["late_prefetch"].as_u64(),
        Some(0)
    );
    slow.time("local_stall", 200);
}

/// A list whose nodes are asked for ahead of use: nothing waits for the prefetches, and the loads find their lines.
#[test]
fn prefetches_of_the_program_are_loads_that_nobody_waits_for() {
    let ahead = |prefetches: u64| {
        let mut program = Program::new(1);
        // The page has a frame.
        program.push_at(0, 2, Op::Read, 63 * LINE, 8);
        for line in 0..prefetches {
            program.push_at(0, 3, Op::Prefetch, line * LINE, 8);
        }
        program.event(0, Event::Work { instructions: 300 });
        program.items.extend(loads(5, 0).items);
        chased(program)
    };
    // The first of the list enters 9 ns before its turn, and each other one leaves 1 ns after the one before it.
    run(&machine(10, 10, 8), &ahead(0)).time("local_stall", 100 + 91 + 4 * 99);
    let outcome = run(&machine(10, 10, 8), &ahead(5));
    outcome.time("local_stall", 100);
    outcome.cache("L1", "misses", 1);
    // One at a time, from 101 ns on: the last comes at 601, when 311 instructions have passed.
    run(&machine(10, 1, 8), &ahead(5)).time("local_stall", 601 - 311);
}

/// A line that a cpu asked for ahead of use, and that another wrote before it was looked up. The first lookup of it, a
/// write that does not allocate, accesses the written words; so the read after it finds nothing new to share.
#[test]
fn a_line_asked_for_ahead_and_lost_is_come_to_by_the_first_lookup() {
    let mut machine = machine(10, 10, 8);
    machine.cpus = 2;
    machine.caches[0].allocate_on_write = false;
    let mut program = Program::new(2);
    program.push_at(0, 0, Op::Read, 0, 1);
    program.push_at(0, 1, Op::Prefetch, 10 * LINE, 1);
    program.push_at(1, 2, Op::Write, 10 * LINE, 64);
    program.push_at(0, 3, Op::Write, 10 * LINE, 64);
    program.push_at(0, 4, Op::Read, 10 * LINE, 8);
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache("L1", "false_sharing", 1);
    outcome.cache("L1", "true_sharing", 0);
}

/// A line that the outer cache took back, and that a prefetch brings nearer: the read that then hits there needs the word
/// that another cpu wrote, so taking it back was essential.
#[test]
fn a_line_brought_nearer_by_a_prefetch_shows_what_it_was_taken_back_for() {
    let mut machine = machine(10, 10, 8);
    machine.cpus = 2;
    let outer = machine.caches[0].clone();
    machine.caches[0].bytes = 2 * 16;
    (machine.caches[0].ways, machine.caches[0].line_bytes) = (1, 16);
    machine.caches.push(machine::Cache {
        name: "L2".into(),
        level: 2,
        ..outer
    });
    let mut program = Program::new(2);
    program.push_at(0, 1, Op::Read, 0, 8);
    program.push_at(1, 2, Op::Write, 20, 1);
    program.push_at(0, 1, Op::Read, 0, 8);
    program.push_at(0, 3, Op::Prefetch, 16, 1);
    program.push_at(0, 3, Op::Read, 16, 16);
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache("L2", "true_sharing", 1);
    outcome.cache("L2", "false_sharing", 0);
}

/// Programs whose sites wait for one another in some way.
fn dependent(program: impl Strategy<Value = Program>) -> impl Strategy<Value = Program> {
    let on = vec((0..5u32, vec(0..5u32, 1..4)), 0..5);
    let paces = vec((0..5u32, select(vec![0u32, 100, 1024, 4096, 5000])), 0..4);
    let mispredicted = vec((0..5u32, select(vec![0u32, 300, 1024, 5000]), vec(0..5u32, 0..3)), 0..4);
    (program, on, paces, mispredicted).prop_map(|(mut program, on, paces, mispredicted)| {
        program.mispredictions = mispredicted.into_iter().map(Misprediction::from).collect();
        let paces: std::collections::BTreeMap<u32, u32> = paces.into_iter().collect();
        program.paces = paces.into_iter().map(trace::Pace::from).collect();
        let on: std::collections::BTreeMap<u32, Vec<u32>> = on.into_iter().collect();
        let waits = on.into_iter().map(|(site, on)| Dependence {
            site,
            // Drawn with these, so that earlier cases stay what they were.
            either: site % 2 == 0,
            on,
        });
        program.dependences = waits.collect();
        program
    })
}

/// Walks and strays, as the tests of prefetchers have them.
fn walks(threads: u32) -> impl Strategy<Value = Program> {
    let ops = vec![Op::Read, Op::Read, Op::Read, Op::Write, Op::Modify, Op::Fetch];
    let pages = vec![0x40_0000u64, 0x40_0200, 0x40_0400, 0x40_1000, 0x7fff_ffff_e000];
    let strides = vec![4i64, 8, 16, 32, 64, 128, -8, -32, 0];
    let walk = (
        (0..threads, 0..5u32, select(ops)),
        (select(pages), 0..512u64),
        select(strides),
        1..30i64,
        select(vec![1u16, 4, 8, 40]),
    );
    vec(walk, 1..30).prop_map(move |walks| {
        let mut program = Program::new(threads as usize);
        for ((thread, site, op), (page, offset), stride, count, size) in walks {
            for i in 0..count {
                let at = (page + offset).wrapping_add_signed(i * stride);
                program.push_at(thread, site, op, at, size);
            }
        }
        program
    })
}

fn changed(machine: &Machine, program: &Program, change: ProgramChange) -> Agreed {
    let mut program = program.clone();
    program.arrays = vec![Array {
        process: 0,
        addr: 0,
        bytes: LINE,
        name: "a".to_string(),
    }];
    let setup = Setup {
        changes: &[change],
        ..Setup::default()
    };
    both::run_with(machine, &program, "page-coloring", &setup)
}

/// Two chains take half the time of one twice as long, as the program that is written so does.
#[test]
fn chains_in_turn() {
    let machine = machine(100, 10, 8);
    let two = ProgramChange::Chains {
        data: "a".to_string(),
        line: "a.c:1".to_string(),
        chains: 2,
    };
    // The loads of the second chain are asked for 1 ns after those of the first.
    let changed = changed(&machine, &chased(loads(10, 0)), two);
    changed.time("total", 2 + 5 * 100);
    let mut written = Program::new(1);
    for line in 0..10 {
        written.push_at(0, 1 + (line % 2) as u32, Op::Read, line * LINE, 8);
    }
    written.dependences = [1, 2].map(|site| waits(site, &[site])).to_vec();
    let written = run(&machine, &written);
    for field in ["time_ns", "caches", "memory"] {
        assert_eq!(changed.value()[field], written.value()[field], "{field}");
    }
}

/// Loads that a small window keeps apart come together where they are prefetched, as in the program that is written so.
#[test]
fn prefetches_ahead() {
    const AHEAD: u64 = 8;
    let machine = machine(20, 10, 8);
    // Pages have frames when they are prefetched from.
    let touched = || {
        let mut program = Program::new(1);
        for page in 0..3 {
            program.push_at(0, 3, Op::Read, page * 4096, 8);
        }
        program
    };
    let mut before = touched();
    before.items.extend(loads(100, 19).items);
    let ahead = ProgramChange::Prefetch {
        data: "a".to_string(),
        line: "a.c:1".to_string(),
        ahead: AHEAD,
    };
    let mut written = touched();
    for line in 0..100 {
        written.push_at(0, 1, Op::Read, line * LINE, 8);
        written.event(0, Event::Work { instructions: 1 });
        written.push_at(0, 2, Op::Prefetch, (line + AHEAD) * LINE, 8);
        written.event(0, Event::Work { instructions: 19 });
    }
    let wall = |run: &Agreed| run.value()["time_ns"]["wall"].as_u64().unwrap_or(0) as f64;
    let before_ns = wall(&run(&machine, &before));
    let (changed, written) = (wall(&changed(&machine, &before, ahead)), wall(&run(&machine, &written)));
    assert!(written < 0.4 * before_ns, "{written} of {before_ns}");
    assert!(
        (changed - written).abs() < 0.02 * written,
        "{changed} simulated, {written} written so"
    );
}

/// Loads that are found at once are loads of the site, too.
#[test]
fn hits_count_as_loads_before() {
    let mut program = Program::new(1);
    for line in [0, 0, 0, 0, 0, 1] {
        program.push_at(0, 1, Op::Read, line * LINE, 8);
        program.event(0, Event::Work { instructions: 99 });
    }
    let machine = machine(1, 10, 8);
    run(&machine, &program).time("local_stall", 2 * 100);
    let ahead = |ahead| ProgramChange::Prefetch {
        data: "a".to_string(),
        line: "a.c:1".to_string(),
        ahead,
    };
    // The two instructions more of the first load pass while it waits.
    for so_many in [1, 3, 5] {
        changed(&machine, &program, ahead(so_many)).time("local_stall", 98);
    }
    changed(&machine, &program, ahead(6)).time("local_stall", 2 * 98);
}

/// Chains followed in turn, prefetches ahead, or both, at any of the sites.
fn changes_of_loads() -> impl Strategy<Value = Vec<ProgramChange>> {
    let (data, line) = (|| "a".to_string(), |site: u32| format!("a.c:{site}"));
    let chains = (0..4u32, 1..6u64).prop_map(move |(site, chains)| ProgramChange::Chains {
        data: data(),
        line: line(site),
        chains,
    });
    let prefetch = (0..4u32, 1..6u64).prop_map(move |(site, ahead)| ProgramChange::Prefetch {
        data: data(),
        line: line(site),
        ahead,
    });
    (proptest::option::of(chains), proptest::option::of(prefetch)).prop_map(|(a, b)| a.into_iter().chain(b).collect())
}

proptest! {
    #![proptest_config(cases(300))]

    /// The engine refuses loads that cannot be changed so, and such a case says nothing of the model.
    #[test]
    fn changed_loads(machine in overlapping_machines(vec![1, 2]), program in dependent(walks(2)), changes in changes_of_loads(), hits_take_time: bool, recorded: bool) {
        let (mut machine, mut program) = (machine, program);
        for cache in machine.caches.iter_mut().filter(|cache| cache.level == 1 && !hits_take_time) {
            (cache.hit_ns, cache.prefetch) = (0.0, None);
        }
        program.arrays = vec![Array { process: 0, addr: 0x40_0000, bytes: 64, name: "a".to_string() }];
        let setup = Setup { recorded, changes: &changes, ..Setup::default() };
        let refused = engine::simulate(&machine, &program, &["page-coloring"], &setup).err();
        let refused = refused.filter(|why| why.contains("no load of") || why.contains("is known ahead") || why.contains("no reference is of"));
        if refused.is_none() {
            agree(&machine, &program, &setup)?;
        }
    }

    #[test]
    fn one_cpu(machine in overlapping_machines(vec![1]), program in dependent(walks(2)), classes: bool, recorded: bool) {
        agree(&machine, &program, &Setup { classes, recorded, ..Setup::default() })?;
    }

    #[test]
    fn several_cpus(machine in overlapping_machines(vec![2, 3, 4]), program in dependent(walks(5)), classes in prop::bool::weighted(0.8), slice_ns in 1..2000u64) {
        agree(&machine, &program, &Setup { classes, slice_ns, ..Setup::default() })?;
    }

    /// The most common reference of most programs: found at once, in a cache that takes no time.
    #[test]
    fn hits_that_take_no_time(machine in overlapping_machines(vec![1, 2]), program in dependent(walks(1)), more in dependent(walks(2)), recorded: bool) {
        let mut machine = machine;
        for cache in machine.caches.iter_mut().filter(|cache| cache.level == 1) {
            (cache.hit_ns, cache.prefetch) = (0.0, None);
        }
        for program in [program, more] {
            agree(&machine, &program, &Setup { recorded, ..Setup::default() })?;
        }
    }

    #[test]
    fn with_events(machine in overlapping_machines(vec![1, 2, 4]), program in dependent(programs(5, 400)), recorded: bool, barrier_ns in 0..2u32) {
        agree(&machine, &program, &Setup { recorded, barrier_ns, ..Setup::default() })?;
    }

    /// Everything adds up, and nothing that is looked at closely changes.
    #[test]
    fn adds_up(machine in overlapping_machines(vec![1, 2, 4]), program in dependent(walks(5))) {
        let policies = ["round-robin+random"];
        let Ok(plain) = engine::simulate(&machine, &program, &policies, &Setup::default()) else { return Ok(()) };
        conservation::check(&machine, &program, &plain[0], true)?;
        let detail = Detail { structures: true, pages: 100, threads: true, ..Detail::default() };
        let close = engine::simulate_closely(&machine, &program, &policies, &Setup::default(), detail, None);
        let close = close.map_err(TestCaseError::fail)?;
        for field in ["caches", "memory", "tlb", "time_ns"] {
            prop_assert_eq!(&plain[0][field], &close[0][field]);
        }
        let time = &close[0]["time_ns"];
        let stalls: u64 = ["cache_stall", "local_stall", "remote_stall"].iter().filter_map(|part| time[part].as_u64()).sum();
        let threads = close[0]["threads"].as_array().cloned().unwrap_or_default();
        let by_thread: u64 = threads.iter().filter_map(|thread| thread["stall_ns"].as_u64()).sum();
        // Each figure is rounded down.
        prop_assert!(stalls.abs_diff(by_thread) <= 20, "{} and {}", stalls, by_thread);
    }

    /// A machine on which nothing overlaps is no faster than one that overlaps, on one cpu whose lines no other cpu
    /// asks for.
    #[test]
    fn overlapping_does_not_hurt(machine in overlapping_machines(vec![1]), program in walks(1)) {
        let mut alone = machine.clone();
        alone.memory.bandwidth_gbps = 0.0;
        alone.memory.upgrade_ns = 0.0;
        alone.caches.iter_mut().for_each(|cache| cache.prefetch = None);
        if let Some(core) = &mut alone.core {
            core.instructions_per_clock = 1.0;
            (core.set_refill_ns, core.bank_refill_ns) = (0.0, 0.0);
            (core.line_ns, core.memory_line_ns, core.huge_memory_line_ns) = (0.0, 0.0, 0.0);
        }
        let mut plain = alone.clone();
        plain.core = None;
        let total = |machine: &Machine| {
            let outcome = engine::simulate(machine, &program, &["page-coloring"], &Setup::default());
            outcome.ok().and_then(|outcome| outcome[0]["time_ns"]["wall"].as_u64())
        };
        prop_assert!(total(&alone) <= total(&plain));
    }
}
