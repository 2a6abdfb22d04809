//! The number of bytes of a stretch of memory that a nest of loops touches, each counted as often as it is touched.
//!
//! [`Nest`](super::nest::Nest) knows which bytes are touched at all, and so may join pieces that overlap. Here each piece counts by
//! itself, in closed form: the time depends on the loops and not on their rounds.

use std::ops::Range;

/// Pieces of `span` bytes from `base + k[0] * stride[0] + k[1] * stride[1] + ...`, for each `k[d] < count[d]`.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    base: i128,
    span: u64,
    /// How often each piece occurs: rounds that step nowhere.
    times: u128,
    /// Stride and count: strides from small to large; counts of at least 2.
    loops: Vec<(u64, u64)>,
}

/// Rounds that are looked into of one count. Only loops whose rounds overlap, around another loop, need more than a few.
const STEPS: u32 = 4096;

impl Bytes {
    /// Strides of either sign and any order; the nest is to span less than 2^64 bytes.
    pub(super) fn new(mut base: i128, span: u64, loops: impl IntoIterator<Item = (i128, u64)>) -> Bytes {
        let (mut times, mut kept) = (1u128, Vec::new());
        for (stride, count) in loops.into_iter().filter(|(_, count)| *count > 1) {
            if stride == 0 {
                times = times.saturating_mul(count.into());
                continue;
            }
            base += stride.min(0) * i128::from(count - 1);
            kept.push((stride.unsigned_abs() as u64, count));
        }
        kept.sort_unstable();
        let mut loops: Vec<(u64, u64)> = Vec::with_capacity(kept.len());
        for (stride, count) in kept {
            match loops.last_mut() {
                // It goes on where the smaller one ends: together they are one longer loop.
                Some(inner) if inner.0.checked_mul(inner.1) == Some(stride) => inner.1 *= count,
                _ => loops.push((stride, count)),
            }
        }
        Bytes {
            base,
            span,
            times,
            loops,
        }
    }

    /// From the first byte to the last.
    pub(super) fn hull(&self) -> Range<i128> {
        self.base..self.base + extent(self.span, &self.loops)
    }

    /// The bytes in `window`.
    ///
    /// Exact, but that of rounds beyond the 4096th that lie partly in the window half of each counts.
    pub(super) fn within(&self, window: &Range<i128>) -> u128 {
        let mut steps = STEPS;
        let mut below = |address: i128| below(self.span, &self.loops, address - self.base, &mut steps);
        let (start, end) = (below(window.start), below(window.end));
        end.saturating_sub(start).saturating_mul(self.times)
    }
}

fn extent(span: u64, loops: &[(u64, u64)]) -> i128 {
    let far = |&(stride, count): &(u64, u64)| i128::from(stride) * i128::from(count - 1);
    i128::from(span) + loops.iter().map(far).sum::<i128>()
}

/// The bytes before `end`, counted from the first one.
fn below(span: u64, loops: &[(u64, u64)], end: i128, steps: &mut u32) -> u128 {
    let all = |loops: &[(u64, u64)]| {
        let pieces = loops.iter().map(|(_, count)| u128::from(*count));
        pieces.fold(u128::from(span), u128::saturating_mul)
    };
    if end <= 0 {
        return 0;
    }
    if end >= extent(span, loops) {
        return all(loops);
    }
    let Some((&(stride, count), inner)) = loops.split_last() else {
        return end as u128;
    };
    let (stride, count) = (i128::from(stride), i128::from(count));
    let each = all(inner);
    // Rounds that end before, and rounds that begin before.
    let whole = match end - extent(span, inner) {
        left if left < 0 => 0,
        left => (left / stride + 1).min(count),
    };
    let begun = ((end - 1) / stride + 1).min(count);
    let mut bytes = (whole as u128).saturating_mul(each);
    if inner.is_empty() {
        // The part before `end` of one piece is `stride` less than that of the piece before it.
        let rounds = begun - whole;
        return bytes + (rounds * (end - whole * stride) - stride * (rounds * (rounds - 1) / 2)) as u128;
    }
    for round in whole..begun {
        if *steps == 0 {
            return bytes.saturating_add((each / 2).saturating_mul((begun - round) as u128));
        }
        *steps -= 1;
        bytes = bytes.saturating_add(below(span, inner, end - round * stride, steps));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_piece_counts_by_itself(
            base in -50i128..50,
            span in 1u64..12,
            loops in prop::collection::vec((-40i128..40, 1u64..7), 0..5),
            window in (-300i128..300, 0i128..60),
        ) {
            let mut starts = vec![base];
            for &(stride, count) in &loops {
                let moved = starts.iter().flat_map(|start| (0..i128::from(count)).map(move |k| start + k * stride));
                starts = moved.collect();
            }
            let window = window.0..window.0 + window.1;
            let bytes = starts.iter().flat_map(|&start| start..start + i128::from(span));
            let expected = bytes.filter(|byte| window.contains(byte)).count() as u128;
            prop_assert_eq!(Bytes::new(base, span, loops).within(&window), expected);
        }
    }

    #[test]
    fn long_loops_cost_no_more_than_short_ones() {
        // Pieces of 1 MiB, a byte apart: 4096 bytes in the middle are in 2^20 + 4095 of them, or some bytes are.
        let overlapping = Bytes::new(0, 1 << 20, [(1, 1 << 40)]);
        assert_eq!(overlapping.within(&(1 << 30..(1 << 30) + 4096)), 4096 << 20);
        let again = Bytes::new(0, 8, [(0, u64::MAX), (8, 1 << 50)]);
        assert_eq!(again.within(&(0..4096)), 4096 * u128::from(u64::MAX));
    }
}
