//! Page faults: what the system takes for the first touch of a page, and for the first after it was unmapped.
//!
//! "Page faults" of the contract has the rules. A page that is unmapped keeps its number and its frame; the page table
//! says of the next touch that it is the first.

use std::collections::{BTreeMap, HashMap, HashSet};

use machine::Machine;
use trace::{Allocation, Event};

use crate::changes::HugePages;
use crate::clock::{Units, units};
use crate::engine::Engine;
use crate::pieces::Who;

/// What a first touch clears at least.
const CLEARED: u64 = 4096;

/// A mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    bytes: u64,
    stack: u32,
    kind: Allocation,
}

/// A mapping that a thread ended last: what follows at once may be left of it.
struct Ended {
    /// The cpu that it was on, and the instructions that had passed there.
    at: (u32, u64),
    space: u32,
    start: u64,
    mapping: Mapping,
    /// The pages that it unmapped.
    pages: Vec<u32>,
}

/// What is known of mappings, and of pages that were unmapped.
pub struct Faults {
    /// For a page of the machine, and for a huge one.
    takes: Units,
    takes_huge: Units,
    mappings: BTreeMap<(u32, u64), Mapping>,
    /// Pages that were unmapped and not touched since.
    unmapped: HashSet<u32>,
    /// Huge pages that are there.
    huge: HashSet<(u32, u64)>,
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
            unmapped: HashSet::new(),
            huge: HashSet::new(),
            ended: HashMap::new(),
        }))
    }

    fn is_of_file(&self, space: u32, address: u64) -> bool {
        let upto = self.mappings.range((space, 0)..=(space, address));
        upto.last()
            .is_some_and(|(&(_, start), mapping)| mapping.kind == Allocation::File && address - start < mapping.bytes)
    }
}

impl Engine {
    /// A page is touched that the page table has as untouched. Returns whether it never was.
    pub fn fault(&mut self, who: Who, page: u32, address: u64) -> bool {
        let Some(faults) = &mut self.faults else { return true };
        let again = faults.unmapped.remove(&page);
        let on_huge = self.huge_pages.as_ref().filter(|huge_pages| huge_pages.here);
        let takes = match on_huge {
            _ if faults.is_of_file(who.space, address) => 0,
            None => faults.takes,
            Some(huge_pages) => {
                let number = huge_pages.number(self.table.page(page).number);
                match faults.huge.insert((who.space, number)) {
                    true => faults.takes_huge,
                    false => 0,
                }
            }
        };
        if takes > 0 {
            let cpu = &mut self.cpus[who.cpu as usize];
            cpu.clock += takes;
            cpu.spent.faults += takes;
            match again {
                true => cpu.counts.faults_again += 1,
                false => cpu.counts.faults_first += 1,
            }
        }
        !again
    }

    /// Follows what threads map and unmap.
    pub fn mappings(&mut self, cpu: u32, space: u32, thread: u32, event: &Event) {
        let at = (cpu, self.cpus[cpu as usize].passed);
        let Some(faults) = &mut self.faults else { return };
        match *event {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind,
            } => {
                let mapping = Mapping { bytes, stack, kind };
                if let Some(ended) = faults.ended.get_mut(&thread) {
                    if ended.at == at && ended.is_left(space, addr, mapping) {
                        let (first, last) = (
                            addr >> self.layout.page_bits,
                            (addr + bytes - 1) >> self.layout.page_bits,
                        );
                        let (table, unmapped) = (&mut self.table, &mut faults.unmapped);
                        ended.pages.retain(|&page| {
                            let left = (first..=last).contains(&table.page(page).number);
                            if left && unmapped.remove(&page) {
                                table.is_touched(page);
                            }
                            !left
                        });
                    } else {
                        faults.ended.remove(&thread);
                    }
                }
                if kind != Allocation::Heap && bytes > 0 {
                    faults.mappings.insert((space, addr), mapping);
                }
            }
            Event::Free { addr } => {
                faults.ended.remove(&thread);
                if let Some(mapping) = faults.mappings.remove(&(space, addr)) {
                    self.unmap(at, space, thread, addr, mapping);
                }
            }
            _ => {}
        }
    }

    fn unmap(&mut self, at: (u32, u64), space: u32, thread: u32, start: u64, mapping: Mapping) {
        let page_bits = self.layout.page_bits;
        let first = start.div_ceil(1 << page_bits);
        let end = start.saturating_add(mapping.bytes) >> page_bits;
        let pages = self.table.unmap(space, first..end);
        for &page in &pages {
            self.tlb_remove(page);
        }
        let Some(faults) = &mut self.faults else { return };
        for &page in &pages {
            faults.unmapped.insert(page);
            if let Some(huge_pages) = &self.huge_pages {
                let number = huge_pages.number(self.table.page(page).number);
                faults.huge.remove(&(space, number));
            }
        }
        let ended = Ended {
            at,
            space,
            start,
            mapping,
            pages,
        };
        faults.ended.insert(thread, ended);
    }
}

impl Ended {
    /// Whether a mapping is a part of this one that stays.
    fn is_left(&self, space: u32, start: u64, mapping: Mapping) -> bool {
        let same = (space, mapping.stack, mapping.kind) == (self.space, self.mapping.stack, self.mapping.kind);
        let end = start.saturating_add(mapping.bytes);
        let inside = start >= self.start && end <= self.start.saturating_add(self.mapping.bytes);
        same && inside && mapping.bytes > 0
    }
}
