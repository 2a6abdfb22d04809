//! Hints, how they came about, and the way to them.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Serialize, Serializer};

use super::fit::fit;
use super::segments::{Segment, segments};
use super::sets::{group, in_order};
use super::together::{Together, arranged};
use super::{Loop, Malformed, Weighed, colors, cyclic};

/// What of a machine the hints depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    /// A power of two.
    pub page_bytes: u64,
    /// Of the external cache: its bytes over those of a page, divided by its ways (Bugnion96, section 2.1). At least 1.
    pub colors: u32,
    /// From 1 to 128.
    pub cpus: u32,
}

/// The preferred color of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hint {
    /// Its address divided by the bytes of a page.
    pub page: u64,
    pub color: u32,
}

/// A preferred color for each page of the arrays, and what led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hints {
    pub machine: Machine,
    /// The arrays of the segments, by number; empty where only segments were given.
    pub arrays: Vec<Array>,
    /// Uniform access sets, in the order of their path.
    pub sets: Vec<Set>,
    /// Uniform access segments, in coloring order.
    pub segments: Vec<Placed>,
    /// In coloring order: the color is the position modulo the colors. Pages that no cpu touches come last.
    #[serde(skip)]
    pub pages: Vec<Hint>,
    /// The first so many of `pages` are touched by some cpu.
    pub used: usize,
    /// Pages that have changed places with others, so that cpus that fit have no color twice.
    pub exchanged: usize,
    /// Cpus whose pages are no more than the colors, and yet have a color twice: no exchange was found that helps.
    #[serde(serialize_with = "as_list")]
    pub crowded: u128,
    /// What was chosen for each set of arrays, where the ways of coloring were weighed against each other: the colors of pages
    /// that were not left to the five steps are those of a static policy, wherever they are in the order.
    pub weighed: Vec<Weighed>,
}

/// A stretch of memory that summaries tell of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Array {
    /// For people.
    pub name: String,
    pub start: u64,
    /// At least 1.
    pub bytes: u64,
    /// Whether its size was told, or is the extent of what is touched.
    pub known: bool,
}

/// A uniform access set: the segments that the same cpus touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Set {
    /// Bit `c`: cpu `c`; in JSON a list of numbers.
    #[serde(serialize_with = "as_list")]
    pub cpus: u128,
    /// Which of the segments, in coloring order.
    pub segments: Range<usize>,
    /// How many pages these have.
    pub pages: u64,
}

/// A uniform access segment in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    pub array: u32,
    #[serde(serialize_with = "as_list")]
    pub cpus: u128,
    pub pages: Range<u64>,
    /// Position of the segment in the coloring order: of the page that is laid out first, before pages changed places.
    pub position: u64,
    /// The page that is laid out first. Those after it follow, and then those before it.
    pub begin: u64,
    /// Earlier segments whose starts its own start was kept away from.
    pub conflicts: u32,
}

fn as_list<S: Serializer>(cpus: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq((0..128u32).filter(|cpu| cpus >> cpu & 1 == 1))
}

/// Preferred colors for the pages of all arrays that the loops use: the five steps of Bugnion96, section 5.2.
///
/// The same loops give the same hints. Time is n log n in the pages and segments.
pub fn hints(loops: &[Loop], machine: &Machine) -> Result<Hints, Malformed> {
    let found = segments(loops, machine)?;
    let mut hints = order(&found.segments, &found.together, machine)?;
    hints.arrays = found.arrays;
    Ok(hints)
}

