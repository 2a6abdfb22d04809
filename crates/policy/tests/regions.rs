//! The pieces of region scheduling, with the paper's examples (Lee12) and cases worked out by hand.
#![forbid(unsafe_code)]

use policy::Page;
use policy::regions::balance::{Item, balance, loads, partition};
use policy::regions::conditions::{Bounds, Known, Verdict, judge};
use policy::regions::partition::{Kind, Partition, RegionId};
use policy::regions::phase::{Phase, TouchAt};
use policy::regions::working_set::{History, bytes, histogram, quarters};
use proptest::prelude::*;

fn pages(count: u32) -> Partition {
    let mut partition = Partition::default();
    for index in 0..count {
        let number = 100 + u64::from(index);
        partition.meet(index, Page { space: 0, number });
    }
    partition
}

fn touch(phase: &mut Phase, partition: &mut Partition, index: u32, now_ns: u64) -> policy::regions::phase::Entered {
    let region = partition.region_of(index).expect("the page is known");
    let at = TouchAt {
        index,
        region,
        now_ns,
        fault_ns: 0,
    };
    phase.touch(at, 100, partition)
}

/// Figure 2: R5, R6 and R7, of 5, 4 and 2 pages, have cache C2, whose load is 11.
#[test]
fn the_load_of_a_cache_is_the_sum_of_its_regions() {
    let items = [5, 4, 2].map(|bytes| Item { bytes, now: Some(1) });
    assert_eq!(loads(&items, &[Some(1), Some(1), Some(1)], 2), [0, 11]);
}

/// Section 4: of the pages by their accessed scans, all of a page counts from 26, three quarters from 20, half from 14, a quarter
/// from 8.
#[test]
fn working_sets_have_the_papers_weights() {
    let of = |accessed: u32, scans: u32| {
        let mut history = History::default();
        (0..scans).for_each(|scan| history.scan(scan < accessed));
        history
    };
    let one = |accessed| quarters(&histogram([of(accessed, 32)].into_iter()));
    let expected = |accessed| match accessed {
        26.. => 4,
        20..26 => 3,
        14..20 => 2,
        8..14 => 1,
        _ => 0,
    };
    for accessed in 0..=32 {
        assert_eq!(one(accessed), expected(accessed), "{accessed}");
    }
    // Ten pages of four kinds: 4 + 2 x 3/4 + 2 x 1/2 + 1/4 pages.
    let region = [32, 32, 30, 27, 25, 20, 19, 14, 8, 3].map(|accessed| of(accessed, 32));
    assert_eq!(
        bytes(&histogram(region.into_iter()), 4096),
        (4 * 4 + 2 * 3 + 2 * 2 + 1) * 1024
    );
    // A page that was looked at eight times, and accessed each time, counts as one that always was.
    assert_eq!(of(8, 8).accessed(), 32);
    // What was more than 32 scans ago is forgotten.
    assert_eq!(of(10, 42).accessed(), 0);
}

/// Figure 12: who returns soon finds what was used in between on the stack, and all of it is one region. Who returns late has
/// changed its locality.
#[test]
fn regions_that_are_used_in_turns_are_merged_along_the_stack() {
    let mut partition = pages(5);
    let mut phase = Phase::new(10_000);
    for (at, index) in [(0, 0), (10, 1), (20, 2)] {
        assert_eq!(touch(&mut phase, &mut partition, index, at).close.is_some(), at > 0);
    }
    // Page 0 was left at 10, and is back at 30: pages 1 and 2 came in between.
    touch(&mut phase, &mut partition, 0, 30);
    let first = partition.region_of(0);
    assert_eq!([1, 2].map(|index| partition.region_of(index)), [first; 2]);
    assert_eq!(phase.seen.merges, 2);
    // Another locality, and back after 500: both stay as they are.
    for (at, index) in [(100, 3), (110, 4), (120, 3)] {
        touch(&mut phase, &mut partition, index, at);
    }
    let entered = touch(&mut phase, &mut partition, 1, 600);
    assert_eq!((entered.open, entered.close), (first, partition.region_of(3)));
    assert_ne!(partition.region_of(3), first);
    assert_eq!(partition.region_of(3), partition.region_of(4));
    assert_eq!(partition.region(first.unwrap()).pages.len(), 3);
}

