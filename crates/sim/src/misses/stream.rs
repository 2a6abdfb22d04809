//! The misses of a run, in the order in which they happened, and the other data of that run for a policy.

use policy::{MissLevel, Page};
use results::Outcome;
use rustc_hash::FxHashMap;

use crate::clock::Units;
use crate::memory::Memory;

/// A miss: 16 bytes, since a sweep reads hundreds of millions of them many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// Nanoseconds in the upper 48 bits (78 hours), then 8 of flags, then 8 of the cpu.
    packed: u64,
    page: u32,
    thread: u32,
}

const CPU_BITS: u32 = 8;
const FLAG_BITS: u32 = 8;
const WRITE: u64 = 1;
const FETCH: u64 = 2;
const TLB: u64 = 4;

impl Miss {
    /// `page`: its number in the stream.
    pub fn new(page: u32, now_ns: u64, of: &policy::Miss) -> Miss {
        let flag = |set: bool, flag: u64| if set { flag } else { 0 };
        let flags = flag(of.write, WRITE) | flag(of.fetch, FETCH) | flag(of.level == MissLevel::Tlb, TLB);
        Miss {
            packed: now_ns << (CPU_BITS + FLAG_BITS) | flags << CPU_BITS | u64::from(of.cpu),
            page,
            thread: of.thread,
        }
    }

    /// The same miss of another page, by another cpu.
    pub fn with(self, page: u32, cpu: u32) -> Miss {
        Miss {
            packed: self.packed & !((1 << CPU_BITS) - 1) | u64::from(cpu),
            page,
            thread: self.thread,
        }
    }

    #[inline(always)]
    pub fn now_ns(self) -> u64 {
        self.packed >> (CPU_BITS + FLAG_BITS)
    }

    #[inline(always)]
    pub fn cpu(self) -> u32 {
        (self.packed & ((1 << CPU_BITS) - 1)) as u32
    }

    #[inline(always)]
    pub fn page(self) -> u32 {
        self.page
    }

    #[inline(always)]
    pub fn thread(self) -> u32 {
        self.thread
    }

    #[inline(always)]
    fn has(self, flag: u64) -> bool {
        self.packed >> CPU_BITS & flag != 0
    }

    pub fn is_write(self) -> bool {
        self.has(WRITE)
    }

    pub fn is_fetch(self) -> bool {
        self.has(FETCH)
    }

    pub fn is_of_tlb(self) -> bool {
        self.has(TLB)
    }

    pub fn level(self) -> MissLevel {
        if self.is_of_tlb() {
            MissLevel::Tlb
        } else {
            MissLevel::Cache
        }
    }
}

/// The first touch of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    pub page: Page,
    pub thread: u32,
    pub cpu: u32,
    pub write: bool,
}

/// A run under first touch, as policies of homes see it.
#[derive(Clone, Debug, Default)]
pub struct MissStream {
    /// The pages in the order of their first touch, which numbers them.
    pub pages: Vec<FirstTouch>,
    pub misses: Vec<Miss>,
    /// The outcome of the simulation of that run.
    pub run: Outcome,
    /// The number of each page.
    numbers: FxHashMap<Page, u32>,
    /// Misses that reached memory in that run, of each cpu by the node that served them.
    served: FxHashMap<(u32, u32), u64>,
}

impl MissStream {
    /// A page is touched for the first time; returns its number.
    pub fn touch(&mut self, touch: FirstTouch) -> u32 {
        let number = self.pages.len() as u32;
        self.numbers.insert(touch.page, number);
        self.pages.push(touch);
        number
    }

    /// A miss at a moment. One on a page that was never touched is passed over.
    pub fn miss(&mut self, now_ns: u64, miss: &policy::Miss) {
        let Some(&page) = self.numbers.get(&miss.page) else {
            return;
        };
        if miss.level == MissLevel::Cache {
            *self.served.entry((miss.cpu, miss.served_by)).or_default() += 1;
        }
        self.misses.push(Miss::new(page, now_ns, miss));
    }

    /// Other pages, which are numbered by their order.
    pub(super) fn renumber(&mut self, pages: Vec<FirstTouch>) {
        self.numbers = pages.iter().map(|touch| touch.page).zip(0..).collect();
        self.pages = pages;
    }

    /// The number of a page; `near` is the first guess.
    pub fn number_of(&self, page: Page, near: usize) -> Option<usize> {
        if self.pages.get(near).is_some_and(|touch| touch.page == page) {
            return Some(near);
        }
        self.numbers.get(&page).map(|&number| number as usize)
    }

    /// The time of a cpu's misses in that run by the latencies alone.
    pub fn latencies(&self, cpu: u32, node: u32, memory: &Memory) -> Units {
        let own = self.served.iter().filter(|((by, _), _)| *by == cpu);
        own.map(|(&(_, from), count)| count * memory.latency(node, from)).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const READ: (MissLevel, bool, bool) = (MissLevel::Cache, false, false);
    pub const WRITE: (MissLevel, bool, bool) = (MissLevel::Cache, true, false);
    pub const FETCH: (MissLevel, bool, bool) = (MissLevel::Cache, false, true);
    pub const TLB: (MissLevel, bool, bool) = (MissLevel::Tlb, false, false);

    /// A stream by hand: `pages` pages, and misses of page, cpu and kind, a microsecond apart.
    pub fn stream(pages: u64, misses: &[(u64, u32, (MissLevel, bool, bool))]) -> MissStream {
        let mut stream = MissStream::default();
        let page = |number| Page { space: 0, number };
        for number in 0..pages {
            stream.touch(FirstTouch {
                page: page(number),
                thread: 0,
                cpu: 0,
                write: false,
            });
        }
        for (at, &(number, cpu, (level, write, fetch))) in (0..).zip(misses) {
            let miss = policy::Miss {
                level,
                page: page(number),
                index: number as u32,
                thread: cpu,
                cpu,
                served_by: 0,
                write,
                fetch,
            };
            stream.miss(at * 1000, &miss);
        }
        stream
    }

    #[test]
    fn a_miss_is_packed_without_loss() {
        for (level, write, fetch) in [
            (MissLevel::Cache, true, false),
            (MissLevel::Tlb, false, true),
            (MissLevel::Tlb, true, false),
            (MissLevel::Cache, false, false),
        ] {
            let of = policy::Miss {
                level,
                page: Page { space: 3, number: 9 },
                index: 77,
                thread: u32::MAX,
                cpu: 127,
                served_by: 0,
                write,
                fetch,
            };
            let now = (1 << 48) - 1;
            let miss = Miss::new(77, now, &of);
            assert_eq!((miss.now_ns(), miss.page(), miss.cpu()), (now, 77, 127));
            assert_eq!((miss.thread(), miss.level()), (u32::MAX, level));
            assert_eq!((miss.is_write(), miss.is_fetch()), (write, fetch));
        }
    }
}
