//! Time: counted in units of 2^-20 nanoseconds, in integers, so that sums are exact and do not
//! depend on the order in which they are made.

use crate::counts::CLASSES;

/// A duration or a moment, in units of 2^-20 ns; 64 bits are almost five hours.
pub type Units = u64;

const PER_NS: f64 = (1u64 << 20) as f64;

/// The nearest whole number of units.
pub fn units(ns: f64) -> Units {
    (ns * PER_NS).round() as Units
}

/// Whole nanoseconds, rounded down.
pub fn whole_ns(time: Units) -> u64 {
    time >> 20
}

/// How a cpu's time is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub busy: Units,
    pub cache: Units,
    pub local: Units,
    pub remote: Units,
    pub tlb: Units,
    pub policy: Units,
    /// For pages that were not there.
    pub faults: Units,
    /// For room among the prefetches that are under way.
    pub prefetch: Units,
    pub imbalance: Units,
    pub sequential: Units,
    pub synchronization: Units,
    /// Part of `cache`, `local` and `remote`: for lines that no cache on the path held, by the class of the outermost
    /// cache's miss; the last entry counts misses without a class.
    pub beyond: [Units; CLASSES + 1],
}

impl Spent {
    pub fn total(&self) -> Units {
        let waits = self.imbalance + self.sequential + self.synchronization;
        self.busy + self.stall() + self.tlb + self.policy + self.faults + self.prefetch + waits
    }

    pub fn add(&mut self, other: &Spent) {
        self.busy += other.busy;
        self.cache += other.cache;
        self.local += other.local;
        self.remote += other.remote;
        self.tlb += other.tlb;
        self.policy += other.policy;
        self.faults += other.faults;
        self.prefetch += other.prefetch;
        self.imbalance += other.imbalance;
        self.sequential += other.sequential;
        self.synchronization += other.synchronization;
        for (sum, beyond) in self.beyond.iter_mut().zip(other.beyond) {
            *sum += beyond;
        }
    }

    /// The time that references waited for caches and memory.
    pub fn stall(&self) -> Units {
        self.cache + self.local + self.remote
    }
}

/// The place in [`Spent::beyond`] of misses without a class.
pub const UNCLASSED: usize = CLASSES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nanosecond_is_two_to_the_twentieth_units() {
        assert_eq!(units(1.0), 1 << 20);
        assert_eq!(units(1000.0 / 75.0), 13_981_013);
        assert_eq!(whole_ns(units(2.0) - 1), 1);
    }
}
