//! The known facts about an address space: its threads, how long they stay in a region, and the decisions made from that.

use std::collections::{BTreeMap, VecDeque};

use super::phase::Watched;
use results::RegionsVerdict;

#[derive(Default)]
pub(super) struct Space {
    pub verdict: RegionsVerdict,
    /// True if its regions are spread over caches.
    pub spread: bool,
    /// The cache that all of it has.
    pub cache: Option<u32>,
    /// From one change of region to the next, as phases saw it while it was not spread.
    pub confined: Stays,
    /// The latest changes in any phase, as pages of the regions.
    pub changes: VecDeque<(u32, u32)>,
    /// From one move of a thread to the next, the move included, since it was spread.
    pub followed: Stays,
    /// It was spread since the last scan: its caches are being filled.
    pub fills: bool,
    /// How often spreading did not pay, and the number of times caches are given before it is tried again.
    pub failures: u32,
    pub rests: u64,
    pub threads: BTreeMap<u32, Thread>,
    /// Scans that found one of its pages accessed: others passed while it did not run.
    pub scans: u64,
    /// The last of them, as all scans are counted.
    pub found: u64,
}

/// The place where a thread was seen, and the time of its last move, if no phase came in between.
#[derive(Clone, Copy, Default)]
pub(super) struct Thread {
    pub cpu: u32,
    /// The number of scans so far.
    pub seen: u64,
    pub moved_ns: Option<u64>,
}

/// Stays, as far as they were watched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stays {
    pub ns: u64,
    pub changes: u64,
}

impl Stays {
    /// After this many changes the older half is forgotten.
    const MOST: u64 = 32;

    pub fn add(&mut self, ns: u64, changes: u64) {
        self.ns += ns;
        self.changes += changes;
        if self.changes >= Self::MOST {
            (self.ns, self.changes) = (self.ns / 2, self.changes / 2);
        }
    }

    pub fn mean_ns(self) -> Option<u64> {
        self.ns.checked_div(self.changes)
    }
}

impl Space {
    /// A phase has seen it; `found`: by regions that were known before.
    pub fn watched(&mut self, seen: Watched, found: bool) {
        if found && !self.spread {
            self.confined.add(seen.ns, seen.changes.len() as u64);
        }
        self.changes.extend(seen.changes);
        let old = self.changes.len().saturating_sub(Stays::MOST as usize);
        self.changes.drain(..old);
    }

    /// While it was not spread, the time between two changes that are now moves: `moves` says which are.
    pub fn between_moves_ns(&self, moves: impl Fn(u32, u32) -> bool) -> Option<u64> {
        let moved = self.changes.iter().filter(|(from, to)| moves(*from, *to)).count() as u64;
        let all = self.confined.mean_ns()?.saturating_mul(self.changes.len() as u64);
        all.checked_div(moved)
    }

    /// A thread runs on a cpu, after `scans` scans.
    pub fn saw(&mut self, thread: u32, cpu: u32, scans: u64) {
        let thread = self.threads.entry(thread).or_default();
        (thread.cpu, thread.seen) = (cpu, scans);
    }

    /// True if it was in use lately. A process that has ended, or waits for long, needs no cache.
    pub fn is_running(&self, since: u64) -> bool {
        is_recent(self.found, since)
    }

    /// Its threads that ran lately, by number.
    pub fn running(&mut self, since: u64) -> impl Iterator<Item = (u32, &mut Thread)> {
        let threads = self.threads.iter_mut();
        let recent = threads.filter(move |(_, thread)| is_recent(thread.seen, since));
        recent.map(|(&number, thread)| (number, thread))
    }

    /// The cpus of its threads that ran lately, one for each of them.
    pub fn cpus(&self, since: u64) -> impl Iterator<Item = u32> {
        let threads = self.threads.values();
        let recent = threads.filter(move |thread| is_recent(thread.seen, since));
        recent.map(|thread| thread.cpu)
    }
}

/// True if it was seen after that scan; before the first, everything was.
fn is_recent(seen: u64, since: u64) -> bool {
    since == 0 || seen > since
}
