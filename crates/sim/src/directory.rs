//! The directory: for each block, the cores that may hold it, its owner, and the words written.
//!
//! Kept in arrays by block number, which is dense. The set of cores is a superset (evictions do not
//! clear it); exact answers come from the caches of these cores. The records of sharing misses
//! ([`crate::sharing`]) are touched only for blocks that have any.

use sys::arrays::{Array, prefetch};

use crate::sharing::Records;

/// The state of a block of the footprint. New ones are all zeroes.
///
/// Bits 0 to 15: groups of cores that may hold a line of it; 16 to 23: the core that owns it, plus
/// one; 24: set if a cache may hold it dirty though it has no owner; 25: set if there are records
/// of sharing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block(u32);

const OWNER: u32 = 16;
const DIRTY: u32 = 1 << 24;
const RECORDS: u32 = 1 << 25;

impl Block {
    /// Groups of cores that may hold a line of it.
    #[inline(always)]
    pub fn cores(self) -> u16 {
        self.0 as u16
    }

    #[inline(always)]
    pub fn with_cores(self, cores: u16) -> Self {
        Block(self.0 & !0xffff | u32::from(cores))
    }

    /// The core that owns it.
    #[inline(always)]
    pub fn owner(self) -> Option<u32> {
        (self.0 >> OWNER & 0xff).checked_sub(1)
    }

    #[inline(always)]
    pub fn is_owned_by(self, core: u32) -> bool {
        self.0 >> OWNER & 0xff == core + 1
    }

    #[inline(always)]
    pub fn with_owner(self, owner: Option<u32>) -> Self {
        Block(self.0 & !(0xff << OWNER) | owner.map_or(0, |core| core + 1) << OWNER)
    }

    /// Returns whether a cache may hold it dirty though it has no owner.
    #[inline(always)]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    #[inline(always)]
    pub fn with_dirty(self, dirty: bool) -> Self {
        Block(self.0 & !DIRTY | if dirty { DIRTY } else { 0 })
    }

    #[inline(always)]
    pub fn has_records(self) -> bool {
        self.0 & RECORDS != 0
    }

    #[inline(always)]
    pub fn with_records(self, any: bool) -> Self {
        Block(self.0 & !RECORDS | if any { RECORDS } else { 0 })
    }

    /// Returns whether the core may write it without notice to others: it owns it, and no instance
    /// that lost it needs to know the words.
    #[inline(always)]
    pub fn is_free_for(self, core: u32) -> bool {
        self.0 >> OWNER & (0xff | RECORDS >> OWNER) == core + 1
    }
}

pub struct Directory {
    blocks: Array<u32>,
    pub records: Records,
    /// Cores in one bit of [`Block::cores`].
    group: u32,
}

impl Directory {
    pub fn new(cores: u32) -> Self {
        Directory {
            blocks: Array::new(0),
            records: Records::new(),
            group: cores.div_ceil(16).max(1),
        }
    }

    /// Makes room for blocks below `count`.
    pub fn grow(&mut self, count: usize) {
        self.blocks.grow(count);
        self.records.grow(count);
    }

    #[inline(always)]
    pub fn get(&self, block: u32) -> Block {
        Block(self.blocks[block as usize])
    }

    #[inline(always)]
    pub fn put(&mut self, block: u32, state: Block) {
        self.blocks[block as usize] = state.0;
    }

    /// Prefetches a block's data on the host.
    #[inline(always)]
    pub fn warm(&self, block: u32) {
        prefetch(&self.blocks, block as usize);
    }

    #[inline(always)]
    pub fn has_records(&self, block: u32) -> bool {
        self.get(block).has_records()
    }

    /// After records may have come or gone.
    #[inline]
    pub fn look_at_records(&mut self, block: u32) {
        let state = self.get(block).with_records(!self.records.is_empty(block));
        self.put(block, state);
    }

    /// The bit of a core in [`Block::cores`].
    #[inline(always)]
    pub fn bit(&self, core: u32) -> u16 {
        1 << (core / self.group)
    }

    /// The cores that a bit stands for.
    #[inline(always)]
    pub fn cores_of(&self, bit: u32) -> std::ops::Range<u32> {
        bit * self.group..(bit + 1) * self.group
    }

    /// Returns whether a bit stands for several cores.
    #[inline(always)]
    pub fn is_coarse(&self) -> bool {
        self.group > 1
    }

    /// Resets a block: another page is there.
    pub fn reset(&mut self, block: u32) {
        if self.has_records(block) {
            self.records.clear(block);
        }
        self.put(block, Block::default());
    }
}
