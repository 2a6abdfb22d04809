//! The pages that a thread touches against a model that goes through every byte of every iteration.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use policy::cdpc::{
    Access, Communication, Direction, Inner, Loop, Machine, Schedule, Segment, Summary, homes, pages, segments, touched,
};
use proptest::prelude::*;

/// Bytes of the array of summary `at` that iteration `i` touches.
fn bytes(a_loop: &Loop, at: usize, i: u64) -> Vec<i128> {
    let summary = &a_loop.summaries[at];
    let (total, i) = (i128::from(a_loop.iterations), i128::from(i));
    let (i, shift) = match summary.communication {
        Communication::None => (i, 0),
        Communication::Shift(bytes) => (i, bytes),
        Communication::Rotate(distance) => ((i + i128::from(distance)).rem_euclid(total), 0),
    };
    let start = i128::from(summary.start);
    let base = start + i128::from(summary.offset) + i128::from(shift) + i * i128::from(summary.unit);
    let mut pieces = vec![base];
    for inner in &summary.inner {
        let moved = |piece: &i128| {
            let piece = *piece;
            (0..i128::from(inner.count)).map(move |k| piece + k * i128::from(inner.stride))
        };
        pieces = pieces.iter().flat_map(moved).collect();
    }
    let all = pieces.iter().flat_map(|&piece| piece..piece + i128::from(summary.span));
    let inside = |byte: &i128| match summary.bytes {
        0 => *byte >= 0,
        bytes => (start..start + i128::from(bytes)).contains(byte),
    };
    all.filter(inside).collect()
}

/// The thread that has iteration `i`.
fn thread_of(a_loop: &Loop, i: u64) -> u32 {
    let (total, threads) = (a_loop.iterations, u64::from(a_loop.threads));
    let turn = match a_loop.schedule {
        Schedule::Even => {
            let deal: Vec<u64> = (0..threads)
                .flat_map(|t| std::iter::repeat_n(t, (total / threads + u64::from(t < total % threads)) as usize))
                .collect();
            deal[i as usize]
        }
        Schedule::Blocked => i / total.div_ceil(threads),
        Schedule::Chunked(chunk) => i / chunk % threads,
    };
    match a_loop.direction {
        Direction::Forward => turn as u32,
        Direction::Reverse => a_loop.threads - 1 - turn as u32,
    }
}

fn model(a_loop: &Loop, thread: u32, page: u64, summaries: impl Fn(&Summary) -> bool) -> BTreeSet<u64> {
    let mine = (0..a_loop.iterations).filter(|&i| thread_of(a_loop, i) == thread);
    let asked = (0..a_loop.summaries.len()).filter(|&at| summaries(&a_loop.summaries[at]));
    let both = mine.flat_map(|i| asked.clone().map(move |at| (i, at)));
    both.flat_map(|(i, at)| bytes(a_loop, at, i))
        .map(|byte| byte as u64 / page)
        .collect()
}

fn set(ranges: &[Range<u64>]) -> BTreeSet<u64> {
    assert!(ranges.iter().all(|range| !range.is_empty()));
    assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
    ranges.iter().cloned().flatten().collect()
}

fn summary() -> impl Strategy<Value = Summary> {
    let place = (0u64..300, prop_oneof![1 => Just(0), 3 => 1u64..400], -100i64..100);
    let unit = prop_oneof![Just(0), -70i64..70];
    let inner = prop::collection::vec(
        (-90i64..90, 1u64..6).prop_map(|(stride, count)| Inner { stride, count }),
        0..3,
    );
    let communication = prop_oneof![
        Just(Communication::None),
        (-80i64..80).prop_map(Communication::Shift),
        (-30i64..30).prop_map(Communication::Rotate)
    ];
    let access = prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::ReadWrite)];
    (place, unit, 1u64..40, inner, communication, access).prop_map(
        |((start, bytes, offset), unit, span, inner, communication, access)| Summary {
            name: "a".into(),
            start,
            bytes,
            offset,
            unit,
            span,
            inner,
            communication,
            access,
        },
    )
}

