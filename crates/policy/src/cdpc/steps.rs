//! The five steps one after another, and their result.

use std::borrow::Cow;
use std::ops::Range;

use super::fit::fit;
use super::sets::{group, in_order};
use super::together::{Together, arranged};
use super::{Hints, Loop, Machine, Malformed, Placed, Segment, Set, colors, cyclic, segments};

/// Preferred colors for the pages of all arrays that the loops use: the five steps of Bugnion96, section 5.2.
///
/// The same loops give the same hints. Time is n log n in the pages and segments.
pub fn hints(loops: &[Loop], machine: &Machine) -> Result<Hints, Malformed> {
    let found = segments(loops, machine)?;
    let mut hints = order(&found.segments, &found.together, machine)?;
    hints.arrays = found.arrays;
    Ok(hints)
}

/// Steps 2 to 5 and the exchange after them, for segments that are known already. `together` lists arrays that are used together: pairs, or all
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
    let fitted = fit(&mut pages[..used], &placed[..in_use], machine);
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
