//! From hints to bins: a number for every block that is used (Philbin96, section 3.2).
//!
//! The paper hashes into a table of chains. Here the numbers of bins are dense, in order of first use, so that arrays
//! hold all other data of a bin; the table is open addressing over those numbers, at most a quarter full, so that the
//! first look mostly finds the bin. The bin found last is looked at first, because hints mostly come in runs.

use std::collections::TryReserveError;

use thiserror::Error;

use super::{Block, HINTS_MAX, Shape, Tour};

/// The number of a bin: 0 for the block that was used first, and so on without gaps.
pub type BinId = u32;

/// The number of no bin.
const NONE: BinId = BinId::MAX;

/// Entries of the table for each bin, at least.
const SPARSE: usize = 4;

/// Why a block got no bin. Then nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BinsError {
    #[error("the bins are for {expected} hints, not {given}")]
    Hints { expected: usize, given: usize },
    #[error("no memory for another bin")]
    OutOfMemory,
}

impl From<TryReserveError> for BinsError {
    fn from(_: TryReserveError) -> Self {
        BinsError::OutOfMemory
    }
}

/// The bins in use.
#[derive(Clone, Debug)]
pub struct Bins {
    shape: Shape,
    /// The block of bin b, `shape.hints()` numbers from `b * shape.hints()`.
    blocks: Vec<u64>,
    /// Bin number plus one, 0 if free; a power of two of them, or none at all.
    table: Vec<u32>,
    /// 64 - log2 of the table's size.
    shift: u32,
    /// The bin found last.
    last: BinId,
}

impl Bins {
    /// No bins yet.
    pub fn new(shape: Shape) -> Bins {
        Bins {
            shape,
            blocks: Vec::new(),
            table: Vec::new(),
            shift: 63,
            last: NONE,
        }
    }

    /// How the space of hints is cut into blocks.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of bins in use.
    pub fn len(&self) -> usize {
        self.blocks.len() / self.shape.hints()
    }

    /// True if no bin is in use.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The bin for these hints: the one of their block, or the next number where the block is used for the first time.
    #[inline(always)]
    pub fn bin(&mut self, hints: &[u64]) -> Result<BinId, BinsError> {
        if hints.len() != self.shape.hints() {
            return Err(BinsError::Hints {
                expected: self.shape.hints(),
                given: hints.len(),
            });
        }
        // The number of hints is the same at every call, so this jump is predicted, and the code after it has no loops.
        // If the caller's hints are an array, which is why this is inlined always, there is no jump either.
        match hints.len() {
            1 => self.known::<1>(hints),
            2 => self.known::<2>(hints),
            3 => self.known::<3>(hints),
            4 => self.known::<4>(hints),
            5 => self.known::<5>(hints),
            6 => self.known::<6>(hints),
            7 => self.known::<7>(hints),
            _ => self.known::<8>(hints),
        }
    }

    /// The bin of a block as [`Bins::block`] gives it, which may come from other bins of the same shape.
    pub fn bin_of(&mut self, block: &Block) -> Result<BinId, BinsError> {
        let at = &block.0[..self.shape.hints()];
        match at.len() {
            1 => self.sought::<1>(at),
            2 => self.sought::<2>(at),
            3 => self.sought::<3>(at),
            4 => self.sought::<4>(at),
            5 => self.sought::<5>(at),
            6 => self.sought::<6>(at),
            7 => self.sought::<7>(at),
            _ => self.sought::<8>(at),
        }
    }

    /// The bin of a block, if it has one.
    pub fn find(&self, block: &Block) -> Option<BinId> {
        let at = &block.0[..self.shape.hints()];
        match self.probe(hash(at), |known| known.starts_with(at)) {
            Probe::Bin(bin) => Some(bin),
            Probe::Free(_) => None,
        }
    }

    /// The block of a bin.
    ///
    /// # Panics
    /// If there is no such bin.
    pub fn block(&self, bin: BinId) -> Block {
        let hints = self.shape.hints();
        let mut block = Block::default();
        block.0[..hints].copy_from_slice(&self.blocks[bin as usize * hints..][..hints]);
        block
    }

    /// The order in which bins run, outer levels first: see [`Tour`].
    pub fn tour(&self, tour: Tour) -> Vec<BinId> {
        let blocks: Vec<Block> = (0..self.len() as BinId).map(|bin| self.block(bin)).collect();
        tour.within(&blocks, &self.shape)
    }

    /// Makes room for `bins` bins in all.
    pub fn reserve(&mut self, bins: usize) -> Result<(), BinsError> {
        let more = bins.saturating_sub(self.len());
        self.blocks.try_reserve(more.saturating_mul(self.shape.hints()))?;
        if bins > self.table.len() / SPARSE {
            self.grow(bins)?;
        }
        Ok(())
    }

