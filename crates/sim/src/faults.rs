//! Page faults: the system's time for the first touch of a page, and for the first after it was unmapped.
//!
//! "Page faults" of the contract has the rules. A page that is unmapped keeps its number and its frame; the page table
//! marks the next touch as the first.

use std::collections::{BTreeMap, HashMap, HashSet};

use machine::Machine;
use policy::Page;
use trace::{Allocation, Event};

use crate::changes::HugePages;
use crate::clock::{Units, units};
use crate::pages::PageTable;

/// The least that a first touch clears.
const CLEARED: u64 = 4096;

/// A mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    bytes: u64,
    stack: u32,
    kind: Allocation,
}

/// The last mapping that a thread ended: a mapping right after it may be left of it.
struct Ended {
    /// The cpu that it was on, and the instructions that had passed there.
    at: (u32, u64),
    space: u32,
    start: u64,
    mapping: Mapping,
    /// The pages that it unmapped.
    pages: Vec<u32>,
}

/// A thread's action that ends or begins a mapping.
pub struct Doing<'a> {
    pub space: u32,
    pub thread: u32,
    /// Its cpu, and the instructions that have passed there.
    pub at: (u32, u64),
    pub event: &'a Event,
}

/// A page that was touched and was not there.
pub struct Fault {
    pub takes: Units,
    /// True if it had been touched before, and was unmapped since.
    pub again: bool,
}

/// The known mappings, and the pages that were unmapped.
pub struct Faults {
    /// For a page of the machine, and for a huge one.
    takes: Units,
    takes_huge: Units,
    mappings: BTreeMap<(u32, u64), Mapping>,
    /// Addresses of live blocks of the heap: a `Free` of an address ends one of these first.
    heap: HashSet<(u32, u64)>,
    /// Pages that were unmapped and not touched since.
    unmapped: HashSet<u32>,
    /// Huge pages that are there, by their first page.
    huge: HashSet<(u32, u64)>,
    /// Pages of a huge one.
    pages_of_huge: u64,
    page_bytes: u64,
    /// By thread.
    ended: HashMap<u32, Ended>,
}

impl Faults {
    /// `None` where faults take no time.
    pub fn new(machine: &Machine) -> Option<Box<Faults>> {
        let memory = &machine.memory;
        let takes = |bytes: u64| {
            let further = (bytes / CLEARED).saturating_sub(1);
            units(memory.fault_ns) + further * units(memory.clear_ns)
        };
        if memory.fault_ns == 0.0 {
            return None;
        }
        Some(Box::new(Faults {
            takes: takes(machine.page_bytes),
            takes_huge: takes(HugePages::bytes(machine.page_bytes)),
            mappings: BTreeMap::new(),
            heap: HashSet::new(),
            unmapped: HashSet::new(),
            huge: HashSet::new(),
            pages_of_huge: HugePages::bytes(machine.page_bytes) / machine.page_bytes,
            page_bytes: machine.page_bytes,
            ended: HashMap::new(),
        }))
    }

    /// A page is touched that the page table has as untouched.
    pub fn touch(&mut self, page: u32, Page { space, number }: Page, address: u64, on_huge: bool) -> Fault {
        let again = self.unmapped.remove(&page);
        let takes = match on_huge {
            _ if self.is_of_file(space, address) => 0,
            false => self.takes,
            true if self.huge.insert((space, number / self.pages_of_huge)) => self.takes_huge,
            true => 0,
        };
        Fault { takes, again }
    }

    /// Pages that the page table has as unmapped.
    pub fn unmapped(&self) -> impl Iterator<Item = u32> + '_ {
        self.unmapped.iter().copied()
    }

    fn is_of_file(&self, space: u32, address: u64) -> bool {
        let upto = self.mappings.range((space, 0)..=(space, address));
        upto.last()
            .is_some_and(|(&(_, start), mapping)| mapping.kind == Allocation::File && address - start < mapping.bytes)
    }

    /// Follows the mappings and unmappings of threads. Returns the pages that are unmapped now.
    pub fn mappings(&mut self, doing: Doing, table: &mut PageTable) -> Vec<u32> {
        let Doing { space, thread, at, .. } = doing;
        match *doing.event {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind,
            } => {
                let mapping = Mapping { bytes, stack, kind };
                match self.ended.get_mut(&thread) {
                    Some(ended) if ended.at == at && ended.is_left(space, addr, mapping) => {
                        let (first, last) = (addr / self.page_bytes, addr.saturating_add(bytes - 1) / self.page_bytes);
                        let unmapped = &mut self.unmapped;
                        ended.pages.retain(|&page| {
                            let left = (first..=last).contains(&table.page(page).number);
                            if left && unmapped.remove(&page) {
                                table.is_touched(page);
                            }
                            !left
                        });
                    }
                    _ => {
                        self.ended.remove(&thread);
                    }
                }
                if kind == Allocation::Heap {
                    self.heap.insert((space, addr));
                } else if bytes > 0 {
                    self.mappings.insert((space, addr), mapping);
                }
                Vec::new()
            }
            Event::Free { addr } => {
                self.ended.remove(&thread);
                let of_heap = self.heap.remove(&(space, addr));
                let Some(mapping) = (!of_heap).then(|| self.mappings.remove(&(space, addr))).flatten() else {
                    return Vec::new();
                };
                let end = addr.saturating_add(mapping.bytes) / self.page_bytes;
                let pages = table.unmap(space, addr.div_ceil(self.page_bytes)..end);
                for &page in &pages {
                    self.unmapped.insert(page);
                    self.huge.remove(&(space, table.page(page).number / self.pages_of_huge));
                }
                let ended = Ended {
                    at,
                    space,
                    start: addr,
                    mapping,
                    pages: pages.clone(),
                };
                self.ended.insert(thread, ended);
                pages
            }
            _ => Vec::new(),
        }
    }
}

impl Ended {
    /// Returns whether a mapping is a part of this one that stays.
    fn is_left(&self, space: u32, start: u64, mapping: Mapping) -> bool {
        let same = (space, mapping.stack, mapping.kind) == (self.space, self.mapping.stack, self.mapping.kind);
        let end = start.saturating_add(mapping.bytes);
        let inside = start >= self.start && end <= self.start.saturating_add(self.mapping.bytes);
        // One as large takes the place of all of it.
        same && inside && (1..self.mapping.bytes).contains(&mapping.bytes)
    }
}