fn a_loop() -> impl Strategy<Value = Loop> {
    let schedule = prop_oneof![
        Just(Schedule::Even),
        Just(Schedule::Blocked),
        (1u64..9).prop_map(Schedule::Chunked)
    ];
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Reverse)];
    let summaries = prop::collection::vec(summary(), 1..4);
    (1u32..6, 0u64..24, schedule, direction, summaries).prop_map(
        |(threads, iterations, schedule, direction, summaries)| Loop {
            place: "model".into(),
            threads,
            iterations,
            schedule,
            direction,
            summaries,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(2000)))]

    #[test]
    fn a_thread_touches_the_pages_of_its_bytes(a_loop in a_loop(), page in prop_oneof![Just(1u64), Just(8), Just(16), Just(64)]) {
        for thread in 0..a_loop.threads + 1 {
            let said = touched(&a_loop, thread, page).unwrap();
            let reads = model(&a_loop, thread, page, |summary| summary.access != Access::Write);
            let writes = model(&a_loop, thread, page, |summary| summary.access != Access::Read);
            prop_assert_eq!(set(&said.read), reads);
            prop_assert_eq!(set(&said.written), writes);
        }
    }

    /// Step 1 as the paper defines it, page by page.
    #[test]
    fn segments_are_maximal_and_have_the_cpus_of_their_pages(
        loops in prop::collection::vec(a_loop(), 1..4), cpus in 1u32..5,
    ) {
        let page_bytes = 16;
        let found = segments(&loops, &Machine { page_bytes, colors: 8, cpus, fit: true }).unwrap();
        let mut users = std::collections::BTreeMap::<u64, u128>::new();
        for a_loop in &loops {
            for thread in 0..a_loop.threads {
                for page in model(a_loop, thread, page_bytes, |_| true) {
                    *users.entry(page).or_default() |= 1 << (thread % cpus);
                }
            }
            for summary in a_loop.summaries.iter().filter(|summary| summary.bytes > 0) {
                for page in summary.start / page_bytes..(summary.start + summary.bytes).div_ceil(page_bytes) {
                    users.entry(page).or_default();
                }
            }
        }
        let pages = |segment: &Segment| segment.pages.clone();
        let said = found.segments.iter().flat_map(|segment| pages(segment).map(|page| (page, segment.cpus)));
        prop_assert_eq!(said.collect::<Vec<_>>(), users.into_iter().collect::<Vec<_>>());
        for pair in found.segments.windows(2) {
            let same = pair[0].array == pair[1].array && pair[0].cpus == pair[1].cpus;
            prop_assert!(!same || pair[0].pages.end < pair[1].pages.start);
        }
        for pair in found.arrays.windows(2) {
            prop_assert!(pair[0].start + pair[0].bytes <= pair[1].start);
        }
        // A page is with an array that has as much of it as any.
        let part = |array: u32, page: u64| {
            let array = &found.arrays[array as usize];
            let end = (array.start + array.bytes).min((page + 1) * page_bytes);
            end.saturating_sub(array.start.max(page * page_bytes))
        };
        for segment in &found.segments {
            for page in pages(segment) {
                let most = (0..found.arrays.len() as u32).map(|array| part(array, page)).max();
                prop_assert_eq!(Some(part(segment.array, page)), most);
            }
        }
    }
}

/// The home of each page, by every byte of every iteration: how many are touched from each node.
fn counted(loops: &[Loop], page: u64, cpus: u32, node_of: impl Fn(u32) -> u32) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::<u64, BTreeMap<u32, u64>>::new();
    let team = loops.iter().map(|a_loop| a_loop.threads).max().unwrap();
    let active: BTreeSet<u32> = (0..team).map(|thread| node_of(thread % cpus)).collect();
    for a_loop in loops {
        let mut seen: Vec<Summary> = Vec::new();
        for at in 0..a_loop.summaries.len() {
            // Bytes that are read and then written are touched once.
            let mut same = a_loop.summaries[at].clone();
            same.access = Access::Read;
            if matches!(same.communication, Communication::Shift(0) | Communication::Rotate(0)) {
                same.communication = Communication::None;
            }
            if seen.contains(&same) {
                continue;
            }
            seen.push(same);
            for i in 0..a_loop.iterations {
                let node = node_of(thread_of(a_loop, i) % cpus);
                for byte in bytes(a_loop, at, i) {
                    *counts.entry(byte as u64 / page).or_default().entry(node).or_default() += 1;
                }
            }
        }
    }
    let home = |(page, counts): (u64, BTreeMap<u32, u64>)| {
        let most = counts.values().max().unwrap();
        let tied: Vec<u32> = counts
            .iter()
            .filter(|(_, bytes)| *bytes == most)
            .map(|(node, _)| *node)
            .collect();
        let turn = if tied.len() == active.len() {
            page as usize % tied.len()
        } else {
            0
        };
        (page, tied[turn])
    };
    counts.into_iter().map(home).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(2000)))]

    #[test]
    fn a_page_lives_where_its_bytes_are_touched_most(
        loops in prop::collection::vec(a_loop(), 1..4), cpus in 1u32..6, nodes in 1u32..4, page in prop_oneof![Just(16u64), Just(64)],
    ) {
        let node_of = |cpu: u32| cpu * nodes.min(cpus) / cpus;
        let found = homes(&loops, &Machine { page_bytes: page, colors: 1, cpus, fit: false }, node_of).unwrap();
        let pages = found.iter().flat_map(|home| home.pages.clone().map(|page| (page, home.node)));
        prop_assert_eq!(pages.collect::<Vec<_>>(), counted(&loops, page, cpus, node_of).into_iter().collect::<Vec<_>>());
        for pair in found.windows(2) {
            prop_assert!(pair[0].pages.end < pair[1].pages.start || pair[0].node != pair[1].node);
        }
    }
}

/// From nothing to more than a summary can say.
fn any_size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(size, smaller)| size >> smaller)
}

fn any_distance() -> impl Strategy<Value = i64> {
    (any::<i64>(), 0u32..64).prop_map(|(distance, smaller)| distance >> smaller)
}

