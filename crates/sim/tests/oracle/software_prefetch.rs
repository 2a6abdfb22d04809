//! Prefetches of the program: cases worked out by hand, and random machines and programs on which the engine and the
//! reference model agree.

use machine::{Machine, SoftwarePrefetch};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sim::Detail;
use trace::{Event, Op};

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::conservation;
use crate::oracle::engine;
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::asking_machines;
use crate::oracle::programs::programs;
use crate::oracle::textbook;
use crate::reference::Program;

const LINE: u64 = 64;

/// A first level of 8 lines that costs nothing, a direct-mapped external cache of 16 lines (one page) at 10 ns, memory
/// at 100 ns, at 500 ns from another cpu; an instruction each ns; four prefetches under way.
fn machine(cpus: u32) -> Machine {
    let mut machine = textbook::machine(cpus, 8);
    machine.page_bytes = 1024;
    machine.caches.push(textbook::cache("L2", 2, 16 * LINE, 1));
    machine.caches[1].hit_ns = 10.0;
    machine.prefetch = Some(SoftwarePrefetch { outstanding: 4 });
    machine
}

/// Touches the page of an address at its end, far from the lines of interest.
fn map(program: &mut Program, thread: u32) {
    program.read(thread, 15 * LINE);
}

fn prefetch(program: &mut Program, thread: u32, line: u64) {
    program.push(thread, Op::Prefetch, line * LINE, 1);
}

fn run(machine: &Machine, program: &Program) -> Agreed {
    both::run(machine, program, "page-coloring")
}

#[track_caller]
fn counts(outcome: &Agreed, expected: &[(&str, u64)]) {
    let prefetch = &outcome.value()["prefetch"];
    for (field, count) in expected {
        assert_eq!(prefetch[field].as_u64(), Some(*count), "{field} in {prefetch}");
    }
    let sum: u64 = ["dropped_tlb", "dropped_unmapped", "already_present", "brought"]
        .iter()
        .filter_map(|field| prefetch[field].as_u64())
        .sum();
    assert_eq!(prefetch["issued"].as_u64(), Some(sum));
}

/// Asked for long before: the reference finds the line in the external cache, and in no nearer one.
#[test]
fn a_line_that_has_come_is_a_hit_of_the_external_cache() {
    let mut program = Program::new(1);
    map(&mut program, 0);
    prefetch(&mut program, 0, 3);
    program.event(0, Event::Work { instructions: 100 });
    program.read(0, 3 * LINE);
    let outcome = run(&machine(1), &program);
    counts(&outcome, &[("issued", 1), ("brought", 1), ("useful", 1), ("late", 0)]);
    outcome.cache("L1", "misses", 2);
    outcome.cache("L2", "accesses", 2);
    outcome.cache("L2", "misses", 1);
    outcome.time("cache_stall", 10);
    outcome.time("local_stall", 100);
    // Two reads, a prefetch and the work; a prefetch is an instruction, but no reference.
    outcome.time("busy", 103);
    assert_eq!(outcome.value()["references"].as_u64(), Some(2));
    assert_eq!(
        outcome.value()["time_ns"]["stall_by_class"]["on_chip"].as_u64(),
        Some(10)
    );
}

/// Asked for 30 ns before: 70 of the 100 ns are left, of which the hit takes 10.
#[test]
fn a_line_on_its_way_is_waited_for() {
    let mut program = Program::new(1);
    map(&mut program, 0);
    prefetch(&mut program, 0, 3);
    program.event(0, Event::Work { instructions: 29 });
    program.read(0, 3 * LINE);
    program.read(0, 3 * LINE + 32);
    let outcome = run(&machine(1), &program);
    counts(&outcome, &[("useful", 1), ("late", 1)]);
    outcome.time("cache_stall", 10);
    outcome.time("local_stall", 100 + 60);
    let time = &outcome.value()["time_ns"]["stall_by_class"];
    assert_eq!(time["late_prefetch"].as_u64(), Some(60), "{time}");
    assert_eq!(outcome.value()["caches"][1]["stall_ns"]["late"].as_u64(), Some(60));
}

/// Five at once, an instruction apart: the fifth waits for the first, which was asked for 4 ns before.
#[test]
fn a_fifth_waits_for_the_first() {
    let mut program = Program::new(1);
    map(&mut program, 0);
    for line in 0..5 {
        prefetch(&mut program, 0, line);
    }
    let outcome = run(&machine(1), &program);
    counts(&outcome, &[("brought", 5), ("useful", 0)]);
    outcome.time("prefetch_stall", 100 - 4);
    outcome.time("total", 106 + 96);
    let mut more = machine(1);
    more.prefetch = Some(SoftwarePrefetch { outstanding: 5 });
    run(&more, &program).time("prefetch_stall", 0);
}

