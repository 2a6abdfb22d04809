//! Addresses that the processor itself samples: IBS of AMD, PEBS of Intel.
//!
//! **What a count would be.** A sampled access that the last cache did not serve, with its address, thread and cpu. Reading
//! such samples is not implemented; [`probe`] says what the processor offers all the same.

use sys::Root;

use super::Probed;

pub const NAME: &str = "hardware";

/// Where the kernel describes a processor's counters that sample addresses, whose they are.
const EVENTS: [(&str, &str); 2] = [
    ("ibs_op", "IBS of this AMD processor"),
    ("cpu/events/mem-loads", "PEBS of this Intel processor"),
];

pub fn probe(root: &Root) -> Probed {
    let offered = EVENTS
        .iter()
        .find(|(path, _)| root.path(&format!("sys/bus/event_source/devices/{path}")).exists());
    Err(match offered {
        Some((_, name)) => format!("{name} could sample addresses; reading its samples is not implemented"),
        None => "the processor samples no addresses, or its hypervisor hides it (neither ibs_op nor mem-loads in \
                 /sys/bus/event_source/devices)"
            .to_string(),
    })
}