    /// Forgets all bins; the memory stays for the next ones.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.table.fill(0);
        self.last = NONE;
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<u64>() + self.table.capacity() * size_of::<u32>()
    }

    #[inline(always)]
    fn known<const K: usize>(&mut self, hints: &[u64]) -> Result<BinId, BinsError> {
        let Some(hints) = hints.first_chunk::<K>() else {
            return Err(BinsError::Hints {
                expected: K,
                given: hints.len(),
            });
        };
        let at = self.shape.coordinates(hints);
        if self.is_at(self.last, &at) {
            return Ok(self.last);
        }
        self.sought::<K>(&at)
    }

    /// True if a bin has this block; the last one may be none.
    #[inline(always)]
    fn is_at<const K: usize>(&self, bin: BinId, at: &[u64; K]) -> bool {
        let blocks = self.blocks.get(bin as usize * K..);
        blocks
            .and_then(|blocks| blocks.first_chunk())
            .is_some_and(|known| same(known, at))
    }

    #[inline(always)]
    fn sought<const K: usize>(&mut self, at: &[u64]) -> Result<BinId, BinsError> {
        let Some(at) = at.first_chunk::<K>() else {
            return Err(BinsError::Hints {
                expected: K,
                given: at.len(),
            });
        };
        let bin = match self.probe(hash(at), |known| {
            known.first_chunk().is_some_and(|known| same(known, at))
        }) {
            Probe::Bin(bin) => bin,
            Probe::Free(slot) => self.add(*at, slot)?,
        };
        self.last = bin;
        Ok(bin)
    }

    /// The place of a block in the table, or the place where it would be. `same` is given the coordinates of a bin and all that
    /// follows.
    #[inline(always)]
    fn probe(&self, hash: u64, same: impl Fn(&[u64]) -> bool) -> Probe {
        if self.table.is_empty() {
            return Probe::Free(0);
        }
        let mask = self.table.len() - 1;
        let hints = self.shape.hints();
        let mut slot = (hash >> self.shift) as usize & mask;
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                return Probe::Free(slot);
            }
            let bin = entry - 1;
            if self.blocks.get(bin as usize * hints..).is_some_and(&same) {
                return Probe::Bin(bin);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    #[inline(never)]
    fn add<const K: usize>(&mut self, at: [u64; K], slot: usize) -> Result<BinId, BinsError> {
        let bins = self.len();
        // The last two numbers are no bins: one says "none", and entries are numbers plus one.
        if bins >= NONE as usize - 1 {
            return Err(BinsError::OutOfMemory);
        }
        self.blocks.try_reserve(at.len())?;
        let slot = if (bins + 1) * SPARSE > self.table.len() {
            self.grow(bins + 1)?;
            match self.probe(hash(&at), |known| known.starts_with(&at)) {
                Probe::Free(slot) => slot,
                Probe::Bin(bin) => return Ok(bin),
            }
        } else {
            slot
        };
        self.blocks.extend_from_slice(&at);
        self.table[slot] = bins as u32 + 1;
        Ok(bins as BinId)
    }

    /// A larger table, for `bins` bins.
    fn grow(&mut self, bins: usize) -> Result<(), BinsError> {
        let size = bins
            .checked_mul(SPARSE)
            .and_then(usize::checked_next_power_of_two)
            .ok_or(BinsError::OutOfMemory)?
            .max(64);
        let mut table = Vec::new();
        table.try_reserve_exact(size)?;
        table.resize(size, 0);
        self.table = table;
        self.shift = 64 - size.trailing_zeros();
        let hints = self.shape.hints();
        for bin in 0..self.len() {
            let at = &self.blocks[bin * hints..][..hints];
            let mask = size - 1;
            let mut slot = (hash(at) >> self.shift) as usize & mask;
            while self.table[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            self.table[slot] = bin as u32 + 1;
        }
        Ok(())
    }
}

enum Probe {
    Bin(BinId),
    Free(usize),
}

/// True if two blocks are the same. Compares coordinate by coordinate: arrays are compared, and copied, in wide pieces, and the
/// processor stalls where it has only just written them in narrow ones.
#[inline(always)]
fn same<const K: usize>(one: &[u64; K], other: &[u64; K]) -> bool {
    let mut different = 0;
    for d in 0..K {
        different |= one[d] ^ other[d];
    }
    different == 0
}

/// Spreads blocks over the high bits, which are the ones that the table uses. Every coordinate has its own odd
/// factor, so that the products are independent of each other, and the processor makes them side by side.
#[inline(always)]
fn hash(at: &[u64]) -> u64 {
    at.iter().zip(ODD).fold(0u64, |sum, (&coordinate, odd)| {
        sum.wrapping_add(coordinate.wrapping_mul(odd))
    })
}

/// The first 64 bits after the point of the golden ratio, and of the square roots of 2, 3, 5, 7, 11, 13 and 17, made
/// odd.
const ODD: [u64; HINTS_MAX] = [
    0x9e37_79b9_7f4a_7c15,
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
];
