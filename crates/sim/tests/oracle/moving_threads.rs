//! Threads that go from cpu to cpu: a case worked out by hand, and random programs in both simulators.

use machine::Machine;
use proptest::prelude::*;
use sim::Scheduling;
use trace::Event;

use crate::oracle::both::{self, Setup};
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::{Item, Program};

/// Two cpus on two nodes, a cache of one line each: of lines by turns every one misses.
fn two_nodes() -> Machine {
    let text = "name = \"two-nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 2\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
                cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
                [memory]\nnodes = 2\nlocal_ns = 99.0\nremote_ns = 999.0\ndirty_remote_ns = 999.0\n";
    machine::from_toml(text, "two-nodes.toml").expect("the machine is valid")
}

/// An instruction and a miss are 100 ns at home and 1000 ns away. With 1 us the thread is at home for ten references, then
/// away for one, at home again at 2 us for ten, and so on.
#[test]
fn a_thread_leaves_its_memory_and_comes_back() {
    let mut program = Program::new(1);
    for line in 0..33 {
        program.read(0, line % 64 * 64);
    }
    let setup = |schedule| Setup {
        schedule,
        ..Setup::default()
    };
    let stays = both::run_with(&two_nodes(), &program, "first-touch", &setup(Scheduling::Stay));
    stays.memory("local", 33);
    let moves = both::run_with(
        &two_nodes(),
        &program,
        "first-touch",
        &setup(Scheduling::Next { every_ns: 1000 }),
    );
    moves.memory("local", 30);
    moves.memory("remote", 3);
    moves.time("wall", 30 * 100 + 3 * 1000);
    // The cpu that the thread is not on waits.
    moves.time("imbalance", 30 * 100 + 3 * 1000);
}

proptest! {
    #![proptest_config(cases(120))]

    /// Count for count and nanosecond for nanosecond: the events, slices and policies as without it. Without teams: a
    /// thread that reaches a cpu whose clock is behind begins and ends them in its past, and there is no agreed split
    /// of the waits then.
    #[test]
    fn both_simulators_agree_on_threads_that_move(
        machine in machines(vec![1, 2, 3, 4, 6]),
        program in programs(8, 500),
        every in 1..5000u64,
        slice_ns in 1..20_000u64,
        barrier_ns in 0..200u32,
        recorded in prop::bool::weighted(0.1),
        classes: bool,
    ) {
        let sets = ["trigger=3", "hold=1", "batch=1", "reset=1000"].map(|set| format!("migrate-replicate.{set}"));
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let setup = Setup {
            schedule: Scheduling::Next { every_ns: every },
            slice_ns,
            barrier_ns,
            recorded,
            classes,
            sets: &sets,
            ..Setup::default()
        };
        for policy in ["first-touch", "migrate-replicate"] {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }

    /// Threads that begin on other cpus than those of their order; several may begin on one, and cpus may have none.
    #[test]
    fn both_simulators_agree_on_threads_that_are_placed(
        machine in machines(vec![2, 3, 4, 6]),
        program in programs(8, 500),
        placement in prop::collection::vec(0..8u32, 0..6),
        moving in prop::option::weighted(0.2, 1..5000u64),
        slice_ns in 1..20_000u64,
        recorded in prop::bool::weighted(0.2),
        classes: bool,
    ) {
        let sets = ["trigger=3", "hold=1", "batch=1", "reset=1000"].map(|set| format!("migrate-replicate.{set}"));
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let setup = Setup {
            placement: Some(&placement),
            schedule: moving.map_or(Scheduling::Stay, |every_ns| Scheduling::Next { every_ns }),
            slice_ns,
            recorded,
            classes,
            sets: &sets,
            ..Setup::default()
        };
        for policy in ["first-touch", "migrate-replicate"] {
            both::agree(&machine, &program, policy, &setup)?;
        }
    }
}
