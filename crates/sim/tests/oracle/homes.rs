//! Policies that choose homes by misses: cases worked out by hand, and random programs in both simulators.

use machine::Machine;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::oracle::both::{self, Agreed, Setup};
use crate::oracle::conservation;
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::Program;

const PAGE: u64 = 4096;
const POLICIES: [&str; 3] = ["migrate", "replicate", "migrate-replicate"];

/// Four cpus on four nodes, a cache of one line each, so that every other line misses; the paper's latencies.
fn four_nodes() -> Machine {
    let text = "name = \"four-nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 4\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
                cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
                [memory]\nnodes = 4\nlocal_ns = 300.0\nremote_ns = 1200.0\ndirty_remote_ns = 1200.0\n";
    machine::from_toml(text, "four-nodes.toml").expect("the machine is valid")
}

/// So many misses of a thread on a page, each on another line than the one before.
fn misses(program: &mut Program, thread: u32, page: u64, count: u64) {
    for line in 0..count {
        program.read(thread, page * PAGE + line % 64 * 64);
    }
}

/// Policies act at once: nothing waits for other pages.
fn run(program: &Program, policy: &str) -> Agreed {
    let sets: Vec<String> = POLICIES.map(|policy| format!("{policy}.batch=1")).to_vec();
    let setup = Setup {
        sets: &sets,
        recorded: true,
        ..Setup::default()
    };
    both::run_with(&four_nodes(), program, policy, &setup)
}

/// Local and remote misses, pages moved, copied and collapsed.
#[track_caller]
fn counts(outcome: &Agreed, expected: [u64; 5]) {
    let fields = ["local", "remote", "migrations", "replications", "collapses"];
    let memory = &outcome.value()["memory"];
    assert_eq!(fields.map(|field| memory[field].as_u64().unwrap()), expected);
    let costs = &sim::VERGHESE96;
    let took = expected[2] as f64 * costs.move_page_ns
        + expected[3] as f64 * costs.copy_page_ns
        + expected[4] as f64 * costs.collapse_ns;
    assert_eq!(outcome.value()["time_ns"]["policy_overhead"].as_f64(), Some(took));
}

/// Touched by cpu 0, used by cpu 1: the 128th miss of cpu 1 moves it, and the other 72 are local.
#[test]
fn a_page_that_one_cpu_uses_moves_at_the_trigger() {
    let mut program = Program::new(4);
    misses(&mut program, 0, 0, 1);
    misses(&mut program, 1, 0, 200);
    for policy in ["migrate", "migrate-replicate"] {
        let outcome = run(&program, policy);
        counts(&outcome, [1 + 72, 128, 1, 0, 0]);
        outcome.memory("pages", 1);
        outcome.memory("pages_max", 2);
    }
    for policy in ["replicate", "first-touch"] {
        counts(&run(&program, policy), [1, 200, 0, 0, 0]);
    }
}

/// Cpu 0, which has the page, has missed 33 times: more than the hold, so cpus 1 to 3 get copies at their 128th miss.
#[test]
fn a_page_that_all_read_is_copied_to_each() {
    let mut program = Program::new(4);
    misses(&mut program, 0, 0, 33);
    for thread in 1..4 {
        misses(&mut program, thread, 0, 200);
    }
    for policy in ["replicate", "migrate-replicate"] {
        let outcome = run(&program, policy);
        counts(&outcome, [33 + 3 * 72, 3 * 128, 0, 3, 0]);
        outcome.memory("pages_max", 4);
    }
    // Its cpu is above the hold: for `migrate` the page is shared, and stays.
    counts(&run(&program, "migrate"), [33, 600, 0, 0, 0]);
}

/// A write finds the three copies and the first: all but the writer's go. Cpu 3, which is past the trigger still, gets
/// its copy back after as many misses more. After a second write the page was written too often, and stays as it is.
#[test]
fn a_write_collapses_the_copies_onto_the_writers() {
    let mut program = Program::new(4);
    misses(&mut program, 0, 0, 33);
    for thread in 1..4 {
        misses(&mut program, thread, 0, 128);
    }
    program.write(2, 20 * 64);
    program.read(2, 21 * 64);
    program.read(3, 22 * 64);
    // Cpu 3 has no copy now. It is judged again after as many misses more: at its 256th.
    counts(&run(&program, "migrate-replicate"), [33 + 2, 3 * 128 + 1, 0, 3, 1]);
    misses(&mut program, 3, 0, 127);
    counts(&run(&program, "migrate-replicate"), [33 + 2, 4 * 128, 0, 4, 1]);
    program.write(2, 23 * 64);
    for line in 24..34 {
        program.read(3, line * 64);
    }
    counts(&run(&program, "migrate-replicate"), [33 + 3, 4 * 128 + 10, 0, 4, 2]);
}

