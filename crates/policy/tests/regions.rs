//! The pieces of region scheduling, with the paper's examples (Lee12) and cases worked out by hand.
#![forbid(unsafe_code)]

use policy::Page;
use policy::regions::balance::{Item, balance, loads, partition};
use policy::regions::conditions::{Bounds, Known, Verdict, judge};
use policy::regions::partition::{Kind, Partition, RegionId};
use policy::regions::phase::{Alone, Entered, Phase, TouchAt, Watched};
use policy::regions::working_set::{Bits, History, bytes, histogram, quarters};
use proptest::prelude::*;

fn pages(count: u32) -> Partition {
    let mut partition = Partition::default();
    for index in 0..count {
        let number = 100 + u64::from(index);
        partition.meet(index, Page { space: 0, number });
    }
    partition
}

/// A phase that finds regions among some pages; `q` is 100.
struct Finding {
    partition: Partition,
    phase: Phase,
    alone: Alone,
}

impl Finding {
    fn new(count: u32, phase_ns: u64) -> Finding {
        Finding {
            partition: pages(count),
            phase: Phase::new(0, phase_ns),
            alone: Alone::new(2),
        }
    }

    fn region(&self, index: u32) -> RegionId {
        self.partition.region_of(index).expect("the page is known")
    }

    fn pages(&self, region: RegionId) -> usize {
        self.partition.region(region).pages.len()
    }

    fn touch_taking(&mut self, index: u32, now_ns: u64, fault_ns: u64) -> Entered {
        let at = TouchAt {
            index,
            region: self.region(index),
            now_ns,
            fault_ns,
        };
        self.phase.touch(at, 100, &mut self.partition, &mut self.alone)
    }

    fn touch(&mut self, index: u32, now_ns: u64) -> Entered {
        self.touch_taking(index, now_ns, 0)
    }

    fn touches(&mut self, touches: &[(u32, u64)]) {
        for &(index, now_ns) in touches {
            self.touch(index, now_ns);
        }
    }

    /// Ends the phase.
    fn watched(&mut self, now_ns: u64) -> Watched {
        self.phase.end(now_ns, 100, &mut self.partition, &mut self.alone);
        let seen = self.phase.watched(now_ns, 100, &self.partition);
        assert_eq!(seen.len(), 1);
        seen[&0].clone()
    }

    /// Two localities of four pages, A (0 to 3) from 0 and B (4 to 7) from 1000, found because their first pages came again.
    fn two_localities() -> (Finding, [RegionId; 2]) {
        let mut finding = Finding::new(8, 3500);
        finding.touches(&[(0, 0), (1, 10), (2, 20), (3, 30), (0, 40)]);
        finding.touches(&[(4, 1000), (5, 1010), (6, 1020), (7, 1030), (4, 1040)]);
        let both = [finding.region(0), finding.region(4)];
        (finding, both)
    }
}

/// The largest region that was used is torn down next; one that has lost all its pages is none.
#[test]
fn the_largest_region_has_pages() {
    let (mut finding, [a, b]) = Finding::two_localities();
    for region in [a, b] {
        finding.partition.set_kind(region, Kind::Local(0));
    }
    let largest = |finding: &Finding, spared| finding.phase.largest(&finding.partition, spared);
    assert_eq!(
        (largest(&finding, Some(0)), largest(&finding, Some(4))),
        (Some(b), Some(a))
    );
    for page in 0..4 {
        finding.partition.make_global(page);
    }
    assert_eq!((largest(&finding, None), largest(&finding, Some(4))), (Some(b), None));
}

/// Figure 2: R5, R6 and R7, of 5, 4 and 2 pages, have cache C2, whose load is 11. Of three programs the one that uses most has a cache
/// for itself (section 2.1; 11 is the paper's, 3 and 4 are ours).
#[test]
fn the_load_of_a_cache_is_the_sum_of_its_regions() {
    let items = |bytes: [u64; 3], now| bytes.map(|bytes| Item { bytes, now });
    assert_eq!(loads(&items([5, 4, 2], Some(1)), &[1, 1, 1], &[0, 0]), [0, 11]);
    assert_eq!(loads(&items([5, 4, 2], Some(1)), &[0, 1, 0], &[10, 20]), [17, 24]);
    let caches = balance(&items([3, 4, 11], None), &[0, 1], &[0, 0]);
    assert_eq!(caches, [1, 1, 0]);
    assert_eq!(loads(&items([3, 4, 11], None), &caches, &[0, 0]), [11, 7]);
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
    // Accesses more than 32 scans ago are forgotten.
    assert_eq!(of(10, 42).accessed(), 0);
}