#[test]
fn what_is_there_is_not_asked_for_again() {
    let mut program = Program::new(1);
    map(&mut program, 0);
    prefetch(&mut program, 0, 3);
    prefetch(&mut program, 0, 3); // on its way
    prefetch(&mut program, 0, 15); // in both caches
    let mut machine = machine(1);
    machine.memory.bandwidth_gbps = 1.0;
    let outcome = run(&machine, &program);
    counts(&outcome, &[("issued", 3), ("already_present", 2), ("brought", 1)]);
    // Two lines of 64 bytes, a byte each ns.
    assert_eq!(outcome.value()["bus"]["data"].as_u64(), Some(128));
}

/// One TLB entry: a page that it does not have is not asked for, and stays out of it.
#[test]
fn a_tlb_miss_drops_it() {
    let mut machine = machine(1);
    machine.tlb = Some(machine::Tlb {
        entries: 1,
        ways: 1,
        wired: 0,
        refill_ns: 7.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    });
    let mut program = Program::new(1);
    program.read(0, 0);
    program.read(0, 1024);
    prefetch(&mut program, 0, 3); // of page 0
    prefetch(&mut program, 0, 16 + 3); // of page 1
    program.read(0, 1024 + 64);
    let outcome = run(&machine, &program);
    counts(&outcome, &[("dropped_tlb", 1), ("dropped_unmapped", 0), ("brought", 1)]);
    outcome.tlb(3, 2);
}

#[test]
fn a_page_without_a_frame_drops_it() {
    let mut program = Program::new(1);
    prefetch(&mut program, 0, 3);
    let outcome = run(&machine(1), &program);
    counts(&outcome, &[("dropped_unmapped", 1), ("brought", 0)]);
    outcome.memory("pages", 0);
}

/// Without the key nothing happens; only the instruction takes its time.
#[test]
fn machines_that_know_no_prefetch_pass_over_it() {
    let mut machine = machine(1);
    machine.prefetch = None;
    let mut program = Program::new(1);
    map(&mut program, 0);
    prefetch(&mut program, 0, 3);
    let outcome = run(&machine, &program);
    assert!(outcome.value()["prefetch"].is_null());
    outcome.time("total", 102);
}

/// Lines that come evict others, as fills do: here a dirty one, with the first level's copies of it.
#[test]
fn it_evicts_as_a_fill_does() {
    let mut machine = machine(1);
    machine.caches[1].inclusive = true;
    let mut program = Program::new(1);
    program.read(0, 16 * LINE); // page 1 has a frame
    program.write(0, 3 * LINE);
    prefetch(&mut program, 0, 16 + 3);
    program.read(0, 3 * LINE);
    let outcome = run(&machine, &program);
    outcome.cache("L1", "writebacks", 1);
    outcome.cache("L2", "writebacks", 1);
    outcome.cache("L2", "conflict", 1);
    counts(&outcome, &[("brought", 1), ("useful", 0)]);
}

/// Another cpu's dirty line comes from there; a line that is invalidated on its way has come for nothing.
#[test]
fn other_cpus_are_asked_as_for_a_read() {
    let machine = machine(2);
    let mut program = Program::new(2);
    program.write(1, 0);
    program.write(1, 15 * LINE);
    prefetch(&mut program, 0, 0);
    program.event(0, Event::Work { instructions: 99 });
    program.read(0, 0); // 500 ns from cpu 1, of which 100 have passed
    prefetch(&mut program, 0, 15);
    program.write(1, 15 * LINE); // an upgrade: cpu 0 loses the line
    program.read(0, 15 * LINE);
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    counts(&outcome, &[("brought", 2), ("useful", 1), ("late", 1)]);
    outcome.cache_of(1, "L1", "upgrades", 1);
    // Cold, though it was there: no reference looked it up before.
    outcome.cache_of(0, "L2", "cold", 1);
    let time = &outcome.value()["per_cpu"][0]["time_ns"];
    assert_eq!(time["remote_stall"].as_u64(), Some(400 - 10 + 500), "{time}");
}

