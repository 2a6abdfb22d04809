//! The class of each miss of one cache instance, from sets of lines and words and a second,
//! fully associative cache.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Cold,
    Capacity,
    Conflict,
    TrueSharing,
    FalseSharing,
}

/// A miss whose class is known.
#[derive(Clone, Copy, Debug)]
pub struct ClassedMiss {
    /// The cpu that it counts for.
    pub cpu: u32,
    pub class: Class,
    /// Its stall of that cpu as far as that was known, and the part of it for lines that no cache on the path served.
    pub stall: u64,
    pub beyond: u64,
    /// True if it counts at all.
    pub counts: bool,
}

impl ClassedMiss {
    fn new(cpu: u32, class: Class) -> ClassedMiss {
        ClassedMiss {
            cpu,
            class,
            stall: 0,
            beyond: 0,
            counts: true,
        }
    }
}

#[derive(Default)]
pub struct Classes {
    /// Lines of the fully associative cache of the same size, the one to evict first in front.
    fully: Vec<u64>,
    capacity: usize,
    /// Lines of others that it took in.
    others: u64,
    /// Lines that were looked up before.
    seen: HashSet<u64>,
    /// Lines lost to an invalidation and not held since.
    invalidated: HashSet<u64>,
    /// Words (address / 4) of a line that others wrote since the last essential miss.
    pub written: HashMap<u64, HashSet<u64>>,
    /// Held lines whose sharing miss is not decided yet (the class means nothing).
    undecided: HashMap<u64, ClassedMiss>,
}

impl Classes {
    pub fn new(capacity: usize) -> Classes {
        Classes {
            capacity,
            ..Classes::default()
        }
    }

    /// The instance looks the line up. `takes`: it will hold the line if it misses.
    pub fn look_up(&mut self, cpu: u32, line: u64, words: Range<u64>, hit: bool, takes: bool) -> Option<ClassedMiss> {
        let (cold, fully_hit) = self.would_be_looked_up(line, takes);
        if hit {
            return None;
        }
        if self.invalidated.contains(&line) && !cold {
            if self.meets(line, words) {
                self.written.remove(&line);
                return Some(ClassedMiss::new(cpu, Class::TrueSharing));
            }
            if takes {
                self.undecided.insert(line, ClassedMiss::new(cpu, Class::FalseSharing));
                return None;
            }
            return Some(ClassedMiss::new(cpu, Class::FalseSharing));
        }
        self.written.remove(&line);
        let class = match (cold, fully_hit) {
            (true, _) => Class::Cold,
            (false, true) => Class::Conflict,
            (false, false) => Class::Capacity,
        };
        Some(ClassedMiss::new(cpu, class))
    }

    /// The trace that a lookup leaves. Returns whether it is the first of the line, and whether the fully associative
    /// cache has it.
    pub fn would_be_looked_up(&mut self, line: u64, takes: bool) -> (bool, bool) {
        let cold = self.seen.insert(line);
        let fully_hit = self.fully.contains(&line);
        if fully_hit || takes {
            self.fully.retain(|held| *held != line);
            self.fully.push(line);
            if self.fully.len() > self.capacity {
                self.fully.remove(0);
            }
        }
        (cold, fully_hit)
    }

    /// Number of lines of others that have come in all.
    pub fn others(&mut self, came: u64) {
        let fresh = came.saturating_sub(self.others).min(self.capacity as u64);
        self.others = self.others.max(came);
        for _ in 0..fresh {
            self.fully.push(u64::MAX);
            if self.fully.len() > self.capacity {
                self.fully.remove(0);
            }
        }
    }

    fn meets(&self, line: u64, mut words: Range<u64>) -> bool {
        let written = self.written.get(&line);
        written.is_some_and(|written| words.any(|word| written.contains(&word)))
    }

    /// A cpu below the instance accesses words of the line, in whichever cache it finds it.
    pub fn accessed(&mut self, line: u64, words: Range<u64>) -> Option<ClassedMiss> {
        if self.undecided.contains_key(&line) && self.meets(line, words) {
            self.written.remove(&line);
            return self.decide(line, Class::TrueSharing);
        }
        None
    }

    /// A cpu off the instance writes words of the line.
    pub fn written_elsewhere(&mut self, line: u64, words: Range<u64>) {
        self.written.entry(line).or_default().extend(words);
    }

    pub fn taken(&mut self, line: u64) {
        self.invalidated.remove(&line);
    }

    /// The instance loses the line.
    pub fn lost(&mut self, line: u64, by_invalidation: bool) -> Option<ClassedMiss> {
        if by_invalidation {
            self.invalidated.insert(line);
            self.fully.retain(|held| *held != line);
        }
        self.decide(line, Class::FalseSharing)
    }

    /// Forgets all about the line.
    pub fn forget(&mut self, line: u64) {
        self.fully.retain(|held| *held != line);
        self.seen.remove(&line);
        self.invalidated.remove(&line);
        self.written.remove(&line);
    }

    /// Counting ends: an undecided miss was false sharing, whatever it turns out to be later.
    pub fn end(&mut self) -> Vec<ClassedMiss> {
        let class = Class::FalseSharing;
        let misses = self
            .undecided
            .values()
            .map(|miss| ClassedMiss { class, ..*miss })
            .collect();
        self.discard();
        misses
    }

    fn decide(&mut self, line: u64, class: Class) -> Option<ClassedMiss> {
        self.undecided.remove(&line).map(|miss| ClassedMiss { class, ..miss })
    }

    /// Undecided misses will not count.
    pub fn discard(&mut self) {
        self.undecided.values_mut().for_each(|miss| miss.counts = false);
    }

    /// Adds the stall of the cpu by the miss that has just been made. Returns whether its class is not known yet.
    pub fn stalled(&mut self, line: u64, stall: u64, beyond: u64) -> bool {
        let undecided = self.undecided.get_mut(&line);
        undecided.is_some_and(|miss| {
            miss.stall += stall;
            miss.beyond += beyond;
            true
        })
    }
}