/// Steps 2 to 5, for segments that are known already. `together` lists arrays that are used together: pairs, or all
/// arrays of one loop at once.
///
/// Fails for segments that are empty or overlap, and for cpus that the machine does not have.
pub fn order(segments: &[Segment], together: &[Vec<u32>], machine: &Machine) -> Result<Hints, Malformed> {
    machine.check()?;
    let segments = maximal(segments, machine)?;
    let together = Together::new(&segments, together);
    let sets = in_order(group(&segments));
    let mut placed = Vec::with_capacity(segments.len());
    let mut described = Vec::with_capacity(sets.len());
    let (mut position, mut used) = (0, 0);
    for set in sets {
        let (first, before) = (placed.len(), position);
        for index in arranged(&set.segments, &segments, &together) {
            let Segment { array, pages, cpus } = segments[index].clone();
            let length = pages.end - pages.start;
            placed.push(Placed {
                array,
                cpus,
                begin: pages.start,
                pages,
                position,
                conflicts: 0,
            });
            position += length;
        }
        if set.cpus != 0 {
            used = position as usize;
        }
        described.push(Set {
            cpus: set.cpus,
            segments: first..placed.len(),
            pages: position - before,
        });
    }
    cyclic::begin(&mut placed, &together, machine.colors);
    let mut pages = colors::in_turn(&placed, machine.colors);
    let in_use = placed.partition_point(|segment| (segment.position as usize) < used);
    let fitted = fit(&mut pages[..used], &placed[..in_use], machine.colors);
    Ok(Hints {
        machine: *machine,
        arrays: Vec::new(),
        sets: described,
        segments: placed,
        pages,
        used,
        exchanged: fitted.exchanged,
        crowded: fitted.crowded,
        weighed: Vec::new(),
    })
}

/// The segments by address, those joined that are one.
fn maximal<'a>(segments: &'a [Segment], machine: &Machine) -> Result<Cow<'a, [Segment]>, Malformed> {
    let wrong = |segment: &Segment, why: &str| {
        let Range { start, end } = segment.pages;
        let place = format!("pages {start:#x} to {end:#x} of array {}", segment.array);
        let why = why.to_owned();
        Err(Malformed { place, why })
    };
    let mut total = 0u64;
    for segment in segments {
        if segment.pages.is_empty() {
            return wrong(segment, "a segment without pages");
        }
        if machine.cpus < 128 && segment.cpus >> machine.cpus != 0 {
            return wrong(segment, "touched by cpus that the machine does not have");
        }
        total = total.saturating_add(segment.pages.end - segment.pages.start);
    }
    machine.fits(total)?;
    let joined = |a: &Segment, b: &Segment| a.pages.end == b.pages.start && a.array == b.array && a.cpus == b.cpus;
    // As step 1 makes them.
    if segments.is_sorted_by(|a, b| a.pages.end <= b.pages.start && !joined(a, b)) {
        return Ok(Cow::Borrowed(segments));
    }
    let mut sorted = segments.to_vec();
    sorted.sort_by_key(|segment| segment.pages.start);
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].pages.end > pair[1].pages.start) {
        return wrong(&pair[1], "overlaps another segment");
    }
    sorted.dedup_by(|next, last| {
        let same = joined(last, next);
        if same {
            last.pages.end = next.pages.end;
        }
        same
    });
    Ok(Cow::Owned(sorted))
}

impl Machine {
    /// Most pages that hints are made for, so that a mistaken size does not take all memory: 256 GiB of pages of 4 KiB.
    pub const PAGES: u64 = 1 << 26;

    /// Whether there can be such a machine.
    pub fn check(&self) -> Result<(), Malformed> {
        let wrong = |why: String| {
            let place = "machine".to_owned();
            Err(Malformed { place, why })
        };
        if !self.page_bytes.is_power_of_two() {
            return wrong(format!("pages of {} bytes; allowed: a power of two", self.page_bytes));
        }
        if self.colors == 0 {
            return wrong("a cache without colors; a cache with a page in each way has one".into());
        }
        if self.cpus == 0 || self.cpus > Loop::THREADS {
            return wrong(format!("{} cpus; from 1 to {} can be", self.cpus, Loop::THREADS));
        }
        Ok(())
    }

    pub(super) fn fits(&self, pages: u64) -> Result<(), Malformed> {
        if pages <= Machine::PAGES {
            return Ok(());
        }
        Err(Malformed {
            place: "all arrays".into(),
            why: format!("{pages} pages; hints are made for at most {}", Machine::PAGES),
        })
    }
}
