//! What occupied the bus, and what became of the program's prefetches.

use results::{Bus, Prefetches};

use crate::clock::whole_ns;
use crate::memory::Memory;
use crate::software_prefetch::PrefetchCounts;

pub fn bus(memory: &Memory, nodes: u32, wall_ns: u64) -> Bus {
    let [data, writebacks, upgrades] = memory.occupied().map(whole_ns);
    let all = (data + writebacks + upgrades) as f64;
    Bus {
        data,
        writebacks,
        upgrades,
        occupancy_percent: match wall_ns {
            0 => 0.0,
            wall => 100.0 * all / (wall as f64 * f64::from(nodes)),
        },
    }
}

pub fn prefetches(counts: &PrefetchCounts) -> Prefetches {
    Prefetches {
        issued: counts.issued,
        dropped_tlb: counts.dropped_tlb,
        dropped_unmapped: counts.dropped_unmapped,
        already_present: counts.already_present,
        brought: counts.brought,
        useful: counts.useful,
        late: counts.late,
    }
}
