//! A process as it was in the last intervals: medians, so that one odd reading decides nothing.

use std::collections::VecDeque;

use super::{Patience, Process};

/// Number of intervals of which a median is taken; nothing is decided about a process that was seen in fewer.
pub const WINDOW: usize = 3;

/// Processes keep their places for five intervals.
pub const PATIENCE: Patience = Patience { least: 5 };

/// Readings of a process, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lately {
    bytes: VecDeque<u64>,
    busy: VecDeque<u32>,
    placed: Option<Vec<u32>>,
    since: u32,
}

impl Default for Lately {
    fn default() -> Lately {
        Lately {
            bytes: VecDeque::new(),
            busy: VecDeque::new(),
            placed: None,
            since: u32::MAX,
        }
    }
}

impl Lately {
    /// An interval is over. The working set may not have been read.
    pub fn tell(&mut self, bytes: Option<u64>, busy: u32) {
        keep(&mut self.busy, busy);
        if let Some(bytes) = bytes {
            keep(&mut self.bytes, bytes);
        }
        self.since = self.since.saturating_add(1);
    }

    /// True once it was seen for long enough.
    pub fn is_known(&self) -> bool {
        self.busy.len() >= WINDOW
    }

    /// Its working set; `None` before the first reading.
    pub fn bytes(&self) -> Option<u64> {
        median(&self.bytes)
    }

    /// Cpus that it would keep busy, in thousandths.
    pub fn busy(&self) -> u32 {
        median(&self.busy).unwrap_or(0)
    }

    /// The domains that it was given.
    pub fn placed(&self) -> Option<&[u32]> {
        self.placed.as_deref()
    }

    /// It has these domains from now on; `None`: it is free.
    pub fn place(&mut self, domains: Option<Vec<u32>>) {
        (self.placed, self.since) = (domains, 0);
    }

    /// It is free, for a reason that is not a decision.
    pub fn lose_place(&mut self) {
        self.placed = None;
    }

    /// The process for a decision; the caller says what it may use, where it was seen, and whether it may be moved.
    pub fn process(&self, cpus: Vec<u32>, seen: Option<u32>) -> Process {
        Process {
            bytes: self.bytes().unwrap_or(0),
            busy: self.busy(),
            cpus,
            seen,
            placed: self.placed.clone(),
            since: self.since,
            preferred: false,
            // One that has just begun counts, and is not moved yet.
            fixed: !self.is_known(),
        }
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T) {
    all.push_back(one);
    while all.len() > WINDOW {
        all.pop_front();
    }
}

fn median<T: Copy + Ord>(of: &VecDeque<T>) -> Option<T> {
    let mut sorted: Vec<T> = of.iter().copied().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}
