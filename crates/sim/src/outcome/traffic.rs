//! The transfers that occupied the bus.

use results::Bus;

use crate::clock::whole_ns;
use crate::memory::Memory;

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
