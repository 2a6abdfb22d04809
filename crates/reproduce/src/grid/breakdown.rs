//! The parts of the time (figure 2): combined execution time, overheads, memory's cost per instruction, the bus.

use super::bars::{Drawings, cpus_in_words};
use super::cell::Simulated;
use crate::line::Line;
use crate::paper::Item;
use crate::reproduce::{Reproduction, Section};

type Part = (&'static str, &'static str, fn(&Simulated) -> f64);

/// The reported parts of a simulation, with their units. Parts of time are percent of the combined execution time.
const PARTS: [Part; 18] = [
    ("combined execution time", "ms", |s| s.total as f64 / 1e6),
    ("execution", "percent", |s| part(s, s.busy)),
    ("memory stall", "percent", |s| part(s, s.stall.all() + s.prefetch)),
    ("load imbalance", "percent", |s| part(s, s.imbalance)),
    ("sequential", "percent", |s| part(s, s.sequential)),
    ("synchronization", "percent", |s| part(s, s.synchronization)),
    ("TLB", "percent", |s| part(s, s.tlb)),
    ("MCPI", "cycles", |s| s.per_instruction(s.stall.all())),
    ("MCPI, on-chip misses", "cycles", |s| s.per_instruction(s.stall.on_chip)),
    ("MCPI, replacement", "cycles", |s| {
        s.per_instruction(s.stall.replacement())
    }),
    ("MCPI, of it conflicts", "cycles", |s| {
        s.per_instruction(s.stall.conflict)
    }),
    ("MCPI, true sharing", "cycles", |s| {
        s.per_instruction(s.stall.true_sharing)
    }),
    ("MCPI, false sharing", "cycles", |s| {
        s.per_instruction(s.stall.false_sharing)
    }),
    ("MCPI, upgrades", "cycles", |s| s.per_instruction(s.stall.upgrade)),
    ("bus occupancy", "percent", |s| s.bus.occupancy),
    ("bus, data", "percent", |s| s.bus.data),
    ("bus, writebacks", "percent", |s| s.bus.writebacks),
    ("bus, upgrades", "percent", |s| s.bus.upgrades),
];

fn part(simulated: &Simulated, ns: u64) -> f64 {
    100.0 * ns as f64 / simulated.total.max(1) as f64
}

pub fn lines(reproduction: &Reproduction, item: &Item, drawings: &Drawings, section: &mut Section) {
    for drawn in &drawings.drawn {
        let row = format!("{}, {}", drawn.program, cpus_in_words(drawn.cpus));
        for (column, unit, value) in PARTS {
            let ours = drawn.simulated.as_ref().map(value).map_err(Clone::clone);
            let place = reproduction.place(item, &row, column, unit);
            section.lines.push(Line::new(place, None, ours).of_run(&drawn.run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::cell::Stall;

    #[test]
    fn an_mcpi_of_one_is_half_of_the_time() {
        let simulated = Simulated {
            instructions: 400,
            clock_mhz: 400.0,
            total: 2000,
            busy: 1000,
            stall: Stall {
                on_chip: 100,
                capacity: 500,
                conflict: 300,
                upgrade: 100,
                ..Stall::default()
            },
            ..Simulated::default()
        };
        let value = |name: &str| PARTS.iter().find(|part| part.0 == name).unwrap().2(&simulated);
        assert_eq!((value("MCPI"), value("MCPI, replacement")), (1.0, 0.8));
        assert_eq!((value("execution"), value("memory stall")), (50.0, 50.0));
    }
}
