use policy::cdpc::{Access, Communication, Direction, Schedule, Summary};
use results::run::LeftOut;
use sys::memory::{Area, Size};

use super::*;
use crate::Source;

#[path = "../../tests/engine/far_below.rs"]
mod far_below;

/// A loop over whole arrays (start and bytes), a page an iteration.
pub(crate) fn a_loop(place: &str, arrays: &[(u64, u64)], threads: u32) -> Loop {
    let page = PAGE_BYTES as u64;
    let summaries = arrays.iter().map(|&(start, bytes)| Summary {
        name: format!("{start:#x}"),
        start,
        bytes,
        offset: 0,
        unit: page as i64,
        span: page,
        inner: Vec::new(),
        communication: Communication::None,
        access: Access::ReadWrite,
    });
    Loop {
        place: place.to_string(),
        threads,
        iterations: arrays.iter().map(|array| array.1.div_ceil(page)).max().unwrap_or(1),
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries: summaries.collect(),
    }
}

/// 16 colors of 16 pages each.
pub(super) fn colors() -> Colors {
    Colors {
        first_bit: 12,
        bits: 4,
        color_bytes: 65536,
        cache: "L2".into(),
        source: Source::Forced,
    }
}

fn coloring(policy: &str) -> Coloring {
    let engine = Engine::open(Config::new(colors())).unwrap();
    Coloring::with(&policy.parse().unwrap(), colors(), engine).unwrap()
}

/// A loop over a test's own memory, or over addresses that are refused.
fn hear(coloring: &mut Coloring, described: Loop) {
    // SAFETY: the test's own memory, which other threads do not use.
    unsafe { coloring.hear(described) };
}

fn start(coloring: &mut Coloring) {
    // SAFETY: as above.
    unsafe { coloring.start(Others::Absent) };
}

/// Memory of so many pages, and a part of it as an array.
struct Memory(Area);

impl Memory {
    fn new(pages: usize) -> Memory {
        Memory(Area::map(pages * PAGE_BYTES, Size::Small).unwrap())
    }

    fn array(&self, page: usize, pages: usize) -> (u64, u64) {
        ((self.0.start() + page * PAGE_BYTES) as u64, (pages * PAGE_BYTES) as u64)
    }
}

/// The entry of pages left out because nothing is mapped there.
fn unmapped(pages: u64) -> LeftOut {
    LeftOut {
        why: "nothing is mapped there".to_string(),
        pages,
    }
}

/// All pages that were to lie in place do, except for a few that the kernel moved since; all count if nothing is
/// known.
fn honoured(outcome: &Outcome) {
    let sum = outcome.report.honoured
        + outcome.report.elsewhere
        + outcome.report.absent
        + outcome.report.unknown
        + outcome.report.out_of_sight;
    assert_eq!(sum, outcome.report.pages, "{outcome:?}");
    assert!(outcome.report.left_out.is_empty(), "{outcome:?}");
    assert!(
        outcome.report.honoured + outcome.report.unknown >= outcome.report.pages - outcome.report.pages / 50,
        "{outcome:?}"
    );
}

#[test]
fn what_was_said_before_main_is_colored_at_once() {
    for policy in policies().map(|entry| entry.name) {
        let memory = Memory::new(200);
        let mut coloring = coloring(policy);
        hear(
            &mut coloring,
            a_loop("f", &[memory.array(0, 100), memory.array(100, 60)], 4),
        );
        hear(&mut coloring, a_loop("g", &[memory.array(100, 60)], 4));
        assert_eq!(
            coloring.outcome(false).report.pages,
            0,
            "nothing is colored before the start"
        );
        start(&mut coloring);
        let outcome = coloring.outcome(true);
        assert_eq!(
            (
                outcome.report.loops,
                outcome.report.arrays,
                outcome.report.pages,
                outcome.report.threads
            ),
            (2, 2, 160, 4)
        );
        assert_eq!((outcome.report.start.times, outcome.report.later.times), (1, 0));
        honoured(&outcome);
        if policy == "cdpc" {
            assert!(outcome.report.most - outcome.report.fewest <= 1, "{outcome:?}");
        }
    }
}

#[test]
fn content_stays_and_pages_that_no_loop_touches_are_left_alone() {
    let memory = Memory::new(64);
    for page in 0..64 {
        memory.0.set_word(page, 3, 1000 + page as u64);
    }
    let mut coloring = coloring("cdpc");
    // The array is longer than the loop.
    let mut described = a_loop("f", &[memory.array(0, 64)], 2);
    described.iterations = 40;
    hear(&mut coloring, described);
    start(&mut coloring);
    let outcome = coloring.outcome(true);
    assert_eq!(outcome.report.pages, 40);
    honoured(&outcome);
    assert!((0..64).all(|page| memory.0.word(page, 3) == 1000 + page as u64));
}

