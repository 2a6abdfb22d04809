//! The translation lookaside buffer of one cpu. Pages are known by their dense numbers.

use machine::{FarPages, Replacement};

use crate::cache::Cache;
use crate::clock::{Units, units};
use crate::pages::PageTable;
use crate::recency::{Arena, Prior, Recency};

pub struct Tlb {
    entries: Entries,
    sets: u64,
    /// The page looked up last, which is the most recently used of its set.
    last: u32,
    /// Set if walks go far.
    far: Option<Far>,
}

/// Lines of page tables, each tier with those that were walked to last.
struct Far {
    lines: PageTable,
    tiers: Vec<(Recency, Arena, Units)>,
}

/// Entries in a line of a page table.
const IN_LINE: u32 = 8;

enum Entries {
    Sets(Cache),
    /// Fully associative.
    All(Recency, Arena),
}

const NONE: u32 = u32::MAX;

impl Far {
    fn new(tlb: &machine::Tlb) -> Option<Far> {
        let tier = |far: &FarPages| {
            let lines = (far.pages / IN_LINE).max(1);
            (Recency::new(lines, 0), Arena::new(1, 6), units(far.refill_ns))
        };
        (!tlb.far.is_empty()).then(|| Far {
            lines: PageTable::new(),
            tiers: tlb.far.iter().map(tier).collect(),
        })
    }

    fn walk(&mut self, space: u32, number: u64) -> Option<Units> {
        let (line, _) = self.lines.touch(space, number / u64::from(IN_LINE));
        let mut takes = None;
        for (recency, arena, refill) in &mut self.tiers {
            if recency.touch(arena, line, true) != Prior::In {
                takes = Some(*refill);
            }
        }
        takes
    }
}

impl Tlb {
    pub fn new(tlb: &machine::Tlb) -> Self {
        let sets = (tlb.entries / tlb.ways.max(1)).max(1);
        let ways = ((tlb.entries - tlb.wired) / sets).max(1);
        let entries = match sets {
            1 => Entries::All(Recency::new(ways, 0), Arena::new(1, 6)),
            _ => Entries::Sets(Cache::new(sets as usize, ways as usize, Replacement::Lru, 0)),
        };
        Tlb {
            entries,
            sets: u64::from(sets),
            last: NONE,
            far: Far::new(tlb),
        }
    }

    /// Walks to a page that was not there. Returns the time of that if it is far.
    #[inline]
    pub fn walk(&mut self, space: u32, number: u64) -> Option<Units> {
        self.far.as_mut()?.walk(space, number)
    }

    /// Looks a page up and takes its entry in; returns whether it was there.
    #[inline(always)]
    pub fn touch(&mut self, page: u32, number: u64) -> bool {
        if page == self.last {
            return true;
        }
        self.last = page;
        match &mut self.entries {
            Entries::All(recency, arena) => recency.touch(arena, page, true) == Prior::In,
            Entries::Sets(cache) => {
                let set = (number % self.sets) as usize;
                let hit = cache.hit::<0>(set, page).is_some();
                if !hit {
                    cache.fill::<0>(set, page, 0);
                }
                hit
            }
        }
    }

    /// Returns whether it has a page's entry; nothing changes.
    pub fn holds(&self, page: u32, number: u64) -> bool {
        match &self.entries {
            _ if page == self.last => true,
            Entries::All(recency, arena) => recency.holds(arena, page),
            Entries::Sets(cache) => cache.find((number % self.sets) as usize, page).is_some(),
        }
    }

    /// Prefetches a page's data on the host.
    #[inline(always)]
    pub fn warm(&self, page: u32, number: u64) {
        match &self.entries {
            Entries::All(_, arena) => arena.warm(page),
            Entries::Sets(cache) => cache.warm((number % self.sets) as usize),
        }
    }

    /// The page's translation has changed.
    pub fn remove(&mut self, page: u32, number: u64) {
        if page == self.last {
            self.last = NONE;
        }
        match &mut self.entries {
            Entries::All(recency, arena) => recency.take_out(arena, page),
            Entries::Sets(cache) => {
                cache.remove((number % self.sets) as usize, page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlb(entries: u32, ways: u32, wired: u32) -> Tlb {
        Tlb::new(&machine::Tlb {
            entries,
            ways,
            wired,
            refill_ns: 1.0,
            walkers: 0,
            huge_refill_ns: None,
            far: Vec::new(),
        })
    }

    #[test]
    fn wired_entries_shrink_it() {
        let mut tlb = tlb(4, 4, 2);
        assert!(!tlb.touch(0, 0));
        assert!(!tlb.touch(1, 1));
        assert!(tlb.touch(0, 0));
        assert!(!tlb.touch(2, 2));
        assert!(!tlb.touch(1, 1));
    }

    #[test]
    fn sets_are_chosen_by_the_page_number() {
        let mut tlb = tlb(8, 2, 0);
        for number in [0, 4, 1] {
            assert!(!tlb.touch(number as u32, number));
        }
        assert!(tlb.touch(0, 0));
        assert!(!tlb.touch(8, 8));
        assert!(!tlb.touch(4, 4), "page 4 was the least recently used of set 0");
        assert!(tlb.touch(1, 1));
        tlb.remove(1, 1);
        assert!(!tlb.touch(1, 1));
    }
}