/// A page that is used in another locality, too, is a guest there, and the third time it is used from everywhere.
#[test]
fn a_page_that_comes_alone_again_and_again_is_used_from_everywhere() {
    let mut partition = pages(12);
    let mut phase = Phase::new(1_000_000);
    for (at, index) in [(0, 0), (10, 1), (20, 2), (30, 3), (40, 0)] {
        touch(&mut phase, &mut partition, index, at);
    }
    let first = partition.region_of(0);
    assert_eq!(partition.region(first.unwrap()).pages.len(), 4);
    for turn in 1..4 {
        // After a long stay another locality, into which page 0 comes alone.
        let now = turn * 1000;
        touch(&mut phase, &mut partition, 5, now);
        assert_eq!(touch(&mut phase, &mut partition, 0, now + 10).guest, Some(0));
        assert!(phase.is_guest(0));
        // Its time is over, and nobody else of its region has come.
        let entered = touch(&mut phase, &mut partition, 6, now + 200);
        let (closed, everywhere) = if turn < 3 { (vec![0], vec![]) } else { (vec![], vec![0]) };
        assert_eq!(
            (entered.closed, entered.everywhere),
            (closed, everywhere),
            "turn {turn}"
        );
        assert!(!phase.is_guest(0));
        touch(&mut phase, &mut partition, 1, now + 500);
    }
    assert_ne!(partition.region_of(5), first);
    // Two of its pages come: the locality is the same.
    touch(&mut phase, &mut partition, 7, 5000);
    assert_eq!(touch(&mut phase, &mut partition, 2, 5010).guest, Some(2));
    touch(&mut phase, &mut partition, 3, 5020);
    assert_eq!(partition.region_of(7), partition.region_of(3));
}

/// Section 5.2: two programs of 4 MB and two of 16 KB on two caches of 4 MB.
#[test]
fn large_ones_are_paired_with_small_ones() {
    let items = [4 << 20, 4 << 20, 16 << 10, 16 << 10].map(|bytes| Item { bytes, now: None });
    assert_eq!(balance(&items, &[0, 1], &[0, 0]), [0, 1, 0, 1]);
    // What is balanced already stays, also the other way around.
    let items = [(4 << 20, 1), (4 << 20, 0), (16 << 10, 0), (16 << 10, 1)];
    let items = items.map(|(bytes, now)| Item { bytes, now: Some(now) });
    assert_eq!(balance(&items, &[0, 1], &[0, 0]), [1, 0, 0, 1]);
    // Both large ones in one cache is worth a move of one.
    let items = [(4 << 20, 0), (4 << 20, 0)].map(|(bytes, now)| Item { bytes, now: Some(now) });
    assert_eq!(balance(&items, &[0, 1], &[0, 0]), [0, 1]);
}

#[test]
fn a_preferred_program_has_caches_to_itself() {
    let mb = 1 << 20;
    assert_eq!(partition(&[3 * mb, 9 * mb], Some(0), 2, 4 * mb), [vec![0], vec![1]]);
    assert_eq!(
        partition(&[7 * mb, mb, mb], Some(0), 4, 4 * mb),
        [vec![0, 1], vec![2, 3], vec![2, 3]]
    );
    // It leaves one, however large it is.
    assert_eq!(partition(&[99 * mb, mb], Some(0), 2, 4 * mb), [vec![0], vec![1]]);
    // Without one: who uses more has more, all where there are too few.
    assert_eq!(partition(&[9 * mb, mb], None, 4, 4 * mb), [vec![0, 1, 2], vec![3]]);
    assert_eq!(partition(&[mb; 3], None, 2, 4 * mb), vec![vec![0, 1]; 3]);
}

