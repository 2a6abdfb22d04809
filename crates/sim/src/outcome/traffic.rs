//! What occupied the bus, and what became of the program's prefetches.

use serde::Serialize;

use crate::clock::whole_ns;
use crate::memory::Memory;
use crate::software_prefetch::PrefetchCounts;

/// Nanoseconds that memory, or the bus, was occupied, all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BusOutcome {
    /// By blocks that cpus asked for: misses, prefetches, and what other cpus' caches supplied.
    pub data: u64,
    /// By blocks on their way to memory: dirty lines, and writes that no cache keeps.
    pub writebacks: u64,
    /// By requests to write a line that others hold (`memory.upgrade_ns` of the machine).
    pub upgrades: u64,
    /// The three together, in percent of the wall clock's time (of each node's). What is still on its way at the end
    /// counts too.
    pub occupancy_percent: f64,
}

impl BusOutcome {
    pub fn new(memory: &Memory, nodes: u32, wall_ns: u64) -> BusOutcome {
        let [data, writebacks, upgrades] = memory.occupied().map(whole_ns);
        let all = (data + writebacks + upgrades) as f64;
        BusOutcome {
            data,
            writebacks,
            upgrades,
            occupancy_percent: match wall_ns {
                0 => 0.0,
                wall => 100.0 * all / (wall as f64 * f64::from(nodes)),
            },
        }
    }
}

/// Prefetches of the program: `issued` is the sum of `dropped_tlb`, `dropped_unmapped`, `already_present` and `brought`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PrefetchOutcome {
    pub issued: u64,
    /// The TLB did not have the page.
    pub dropped_tlb: u64,
    /// The page had no frame (or was closed to the cpu), and there is no TLB to tell.
    pub dropped_unmapped: u64,
    /// A cache of the cpu held the line, or it was on its way there.
    pub already_present: u64,
    /// Lines that came, or were on their way at the end.
    pub brought: u64,
    /// Of those, the ones that a reference found before they left again; of a cpu: found by it first.
    pub useful: u64,
    /// Of `useful`: those that the reference still had to wait for.
    pub late: u64,
}

impl PrefetchOutcome {
    pub fn of(counts: &PrefetchCounts) -> PrefetchOutcome {
        PrefetchOutcome {
            issued: counts.issued,
            dropped_tlb: counts.dropped_tlb,
            dropped_unmapped: counts.dropped_unmapped,
            already_present: counts.already_present,
            brought: counts.brought,
            useful: counts.useful,
            late: counts.late,
        }
    }

    pub fn plus(self, other: PrefetchOutcome) -> PrefetchOutcome {
        PrefetchOutcome {
            issued: self.issued + other.issued,
            dropped_tlb: self.dropped_tlb + other.dropped_tlb,
            dropped_unmapped: self.dropped_unmapped + other.dropped_unmapped,
            already_present: self.already_present + other.already_present,
            brought: self.brought + other.brought,
            useful: self.useful + other.useful,
            late: self.late + other.late,
        }
    }
}
