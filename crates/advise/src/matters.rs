//! The matters that could make a difference to a program, judged by one run: only these are simulated further.

use machine::Machine;
use results::{Outcome, Stall};

use crate::words::NOTHING;

/// The causes of waiting that take at least one percent of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matters {
    /// Conflicts in caches whose sets depend on the frames of pages.
    pub colors: bool,
    /// Memory of other nodes.
    pub homes: bool,
    /// Lines that the outermost such cache has lost.
    pub slots: bool,
}

impl Matters {
    /// Everything, if requested.
    pub const ALL: Matters = Matters {
        colors: true,
        homes: true,
        slots: true,
    };

    /// `with_colors`: whether page colors have an effect on the machine.
    pub fn of(machine: &Machine, with_colors: bool, base: &Outcome) -> Matters {
        let worked = base.time_ns.worked().max(1) as f64;
        let matters = |ns: u64| ns as f64 / worked >= NOTHING;
        let colored = machine
            .caches
            .iter()
            .filter(|cache| with_colors && machine.colors(cache) > 1);
        let stalls = colored.filter_map(|cache| {
            let same = base.caches.iter().find(|of| of.name == cache.name)?;
            Some(&same.stall_ns)
        });
        let stalls: Vec<&Stall> = stalls.collect();
        // If misses have no classes, any may be a conflict.
        let conflicts = |stall: &&Stall| stall.conflict.unwrap_or(stall.miss);
        let lost = |stall: &&Stall| stall.miss - stall.cold.unwrap_or(0).min(stall.miss);
        Matters {
            colors: matters(stalls.iter().map(conflicts).sum()),
            homes: machine.memory.all_nodes() > 1 && matters(base.time_ns.remote_stall),
            slots: stalls.last().is_some_and(|outer| matters(lost(outer))),
        }
    }
}
