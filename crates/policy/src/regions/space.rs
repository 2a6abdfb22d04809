//! What is known of an address space: its threads, how long they stay in a region, and what was made of that.

use std::collections::BTreeMap;

use super::phase::Watched;
use results::RegionsVerdict;

#[derive(Default)]
pub(super) struct Space {
    pub verdict: RegionsVerdict,
    /// Whether its regions are spread over caches.
    pub spread: bool,
    /// The cache that all of it has.
    pub cache: Option<u32>,
    /// From one change of region to the next, as phases saw it while it was not spread.
    pub confined: Stays,
    /// From one move of a thread to the next, the move included, since it was spread.
    pub followed: Stays,
    /// It was spread since the last scan: its caches are being filled.
    pub fills: bool,
    /// How often spreading did not pay, and how many more times caches are given before it is tried again.
    pub failures: u32,
    pub rests: u64,
    pub threads: BTreeMap<u32, Thread>,
    /// Scans that found one of its pages accessed: others passed while it did not run.
    pub scans: u64,
}

/// Where a thread was seen, and when it was moved last, if no phase came in between.
#[derive(Clone, Copy, Default)]
pub(super) struct Thread {
    pub cpu: u32,
    pub moved_ns: Option<u64>,
}

/// Stays, as far as they were watched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stays {
    pub ns: u64,
    pub changes: u64,
}

impl Stays {
    /// With so many changes the older half is forgotten.
    const MOST: u64 = 32;

    pub fn add(&mut self, seen: Watched) {
        self.ns += seen.ns;
        self.changes += seen.changes;
        if self.changes >= Self::MOST {
            (self.ns, self.changes) = (self.ns / 2, self.changes / 2);
        }
    }

    pub fn mean_ns(self) -> Option<u64> {
        self.ns.checked_div(self.changes)
    }
}

impl Space {
    /// A thread touches something on a cpu.
    pub fn saw(&mut self, thread: u32, cpu: u32) {
        self.threads.entry(thread).or_default().cpu = cpu;
    }

    /// Threads on a cpu, as far as it is known.
    pub fn threads_on(&self, cpu: u32) -> usize {
        self.threads.values().filter(|thread| thread.cpu == cpu).count()
    }
}