/// A page that was accessed in the first scan alone counts for nothing by the ninth, whether it was looked at or was closed.
#[test]
fn what_nobody_touches_any_more_is_not_in_use() {
    let mut history = History::default();
    history.scan(true);
    assert_eq!(history.accessed(), 32);
    history.skip(8);
    assert_eq!(history.accessed(), 3);
    assert_eq!(quarters(&histogram([history].into_iter())), 0);
    history.skip(1000);
    assert_eq!(history.accessed(), 0);
    // The same by the numbers of scans: the third finds it, the fourth to seventh do not reach it.
    let mut bits = Bits::default();
    assert_eq!(bits.until(2).accessed(), 0);
    bits.found(3);
    bits.scan(3);
    assert_eq!(bits.until(3).accessed(), 32);
    assert_eq!(bits.until(7).accessed(), 32 / 5);
    // The eighth reaches it, since its region was touched, and does not find it.
    bits.scan(8);
    assert_eq!(bits.until(8).accessed(), 32 / 6);
    bits.found(9);
    bits.scan(9);
    assert_eq!(bits.until(9).accessed(), 2 * 32 / 7);
}

/// Figure 12: a thread that returns soon finds the regions used in between on the stack, and all of it is one region. A
/// thread that returns late has changed its locality.
#[test]
fn regions_that_are_used_in_turns_are_merged_along_the_stack() {
    let mut finding = Finding::new(6, 10_000);
    for (index, at) in [(0, 0), (1, 10), (2, 20)] {
        let entered = finding.touch(index, at);
        assert_eq!(entered.regions.len(), 1 + usize::from(at > 0));
        assert_eq!(finding.phase.open(), Some(finding.region(index)));
    }
    // Page 0 was left at 10, and is back at 30: pages 1 and 2 came in between.
    finding.touch(0, 30);
    let first = finding.region(0);
    assert_eq!([1, 2].map(|index| finding.region(index)), [first; 2]);
    assert_eq!(finding.phase.seen.merges, 2);
    // Another locality, and back after 500: both stay as they are.
    finding.touches(&[(3, 100), (4, 110), (3, 120), (1, 600)]);
    assert_eq!(finding.phase.open(), Some(first));
    assert_ne!(finding.region(3), first);
    assert_eq!(finding.region(3), finding.region(4));
    assert_eq!(finding.pages(first), 3);
    // After exactly `q` the other one is still another; a moment sooner it is not.
    finding.touches(&[(4, 700), (0, 800)]);
    assert_ne!(finding.region(3), finding.region(0));
    finding.touch(4, 899);
    assert_eq!(finding.region(3), finding.region(0));
}

/// A from 0, B from 1000, A from 2000, B from 3000: three changes in 3500. Each was told by the second page.
#[test]
fn changes_are_counted_from_the_first_stay_on() {
    let (mut finding, [a, b]) = Finding::two_localities();
    assert_ne!(a, b);
    assert_eq!((finding.pages(a), finding.phase.open()), (4, Some(b)));
    finding.touch(1, 2000);
    assert_eq!((finding.phase.open(), finding.phase.is_guest(1)), (None, true));
    finding.touch(2, 2001);
    assert_eq!((finding.phase.open(), finding.phase.is_guest(1)), (Some(a), false));
    finding.touches(&[(5, 3000), (6, 3001)]);
    assert_eq!(finding.phase.open(), Some(b));
    let changes = vec![(0, 4), (4, 2), (2, 6)];
    assert_eq!(finding.watched(3500), Watched { ns: 3400, changes });
}

/// The one that came in the last `q` may leave at once: it is not counted, and neither is that time.
#[test]
fn who_came_last_is_not_counted() {
    for (end, changes) in [(2099, vec![(0, 4)]), (2100, vec![(0, 4), (4, 1)])] {
        let (mut finding, _) = Finding::two_localities();
        finding.touches(&[(0, 2000), (1, 2001)]);
        let ns = end - 100;
        assert_eq!(finding.watched(end), Watched { ns, changes });
    }
}

/// The time that faults take is not the program's: B was left for 99 of its own, and is one locality with A.
#[test]
fn what_faults_take_is_no_time_away() {
    for (fault_ns, merged) in [(0, false), (1, true)] {
        let (mut finding, _) = Finding::two_localities();
        for (index, now_ns) in [(0, 2000), (1, 2001), (4, 2100), (5, 2102)] {
            finding.touch_taking(index, now_ns, fault_ns);
        }
        assert_eq!(finding.region(0) == finding.region(4), merged);
    }
}

/// A page of A comes alone into a stay in B, long after A was left: it is a guest, and B has the cpu by its second page.
#[test]
fn one_page_alone_is_no_change() {
    let (mut finding, [_, b]) = Finding::two_localities();
    for (index, at) in [(0, 2000), (5, 2001)] {
        finding.touch(index, at);
        assert_eq!(finding.phase.open(), None);
    }
    finding.touch(6, 2002);
    assert_eq!((finding.phase.open(), finding.phase.is_guest(0)), (Some(b), true));
    assert_eq!(finding.watched(3500).changes, [(0, 4)]);
}

/// A and B page by page: B was left a moment ago when two of its pages come.
#[test]
fn localities_that_are_used_together_are_one() {
    let (mut finding, _) = Finding::two_localities();
    finding.touches(&[(0, 2000), (5, 2001), (1, 2002), (6, 2003), (2, 2004), (7, 2005)]);
    assert_eq!(finding.region(0), finding.region(7));
    assert_eq!(finding.pages(finding.region(0)), 8);
}

