//! Figure 4 of Bugnion96: two arrays, two cpus, four colors.
//!
//! The text of the paper says: the arrays are virtual pages 0 to 7 and 8 to 13; the cache has four colors; there are
//! pages of cpu 0, of both and of cpu 1, and those of both come between the others; each set has two segments, one of
//! each array; pages 8, 9 and 10 are one segment, of cpu 0, that is assigned cyclically; before that pages 0
//! and 8 had the same color, after it not.
//!
//! We infer: pages 8 and 0 begin segments of the same set, and had the same color, so cpu 0 has four pages of the first
//! array alone: 0 to 3, half of them; and 8 to 10 are half of the second. So both are dealt evenly, and cpu 0 also uses
//! the beginning of cpu 1's halves: one page, the least that can be. The paper does not say how much is shared; the
//! last test tries all that can be.

#![allow(clippy::single_range_in_vec_init)] // A list of one range is meant.

use policy::cdpc::{
    Access, Communication, Direction, Hints, Loop, Machine, Schedule, Segment, Summary, hints, order, segments, touched,
};

const PAGE: u64 = 4096;
const FOUR_COLORS: Machine = Machine {
    page_bytes: PAGE,
    colors: 4,
    cpus: 2,
    fit: true,
};
const BOTH: u128 = 0b11;

fn summary(name: &str, first: u64, pages: u64, communication: Communication) -> Summary {
    Summary {
        name: name.into(),
        start: first * PAGE,
        bytes: pages * PAGE,
        offset: 0,
        unit: PAGE as i64,
        span: PAGE,
        inner: Vec::new(),
        communication,
        access: if communication == Communication::None {
            Access::Write
        } else {
            Access::Read
        },
    }
}

/// A loop over each array, a page in each iteration, that reads the next page too; one more uses both.
fn loops() -> Vec<Loop> {
    let a_loop = |iterations, summaries| Loop {
        place: "figure 4".into(),
        threads: 2,
        iterations,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries,
    };
    let with_next = |name, first, pages| {
        let next = Communication::Shift(PAGE as i64);
        vec![
            summary(name, first, pages, Communication::None),
            summary(name, first, pages, next),
        ]
    };
    let both = ["a", "b"].into_iter().zip([(0, 8), (8, 6)]);
    let both = both.map(|(name, (first, pages))| summary(name, first, pages, Communication::None));
    let mut together = a_loop(1, both.collect());
    together.threads = 1;
    vec![
        a_loop(8, with_next("a", 0, 8)),
        a_loop(6, with_next("b", 8, 6)),
        together,
    ]
}

fn segment(array: u32, pages: std::ops::Range<u64>, cpus: u128) -> Segment {
    Segment { array, pages, cpus }
}

fn pages(hints: &Hints) -> Vec<u64> {
    hints.pages.iter().map(|hint| hint.page).collect()
}

#[test]
fn each_cpu_touches_its_half_and_cpu_0_the_next_page() {
    let both = &loops()[0];
    let of_cpu = |cpu| touched(both, cpu, PAGE).unwrap();
    assert_eq!((of_cpu(0).written, of_cpu(0).read), (vec![0..4], vec![1..5]));
    // There is no page 8 in the array.
    assert_eq!((of_cpu(1).written, of_cpu(1).read), (vec![4..8], vec![5..8]));
}

#[test]
fn segments_sets_cyclic_order_and_colors() {
    let found = segments(&loops(), &FOUR_COLORS).unwrap();
    // (a)
    let expected = [
        segment(0, 0..4, 1),
        segment(0, 4..5, BOTH),
        segment(0, 5..8, 2),
        segment(1, 8..11, 1),
        segment(1, 11..12, BOTH),
        segment(1, 12..14, 2),
    ];
    assert_eq!(found.segments, expected);
    let hints = hints(&loops(), &FOUR_COLORS).unwrap();
    // (b)
    let sets: Vec<(u128, u64)> = hints.sets.iter().map(|set| (set.cpus, set.pages)).collect();
    assert_eq!(sets, [(1, 7), (BOTH, 2), (2, 5)]);
    assert!(hints.sets.iter().all(|set| set.segments.len() == 2));
    // (c): page 8 goes to the color that is farthest from that of page 0.
    assert_eq!(pages(&hints), [0, 1, 2, 3, 9, 10, 8, 4, 11, 5, 6, 7, 12, 13]);
    // (d)
    let colors: Vec<u32> = hints.pages.iter().map(|hint| hint.color).collect();
    assert_eq!(colors, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
}

#[test]
fn what_the_text_says_holds_however_much_is_shared() {
    for shared in 1..4 {
        for also_shared in 1..3 {
            let segments = [
                segment(0, 0..4, 1),
                segment(0, 4..4 + shared, BOTH),
                segment(0, 4 + shared..8, 2),
                segment(1, 8..11, 1),
                segment(1, 11..11 + also_shared, BOTH),
                segment(1, 11 + also_shared..14, 2),
            ];
            let hints = order(&segments, &[vec![0, 1]], &FOUR_COLORS).unwrap();
            let apart = order(&segments, &[], &FOUR_COLORS).unwrap();
            let color = |hints: &Hints, page| hints.pages.iter().find(|hint| hint.page == page).unwrap().color;
            assert_eq!(color(&apart, 0), color(&apart, 8), "the conflict that is to be avoided");
            assert_ne!(color(&hints, 0), color(&hints, 8));
            let cpus: Vec<u128> = hints.sets.iter().map(|set| set.cpus).collect();
            assert_eq!(cpus, [1, BOTH, 2]);
            let cyclic = &hints.segments[1];
            assert_eq!((cyclic.pages.clone(), cyclic.begin, cyclic.conflicts), (8..11, 9, 1));
        }
    }
}

#[test]
fn hints_say_how_they_came_about() {
    let json = serde_json::to_value(hints(&loops(), &FOUR_COLORS).unwrap()).unwrap();
    assert_eq!(json["sets"][1]["cpus"], serde_json::json!([0, 1]));
    assert_eq!(json["segments"][1]["begin"], 9);
    assert_eq!(json["arrays"][1]["name"], "b");
}