/// A line lost to a write and taken back ahead of use, then replaced: its next miss is a conflict, not of sharing.
#[test]
fn a_line_taken_back_ahead_of_use_is_held_again() {
    let machine = machine(2);
    let mut program = Program::new(2);
    program.read(0, 0);
    program.write(1, 0);
    prefetch(&mut program, 0, 0);
    for page in 1..3 {
        program.read(0, page * 1024); // in the place of line 0
    }
    program.read(0, 0);
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    let caches = &outcome.value()["per_cpu"][0]["caches"][1];
    assert_eq!(caches["true_sharing"].as_u64(), Some(0), "{caches}");
    assert_eq!(caches["capacity"].as_u64(), Some(1), "{caches}");
}

/// A line that was brought and lost to a write before anybody looked it up: its first miss is cold, and the next one,
/// after it was replaced, is no sharing miss either.
#[test]
fn a_line_lost_before_its_use_is_cold() {
    let machine = machine(2);
    let mut program = Program::new(2);
    program.write(1, 15 * LINE);
    prefetch(&mut program, 0, 3);
    program.write(1, 3 * LINE);
    program.read(0, 3 * LINE); // cold
    for page in 1..3 {
        program.read(0, page * 1024 + 3 * LINE); // in its place
    }
    program.read(0, 3 * LINE);
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    let caches = &outcome.value()["per_cpu"][0]["caches"][1];
    assert_eq!(caches["true_sharing"].as_u64(), Some(0), "{caches}");
    assert_eq!(caches["cold"].as_u64(), Some(3), "{caches}");
    assert_eq!(caches["misses"].as_u64(), Some(4), "{caches}");
}

/// Walks through a few pages with prefetches some lines ahead, among strays.
fn walks(threads: u32) -> impl Strategy<Value = Program> {
    let ops = vec![Op::Read, Op::Read, Op::Write, Op::Modify, Op::Fetch];
    let pages = vec![0x40_0000u64, 0x40_0200, 0x40_0400, 0x40_1000, 0x7fff_ffff_e000];
    let walk = (
        0..threads,
        select(ops),
        (select(pages), 0..512u64),
        select(vec![4i64, 8, 16, 32, 64, -16]),
        1..30i64,
        select(vec![0i64, 16, 32, 64, 128]),
    );
    vec(walk, 1..30).prop_map(move |walks| {
        let mut program = Program::new(threads as usize);
        for (thread, op, (page, offset), stride, count, ahead) in walks {
            for i in 0..count {
                let at = (page + offset).wrapping_add_signed(i * stride);
                if ahead > 0 {
                    program.push(thread, Op::Prefetch, at.wrapping_add_signed(ahead), 1);
                }
                program.push(thread, op, at, 4);
            }
        }
        program
    })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn one_cpu(machine in asking_machines(vec![1]), program in walks(2), classes: bool, recorded: bool) {
        agree(&machine, &program, &Setup { classes, recorded, ..Setup::default() })?;
    }

    #[test]
    fn several_cpus(machine in asking_machines(vec![2, 3, 4]), program in walks(5), classes in prop::bool::weighted(0.8), slice_ns in 1..2000u64) {
        agree(&machine, &program, &Setup { classes, slice_ns, ..Setup::default() })?;
    }

    #[test]
    fn several_cpus_with_events(machine in asking_machines(vec![2, 4]), program in programs(5, 400), recorded: bool, seed in 0..3u64) {
        agree(&machine, &program, &Setup { recorded, seed, ..Setup::default() })?;
    }

    /// Everything adds up, and nothing that is looked at closely changes.
    #[test]
    fn adds_up(machine in asking_machines(vec![1, 2, 4]), program in walks(5)) {
        let policies = ["round-robin+random"];
        let Ok(plain) = engine::simulate(&machine, &program, &policies, &Setup::default()) else { return Ok(()) };
        conservation::check(&machine, &program, &plain[0], true)?;
        let prefetch = &plain[0]["prefetch"];
        let count = |field: &str| prefetch[field].as_u64().unwrap_or(u64::MAX);
        let parts = count("dropped_tlb") + count("dropped_unmapped") + count("already_present") + count("brought");
        prop_assert_eq!(count("issued"), parts);
        prop_assert!(count("late") <= count("useful") && count("useful") <= count("brought"));
        let detail = Detail { structures: true, pages: 5, threads: true, ..Detail::default() };
        let close = engine::simulate_closely(&machine, &program, &policies, &Setup::default(), detail, None);
        let close = close.map_err(TestCaseError::fail)?;
        for field in ["caches", "memory", "tlb", "time_ns", "prefetch"] {
            prop_assert_eq!(&plain[0][field], &close[0][field]);
        }
    }
}