/// Nobody of B came for `q`: A was in use, though only one of its pages was touched; and so it was where the phase ends.
#[test]
fn a_stay_in_one_page_is_a_stay() {
    let (mut finding, [a, b]) = Finding::two_localities();
    finding.touches(&[(0, 2000), (5, 2500), (6, 2501)]);
    assert_eq!(finding.phase.open(), Some(b));
    finding.touch(1, 3000);
    let changes = vec![(0, 4), (4, 0), (0, 6), (6, 1)];
    assert_eq!(finding.watched(3500), Watched { ns: 3400, changes });
    assert_eq!(finding.region(0), a);
    assert_ne!(a, b);
}

/// A page that is used in another locality, too, is a guest there. The second time it is used from everywhere, once its
/// time is over and no other page of its region has come. That may be in a later phase, but not in one long after.
#[test]
fn a_page_that_comes_alone_again_is_used_from_everywhere() {
    for (phases, everywhere) in [(0, true), (8, true), (9, false)] {
        let (mut finding, [a, b]) = Finding::two_localities();
        finding.touches(&[(0, 2000), (5, 2001), (6, 2002)]);
        assert_eq!((finding.phase.open(), finding.phase.is_guest(0)), (Some(b), true));
        let entered = finding.touch(1, 2500);
        assert_eq!((entered.everywhere.len(), entered.pages.contains(&0)), (0, true));
        finding.touch(2, 2501);
        assert_eq!((finding.phase.open(), finding.phase.is_guest(0)), (Some(a), false));
        (0..phases).for_each(|_| finding.alone.next_phase());
        finding.touches(&[(5, 3000), (6, 3001), (0, 3200), (5, 3201), (6, 3202)]);
        // Nobody was touched any more when the phase ends.
        let ended = finding.phase.end(3500, 100, &mut finding.partition, &mut finding.alone);
        assert_eq!(ended.everywhere.as_slice() == [0], everywhere, "{phases} phases later");
        assert!(!finding.phase.is_guest(0));
    }
}

/// Section 5.2: two programs of 4 MB and two of 16 KB on two caches of 4 MB.
#[test]
fn large_ones_are_paired_with_small_ones() {
    let items = [4 << 20, 4 << 20, 16 << 10, 16 << 10].map(|bytes| Item { bytes, now: None });
    assert_eq!(balance(&items, &[0, 1], &[0, 0]), [0, 1, 0, 1]);
    // Items that are balanced already stay, also the other way around.
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
    // Without one: processes that use more get more, and one gets all if there are too few.
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
        watched_ns: 0,
        working_set: kb << 10,
        found: kb << 10,
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
    // Half of it is enough to judge by.
    let found = |found| Known {
        found,
        ..of(2 * 2048, 200)
    };
    assert_eq!(judge(&found(2 << 20), &bounds), Verdict::Pays);
    assert_eq!(judge(&found((2 << 20) - 4096), &bounds), Verdict::StillFound);
    // Without a change that was seen, the stay is unknown, until it would have been seen.
    let unseen = |watched_ns| Known {
        stay_ns: None,
        watched_ns,
        ..of(2 * 2048, 0)
    };
    assert_eq!(judge(&unseen(18_000_000), &bounds), Verdict::StayUnknown);
    assert_eq!(judge(&unseen(18_000_003), &bounds), Verdict::StaysTooLong);
    // The report first names what cannot gain whatever its regions are.
    let small = Known {
        working_set: 1 << 20,
        ..one
    };
    assert_eq!(judge(&small, &bounds), Verdict::FitsOneCache);
}

/// The steps that may change a partition.
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

/// The same pages in the same caches, whatever the regions' numbers; not two pages that exchange their caches.
#[test]
fn fingerprints_differ_where_pages_have_other_caches() {
    let spread = |caches: &[u32], backwards: bool| {
        let count = caches.len() as u32;
        let mut partition = Partition::default();
        let mut order: Vec<u32> = (0..count).collect();
        if backwards {
            order.reverse();
        }
        for &index in &order {
            let number = u64::from(index);
            partition.meet(index, Page { space: 0, number });
        }
        for index in order {
            let region = partition.region_of(index).expect("the page is known");
            partition.set_kind(region, Kind::Local(caches[index as usize]));
        }
        partition.fingerprint()
    };
    let caches = [0, 0, 1, 1, 2, 2];
    assert_eq!(spread(&caches, false), spread(&caches, true));
    for (a, b) in [(0, 2), (1, 3), (2, 5), (0, 5)] {
        let mut exchanged = caches;
        exchanged.swap(a, b);
        assert_ne!(spread(&caches, false), spread(&exchanged, false), "{a} {b}");
    }
    assert_ne!(spread(&caches, false), spread(&[0, 0, 1, 1, 2, 1], false));
    // No page has a cache of its own.
    assert_eq!(pages(6).fingerprint(), pages(9).fingerprint());
}
