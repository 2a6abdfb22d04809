//! Caches that prefetch: walks that can be worked out by hand, and random machines and programs on
//! which the engine and the reference model agree.

use machine::{Machine, Prefetch, Stride, Write};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use sim::Detail;
use trace::Op;

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::{agree, cases};
use crate::oracle::machines::prefetching_machines;
use crate::oracle::textbook;
use crate::reference::Program;

const PAGE: u64 = 4096;
const LINE: u64 = 64;
const LINES: u64 = PAGE / LINE;

/// One fully associative cache of 1024 lines, with 16 streams and 4 lines ahead; memory at 100 ns.
fn machine() -> Machine {
    let mut machine = textbook::machine(1, 1024);
    machine.caches[0].ways = 1024;
    machine.caches[0].prefetch = Some(Prefetch::default());
    machine
}

/// Reads of these lines, counted from address 0.
fn reads(lines: impl IntoIterator<Item = u64>) -> Program {
    let mut program = Program::new(1);
    for line in lines {
        program.read(0, line * LINE);
    }
    program
}

fn run(machine: &Machine, program: &Program) -> Agreed {
    both::run(machine, program, "page-coloring")
}

/// Two misses a page, whichever way: the second shows the direction.
#[test]
fn a_walk_misses_twice_a_page() {
    let forwards = reads(0..8 * LINES);
    let backwards = reads((0..8 * LINES).rev());
    for program in [forwards, backwards] {
        let outcome = run(&machine(), &program);
        outcome.cache("L1", "accesses", 8 * LINES);
        outcome.cache("L1", "misses", 16);
        outcome.cache("L1", "cold", 16);
        outcome.cache("L1", "prefetches", 8 * (LINES - 2));
        outcome.cache("L1", "prefetch_hits", 8 * (LINES - 2));
        // Memory served only the misses, and only they waited.
        outcome.memory("local", 16);
        outcome.time("local_stall", 16 * 100);
    }
}

/// Every other line: those between are brought in vain.
#[test]
fn a_stride_of_two_lines_is_a_stream() {
    let outcome = run(&machine(), &reads((0..8 * LINES).step_by(2)));
    outcome.cache("L1", "misses", 16);
    // Of lines 3 to 63 of each page, 4, 6 and so on are asked for.
    outcome.cache("L1", "prefetches", 8 * 61);
    outcome.cache("L1", "prefetch_hits", 8 * 30);
}

/// A stride of five is longer than the four lines that are brought.
#[test]
fn a_long_stride_is_no_stream() {
    let program = reads((0..8 * LINES).step_by(5));
    let outcome = run(&machine(), &program);
    outcome.cache("L1", "prefetches", 0);
    outcome.cache("L1", "hits", 0);
    let mut farther = machine();
    farther.caches[0].prefetch = Some(Prefetch::new(1, 5));
    run(&farther, &program).cache("L1", "misses", 2 * 8);
}

/// A stream that runs on misses its first two lines, and the first line of each page that was not touched before.
#[test]
fn a_stream_runs_on_over_pages() {
    let mut machine = machine();
    machine.caches[0].prefetch = Some(Prefetch {
        runs_on: true,
        ..Prefetch::default()
    });
    let forwards: Vec<u64> = (0..8 * LINES).collect();
    let backwards: Vec<u64> = (0..8 * LINES).rev().collect();
    for walk in [forwards, backwards] {
        let fresh = run(&machine, &reads(walk.clone()));
        fresh.cache("L1", "misses", 2 + 7);
        // Pages that have frames: the walk goes on in them without a miss.
        let touched = (0..8).map(|page| page * LINES + LINES / 2);
        run(&machine, &reads(touched.chain(walk))).cache("L1", "misses", 8 + 2);
    }
}

/// Twice as many lines are brought as were walked, up to the maximum.
#[test]
fn a_stream_that_runs_on_grows() {
    let mut machine = machine();
    machine.caches[0].prefetch = Some(Prefetch {
        lines: 20,
        step: 1,
        runs_on: true,
        ..Prefetch::default()
    });
    // The last line that is brought: none, 3, 6, 9; in the end 20 lines ahead.
    for (walked, brought) in [(1, 0), (2, 2), (3, 5), (4, 8), (30, 48)] {
        run(&machine, &reads(0..walked)).cache("L1", "prefetches", brought);
    }
    // Two lines are a longer step than it may be.
    run(&machine, &reads((0..LINES).step_by(2))).cache("L1", "prefetches", 0);
}

