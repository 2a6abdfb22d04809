//! The threads that take a line from each other: for each block with sharing misses, the pairs of
//! accesses that collided there, and how often the resulting miss was false sharing.
//!
//! A pair is the access that missed and the write that had taken the block away. It is named when
//! it is first seen, while its memory still belongs to its allocator.

use std::collections::HashMap;

use crate::layout::Layout;
use crate::pieces::Access;
use crate::structures::{StructureId, Structures, UNKNOWN};

/// Pairs of one block that are kept apart; more are counted, but not by name.
const PAIRS: usize = 16;
/// Pairs of all blocks that are kept apart: a bound on memory, some 200 bytes each.
const PAIRS_MAX: usize = 1 << 18;

pub const NO_PAIR: u32 = u32::MAX;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    pub thread: u32,
    /// As the program has it.
    pub address: u64,
    pub site: u32,
    pub write: bool,
}

/// Two accesses that collided.
pub struct Pair {
    /// Index of its block in [`Clashes::blocks`].
    block: u32,
    /// Misses in all kinds of caches that were false sharing.
    count: u64,
    /// The one that missed and the one that wrote before; `None`: all pairs too many to be reported.
    pub sides: Option<[Side; 2]>,
    pub structure: StructureId,
}

/// An access and the name of its data.
pub struct Side {
    pub act: Act,
    pub name: String,
}

/// A block that cores took from one another.
pub struct Block {
    pub space: u32,
    /// Its virtual address.
    pub address: u64,
    /// False sharing by kind of cache.
    misses: Vec<u64>,
    pairs: Vec<u32>,
    /// The pair that stands for all others.
    others: u32,
}

pub struct Clashes {
    kinds: usize,
    block_bits: u32,
    /// The last two cores that took a block from others, the later first, by space and number.
    takers: HashMap<(u32, u64), [(u32, Act); 2]>,
    numbers: HashMap<(u32, u64), u32>,
    blocks: Vec<Block>,
    pairs: Vec<Pair>,
}

impl Clashes {
    pub fn new(layout: &Layout) -> Clashes {
        Clashes {
            kinds: layout.caches.len(),
            block_bits: layout.block_bits,
            takers: HashMap::new(),
            numbers: HashMap::new(),
            blocks: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// A write took its block from other cores.
    pub fn took(&mut self, a: &Access) {
        let now = (a.core, Act::of(a));
        let takers = self.takers.entry(self.place(a)).or_insert([now; 2]);
        if takers[0].0 != now.0 {
            takers[1] = takers[0];
        }
        takers[0] = now;
    }

    /// The pair of an access that missed because of a write by another core.
    pub fn pair(&mut self, a: &Access, structures: &mut Structures) -> u32 {
        let place = self.place(a);
        let Some(takers) = self.takers.get(&place) else {
            return NO_PAIR;
        };
        // The core that missed may have written since, into a cache that does not allocate on
        // writes.
        let taker = takers.iter().find(|(core, _)| *core != a.core).unwrap_or(&takers[0]).1;
        let act = Act::of(a);
        let number = match self.numbers.get(&place) {
            Some(&number) => number,
            None => self.block(a, place),
        };
        let block = &self.blocks[number as usize];
        let known = block.pairs.iter().copied().find(|&pair| {
            let sides = self.pairs[pair as usize].sides.as_ref();
            sides.is_some_and(|[missed, wrote]| missed.act == act && wrote.act == taker)
        });
        if let Some(pair) = known {
            return pair;
        }
        if block.pairs.len() >= PAIRS || self.pairs.len() >= PAIRS_MAX {
            return block.others;
        }
        let mut side = |act: Act| Side {
            act,
            name: structures.place(a.who.space, act.address).name,
        };
        let sides = Some([side(act), side(taker)]);
        let structure = structures.lookup(a.who.space, act.address);
        let pair = self.add(number, structure, sides);
        self.blocks[number as usize].pairs.push(pair);
        pair
    }

    /// A miss of a pair was false sharing.
    pub fn count(&mut self, pair: u32, kind: usize) {
        if let Some(pair) = self.pairs.get_mut(pair as usize) {
            pair.count += 1;
            self.blocks[pair.block as usize].misses[kind] += 1;
        }
    }

    /// Counts begin here.
    pub fn restart(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.count = 0);
        self.blocks.iter_mut().for_each(|block| block.misses.fill(0));
    }

    /// The blocks with the most false sharing, with the pair that had most of it.
    pub fn worst(&self, count: usize) -> Vec<(&Block, &Pair)> {
        let mut worst: Vec<&Block> = self.blocks.iter().filter(|block| block.misses() > 0).collect();
        worst.sort_by_key(|block| (std::cmp::Reverse(block.misses()), block.space, block.address));
        let named = worst.into_iter().filter_map(|block| {
            let pairs = block.pairs.iter().map(|&pair| &self.pairs[pair as usize]);
            // `max_by_key` takes the last among equals; the first seen is wanted.
            Some((block, pairs.rev().max_by_key(|pair| pair.count)?))
        });
        named.take(count).collect()
    }

    fn place(&self, a: &Access) -> (u32, u64) {
        (a.who.space, a.virtual_address >> self.block_bits)
    }

    fn block(&mut self, a: &Access, place: (u32, u64)) -> u32 {
        let number = self.blocks.len() as u32;
        let others = self.add(number, UNKNOWN, None);
        self.blocks.push(Block {
            space: a.who.space,
            address: place.1 << self.block_bits,
            misses: vec![0; self.kinds],
            pairs: Vec::new(),
            others,
        });
        self.numbers.insert(place, number);
        number
    }

    fn add(&mut self, block: u32, structure: StructureId, sides: Option<[Side; 2]>) -> u32 {
        self.pairs.push(Pair {
            block,
            count: 0,
            sides,
            structure,
        });
        self.pairs.len() as u32 - 1
    }
}

impl Block {
    /// False sharing in the kind of cache that has most of it: a miss in several is one.
    pub fn misses(&self) -> u64 {
        self.misses.iter().copied().max().unwrap_or(0)
    }
}

impl Act {
    fn of(a: &Access) -> Act {
        Act {
            thread: a.who.thread,
            address: a.named_address,
            site: a.pc_site,
            write: a.write,
        }
    }
}
