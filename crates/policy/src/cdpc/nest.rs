//! The bytes that a nest of loops touches, described in as few ranges as pages allow.
//!
//! Two pieces with less than a page between them leave no page out, wherever they are moved to: the pages of both are
//! the pages of the range from one to the other. So ranges are joined over gaps that are smaller than a page, and the
//! result is never more than the pages that the nest spans.

use std::ops::Range;

/// `span` bytes from `base + k[0] * stride[0] + k[1] * stride[1] + ...`, for each `k[d] < count[d]`.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    base: i128,
    span: u64,
    /// Stride and count: strides from small to large, each larger than the span; counts of at least 2.
    loops: Vec<(u64, u64)>,
}

/// Ranges that a nest may need: each stands for two pages at least, so these for 32 GiB that one thread goes through
/// in one loop and one array, leaving out as much. They take 64 MiB.
const RANGES: usize = 1 << 22;

/// Steps of the search for a byte in a window. Only strides that are not multiples of each other and overlap need more
/// than a few.
const STEPS: u32 = 1 << 16;

/// A nest of more than [`RANGES`] pieces.
#[derive(Debug)]
pub(super) struct Scattered;

impl Nest {
    /// Strides of either sign and any order; the nest is to span less than 2^64 bytes.
    pub(super) fn new(mut base: i128, mut span: u64, loops: impl IntoIterator<Item = (i128, u64)>) -> Nest {
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for (stride, count) in loops {
            if stride != 0 && count > 1 {
                base += stride.min(0) * i128::from(count - 1);
                kept.push((stride.unsigned_abs() as u64, count));
            }
        }
        kept.sort_unstable();
        let mut loops: Vec<(u64, u64)> = Vec::new();
        for (stride, count) in kept {
            if loops.is_empty() && stride <= span {
                span += stride * (count - 1);
                continue;
            }
            // A multiple of a smaller loop's step, and at most its length: together they are one longer loop.
            let inner = loops
                .iter_mut()
                .find(|inner| stride % inner.0 == 0 && stride / inner.0 <= inner.1);
            match inner {
                Some(inner) => inner.1 += stride / inner.0 * (count - 1),
                None => loops.push((stride, count)),
            }
        }
        Nest { base, span, loops }
    }

    /// From the first byte to the last.
    pub(super) fn hull(&self) -> Range<i128> {
        self.base..self.base + i128::from(extent(self.span, &self.loops))
    }

    /// The bytes, counted from the first one, in ascending ranges; gaps of less than `page` bytes are filled.
    pub(super) fn ranges(&self, page: u64) -> Result<Vec<Range<u64>>, Scattered> {
        let first = 0..self.span;
        let mut ranges = vec![first];
        for &(stride, count) in &self.loops {
            // Doubled, and in the end moved by the rest: as many rounds as the count has bits.
            let mut copies = 1;
            while copies < count {
                let more = copies.min(count - copies);
                ranges = with_copy(&ranges, stride * more, page)?;
                copies += more;
            }
        }
        Ok(ranges)
    }

    /// True if a byte of the nest lies in `window`.
    ///
    /// Exact, but that a search of more than 65536 steps ends with yes.
    pub(super) fn meets(&self, window: &Range<i128>) -> bool {
        let mut steps = STEPS;
        let window = window.start - self.base..window.end - self.base;
        window.start < window.end && meets(self.span, &self.loops, window, &mut steps)
    }
}

fn extent(span: u64, loops: &[(u64, u64)]) -> u64 {
    span + loops.iter().map(|(stride, count)| stride * (count - 1)).sum::<u64>()
}

/// `ranges` and the same moved `by` bytes up.
fn with_copy(ranges: &[Range<u64>], by: u64, page: u64) -> Result<Vec<Range<u64>>, Scattered> {
    let mut both: Vec<Range<u64>> = Vec::with_capacity((2 * ranges.len()).min(RANGES));
    let mut add = |next: Range<u64>| {
        match both.last_mut() {
            // Ranges that overlap have no gap.
            Some(last) if next.start < last.end || next.start - last.end < page => last.end = last.end.max(next.end),
            _ => both.push(next),
        }
        both.len() <= RANGES
    };
    let mut moved = ranges.iter().map(|range| range.start + by..range.end + by).peekable();
    for range in ranges {
        while let Some(first) = moved.next_if(|moved| moved.start < range.start) {
            if !add(first) {
                return Err(Scattered);
            }
        }
        if !add(range.clone()) {
            return Err(Scattered);
        }
    }
    match moved.all(add) {
        true => Ok(both),
        false => Err(Scattered),
    }
}

fn meets(span: u64, loops: &[(u64, u64)], window: Range<i128>, steps: &mut u32) -> bool {
    if window.end <= 0 || window.start >= i128::from(extent(span, loops)) {
        return false;
    }
    let Some((&(stride, count), inner)) = loops.split_last() else {
        return true;
    };
    let (stride, count) = (i128::from(stride), i128::from(count));
    let width = i128::from(extent(span, inner));
    let ceil = |bytes: i128| bytes.div_euclid(stride) + i128::from(bytes.rem_euclid(stride) > 0);
    // The first byte of each round is touched, and the last.
    let starting = ceil(window.start).max(0);
    let ending = ceil(window.start - width + 1).max(0);
    if (starting < count && starting * stride < window.end) || (ending < count && ending * stride + width <= window.end)
    {
        return true;
    }
    let last = (window.end - 1).div_euclid(stride).min(count - 1);
    let mut round = ending;
    while round <= last {
        *steps = steps.saturating_sub(1);
        let by = round * stride;
        if *steps == 0 || meets(span, inner, window.start - by..window.end - by, steps) {
            return true;
        }
        round += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn brute(base: i128, span: u64, loops: &[(i128, u64)]) -> BTreeSet<i128> {
        let mut starts = BTreeSet::from([base]);
        for &(stride, count) in loops {
            let moved = starts
                .iter()
                .flat_map(|start| (0..i128::from(count)).map(move |k| start + k * stride));
            starts = moved.collect();
        }
        let span = i128::from(span);
        starts.iter().flat_map(|&start| start..start + span).collect()
    }

    proptest! {
        #[test]
        fn pages_and_windows_are_those_of_the_bytes(
            base in -50i128..50,
            span in 1u64..12,
            loops in prop::collection::vec((-40i128..40, 1u64..7), 0..5),
            page in prop_oneof![Just(1i128), Just(4), Just(16)],
            window in (-300i128..300, 0i128..20),
        ) {
            let bytes = brute(base, span, &loops);
            let nest = Nest::new(base, span, loops);
            let first = nest.hull().start;
            let pages: BTreeSet<i128> = nest
                .ranges(page as u64)
                .unwrap()
                .into_iter()
                .map(|range| first + i128::from(range.start)..first + i128::from(range.end))
                .flat_map(|range| range.start.div_euclid(page)..=(range.end - 1).div_euclid(page))
                .collect();
            prop_assert_eq!(pages, bytes.iter().map(|byte| byte.div_euclid(page)).collect::<BTreeSet<_>>());
            prop_assert_eq!(nest.hull(), *bytes.first().unwrap()..*bytes.last().unwrap() + 1);
            let window = window.0..window.0 + window.1;
            prop_assert_eq!(nest.meets(&window), bytes.range(window.clone()).next().is_some());
        }
    }

    #[test]
    fn what_no_memory_could_hold_is_refused() {
        assert!(Nest::new(0, 8, [(8192, 1 << 40)]).ranges(4096).is_err());
        assert_eq!(Nest::new(0, 8, [(4096, 1 << 40)]).ranges(4096).unwrap().len(), 1);
    }
}
