//! The Hilbert curve in any number of dimensions: bins that are neighbours in the tour are neighbours in space, at
//! every scale, so that caches of any size find something again.
//!
//! The algorithm is J. Skilling's ("Programming the Hilbert curve", AIP Conference Proceedings 707, 2004): it turns
//! the coordinates in place into the transpose of the curve's index, whose bits are then interleaved.

use super::{Block, HINTS_MAX};

/// The tour of these blocks, of which the first `hints` dimensions count. Coordinates count from the lowest block in
/// use. Blocks at the same place keep their order.
pub fn tour(blocks: &[Block], hints: usize) -> Vec<u32> {
    let mut low = [u64::MAX; HINTS_MAX];
    let mut high = [0; HINTS_MAX];
    for block in blocks {
        for dimension in 0..hints {
            low[dimension] = low[dimension].min(block.0[dimension]);
            high[dimension] = high[dimension].max(block.0[dimension]);
        }
    }
    let bits = (0..hints)
        .map(|d| u64::BITS - high[d].saturating_sub(low[d]).leading_zeros())
        .max()
        .unwrap_or(0);
    let mut along: Vec<([u64; HINTS_MAX], u32)> = blocks
        .iter()
        .zip(0..)
        .map(|(block, at)| {
            let mut point = [0; HINTS_MAX];
            for d in 0..hints {
                point[d] = block.0[d] - low[d];
            }
            (index(&mut point[..hints], bits), at)
        })
        .collect();
    along.sort_unstable();
    along.into_iter().map(|(_, at)| at).collect()
}

/// A point's distance along the curve, as a number of `bits` times dimensions bits, the most significant word first.
fn index(point: &mut [u64], bits: u32) -> [u64; HINTS_MAX] {
    transpose(point, bits);
    let mut index = [0u64; HINTS_MAX];
    let total = bits * point.len() as u32;
    let mut position = HINTS_MAX as u32 * u64::BITS - total;
    for bit in (0..bits).rev() {
        for &word in point.iter() {
            index[(position / u64::BITS) as usize] |= (word >> bit & 1) << (u64::BITS - 1 - position % u64::BITS);
            position += 1;
        }
    }
    index
}

/// Skilling's `AxestoTranspose`.
fn transpose(point: &mut [u64], bits: u32) {
    if bits == 0 {
        return;
    }
    let last = point.len() - 1;
    let top = 1u64 << (bits - 1);
    // Inverse undo of the excess rotations and reflections.
    let mut bit = top;
    while bit > 1 {
        let below = bit - 1;
        for d in 0..=last {
            if point[d] & bit != 0 {
                point[0] ^= below;
            } else {
                let exchange = (point[0] ^ point[d]) & below;
                point[0] ^= exchange;
                point[d] ^= exchange;
            }
        }
        bit >>= 1;
    }
    // Gray encode.
    for d in 1..=last {
        point[d] ^= point[d - 1];
    }
    let mut flip = 0;
    let mut bit = top;
    while bit > 1 {
        if point[last] & bit != 0 {
            flip ^= bit - 1;
        }
        bit >>= 1;
    }
    for word in point.iter_mut() {
        *word ^= flip;
    }
}