/// Two writes of cpu 0 within the interval: more than one, so readers get no copy; and the page is shared, so it does
/// not move either.
#[test]
fn a_page_that_is_written_is_left_alone() {
    let mut program = Program::new(4);
    misses(&mut program, 0, 0, 40);
    for line in 0..2 {
        program.write(0, line * 64);
    }
    for thread in 1..4 {
        misses(&mut program, thread, 0, 200);
    }
    let outcome = run(&program, "migrate-replicate");
    counts(&outcome, [42, 600, 0, 0, 0]);
    // One write is not too many.
    program.items.remove(40);
    counts(&run(&program, "migrate-replicate"), [41 + 3 * 72, 3 * 128, 0, 3, 0]);
}

/// Two cpus use a page by turns, never at the same time: it moves to the first, and is frozen for the second. The holder
/// has 128 misses by then, so it is copied where that is allowed.
#[test]
fn a_page_moves_once_between_resets() {
    let mut program = Program::new(4);
    misses(&mut program, 0, 0, 1);
    misses(&mut program, 1, 0, 128);
    misses(&mut program, 2, 0, 200);
    counts(&run(&program, "migrate"), [1, 128 + 200, 1, 0, 0]);
    counts(&run(&program, "migrate-replicate"), [1 + 72, 128 + 128, 1, 1, 0]);
}

fn sets(numbers: [u64; 9]) -> Vec<String> {
    let [trigger, hold, writes, moves, reset, batch, sample, reserve, count] = numbers;
    let mut sets = Vec::new();
    for policy in POLICIES {
        let mut set = |name: &str, value: u64| sets.push(format!("{policy}.{name}={value}"));
        set("trigger", trigger);
        set("hold", hold);
        set("reset", reset);
        set("batch", batch);
        set("wait", 1 + reset / 3);
        set("sample", sample);
        set("count", count);
        set("start", hold % 2);
        if policy != "migrate" {
            set("writes", writes);
            set("reserve", reserve);
        }
        if policy != "replicate" {
            set("moves", moves);
        }
    }
    sets
}

/// The random programs below give these policies something to do.
#[test]
fn random_programs_move_copy_and_collapse_pages() {
    let sets = sets([3, 1, 2, 2, 1000, 2, 1, 4, 0]);
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let mut runner = TestRunner::deterministic();
    let mut done = [0; 3];
    for _ in 0..150 {
        let machine = machines(vec![3, 4, 6]).new_tree(&mut runner).expect("a machine");
        let program = programs(6, 500).new_tree(&mut runner).expect("a program");
        let outcome = engine::simulate(&machine.current(), &program.current(), &["migrate-replicate"], &setup);
        let Ok(outcome) = outcome else { continue };
        let fields = ["migrations", "replications", "collapses"];
        for (done, field) in done.iter_mut().zip(fields) {
            *done += outcome[0]["memory"][field].as_u64().expect("a number");
        }
    }
    assert!(done.iter().all(|count| *count >= 20), "{done:?}");
}

proptest! {
    #![proptest_config(cases(120))]

    /// Count for count and nanosecond for nanosecond, and everything adds up.
    #[test]
    fn both_simulators_agree_on_pages_that_move(
        machine in machines(vec![2, 3, 4, 6]),
        program in programs(6, 500),
        thresholds in (1..8u64, 1..4u64, 0..4u64, 0..4u64),
        times in (1..2000u64, 1..4u64, 1..4u64, 0..9u64, 0..2u64),
        recorded: bool,
        classes: bool,
        slice_ns in 1..2_000_000u64,
    ) {
        let (trigger, hold, writes, moves) = thresholds;
        let (reset, batch, sample, reserve, count) = times;
        let sets = sets([trigger, hold, writes, moves, reset, batch, sample, reserve, count]);
        let setup = Setup { recorded, classes, slice_ns, sets: &sets, ..Setup::default() };
        for policy in POLICIES {
            if let Some(outcome) = both::agree(&machine, &program, policy, &setup)? {
                conservation::check(&machine, &program, &outcome, classes)?;
            }
        }
    }

    /// The same when savings are weighed, and when the trigger adapts.
    #[test]
    fn both_simulators_agree_on_what_pays(
        machine in machines(vec![2, 3, 4]),
        program in programs(4, 400),
        reset in 100..2000u64,
        gain in 0..4u64,
        adapt in 0..100u64,
        recorded: bool,
    ) {
        let mut sets = sets([2, 1, 2, 2, reset, 1, 1, 0, 0]);
        // Misses of tiny machines save next to nothing compared with the costs of a kernel of 1996.
        let weigh = |policy| [format!("{policy}.gain={}", gain / 3), format!("{policy}.adapt={adapt}")];
        sets.extend(POLICIES.into_iter().flat_map(weigh));
        let setup = Setup { recorded, sets: &sets, ..Setup::default() };
        for policy in POLICIES {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }
}
