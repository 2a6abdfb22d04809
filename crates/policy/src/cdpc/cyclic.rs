//! Step 4: the starting point of the pages within each segment (Bugnion96, section 5.2).
//!
//! Pages of a segment are laid out from a starting point up to the end of the segment, and then from its first page to
//! the starting point. So the first page, where loops begin, moves to another place of the cache. It is put as far as
//! possible, around the circle of colors, from the first pages of segments that conflict; among places that are equally
//! far, the one that moves it least wins.
//!
//! Segments conflict if they are of two arrays that a loop uses together, if a cpu touches both, and if they have colors
//! in common: the places that they occupy as wholes, which no starting point changes. They are taken in coloring
//! order, each kept away from those before it. So data that fits stays in ascending order.
//!
//! The work is bounded: each segment is compared with a bounded number of segments before it. Up to 1024 segments these
//! are all of them, else the nearest in coloring order ([`compared`]). Few others conflict: the order has put the
//! segments of a cpu next to each other.

use super::hints::Placed;
use super::together::Together;

/// Comparisons in all, as long as each segment has its [`LEAST`].
const MOST: usize = 1 << 20;
const LEAST: usize = 16;

/// The number of segments before it that a segment is compared with.
fn compared(segments: usize) -> usize {
    (MOST / segments.max(1)).max(LEAST)
}

/// Chooses where each segment, which has its position, begins.
pub(super) fn begin(segments: &mut [Placed], together: &Together, colors: u32) {
    let colors = u64::from(colors);
    let window = compared(segments.len());
    // Color of the first page of each segment so far.
    let mut starts: Vec<u64> = Vec::with_capacity(segments.len());
    let mut taken = Vec::new();
    for index in 0..segments.len() {
        let segment = &segments[index];
        let length = segment.pages.end - segment.pages.start;
        let low = segment.position % colors;
        let places = length.min(colors);
        taken.clear();
        if places > 1 && segment.cpus != 0 {
            let first = index.saturating_sub(window);
            let others = segments[first..index].iter().zip(&starts[first..]);
            let conflicting = others.filter(|(other, _)| {
                other.cpus & segment.cpus != 0
                    && overlap(other, segment, colors)
                    && together.both(other.array, segment.array)
            });
            taken.extend(conflicting.map(|(_, &start)| start));
        }
        let conflicts = taken.len() as u32;
        let moved = farthest(&mut taken, low, places, colors);
        let segment = &mut segments[index];
        segment.conflicts = conflicts;
        segment.begin = segment.pages.start + (length - moved) % length;
        starts.push((low + moved) % colors);
    }
}

/// True if two segments have colors in common.
fn overlap(one: &Placed, other: &Placed, colors: u64) -> bool {
    let length = |segment: &Placed| segment.pages.end - segment.pages.start;
    let from_to = |from: u64, to: u64| (to % colors + colors - from % colors) % colors;
    from_to(one.position, other.position) < length(one) || from_to(other.position, one.position) < length(other)
}

/// The distance to move a start that can be at `places` colors from `low` on, so that it is farthest from all that are
/// taken.
fn farthest(taken: &mut Vec<u64>, low: u64, places: u64, colors: u64) -> u64 {
    taken.sort_unstable();
    taken.dedup();
    let distance = |color: u64| {
        let after = taken.partition_point(|&taken| taken < color);
        let up = taken.get(after).map_or(taken[0] + colors - color, |&next| next - color);
        let down = match after.checked_sub(1) {
            Some(before) => color - taken[before],
            None => color + colors - taken[taken.len() - 1],
        };
        up.min(down)
    };
    if taken.is_empty() {
        return 0;
    }
    // Within a gap between two the middle is best; if the gap reaches beyond the places, the end of those.
    let gaps = taken
        .iter()
        .zip(taken.iter().skip(1).copied().chain([taken[0] + colors]));
    let middles = gaps.map(|(&from, to)| (from + (to - from) / 2) % colors);
    let moves = middles
        .map(|color| (color + colors - low) % colors)
        .filter(|&moved| moved < places);
    let best = moves
        .chain([0, places - 1])
        .max_by_key(|&moved| (distance((low + moved) % colors), std::cmp::Reverse(moved)));
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_place_is_farther(
            taken in prop::collection::vec(0u64..40, 0..9), low in 0u64..40, places in 1u64..41, colors in 1u64..41,
        ) {
            let mut taken: Vec<u64> = taken.into_iter().map(|color| color % colors).collect();
            let (low, places) = (low % colors, places.min(colors));
            let least = |moved: u64| {
                let color = (low + moved) % colors;
                let around = taken.iter().map(|&taken| color.abs_diff(taken).min(colors - color.abs_diff(taken)));
                around.min().unwrap_or(0)
            };
            let expected = (0..places).max_by_key(|&moved| (least(moved), std::cmp::Reverse(moved)));
            prop_assert_eq!(Some(farthest(&mut taken.clone(), low, places, colors)), expected);
            taken.clear();
        }
    }
}