/// Nothing is brought before the walk is long enough, then twice as many lines as were walked, and none of the next page.
#[test]
fn a_stream_begins_after_some_lines() {
    let mut machine = machine();
    machine.caches[0].prefetch = Some(Prefetch {
        lines: 20,
        step: 1,
        after: 3,
        ..Prefetch::default()
    });
    // The last line that is brought: none, none, 9, 12; in the end the last of the page.
    for (walked, brought) in [(2, 0), (3, 0), (4, 6), (5, 9), (LINES, LINES - 4)] {
        run(&machine, &reads(0..walked)).cache("L1", "prefetches", brought);
    }
    run(&machine, &reads(0..2 * LINES)).cache("L1", "misses", 2 * 4);
    // Two lines side by side, again and again, are no walk. Neither is one that turns back.
    let pairs = (0..8).flat_map(|pair| [8 * pair, 8 * pair + 1]);
    run(&machine, &reads(pairs)).cache("L1", "prefetches", 0);
    run(&machine, &reads([5, 6, 7, 6, 5, 4, 5, 6, 7])).cache("L1", "prefetches", 0);
}

/// A miss brings the other line of its pair, whichever of both it is, and a hit brings nothing.
#[test]
fn a_miss_brings_the_other_line_of_its_pair() {
    let mut machine = machine();
    machine.caches[0].prefetch = Some(Prefetch {
        pair: true,
        ..Prefetch::new(16, 4)
    });
    let firsts = [6, 1, 12, 9, 15, 2, 4].map(|pair| pair * LINES);
    let there = run(&machine, &reads(firsts.iter().map(|line| line + 10)));
    there.cache("L1", "prefetches", 7);
    // The second lookup of each finds its line.
    let last = || firsts.iter().map(|line| line + LINES - 1);
    run(&machine, &reads(last().chain(last()))).cache("L1", "prefetches", 7);
    for second in [[10, 11], [11, 10]] {
        let outcome = run(
            &machine,
            &reads(firsts.iter().flat_map(|line| second.map(|of| line + of))),
        );
        outcome.cache("L1", "misses", 7);
        outcome.cache("L1", "prefetch_hits", 7);
    }
    // Lines 11 and 12 are of two pairs.
    run(&machine, &reads(firsts.iter().flat_map(|line| [line + 11, line + 12]))).cache("L1", "misses", 14);
}

/// Seventeen pages in turn, a line of each: one more than there are streams. One stream more
/// follows them all.
#[test]
fn more_walks_than_streams_bring_nothing() {
    let program = reads((0..LINES).flat_map(|line| (0..17).map(move |page| page * LINES + line)));
    let outcome = run(&machine(), &program);
    outcome.cache("L1", "prefetches", 0);
    outcome.cache("L1", "misses", 17 * LINES);
    let mut one_more = machine();
    one_more.caches[0].prefetch = Some(Prefetch::new(17, 4));
    // 1024 lines are 16 pages and no more: finished walks make room.
    run(&one_more, &program).cache("L1", "misses", 2 * 17);
}

/// One line in each of many pages, in no order.
#[test]
fn strays_bring_nothing() {
    let outcome = run(
        &machine(),
        &reads((0..500).map(|i| i * 7919 % 509 * LINES + i * 31 % LINES)),
    );
    outcome.cache("L1", "prefetches", 0);
    outcome.cache("L1", "misses", 500);
}

/// A cache that follows the strides of `entries` instructions, 2 steps ahead, and streams of steps of one line.
fn striding(entries: u32, bytes: u64) -> Machine {
    let mut machine = machine();
    machine.caches[0].prefetch = Some(Prefetch {
        step: 1,
        stride: Some(Stride {
            entries,
            ahead: 2,
            bytes,
        }),
        ..Prefetch::default()
    });
    machine
}

/// Pages 1 to 10 have frames; one instruction reads a line of each. The third step by the same way brings the lines of the two
/// pages ahead, each later one that of the second page from it. Pages 11 and 12 have no frame.
#[test]
fn a_stride_is_followed_over_pages() {
    let mut program = Program::new(1);
    for page in 1..=10 {
        program.push_at(0, page as u32, Op::Read, page * PAGE, 4);
    }
    for page in 1..=10 {
        program.push_at(0, 20, Op::Read, page * PAGE + 5 * LINE, 4);
    }
    let outcome = run(&striding(1, PAGE), &program);
    outcome.cache("L1", "prefetches", 7);
    outcome.cache("L1", "prefetch_hits", 7);
    outcome.cache("L1", "misses", 10 + 3);
}