/// Section 3.1 on Clovertown: caches of 4 MB, regions that gain from 2 x 1.8 to 2 x 4 MB.
#[test]
fn the_three_conditions_are_those_of_the_paper() {
    let bounds = Bounds {
        stay_least_ns: 60_000,
        stay_most_ns: 6_000_000,
        one_cache: 900,
        all_caches: 1000,
    };
    let of = |kb: u64, stay_us: u64| Known {
        regions: 2,
        stay_ns: Some(stay_us * 1000),
        working_set: kb << 10,
        cache_bytes: 4 << 20,
        caches: 2,
    };
    assert_eq!(judge(&of(2 * 2048, 200), &bounds), Verdict::Pays);
    assert_eq!(judge(&of(2 * 1800, 200), &bounds), Verdict::FitsOneCache);
    assert_eq!(judge(&of(2 * 4096 + 4, 200), &bounds), Verdict::FitsNoCaches);
    assert_eq!(judge(&of(2 * 2048, 59), &bounds), Verdict::StaysTooShort);
    assert_eq!(judge(&of(2 * 2048, 6001), &bounds), Verdict::StaysTooLong);
    let one = Known {
        regions: 1,
        ..of(2 * 2048, 200)
    };
    assert_eq!(judge(&one, &bounds), Verdict::NoRegions);
}

/// What may happen to a partition.
#[derive(Clone, Debug)]
enum Step {
    Meet(u32),
    Merge(u32, u32),
    TearDown(u32),
    TakeOut(u32),
    MakeGlobal(u32),
    MakeLocal(u32, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = || 0..24u32;
    let step = prop_oneof![
        3 => page().prop_map(Step::Meet),
        4 => (page(), page()).prop_map(|(a, b)| Step::Merge(a, b)),
        1 => page().prop_map(Step::TearDown),
        1 => page().prop_map(Step::TakeOut),
        1 => page().prop_map(Step::MakeGlobal),
        1 => (page(), 0..3u32).prop_map(|(page, cache)| Step::MakeLocal(page, cache)),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// Each page is in exactly one region, of its own address space; global pages stay so; seeds have one page.
    #[test]
    fn each_page_is_in_exactly_one_region(steps in steps()) {
        let mut partition = Partition::default();
        let mut global: std::collections::BTreeSet<u32> = std::collections::BTreeSet::new();
        let mut met: std::collections::BTreeSet<u32> = std::collections::BTreeSet::new();
        for step in steps {
            let region = |partition: &Partition, index| partition.region_of(index);
            match step {
                Step::Meet(index) => {
                    partition.meet(index, Page { space: index % 2, number: index.into() });
                    met.insert(index);
                }
                Step::Merge(a, b) => {
                    if let (Some(a), Some(b)) = (region(&partition, a), region(&partition, b)) {
                        partition.merge(a, b);
                    }
                }
                Step::TearDown(index) => {
                    let local = |id: &RegionId| !matches!(partition.region(*id).kind, Kind::Global);
                    if let Some(id) = region(&partition, index).filter(local) {
                        partition.tear_down(id);
                    }
                }
                Step::TakeOut(index) => {
                    if !global.contains(&index) {
                        partition.take_out(index);
                    }
                }
                Step::MakeGlobal(index) => {
                    partition.make_global(index);
                    global.extend(met.get(&index));
                }
                Step::MakeLocal(index, cache) => {
                    if let Some(id) = region(&partition, index)
                        && partition.region(id).kind == Kind::Regular
                    {
                        partition.set_kind(id, Kind::Local(cache));
                    }
                }
            }
            let mut seen = std::collections::BTreeSet::new();
            for (id, region) in partition.regions() {
                for &index in &region.pages {
                    prop_assert!(seen.insert(index), "page {index} is in two regions");
                    prop_assert_eq!(partition.region_of(index), Some(id));
                    prop_assert_eq!(partition.page(index).map(|page| page.space), Some(region.space));
                    prop_assert_eq!(region.kind == Kind::Global, global.contains(&index));
                }
                prop_assert!(region.kind != Kind::Seed || region.pages.len() == 1);
            }
            prop_assert_eq!(&seen, &met);
        }
    }
}