#[test]
fn loops_that_swap_arrays_change_nothing() {
    let memory = Memory::new(128);
    let (old, new) = (memory.array(0, 64), memory.array(64, 64));
    let mut coloring = coloring("cdpc");
    start(&mut coloring);
    for _ in 0..100 {
        hear(&mut coloring, a_loop("step", &[old, new], 2));
        hear(&mut coloring, a_loop("step", &[new, old], 2));
    }
    let outcome = coloring.outcome(true);
    assert_eq!((outcome.report.loops, outcome.report.again), (2, 198));
    // Once when they were new; the second order of the two may move some, and after that nothing does.
    assert!(outcome.report.later.times <= 3, "{:?}", outcome.report.later);
    assert!(outcome.report.later.pages <= 3 * 128, "{:?}", outcome.report.later);
    honoured(&outcome);
}

#[test]
fn arrays_that_come_later_are_colored_when_they_come() {
    let memory = Memory::new(40 * 16);
    let mut coloring = coloring("cdpc");
    start(&mut coloring);
    for number in 0..40 {
        let together = [memory.array(number * 16, 16), memory.array(0, 16)];
        hear(&mut coloring, a_loop(&number.to_string(), &together, 2));
        assert_eq!(coloring.outcome(false).report.pages, 16 * (number as u64 + 1));
    }
    let outcome = coloring.outcome(true);
    honoured(&outcome);
    // All exchanges together are a few for each page.
    assert!(outcome.report.later.pages <= 12 * 640, "{:?}", outcome.report.later);
}

#[test]
fn memory_that_is_gone_is_reported_and_does_no_harm() {
    let mut coloring = coloring("cdpc");
    let gone = Memory::new(16);
    let array = gone.array(0, 16);
    hear(&mut coloring, a_loop("f", &[array], 2));
    start(&mut coloring);
    drop(gone);
    let stays = Memory::new(16);
    hear(&mut coloring, a_loop("g", &[stays.array(0, 16), (1 << 12, 3 << 12)], 2));
    let outcome = coloring.outcome(true);
    assert!(outcome.report.left_out.contains(&unmapped(3)), "{outcome:?}");
    assert!(outcome.report.honoured + outcome.report.unknown >= 14, "{outcome:?}");
}

#[test]
fn a_loop_that_cannot_be_does_not_take_the_others_with_it() {
    for policy in policies().map(|entry| entry.name) {
        one_that_cannot_be(policy);
    }
}

fn one_that_cannot_be(policy: &str) {
    let memory = Memory::new(16);
    let mut coloring = coloring(policy);
    hear(
        &mut coloring,
        a_loop("wrong", &[memory.array(0, 16), (1 << 40, 1 << 61)], 2),
    );
    let mut wrong = a_loop("wrong", &[memory.array(0, 16)], 2);
    wrong.summaries[0].bytes = 0;
    hear(&mut coloring, wrong);
    hear(&mut coloring, a_loop("right", &[memory.array(0, 16)], 2));
    start(&mut coloring);
    let outcome = coloring.outcome(true);
    assert_eq!(
        (outcome.report.loops, outcome.report.refused, outcome.report.pages),
        (1, 2, 16),
        "{outcome:?}"
    );
    assert_eq!(outcome.notes.len(), 2);
    honoured(&outcome);
}

#[test]
fn loops_of_any_counts_take_no_more_than_their_arrays() {
    let memory = Memory::new(16);
    for (unit, iterations, schedule) in [
        (1 << 20, u64::MAX, Schedule::Even),
        (-4096, 1 << 41, Schedule::Blocked),
        (1, u64::MAX, Schedule::Chunked(1)),
        (0, u64::MAX, Schedule::Chunked(3)),
        (i64::MIN, 3, Schedule::Even),
    ] {
        let mut coloring = coloring("cdpc");
        let mut described = a_loop("wild", &[memory.array(0, 16)], 128);
        (described.iterations, described.schedule) = (iterations, schedule);
        described.summaries[0].unit = unit;
        hear(&mut coloring, described);
        hear(&mut coloring, a_loop("right", &[memory.array(0, 16)], 2));
        start(&mut coloring);
        let outcome = coloring.outcome(true);
        assert_eq!(outcome.report.pages, 16, "{outcome:?}");
    }
}

/// Returns whether this process sees frames, and so can tell wrong ones.
fn sees_frames() -> bool {
    sys::frames::Pagemap::own_numbers_visible()
}

/// Other memory in the place of the old, all zeros, without frames.
fn map_anew(memory: &Memory) {
    let mut other = Area::map(memory.0.bytes(), Size::Small).unwrap();
    // SAFETY: the test's own memory, which nobody else uses.
    unsafe { sys::memory::remap(&mut other, 0, memory.0.span()) }.unwrap();
}

