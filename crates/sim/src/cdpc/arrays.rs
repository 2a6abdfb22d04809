//! The array that a page belongs to.
//!
//! An array is a static symbol, an array that the program declared, or a heap block (or mapping) of at least
//! [`BLOCK_PAGES`] pages; smaller blocks of one allocation site are one array together, such as the rows of a matrix.
//! An array smaller than a page in all does not count. A page belongs to the array that has most of its bytes.

use std::collections::HashMap;

use trace::Event;

use results::StructureKind;

use crate::structures::{Extent, StructureId, Structures, Tables, UNKNOWN};

/// Number of an array, in the order in which they were found.
pub type ArrayId = u32;

/// Pages from which on a block is an array of its own.
pub const BLOCK_PAGES: u64 = 16;
/// Arrays that are kept apart; a bound on memory. Pages of further ones are of none.
pub const ARRAYS: usize = 4096;
/// Extents of one page that are looked at, so that a page full of small blocks costs no more.
const EXTENTS: usize = 64;

/// The owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Array(ArrayId),
    /// Memory that nothing names, or of a mapped file.
    Unnamed,
    /// A stack, or many small things.
    Small,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    pub space: u32,
    pub name: String,
    /// Its first byte, and its bytes; of small blocks together, those of the first that was seen.
    pub start: u64,
    pub bytes: u64,
}

pub struct Arrays {
    structures: Structures,
    page_bytes: u64,
    found: Vec<Array>,
    known: HashMap<(u32, StructureId, u64), ArrayId>,
    kinds: HashMap<StructureId, StructureKind>,
    /// Changes whenever a page may have got another owner.
    epoch: u32,
}

impl Arrays {
    pub fn new(tables: &Tables, page_bytes: u64) -> Arrays {
        Arrays {
            structures: Structures::new(tables),
            page_bytes,
            found: Vec::new(),
            known: HashMap::new(),
            kinds: HashMap::new(),
            epoch: 1,
        }
    }

    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    pub fn into_found(self) -> Vec<Array> {
        self.found
    }

    /// Follows allocations.
    pub fn apply(&mut self, space: u32, thread: u32, event: &Event) {
        let large = match *event {
            Event::Alloc { bytes, .. } => bytes >= self.page_bytes,
            Event::Free { addr } => {
                let block = self.structures.extent(space, addr);
                block.structure != UNKNOWN && block.end.saturating_sub(addr) >= self.page_bytes
            }
            _ => false,
        };
        self.structures.apply(space, thread, event);
        if large {
            self.epoch = self.epoch.wrapping_add(1).max(1);
        }
    }

    /// The page's present owner.
    pub fn owner(&mut self, space: u32, page: u64) -> Owner {
        let start = page.saturating_mul(self.page_bytes);
        let end = start.saturating_add(self.page_bytes);
        let mut shares: Vec<(Owner, u64)> = Vec::new();
        let mut addr = start;
        for _ in 0..EXTENTS {
            if addr >= end {
                break;
            }
            let extent = self.structures.extent(space, addr);
            let upto = extent.end.clamp(addr + 1, end);
            let owner = self.of(space, &extent);
            match shares.iter_mut().find(|(other, _)| *other == owner) {
                Some((_, bytes)) => *bytes += upto - addr,
                None => shares.push((owner, upto - addr)),
            }
            addr = upto;
        }
        // An array that has any part of a page owns it; of several, the one with most, the first of equals.
        let mut best = (Owner::Small, 0);
        for (owner, bytes) in shares {
            let rank = |owner| match owner {
                Owner::Array(_) => 2,
                Owner::Small => 1,
                Owner::Unnamed => 0,
            };
            if (rank(owner), bytes) > (rank(best.0), best.1) || best.1 == 0 {
                best = (owner, bytes);
            }
        }
        best.0
    }

    fn of(&mut self, space: u32, extent: &Extent) -> Owner {
        let structure = extent.structure;
        let structures = &self.structures;
        let kind = *self
            .kinds
            .entry(structure)
            .or_insert_with(|| match structures.is_of_malloc(structure) {
                true => StructureKind::Unknown,
                false => structures.describe(structure).kind,
            });
        let bytes = extent.end.saturating_sub(extent.start);
        let large = bytes >= BLOCK_PAGES.saturating_mul(self.page_bytes);
        let start = match kind {
            StructureKind::Symbol | StructureKind::Array => 0,
            StructureKind::Heap if large => extent.start,
            StructureKind::Heap => u64::MAX,
            StructureKind::Stack => return Owner::Small,
            StructureKind::File | StructureKind::Unknown => return Owner::Unnamed,
        };
        if bytes < self.page_bytes {
            return Owner::Small;
        }
        let key = (space, structure, start);
        if let Some(&array) = self.known.get(&key) {
            return Owner::Array(array);
        }
        if self.found.len() >= ARRAYS {
            return Owner::Small;
        }
        let array = self.found.len() as ArrayId;
        self.found.push(Array {
            space,
            name: self.structures.describe(structure).name,
            start: extent.start,
            bytes,
        });
        self.known.insert(key, array);
        Owner::Array(array)
    }
}
