//! Policy `pairing`: threads that are kept on the cpus of a cache. Random programs of several processes in both simulators.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::random::SplitMix64;
use crate::reference::{Item, Program};

proptest! {
    #![proptest_config(cases(150))]

    /// Count for count and nanosecond for nanosecond, with intervals so short that processes are placed all the time.
    #[test]
    fn both_simulators_agree_on_pairing(
        machine in machines(vec![1, 2, 3, 4, 6]),
        program in programs(8, 1500),
        interval in 1..20u64,
        slice_ns in 1..20_000u64,
        classes: bool,
    ) {
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let sets = [format!("pairing.interval={interval}")];
        let setup = Setup { slice_ns, classes, sets: &sets, ..Setup::default() };
        both::agree(&machine, &program, "pairing", &setup)?;
    }
}

/// Processes of many pages and of one page in turn, all on few cpus.
fn large_and_small(threads: u32, references: u64, seed: u64) -> Program {
    let mut random = SplitMix64(seed);
    let mut program = Program::new(threads as usize);
    program.spaces = (0..threads).collect();
    for _ in 0..references {
        for thread in 0..threads {
            let page = u64::from(random.below(if thread % 4 < 2 { 24 } else { 1 }));
            program.read(thread, page * 4096 + u64::from(random.below(64)) * 64);
        }
    }
    program
}

/// Random programs rarely have processes that are worth placing. These do, and both simulators place the same ones.
#[test]
fn processes_are_placed_alike() {
    let sets = ["pairing.interval=10".to_string()];
    let setup = Setup {
        sets: &sets,
        slice_ns: 3000,
        ..Setup::default()
    };
    let mut runner = TestRunner::deterministic();
    let mut placed = 0;
    for seed in 0..40 {
        let machine = machines(vec![4, 6]).new_tree(&mut runner).expect("a machine").current();
        let program = large_and_small(4 + seed % 4, 1500, seed.into());
        let outcome = both::agree(&machine, &program, "pairing", &setup).unwrap();
        placed += outcome.map_or(0, |outcome| {
            outcome["pairing"]["actions_count"].as_u64().expect("a number")
        });
    }
    assert!(placed >= 20, "{placed}");
}
