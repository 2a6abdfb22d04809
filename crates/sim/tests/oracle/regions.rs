//! Policy `regions`: pages that are closed and opened, threads that go to the cache of the data they touch. Random
//! programs in both simulators.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::random::SplitMix64;
use crate::reference::{Item, Program};

proptest! {
    #![proptest_config(cases(150))]

    /// Count for count and nanosecond for nanosecond, whatever the policy closes, opens and moves: its times are so
    /// short that it does all of it all the time. Without teams, as for threads that move by themselves; by the clocks.
    #[test]
    fn both_simulators_agree_on_regions(
        machine in machines(vec![1, 2, 3, 4, 6]),
        program in programs(8, 1500),
        (period, share, scan, idle, cost) in (1..30u64, 100..900u64, 1..4u64, 1..3u64, 0..600u64),
        (switch, rate) in (1..2000u64, 1..2_000_000u64),
        partition in 0..3u64,
        slice_ns in 1..20_000u64,
        classes: bool,
    ) {
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let sets = [
            format!("period={period}"),
            format!("share={share}"),
            format!("cost={cost}"),
            format!("scan={scan}"),
            format!("idle={idle}"),
            format!("switch={switch}"),
            format!("rate={rate}"),
            format!("partition={partition}"),
            "fault=100".to_string(),
            "one-cache=1".to_string(),
            "stay-least=1".to_string(),
            "all-caches=1000000".to_string(),
            "stay-most=1000000".to_string(),
        ]
        .map(|set| format!("regions.{set}"));
        let setup = Setup {
            slice_ns,
            classes,
            sets: &sets,
            ..Setup::default()
        };
        both::agree(&machine, &program, "regions", &setup)?;
    }
}

/// Threads that stay in each of two localities of a few pages in turn.
fn in_turns(threads: u32, spaces: bool, pages: u64, stay: u64, references: u64, seed: u64) -> Program {
    let mut random = SplitMix64(seed);
    let mut program = Program::new(threads as usize);
    if spaces {
        program.spaces = (0..threads).collect();
    }
    for at in 0..references {
        for thread in 0..threads {
            let region = (at / stay + u64::from(thread)) % 2;
            let page = region * 64 + u64::from(random.below(pages as u32));
            let address = (u64::from(thread) * 4096 + page) * 4096 + u64::from(random.below(64)) * 64;
            match random.below(4) {
                0 => program.write(thread, address),
                _ => program.read(thread, address),
            }
        }
    }
    program
}

/// Policies that move threads all the time.
const LOOSE: [&str; 11] = [
    "regions.share=500",
    "regions.scan=3",
    "regions.idle=1",
    "regions.switch=200",
    "regions.fault=100",
    "regions.one-cache=1",
    "regions.cost=0",
    "regions.flush=20",
    "regions.stay-least=1",
    "regions.all-caches=1000000",
    "regions.stay-most=1000000",
];

proptest! {
    #![proptest_config(cases(40))]

    /// The same where threads do move.
    #[test]
    fn both_simulators_agree_on_threads_that_follow_their_regions(
        machine in machines(vec![2, 4, 6]),
        threads in 1..5u32,
        spaces: bool,
        pages in 2..8u64,
        stay in 10..80u64,
        period in 10..40u64,
        rate in 1..2_000_000u64,
        seed: u64,
    ) {
        let program = in_turns(threads, spaces, pages, stay, 1000, seed);
        let mut sets = LOOSE.map(String::from).to_vec();
        sets.extend([format!("regions.period={period}"), format!("regions.rate={rate}")]);
        let setup = Setup { slice_ns: 3000, sets: &sets, ..Setup::default() };
        both::agree(&machine, &program, "regions", &setup)?;
    }
}

/// And they do.
#[test]
fn those_programs_have_phases_merges_and_moves() {
    let mut sets = LOOSE.map(String::from).to_vec();
    sets.push("regions.period=20".to_string());
    let setup = Setup {
        sets: &sets,
        ..Setup::default()
    };
    let mut runner = TestRunner::deterministic();
    let mut done = [0; 3];
    for seed in 0..120 {
        let machine = machines(vec![2, 4, 6]).new_tree(&mut runner).expect("a machine");
        let program = in_turns(1 + seed % 4, seed % 2 == 0, 4, 40, 1000, seed.into());
        let outcome = engine::simulate(&machine.current(), &program, &["regions"], &setup);
        let Ok(outcome) = outcome else { continue };
        let fields = ["phases", "merges", "switches"];
        for (done, field) in done.iter_mut().zip(fields) {
            *done += outcome[0]["regions"][field].as_u64().expect("a number");
        }
    }
    assert!(done.iter().all(|count| *count >= 20), "{done:?}");
}