/// Two instructions in turn, each by 5 lines at a time, need two entries: the third of each brings two steps, each later one the
/// second from it. A step that is longer than it may be is not followed.
#[test]
fn strides_are_of_instructions_and_not_too_long() {
    let mut program = Program::new(1);
    for at in 0..10 {
        program.push_at(0, 1, Op::Read, at * 5 * LINE, 4);
        program.push_at(0, 2, Op::Read, (at * 5 + 2) * LINE, 4);
    }
    for (entries, bytes, misses, brought) in [(2, 5 * LINE, 6, 18), (1, 5 * LINE, 20, 0), (2, 5 * LINE - 1, 20, 0)] {
        let outcome = run(&striding(entries, bytes), &program);
        outcome.cache("L1", "misses", misses);
        outcome.cache("L1", "prefetches", brought);
    }
}

/// Prefetched lines evict others, whose misses are for lack of ways, not of capacity.
#[test]
fn what_is_brought_makes_others_leave() {
    let mut machine = textbook::machine(1, 4);
    machine.caches[0].prefetch = Some(Prefetch::default());
    // After 1 come 2, 3, 4 in the place of 0, 5 in that of 1.
    let outcome = run(&machine, &reads([0, 1, 1, 4]));
    outcome.cache("L1", "misses", 3);
    outcome.cache("L1", "cold", 2);
    outcome.cache("L1", "conflict", 1);
    outcome.cache("L1", "hits", 1);
    outcome.cache("L1", "prefetch_hits", 1);
    // After 4 come 5, which left for 1, 6, 7 and 8, in the place of 4 itself.
    outcome.cache("L1", "prefetches", 8);
}

/// A dirty line that a brought one puts out is written back.
#[test]
fn what_leaves_dirty_is_written_back() {
    let mut machine = textbook::machine(1, 4);
    machine.caches[0].prefetch = Some(Prefetch::default());
    let mut program = Program::new(1);
    program.write(0, 0);
    program.write(0, LINE);
    run(&machine, &program).cache("L1", "writebacks", 2);
}

/// The second level follows the misses of the first; the first one's lines come through the second.
#[test]
fn on_either_level() {
    let mut machine = machine();
    machine.caches.push(textbook::cache("L2", 2, 4096 * LINE, 16));
    machine.caches[1].hit_ns = 10.0;
    let program = reads(0..8 * LINES);
    let first = run(&machine, &program);
    first.cache("L1", "misses", 16);
    first.cache("L2", "accesses", 16);
    first.cache("L2", "misses", 16);
    machine.caches.swap_remove(0);
    machine.caches.insert(0, textbook::cache("L1", 1, 8 * LINE, 8));
    machine.caches[1].prefetch = Some(Prefetch::default());
    let second = run(&machine, &program);
    second.cache("L1", "misses", 8 * LINES);
    second.cache("L2", "misses", 16);
    second.cache("L2", "prefetch_hits", 8 * (LINES - 2));
    second.time("local_stall", 16 * 100);
    second.time("cache_stall", 8 * (LINES - 2) * 10);
}

/// Lines that are brought take their time of the memory, and the next miss waits for it.
#[test]
fn bringing_occupies_the_memory() {
    let mut machine = machine();
    machine.memory.bandwidth_gbps = 1.0;
    // The instructions take 1 ns. Line 0 at 1 ns until 101, line 1 at 102 until 202; the memory is
    // busy until 166, and with lines 2 to 5 until 422. Line 6 is asked for at 203.
    let outcome = run(&machine, &reads([0, 1, 40]));
    outcome.cache("L1", "prefetches", 4);
    outcome.time("local_stall", 100 + 100 + (422 - 203) + 100);
}

/// Writes that leave no line in the cache do not make it bring any.
#[test]
fn writes_that_are_passed_on_are_not_seen() {
    let mut machine = machine();
    machine.caches[0].write = Write::Through;
    machine.caches[0].allocate_on_write = false;
    let mut program = Program::new(1);
    for line in 0..LINES {
        program.write(0, line * LINE);
    }
    run(&machine, &program).cache("L1", "prefetches", 0);
}

/// Nearest to the cpu, lines that others hold are another matter.
#[test]
fn several_cpus_have_no_prefetchers_at_the_first_level() {
    let mut machine = machine();
    machine.cpus = 2;
    let error = engine::simulate(&machine, &reads(0..3), &["page-coloring"], &Setup::default());
    let error = error.expect_err("a machine of two cpus");
    assert!(error.contains("cache L1 prefetches at level 1"), "{error}");
}