#[test]
fn memory_that_is_mapped_anew_at_the_same_address_is_colored_again() {
    for policy in policies().map(|entry| entry.name) {
        for (again, filled) in [(true, false), (true, true), (false, false), (false, true)] {
            if filled && !sees_frames() {
                continue;
            }
            let memory = Memory::new(64);
            let mut coloring = coloring(policy);
            coloring.patience = Duration::ZERO;
            hear(&mut coloring, a_loop("f", &[memory.array(0, 64)], 2));
            start(&mut coloring);
            honoured(&coloring.outcome(true));
            map_anew(&memory);
            if filled {
                (0..64).for_each(|page| memory.0.set_word(page, 0, page as u64));
            }
            let place = if again { "f" } else { "g" };
            std::thread::sleep(Duration::from_millis(2) + coloring.start.duration * REST);
            hear(&mut coloring, a_loop(place, &[memory.array(0, 64)], 2));
            let outcome = coloring.outcome(true);
            assert_eq!(outcome.report.pages, 64);
            assert!(
                outcome.report.absent + outcome.report.elsewhere <= 1,
                "{policy} {again} {filled}: {outcome:?}"
            );
            honoured(&outcome);
            if filled {
                assert!((0..64).all(|page| memory.0.word(page, 0) == page as u64));
            }
        }
    }
}

#[test]
fn memory_that_went_away_under_a_known_loop_is_reported() {
    let mut coloring = coloring("cdpc");
    coloring.patience = Duration::ZERO;
    let gone = far_below::map(16 * PAGE_BYTES);
    let described = a_loop("f", &[(gone as u64, 16 * PAGE_BYTES as u64)], 2);
    hear(&mut coloring, described.clone());
    start(&mut coloring);
    // SAFETY: the test's own memory, which nobody touches.
    assert_eq!(unsafe { libc::munmap(gone as *mut _, 16 * PAGE_BYTES) }, 0);
    hear(&mut coloring, described);
    let outcome = coloring.outcome(true);
    assert_eq!(outcome.report.left_out, [unmapped(16)]);
    assert_eq!(outcome.report.out_of_sight, 16);
}

#[test]
fn a_known_loop_is_not_looked_at_before_its_time() {
    let memory = Memory::new(64);
    let mut coloring = coloring("cdpc");
    start(&mut coloring);
    let described = a_loop("f", &[memory.array(0, 64)], 2);
    hear(&mut coloring, described.clone());
    let due = coloring.next_look.unwrap();
    coloring.next_look = Some(due + Duration::from_secs(3600));
    map_anew(&memory);
    for _ in 0..1000 {
        hear(&mut coloring, described.clone());
    }
    assert_eq!(coloring.outcome(true).report.absent, 64);
    coloring.next_look = Some(Instant::now());
    hear(&mut coloring, described);
    honoured(&coloring.outcome(true));
}

#[test]
fn a_loop_over_fine_and_coarse_grids_is_two_loops_and_settles() {
    let memory = Memory::new(64);
    let mut coloring = coloring("cdpc");
    start(&mut coloring);
    let fine = a_loop("sweep", &[memory.array(0, 64)], 8);
    let coarse = Loop {
        iterations: 16,
        threads: 2,
        ..fine.clone()
    };
    for _ in 0..50 {
        hear(&mut coloring, fine.clone());
        hear(&mut coloring, coarse.clone());
    }
    let outcome = coloring.outcome(true);
    assert_eq!((outcome.report.loops, outcome.report.again), (2, 98));
    assert!(outcome.report.later.times <= 3, "{:?}", outcome.report.later);
    honoured(&outcome);
}

#[test]
fn what_was_chosen_for_each_set_of_arrays_is_reported_with_its_reason() {
    // All of it fits: nothing is to be gained by hints.
    let memory = Memory::new(20);
    let mut coloring = coloring("cdpc");
    hear(&mut coloring, a_loop("f", &[memory.array(0, 8), memory.array(8, 4)], 2));
    hear(&mut coloring, a_loop("g", &[memory.array(12, 8)], 2));
    start(&mut coloring);
    let outcome = coloring.outcome(true);
    honoured(&outcome);
    let chosen: Vec<_> = outcome
        .report
        .weighed
        .iter()
        .map(|set| (set.arrays.len(), set.pages, set.policy.as_str()))
        .collect();
    assert_eq!(chosen, [(2, 12, "page-coloring"), (1, 8, "page-coloring")]);
    for set in &outcome.report.weighed {
        let blocks: Vec<u64> = set.brought.iter().map(|brought| brought.blocks).collect();
        assert!(blocks.len() == 3 && blocks[0] == blocks[2], "{set:?}");
    }
    // And the pages lie so.
    assert!(
        coloring
            .preferred
            .iter()
            .all(|(page, color)| page % 16 == u64::from(*color))
    );
}
