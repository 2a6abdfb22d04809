//! Page faults: "Page faults" of the contract, page by page.

use std::collections::{HashMap, HashSet};

use machine::Machine;
use policy::Page;
use trace::{Allocation, Event};

use super::units;

#[derive(Clone, Copy, PartialEq)]
struct Block {
    space: u32,
    start: u64,
    bytes: u64,
    stack: u32,
    kind: Allocation,
}

type Ended = (Block, (usize, u64), HashSet<Page>);

pub struct Faults {
    page_bytes: u64,
    huge_bytes: u64,
    fault_ns: f64,
    clear_ns: f64,
    blocks: Vec<Block>,
    /// Addresses of live blocks of the heap.
    heap: HashSet<(u32, u64)>,
    /// Pages that were touched.
    touched: HashSet<Page>,
    /// Of these, those that were unmapped since.
    unmapped: HashSet<Page>,
    huge: HashSet<(u32, u64)>,
    /// By thread: the block that it ended last, on which cpu, after how many instructions there, and the pages that this
    /// unmapped.
    ended: HashMap<u32, Ended>,
    /// Instructions of each cpu.
    pub passed: Vec<u64>,
}

/// The outcome of a touch.
pub struct Touch {
    pub takes: u64,
    pub again: bool,
}

impl Faults {
    pub fn new(machine: &Machine) -> Option<Faults> {
        let memory = &machine.memory;
        (memory.fault_ns > 0.0).then(|| Faults {
            page_bytes: machine.page_bytes,
            huge_bytes: machine.page_bytes.max(1 << 21),
            fault_ns: memory.fault_ns,
            clear_ns: memory.clear_ns,
            blocks: Vec::new(),
            heap: HashSet::new(),
            touched: HashSet::new(),
            unmapped: HashSet::new(),
            huge: HashSet::new(),
            ended: HashMap::new(),
            passed: vec![0; machine.cpus as usize],
        })
    }

    pub fn touch(&mut self, space: u32, address: u64, huge: bool) -> Option<Touch> {
        let number = address / self.page_bytes;
        let page = Page { space, number };
        let again = self.unmapped.remove(&page);
        let first = self.touched.insert(page);
        if !first && !again {
            return None;
        }
        let before = |block: &&Block| block.space == space && block.start <= address;
        let last = self.blocks.iter().filter(before).max_by_key(|block| block.start);
        if last.is_some_and(|block| block.kind == Allocation::File && address < block.start + block.bytes) {
            return None;
        }
        if huge && !self.huge.insert((space, address / self.huge_bytes)) {
            return None;
        }
        let bytes = if huge { self.huge_bytes } else { self.page_bytes };
        let further = (bytes / 4096).max(1) - 1;
        Some(Touch {
            takes: units(self.fault_ns) + further * units(self.clear_ns),
            again,
        })
    }

    /// Pages that lose their entries in TLBs.
    pub fn event(&mut self, cpu: usize, space: u32, thread: u32, event: &Event) -> Vec<Page> {
        let now = (cpu, self.passed[cpu]);
        match *event {
            Event::Alloc {
                addr: start,
                bytes,
                stack,
                kind,
            } => {
                let block = Block {
                    space,
                    start,
                    bytes,
                    stack,
                    kind,
                };
                if let Some((ended, at, pages)) = self.ended.get_mut(&thread) {
                    let same = (space, stack, kind) == (ended.space, ended.stack, ended.kind);
                    let inside = start >= ended.start && start + bytes <= ended.start + ended.bytes;
                    if *at == now && same && inside && bytes > 0 && bytes < ended.bytes {
                        let (first, last) = (start / self.page_bytes, (start + bytes - 1) / self.page_bytes);
                        pages.retain(|page| {
                            let left = (first..=last).contains(&page.number);
                            if left {
                                self.unmapped.remove(page);
                            }
                            !left
                        });
                    } else {
                        self.ended.remove(&thread);
                    }
                }
                if kind == Allocation::Heap {
                    self.heap.insert((space, start));
                } else if bytes > 0 {
                    self.blocks.retain(|other| (other.space, other.start) != (space, start));
                    self.blocks.push(block);
                }
                Vec::new()
            }
            Event::Free { addr } => {
                self.ended.remove(&thread);
                if self.heap.remove(&(space, addr)) {
                    return Vec::new();
                }
                let Some(at) = (self.blocks.iter()).position(|block| (block.space, block.start) == (space, addr))
                else {
                    return Vec::new();
                };
                let block = self.blocks.remove(at);
                let whole = |page: &&Page| {
                    let from = page.number * self.page_bytes;
                    page.space == space && from >= block.start && from + self.page_bytes <= block.start + block.bytes
                };
                let pages: HashSet<Page> = (self.touched.iter().filter(whole))
                    .filter(|page| !self.unmapped.contains(page))
                    .copied()
                    .collect();
                for page in &pages {
                    self.unmapped.insert(*page);
                    self.huge
                        .remove(&(space, page.number * self.page_bytes / self.huge_bytes));
                }
                self.ended.insert(thread, (block, now, pages.clone()));
                pages.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}