/// A prefetch is a read: it takes lines that another cpu wrote, which must ask again before it writes again.
#[test]
fn bringing_takes_lines_from_other_cpus() {
    let mut machine = machine();
    machine.cpus = 2;
    machine.caches[0].prefetch = None;
    machine.caches.push(textbook::cache("L2", 2, 4096 * LINE, 16));
    machine.caches[1].hit_ns = 10.0;
    machine.caches[1].prefetch = Some(Prefetch::new(1, 2));
    let mut program = Program::new(2);
    program.write(1, 3 * LINE);
    program.read(0, LINE);
    program.read(0, 2 * LINE); // brings lines 3 and 4
    program.read(0, 3 * LINE); // is there
    program.write(1, 3 * LINE); // an upgrade
    program.read(0, 3 * LINE); // of truly shared data
    let outcome = both::run_recorded(&machine, &program, "page-coloring");
    outcome.cache_of(0, "L2", "prefetches", 2 + 1);
    outcome.cache_of(0, "L2", "prefetch_hits", 1);
    outcome.cache_of(0, "L2", "true_sharing", 1);
    outcome.cache_of(1, "L1", "upgrades", 1);
}

/// Walks of up to 40 references through a few pages, mixed with strays.
fn walks(threads: u32) -> impl Strategy<Value = Program> {
    let ops = vec![Op::Read, Op::Read, Op::Read, Op::Write, Op::Modify, Op::Fetch];
    let strides = vec![4i64, 8, 16, 24, 32, 64, 128, 600, 1300, -4, -8, -16, -32, -64, -700, 0];
    let pages = vec![
        0x40_0000u64,
        0x40_0200,
        0x40_0400,
        0x40_1000,
        0x7fff_ffff_e000,
        0x10_0000_0000,
    ];
    let sizes = vec![1u16, 4, 4, 8, 40];
    let walk = (
        (0..threads, 0..4u32),
        select(ops),
        (select(pages), 0..512u64),
        select(strides),
        prop_oneof![1 => 1..3i64, 2 => 1..40i64],
        select(sizes),
    );
    vec(walk, 1..40).prop_map(move |walks| {
        let mut program = Program::new(threads as usize);
        for ((thread, site), op, (page, offset), stride, count, size) in walks {
            for i in 0..count {
                let address = (page + offset).wrapping_add_signed(i * stride);
                program.push_at(thread, site, op, address, size);
            }
        }
        program
    })
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn one_thread(machine in prefetching_machines(vec![1]), program in walks(1), classes: bool, seed in 0..3u64) {
        agree(&machine, &program, &Setup { classes, seed, ..Setup::default() })?;
    }

    #[test]
    fn several_threads(machine in prefetching_machines(vec![1]), program in walks(3), recorded: bool, slice_ns in 1..2000u64) {
        agree(&machine, &program, &Setup { recorded, slice_ns, ..Setup::default() })?;
    }

    #[test]
    fn several_cpus(machine in prefetching_machines(vec![2, 3, 4]), program in walks(5), classes in prop::bool::weighted(0.8), slice_ns in 1..2000u64) {
        agree(&machine, &program, &Setup { classes, slice_ns, ..Setup::default() })?;
    }

    /// No cache brings more than it could have asked for, and a closer look changes nothing.
    #[test]
    fn adds_up(machine in prefetching_machines(vec![1]), program in walks(1)) {
        let policies = ["round-robin+random"];
        let Ok(plain) = engine::simulate(&machine, &program, &policies, &Setup::default()) else { return Ok(()) };
        let detail = Detail { structures: true, pages: 5, threads: true, ..Detail::default() };
        let close = engine::simulate_closely(&machine, &program, &policies, &Setup::default(), detail, None);
        let close = close.map_err(TestCaseError::fail)?;
        for (cache, shape) in plain[0]["caches"].as_array().into_iter().flatten().zip(&machine.caches) {
            let count = |field: &str| cache[field].as_u64();
            prop_assert_eq!(count("prefetches").is_some(), shape.prefetch.is_some());
            prop_assert!(count("prefetch_hits") <= count("prefetches").min(count("hits")));
        }
        for field in ["caches", "memory", "tlb", "time_ns"] {
            prop_assert_eq!(&plain[0][field], &close[0][field]);
        }
    }
}
