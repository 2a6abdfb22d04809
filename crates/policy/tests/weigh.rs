//! Weighing: which way of coloring is chosen for which arrays, and that it is never predicted to be clearly worse than a static policy.

use policy::cdpc::{
    Access, Choice, Communication, Direction, Hint, Hints, Inner, Loop, Machine, Schedule, Segment, Summary, hints,
    predicted, weighed, weighed_order,
};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const MACHINE: Machine = Machine {
    page_bytes: PAGE,
    colors: 32,
    cpus: 4,
    fit: true,
};

/// An array, from a page on, of which iteration `i` uses `span` pages from page `i * unit` on.
fn array(first: u64, pages: u64, unit: u64, span: u64) -> Summary {
    Summary {
        name: format!("from page {first}"),
        start: first * PAGE,
        bytes: pages * PAGE,
        offset: 0,
        unit: (unit * PAGE) as i64,
        span: span * PAGE,
        inner: Vec::new(),
        communication: Communication::None,
        access: Access::ReadWrite,
    }
}

fn a_loop(place: &str, iterations: u64, summaries: Vec<Summary>) -> Loop {
    Loop {
        place: place.into(),
        threads: MACHINE.cpus,
        iterations,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries,
    }
}

/// Two arrays that begin at the same place of the cache; each cpu has a quarter of both, twice.
fn columns(first: u64) -> Vec<Loop> {
    let both = vec![array(first, 64, 1, 1), array(first + 64, 64, 1, 1)];
    vec![a_loop("columns", 64, both.clone()), a_loop("columns again", 64, both)]
}

/// Sixteen planes of 18 pages, gone through plane by plane and then twice across all planes: the pages that each cpu
/// uses there lie 18 pages apart, so by address they have other colors each time. Half of all pages are of two cpus.
fn planes(first: u64) -> Vec<Loop> {
    let along = array(first, 16 * 18, 18, 18);
    let mut across = array(first, 16 * 18, 4, 2);
    across.inner.push(Inner {
        stride: 18 * PAGE as i64,
        count: 16,
    });
    let across = vec![across];
    vec![
        a_loop("along", 16, vec![along]),
        a_loop("across", 4, across.clone()),
        a_loop("across again", 4, across),
    ]
}

fn choices(hints: &Hints) -> Vec<(Choice, u64)> {
    hints.weighed.iter().map(|set| (set.choice, set.pages)).collect()
}

fn blocks(hints: &Hints, set: usize) -> [u64; 3] {
    let brought = &hints.weighed[set].brought;
    let by = |choice| brought.iter().find(|it| it.by == choice).unwrap().blocks;
    [Choice::ByAddress, Choice::ByTouch, Choice::Directed].map(by)
}

fn by_address(hint: &Hint) -> bool {
    u64::from(hint.color) == hint.page % u64::from(MACHINE.colors)
}

#[test]
fn where_each_cpu_has_its_columns_the_five_steps_stay() {
    let loops = columns(256);
    let weighed = weighed(&loops, &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::Directed, 128)]);
    assert_eq!(weighed.pages, hints(&loops, &MACHINE).unwrap().pages);
    let [address, _, directed] = blocks(&weighed, 0);
    assert!(directed * 2 < address, "{:?}", weighed.weighed);
}

#[test]
fn planes_that_are_swept_across_stay_with_page_coloring() {
    let loops = planes(256);
    let weighed = weighed(&loops, &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::ByAddress, 288)]);
    assert!(weighed.pages.iter().all(by_address));
    let [address, _, directed] = blocks(&weighed, 0);
    assert!(directed > address, "{:?}", weighed.weighed);
    // The plan of the five steps is still reported: the sets, the segments, the order.
    let plain = hints(&loops, &MACHINE).unwrap();
    assert_eq!((&weighed.sets, &weighed.segments), (&plain.sets, &plain.segments));
}

#[test]
fn what_gains_nothing_stays_with_page_coloring() {
    let loops = [a_loop("small", 8, vec![array(3, 8, 1, 1), array(11, 8, 1, 1)])];
    let weighed = weighed(&loops, &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::ByAddress, 16)]);
    assert_eq!(blocks(&weighed, 0), [0; 3]);
}

#[test]
fn what_fits_under_the_five_steps_and_not_by_address_stays_with_them() {
    // All arrays begin at the same place of the cache, and all of their pages together fit.
    let arrays = (0..4).map(|at| array(at * 32, 8, 1, 1)).collect();
    let loops = [a_loop("small", 8, arrays)];
    let weighed = weighed(&loops, &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::Directed, 32)]);
    let [address, touch, directed] = blocks(&weighed, 0);
    assert!(address > 0 && touch == 0 && directed == 0);
    assert_eq!(weighed.pages, hints(&loops, &MACHINE).unwrap().pages);
}

#[test]
fn sets_of_arrays_are_weighed_apart() {
    let loops = [columns(256), planes(1024)].concat();
    let weighed = weighed(&loops, &MACHINE, 1).unwrap();
    assert_eq!(
        choices(&weighed),
        [(Choice::Directed, 128), (Choice::ByAddress, 288)],
        "{:?}",
        weighed.weighed
    );
    let plain = hints(&loops, &MACHINE).unwrap();
    for (hint, directed) in weighed.pages.iter().zip(&plain.pages) {
        assert_eq!(hint.page, directed.page);
        assert!(if hint.page < 1024 {
            hint == directed
        } else {
            by_address(hint)
        });
    }
}

