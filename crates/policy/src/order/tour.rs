//! The tours of the bins, and bins of bins.

use std::collections::HashMap;

use super::{Block, Shape, first_fork, hilbert, nearest};

/// In which order bins run. Each is a file of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tour {
    /// The order in which their blocks were first used (Philbin96, section 3.2).
    #[default]
    FirstFork,
    /// From each bin to the nearest one left: few blocks change from one bin to the next.
    Nearest,
    /// Along a Hilbert curve: neighbours in the tour are near at every scale.
    Hilbert,
}

impl Tour {
    /// The order of these blocks, given in order of first use: a permutation of their positions.
    pub fn of(self, blocks: &[Block], hints: usize) -> Vec<u32> {
        match self {
            Tour::FirstFork => first_fork::tour(blocks.len()),
            Tour::Nearest => nearest::tour(blocks, hints),
            Tour::Hilbert => hilbert::tour(blocks, hints),
        }
    }

    /// [`Tour::of`] with the shape's levels: the outermost blocks are toured first, then those within each.
    pub fn within(self, blocks: &[Block], shape: &Shape) -> Vec<u32> {
        let all: Vec<u32> = (0..blocks.len() as u32).collect();
        let mut order = Vec::with_capacity(blocks.len());
        self.descend(blocks, shape, &all, shape.levels().len(), &mut order);
        order
    }

    fn descend(self, blocks: &[Block], shape: &Shape, these: &[u32], level: usize, order: &mut Vec<u32>) {
        if level == 0 {
            let inner: Vec<Block> = these.iter().map(|&at| blocks[at as usize]).collect();
            order.extend(self.of(&inner, shape.hints()).into_iter().map(|at| these[at as usize]));
            return;
        }
        let held = &shape.levels()[level - 1];
        let mut outer: Vec<Block> = Vec::new();
        let mut members: Vec<Vec<u32>> = Vec::new();
        let mut numbers: HashMap<Block, usize> = HashMap::new();
        for &at in these {
            let mut block = Block::default();
            for (dimension, &held) in held.iter().enumerate() {
                block.0[dimension] = blocks[at as usize].0[dimension] / held;
            }
            let number = *numbers.entry(block).or_insert_with(|| {
                outer.push(block);
                members.push(Vec::new());
                outer.len() - 1
            });
            members[number].push(at);
        }
        for number in self.of(&outer, shape.hints()) {
            self.descend(blocks, shape, &members[number as usize], level - 1, order);
        }
    }
}
