//! The page table: virtual pages to dense page numbers, and the data of each page.
//!
//! A page gets a number when it is first touched. Each frame that holds a page, or a replica of
//! it, is a *copy* with a number of its own; lines are numbered through the copies, so that
//! everything about a line is found in an array. As long as nothing moves, the copy of page `p`
//! is copy `p`.

use std::collections::HashMap;
use std::ops::Range;

use policy::Page;
use sys::arrays::Array;

const LEAF_BITS: u32 = 9;
const LEAF: usize = 1 << LEAF_BITS;
const RECENT_BITS: u32 = 10;
/// Marks the entry of a page that is unmapped. There are fewer pages ([`crate::cache::LINES_MAX`]).
const UNMAPPED: u32 = 1 << 31;

/// The numbering of the touched pages of all address spaces.
pub struct PageTable {
    leaves: HashMap<(u32, u64), u32>,
    /// Page numbers plus one; 0: not touched.
    entries: Array<u32>,
    /// Leaves found lately, so that the map is asked rarely.
    recent: Vec<Recent>,
    pages: Vec<Page>,
}

#[derive(Clone, Copy)]
struct Recent {
    chunk: u64,
    space: u32,
    leaf: u32,
}

impl PageTable {
    pub fn new() -> Self {
        let none = Recent {
            chunk: u64::MAX,
            space: u32::MAX,
            leaf: 0,
        };
        PageTable {
            leaves: HashMap::new(),
            entries: Array::new(0),
            recent: vec![none; 1 << RECENT_BITS],
            pages: Vec::new(),
        }
    }

    /// The page's number, and whether this is its first touch, or the first since it was unmapped.
    #[inline(always)]
    pub fn touch(&mut self, space: u32, number: u64) -> (u32, bool) {
        let chunk = number >> LEAF_BITS;
        let recent = &self.recent[place(space, chunk)];
        let leaf = if recent.chunk == chunk && recent.space == space {
            recent.leaf
        } else {
            self.leaf(space, chunk)
        };
        let at = leaf as usize * LEAF + (number as usize % LEAF);
        match self.entries[at] {
            entry @ 1..UNMAPPED => (entry - 1, false),
            _ => (self.number(at, Page { space, number }), true),
        }
    }

    /// The page's number, if it was touched and is found at once.
    #[inline(always)]
    pub fn peek(&self, space: u32, number: u64) -> Option<u32> {
        let chunk = number >> LEAF_BITS;
        let recent = &self.recent[place(space, chunk)];
        if recent.chunk != chunk || recent.space != space {
            return None;
        }
        (self.entries[recent.leaf as usize * LEAF + (number as usize % LEAF)] & !UNMAPPED).checked_sub(1)
    }

    #[cold]
    #[inline(never)]
    fn leaf(&mut self, space: u32, chunk: u64) -> u32 {
        let next = (self.entries.len() / LEAF) as u32;
        let leaf = *self.leaves.entry((space, chunk)).or_insert(next);
        if leaf == next {
            self.entries.grow((next as usize + 1) * LEAF);
        }
        self.recent[place(space, chunk)] = Recent { chunk, space, leaf };
        leaf
    }

    #[cold]
    #[inline(never)]
    fn number(&mut self, at: usize, page: Page) -> u32 {
        if self.entries[at] > 0 {
            self.entries[at] &= !UNMAPPED;
            return self.entries[at] - 1;
        }
        self.pages.push(page);
        self.entries[at] = self.pages.len() as u32;
        self.pages.len() as u32 - 1
    }

    /// The number of a page that was touched.
    pub fn find(&mut self, page: Page) -> Option<u32> {
        let leaf = *self.leaves.get(&(page.space, page.number >> LEAF_BITS))?;
        let entry = self.entries[leaf as usize * LEAF + page.number as usize % LEAF];
        (entry & !UNMAPPED).checked_sub(1)
    }

    /// Unmaps pages of an address space: the next touch of each is the first again. Returns those that had been touched.
    pub fn unmap(&mut self, space: u32, numbers: Range<u64>) -> Vec<u32> {
        let chunks = (numbers.start >> LEAF_BITS)..=(numbers.end.saturating_sub(1) >> LEAF_BITS);
        // The fewer of the two are gone through.
        let mut leaves: Vec<(u64, u32)> = match numbers.end.saturating_sub(numbers.start) >> LEAF_BITS {
            few if few < self.leaves.len() as u64 => chunks
                .filter_map(|chunk| Some((chunk, *self.leaves.get(&(space, chunk))?)))
                .collect(),
            _ => (self.leaves.iter())
                .filter(|((of, chunk), _)| *of == space && chunks.contains(chunk))
                .map(|((_, chunk), leaf)| (*chunk, *leaf))
                .collect(),
        };
        leaves.sort_unstable();
        let mut unmapped = Vec::new();
        for (chunk, leaf) in leaves {
            for place in 0..LEAF {
                let entry = &mut self.entries[leaf as usize * LEAF + place];
                if numbers.contains(&(chunk << LEAF_BITS | place as u64)) && (1..UNMAPPED).contains(entry) {
                    unmapped.push(*entry - 1);
                    *entry |= UNMAPPED;
                }
            }
        }
        unmapped
    }

    /// A page was not unmapped after all.
    pub fn is_touched(&mut self, page: u32) {
        let Page { space, number } = self.page(page);
        self.touch(space, number);
    }

    pub fn page(&self, page: u32) -> Page {
        self.pages[page as usize]
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }
}

/// The place where a recently found leaf is remembered. Threads' data often lies a power of two apart: all bits of the
/// chunk's number take part (Fibonacci hashing, Knuth 6.4).
#[inline(always)]
fn place(space: u32, chunk: u64) -> usize {
    let key = chunk ^ u64::from(space) << 40;
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - RECENT_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_in_the_order_of_their_first_touch() {
        let mut table = PageTable::new();
        assert_eq!(table.touch(0, 77), (0, true));
        assert_eq!(table.touch(1, 77), (1, true));
        assert_eq!(table.touch(0, u64::MAX >> 12), (2, true));
        assert_eq!(table.touch(0, 77), (0, false));
        assert_eq!(table.find(Page { space: 1, number: 77 }), Some(1));
        assert_eq!(table.find(Page { space: 1, number: 78 }), None);
        assert_eq!(table.page(2).number, u64::MAX >> 12);
        for number in 0..10_000 {
            table.touch(3, number * 513);
        }
        for number in 0..10_000 {
            assert_eq!(table.touch(3, number * 513), (3 + number as u32, false));
        }
    }
}