#[test]
fn more_ways_hold_what_one_cannot() {
    let arrays = || (0..2).map(|at| array(at * 32, 8, 1, 1)).collect();
    let cost = |ways| predicted(&[a_loop("small", 8, arrays())], &MACHINE, ways, |page| page as u32);
    assert!(cost(1).unwrap() > Some(0));
    assert_eq!(cost(2).unwrap(), Some(0));
}

#[test]
fn what_another_cpu_writes_comes_again_under_any_coloring() {
    // All cpus write all of it, in turn.
    let mut all = array(0, 4, 0, 4);
    let cost = |summary: &Summary| {
        let loops = [a_loop("all", 4, vec![summary.clone()])];
        predicted(&loops, &MACHINE, 1, |page| page as u32).unwrap()
    };
    assert!(cost(&all) > Some(0));
    all.access = Access::Read;
    assert_eq!(cost(&all), Some(0));
}

#[test]
fn segments_of_a_trace_are_weighed_too() {
    let segment = |array, first, cpu: u32| Segment {
        array,
        pages: first..first + 8,
        cpus: 1 << cpu,
    };
    // Each cpu has 8 pages of both arrays, at the same places of the cache.
    let segments: Vec<Segment> = (0..4)
        .flat_map(|cpu| [0, 1].map(|array| segment(array, u64::from(array) * 64 + u64::from(cpu) * 8, cpu)))
        .collect();
    let weighed = weighed_order(&segments, &[vec![0, 1]], &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::Directed, 64)]);
    // The order in which segments, arrays and lists are given does not matter.
    let renumbered = |segment: &Segment| Segment {
        array: 7 - segment.array,
        ..segment.clone()
    };
    let other: Vec<Segment> = segments.iter().rev().map(renumbered).collect();
    let lists = [vec![7, 6, 7], vec![6, 7]];
    assert_eq!(weighed_order(&other, &lists, &MACHINE, 1).unwrap().pages, weighed.pages);
    let alone: Vec<Segment> = segments.iter().filter(|it| it.array == 0).cloned().collect();
    let weighed = weighed_order(&alone, &[], &MACHINE, 1).unwrap();
    assert_eq!(choices(&weighed), [(Choice::ByAddress, 32)]);
}

#[test]
fn what_was_chosen_is_reported_with_why() {
    let weighed = weighed(&planes(256), &MACHINE, 1).unwrap();
    let json = serde_json::to_value(&weighed).unwrap();
    assert_eq!(json["weighed"][0]["choice"], "page-coloring");
    assert_eq!(json["weighed"][0]["arrays"], serde_json::json!([0]));
    assert_eq!(json["weighed"][0]["brought"][2]["by"], "cdpc");
    assert!(json["weighed"][0]["brought"][0]["blocks"].as_u64() > Some(0));
}

/// Loops over up to five arrays, each a part of them, along or across.
fn program() -> impl Strategy<Value = Vec<Loop>> {
    let shape = (0u64..5, 0u64..4, 1u64..7, 0u64..3, any::<bool>());
    let of_loop = (1u64..24, prop::collection::vec(shape, 1..5));
    prop::collection::vec(of_loop, 1..6).prop_map(|loops| {
        let summary = |(number, unit, span, across, write): (u64, u64, u64, u64, bool)| {
            let mut summary = array(number * 96, 60, unit, span);
            if across > 0 {
                summary.inner.push(Inner {
                    stride: (across * 7 * PAGE) as i64,
                    count: 6,
                });
            }
            summary.access = if write { Access::Write } else { Access::Read };
            summary
        };
        let a_loop = |(iterations, shapes): (u64, Vec<_>)| {
            a_loop("made up", iterations, shapes.into_iter().map(summary).collect())
        };
        loops.into_iter().map(a_loop).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(400)))]

    #[test]
    fn what_is_chosen_is_never_predicted_to_be_clearly_worse_than_a_static_policy(loops in program(), ways in 1u32..4) {
        let weighed = weighed(&loops, &MACHINE, ways).unwrap();
        let colors: std::collections::HashMap<u64, u32> = weighed.pages.iter().map(|hint| (hint.page, hint.color)).collect();
        let chosen = predicted(&loops, &MACHINE, ways, |page| colors[&page]).unwrap().unwrap();
        let address = predicted(&loops, &MACHINE, ways, |page| (page % 32) as u32).unwrap().unwrap();
        let touch: u64 = (0..weighed.weighed.len()).map(|set| blocks(&weighed, set)[1]).sum();
        let reported: u64 = (0..weighed.weighed.len()).map(|set| blocks(&weighed, set)[0]).sum();
        prop_assert_eq!(reported, address);
        // Up to the margin.
        let least = address.min(touch);
        prop_assert!(chosen * 95 <= least * 100, "{chosen} of {address} and {touch}: {:?}", weighed.weighed);
        // The same pages, and again the same.
        let plain = hints(&loops, &MACHINE).unwrap();
        prop_assert!(weighed.pages.iter().map(|hint| hint.page).eq(plain.pages.iter().map(|hint| hint.page)));
        prop_assert_eq!(&policy::cdpc::weighed(&loops, &MACHINE, ways).unwrap(), &weighed);
    }
}
