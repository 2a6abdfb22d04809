//! The blocks that the space of hints is cut into (Philbin96, section 2.3).

use thiserror::Error;

use super::HINTS_MAX;

/// The block that a point lies in: the number of the block along each dimension. Dimensions that the shape lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(pub [u64; HINTS_MAX]);

/// How the space of hints is cut into blocks: one side length per dimension, in the units of the hints
/// (bytes where hints are addresses).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    sides: Vec<Side>,
    shifts: bool,
    fold: bool,
    levels: Vec<Vec<u64>>,
}

/// Why a shape cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ShapeError {
    #[error("a thread has 1 to {HINTS_MAX} hints, not {0}: give one block side for each")]
    Dimensions(usize),
    #[error("the block has no extent along dimension {0}: give a side of at least 1")]
    Empty(usize),
    #[error(
        "symmetric hints can only be folded where all sides are equal; dimension {dimension} has side {side}, dimension 0 has {first}"
    )]
    Fold { dimension: usize, side: u64, first: u64 },
    #[error("the outer block has {outer} dimensions, the block inside it {inner}: give one side for each")]
    Levels { outer: usize, inner: usize },
    #[error(
        "the outer block's side {outer} along dimension {dimension} does not hold whole inner blocks of side {inner}: make it a multiple"
    )]
    Multiple { dimension: usize, outer: u64, inner: u64 },
}

impl Shape {
    /// Blocks with these sides, one for each hint of a thread. A side that is a power of two costs a shift for each
    /// hint, any other a multiplication.
    pub fn new(sides: &[u64]) -> Result<Shape, ShapeError> {
        if sides.is_empty() || sides.len() > HINTS_MAX {
            return Err(ShapeError::Dimensions(sides.len()));
        }
        if let Some(empty) = sides.iter().position(|&side| side == 0) {
            return Err(ShapeError::Empty(empty));
        }
        Ok(Shape {
            sides: sides.iter().map(|&side| Side::new(side)).collect(),
            shifts: sides.iter().all(|side| side.is_power_of_two()),
            fold: false,
            levels: Vec::new(),
        })
    }

    /// Puts threads with the same hints in another order into the same bin, because they use the same data
    /// (section 2.3: half as many bins for two hints). All sides must be equal.
    pub fn fold(mut self) -> Result<Shape, ShapeError> {
        let first = self.sides[0].length;
        for (dimension, side) in self.sides.iter().enumerate() {
            if side.length != first {
                return Err(ShapeError::Fold {
                    dimension,
                    side: side.length,
                    first,
                });
            }
        }
        self.fold = true;
        Ok(self)
    }

    /// Bins of bins: bins whose blocks lie in the same outer block, with these sides, run one after another. Call it
    /// again for each further cache, from the inside out; every side is a multiple of the one inside it.
    pub fn within(mut self, sides: &[u64]) -> Result<Shape, ShapeError> {
        if sides.len() != self.sides.len() {
            return Err(ShapeError::Levels {
                outer: sides.len(),
                inner: self.sides.len(),
            });
        }
        let mut blocks = Vec::with_capacity(sides.len());
        for (dimension, (&outer, side)) in sides.iter().zip(&self.sides).enumerate() {
            let below = self.levels.last().map_or(1, |level| level[dimension]);
            let inner = side.length.saturating_mul(below);
            if outer == 0 || outer % inner != 0 {
                return Err(ShapeError::Multiple {
                    dimension,
                    outer,
                    inner,
                });
            }
            blocks.push(outer / side.length);
        }
        self.levels.push(blocks);
        Ok(self)
    }

    /// The number of hints of a thread: 1 to [`HINTS_MAX`].
    pub fn hints(&self) -> usize {
        self.sides.len()
    }

    /// The side of a block along a dimension, in the units of the hints.
    pub fn side(&self, dimension: usize) -> u64 {
        self.sides[dimension].length
    }

    /// True if symmetric hints are folded.
    pub fn folds(&self) -> bool {
        self.fold
    }

    /// For each outer level, from the inside out, how many blocks its blocks hold along each dimension.
    pub fn levels(&self) -> &[Vec<u64>] {
        &self.levels
    }

    /// The block that these hints lie in. Hints beyond [`Shape::hints`] are not looked at, missing ones are 0.
    pub fn block(&self, hints: &[u64]) -> Block {
        let mut point = [0; HINTS_MAX];
        for (to, &hint) in point.iter_mut().zip(hints).take(self.hints()) {
            *to = hint;
        }
        let mut block = Block::default();
        for (dimension, side) in self.sides.iter().enumerate() {
            block.0[dimension] = side.divide(point[dimension]);
        }
        if self.fold {
            block.0[..self.sides.len()].sort_unstable();
        }
        block
    }

    /// [`Shape::block`] for a known number of hints: the cost of a fork.
    #[inline(always)]
    pub(super) fn coordinates<const K: usize>(&self, hints: &[u64; K]) -> [u64; K] {
        let Some(sides) = self.sides.first_chunk::<K>() else {
            return *hints;
        };
        let mut at = *hints;
        if self.shifts {
            for (hint, side) in at.iter_mut().zip(sides) {
                *hint >>= side.shift;
            }
        } else {
            for (hint, side) in at.iter_mut().zip(sides) {
                *hint = side.divide(*hint);
            }
        }
        if self.fold {
            // This few are sorted faster by exchanges without a jump than by anything that looks first.
            for end in (1..K).rev() {
                for d in 0..end {
                    (at[d], at[d + 1]) = (at[d].min(at[d + 1]), at[d].max(at[d + 1]));
                }
            }
        }
        at
    }
}

/// A side length, and how to divide by it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    length: u64,
    /// log2 of the length where that is a power of two.
    shift: u32,
    /// floor((2^64 - 1) / length).
    reciprocal: u64,
}

impl Side {
    fn new(length: u64) -> Side {
        Side {
            length,
            shift: length.trailing_zeros(),
            reciprocal: u64::MAX / length,
        }
    }

    /// `hint / length`. The high half of the product is the quotient or one less, because the reciprocal is less
    /// than one too small; the remainder decides which.
    #[inline(always)]
    fn divide(&self, hint: u64) -> u64 {
        let low = ((u128::from(hint) * u128::from(self.reciprocal)) >> 64) as u64;
        low + u64::from(hint - low * self.length >= self.length)
    }
}
