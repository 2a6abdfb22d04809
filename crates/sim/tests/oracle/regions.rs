//! Policy `regions`: pages that are closed and opened, threads that go to the cache of what they touch. Random programs in both
//! simulators.

use proptest::prelude::*;
use trace::Event;

use crate::both::{self, Setup};
use crate::exactness::cases;
use crate::machines::machines;
use crate::programs::programs;
use crate::reference::Item;

proptest! {
    #![proptest_config(cases(150))]

    /// Count for count and nanosecond for nanosecond, whatever the policy closes, opens and moves: time is so short that it does
    /// all of it all the time. Without teams, as for threads that move by themselves.
    #[test]
    fn both_simulators_agree_on_regions(
        machine in machines(vec![1, 2, 3, 4, 6]),
        program in programs(8, 1500),
        (period, share, scan, idle) in (1..6u64, 100..900u64, 1..4u64, 1..3u64),
        (switch, rate) in (1..2000u64, 1..2_000_000u64),
        partition in 0..3u64,
        slice_ns in 1..20_000u64,
        recorded in prop::bool::weighted(0.1),
        classes: bool,
    ) {
        let mut program = program;
        program.items.retain(|(_, item)| !matches!(item, Item::Event(Event::TeamBegin { .. } | Event::TeamEnd { .. })));
        let sets = [
            format!("period={period}"),
            format!("share={share}"),
            format!("scan={scan}"),
            format!("idle={idle}"),
            format!("switch={switch}"),
            format!("rate={rate}"),
            format!("partition={partition}"),
            "fault=100".to_string(),
            "one-cache=0".to_string(),
            "all-caches=1000000".to_string(),
            "stay-most=1000000".to_string(),
        ]
        .map(|set| format!("regions.{set}"));
        let setup = Setup {
            slice_ns,
            recorded,
            classes,
            sets: &sets,
            ..Setup::default()
        };
        both::agree(&machine, &program, "regions", &setup)?;
    }
}