fn any_loop() -> impl Strategy<Value = Loop> {
    let inner = (any_distance(), any_size()).prop_map(|(stride, count)| Inner { stride, count });
    let summary = (
        (any_size(), any_size(), any_distance(), any_distance(), any_size()),
        prop::collection::vec(inner, 0..3),
        (0u8..3, any_distance()),
    );
    let summary = summary.prop_map(|((start, bytes, offset, unit, span), inner, (how, distance))| Summary {
        name: "any".into(),
        start,
        bytes,
        offset,
        unit,
        span,
        inner,
        communication: match how {
            0 => Communication::None,
            1 => Communication::Shift(distance),
            _ => Communication::Rotate(distance),
        },
        access: Access::ReadWrite,
    });
    let schedule = prop_oneof![
        Just(Schedule::Even),
        Just(Schedule::Blocked),
        any_size().prop_map(Schedule::Chunked)
    ];
    (0u32..200, any_size(), schedule, prop::collection::vec(summary, 0..3)).prop_map(
        |(threads, iterations, schedule, summaries)| Loop {
            place: "any".into(),
            threads,
            iterations,
            schedule,
            direction: Direction::Reverse,
            summaries,
        },
    )
}

proptest! {
    /// Numbers that no program has: an error or an answer.
    #[test]
    fn nothing_that_can_be_said_is_a_panic(loops in prop::collection::vec(any_loop(), 0..3), bits in 28u32..64) {
        let machine = Machine { page_bytes: 1 << bits, colors: 256, cpus: 128, fit: true };
        match policy::cdpc::hints(&loops, &machine) {
            Ok(hints) => prop_assert!(loops.iter().all(|a_loop| a_loop.check().is_ok()) && hints.used <= hints.pages.len()),
            Err(refused) => prop_assert!(!refused.why.is_empty()),
        }
        match homes(&loops, &machine, |cpu| cpu / 32) {
            Ok(homes) => prop_assert!(homes.iter().all(|home| home.node < 4 && !home.pages.is_empty())),
            Err(refused) => prop_assert!(!refused.why.is_empty()),
        }
    }
}

/// A plane of columns of 513 doubles, of which the loop leaves out the first and the last.
fn columns(iterations: u64, threads: u32) -> Loop {
    Loop {
        place: "columns".into(),
        threads,
        iterations,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries: vec![Summary {
            name: "u".into(),
            start: 0x1_0000_0000,
            bytes: (iterations + 2) * 4104,
            offset: 4104 + 8,
            unit: 4104,
            span: 511 * 8,
            inner: Vec::new(),
            communication: Communication::None,
            access: Access::ReadWrite,
        }],
    }
}

#[test]
fn a_million_pages_are_one_range() {
    let a_loop = columns(1_000_000, 16);
    for thread in 0..16 {
        assert_eq!(pages(&a_loop, &a_loop.summaries[0], thread, 4096).unwrap().len(), 1);
    }
}

#[test]
fn overlapping_arrays_are_cut_at_all_boundaries_and_used_with_what_either_is_used_with() {
    let of = |name: &str, start: u64, bytes: u64| Summary {
        name: name.into(),
        start,
        bytes,
        offset: 0,
        unit: 0,
        span: bytes,
        inner: Vec::new(),
        communication: Communication::None,
        access: Access::Read,
    };
    let with = |summaries: Vec<Summary>| Loop {
        summaries,
        ..columns(1, 1)
    };
    let loops = [
        with(vec![of("common", 0, 0x4000), of("other", 0x8000, 0x1000)]),
        with(vec![of("second half", 0x2000, 0x2000), of("third", 0x9000, 0x1000)]),
    ];
    let machine = Machine {
        page_bytes: 4096,
        colors: 4,
        cpus: 1,
        fit: true,
    };
    let found = segments(&loops, &machine).unwrap();
    let names: Vec<&str> = found.arrays.iter().map(|array| array.name.as_str()).collect();
    assert_eq!(names, ["common", "second half", "other", "third"]);
    assert_eq!(found.together, [vec![0, 1, 2], vec![1, 3]]);
}

#[test]
fn sizes_that_cannot_be_are_refused_and_take_no_memory() {
    let machine = Machine {
        page_bytes: 4096,
        colors: 256,
        cpus: 16,
        fit: true,
    };
    let mut large = columns(1, 1);
    large.summaries[0].bytes = 1 << 60;
    let refused = segments(std::slice::from_ref(&large), &machine).unwrap_err();
    assert!(
        refused.to_string().contains("pages; hints are made for at most"),
        "{refused}"
    );
    let mut far = columns(1, 1);
    (far.iterations, far.summaries[0].bytes) = (u64::MAX, 0);
    let refused = touched(&far, 0, 4096).unwrap_err();
    assert_eq!(refused.to_string(), "columns: u: reaches beyond the address space");
    let mut scattered = columns(1 << 40, 1);
    (scattered.summaries[0].bytes, scattered.summaries[0].unit) = (0, 1 << 20);
    let refused = touched(&scattered, 0, 4096).unwrap_err();
    assert!(refused.to_string().contains("touches more pieces"), "{refused}");
}
