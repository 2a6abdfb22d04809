//! How a cpu overlaps: how many lines it has on their way at once and how many instructions under way, how fast it walks through memory
//! in order, how many instructions it carries out in a clock, how fast lines come to one set of the first cache, how long
//! a line takes from one cpu to another, and what a page fault takes.
//!
//! A model of a processor needs these figures beyond capacities and latencies. They take seconds, so only
//! `domicile probe` measures them; descriptions of this machine take the [kept](kept) ones.

mod chains;
mod faults;
mod pace;
mod pairs;
mod sets;
mod stream;
mod transfer;
mod walks;
mod window;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::saved::Identity;
use super::{CoreShare, Effort, Point, saved};
use machine::{HostReport, Kind};

use chains::{BYTES, Room};

use crate::chase::Lines;
use crate::rounds::{median, rounds};

pub use chains::Chains;
pub use faults::Faults;
pub use pace::Pace;
pub use pairs::Pairs;
pub use sets::Sets;
pub use stream::Stream;
pub use transfer::Transfer;
pub use walks::Walks;

/// The measurements of one cpu, and between two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Instructions that are under way while a load waits for memory; none where that is not known.
    pub window: Option<u32>,
    pub pace: Pace,
    /// Turns of a set of the first cache.
    #[serde(default)]
    pub sets: Sets,
    #[serde(default)]
    pub faults: Faults,
    /// Nanoseconds of a load from memory while 1, 2 ... 32 chains of loads are followed at once.
    pub chains: Vec<Chains>,
    /// The same of loads of all lines, and of lines whose numbers are the same modulo 4. It does not matter here where
    /// a line is found.
    #[serde(default)]
    pub chains_of_all: Vec<Chains>,
    #[serde(default)]
    pub chains_of_bank: Vec<Chains>,
    /// Of lines side by side.
    #[serde(default)]
    pub pairs: Pairs,
    /// Of some lines in order.
    #[serde(default)]
    pub walks: Walks,
    pub stream: Stream,
    /// A load from memory over the distance to the load before, when each waits for that one: bytes apart, in order.
    pub strides: Vec<Point>,
    /// A line handed from cpu to cpu, for each kind of neighbour; none on one cpu.
    pub transfers: Vec<Transfer>,
}

impl Processor {
    /// Lines of one cpu that were on their way at once: the best of the chains.
    ///
    /// It is the ratio of a load's time alone and among others (McVoy and Staelin's `lat_mem_rd` against `par_mem`).
    pub fn lines_at_once(&self) -> f64 {
        at_once(&self.chains).max(at_once(&self.chains_of_all))
    }

    /// The same for lines whose numbers are the same modulo 4, if these are clearly fewer.
    pub fn lines_of_bank_at_once(&self) -> Option<f64> {
        let lines = at_once(&self.chains_of_bank);
        (!self.chains_of_bank.is_empty() && lines < 0.75 * self.lines_at_once()).then_some(lines)
    }
}

fn at_once(chains: &[Chains]) -> f64 {
    let alone = chains.first().map_or(0.0, |chains| chains.ns);
    let best = chains.iter().map(|chains| chains.ns).fold(alone, f64::min);
    if best > 0.0 { alone / best } else { 1.0 }
}

const NAME: &str = "processor.toml";

/// The figures of this machine that were kept since its last boot; none where it was not measured.
pub fn kept() -> Option<Processor> {
    saved::kept(NAME, &Identity::of(&sys::Root::default()), Effort::Quick)
}

/// The figures kept with at least this effort, else measured now and kept; with `afresh` measured in any case.
pub fn processor(host: &HostReport, effort: Effort, afresh: bool) -> Processor {
    let machine = Identity::of(&sys::Root::default());
    let known = (!afresh).then(|| saved::kept(NAME, &machine, effort)).flatten();
    if let Some(known) = known {
        return known;
    }
    let fresh = measure(host, effort);
    if let Some(folder) = saved::folder() {
        // A figure that cannot be kept is measured again the next time: nothing is lost but time.
        let _ = saved::store(&folder, NAME, &machine, effort, &fresh);
    }
    fresh
}

/// All waits for a whole core together, while a processor is measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures now, and keeps nothing. A core that another guest has a part of has fewer units, and a smaller window: what
/// belongs to the core is measured while it is whole, as far as that comes about within half a minute.
pub fn measure(host: &HostReport, effort: Effort) -> Processor {
    let mut core = CoreShare::with_patience(PATIENCE);
    let room = Room::of(Lines::Apart, BYTES);
    let first = Memory::measure(&room, host, &mut core, effort);
    let (pace, sets, faults) = (
        pace::pace(&mut core, effort),
        sets::sets(host, &mut core, effort),
        faults::faults(host, effort),
    );
    let window = window::window(&room, &mut core, effort);
    let transfers = transfer::transfers(host, effort);
    let memory = first.better_of(Memory::measure(&room, host, &mut core, effort));
    Processor {
        window,
        pace,
        sets,
        faults,
        pairs: pairs::pairs(&mut core, effort),
        walks: walks::walks(effort),
        chains: memory.chains,
        chains_of_all: memory.chains_of_all,
        chains_of_bank: memory.chains_of_bank,
        stream: memory.stream,
        strides: memory.strides,
        transfers,
    }
}

/// The rate at which memory delivers lines that a core asks for ahead. That shows only while nobody else uses memory,
/// and neighbors of a virtual machine are busy for seconds. So it is measured twice, with the other figures in between,
/// and the faster time of each point counts.
struct Memory {
    stream: Stream,
    chains: Vec<Chains>,
    chains_of_all: Vec<Chains>,
    chains_of_bank: Vec<Chains>,
    strides: Vec<Point>,
}

impl Memory {
    fn measure(room: &Room, host: &HostReport, core: &mut CoreShare, effort: Effort) -> Memory {
        Memory {
            // This goes first: it leaves none of the room's lines in the caches.
            stream: stream::stream(host.machine.cpus, beyond_second(host), effort),
            chains: chains::chains(room, core, effort),
            chains_of_all: chains::chains(&Room::of(Lines::All, BYTES), core, effort),
            chains_of_bank: chains::chains(&Room::of(Lines::OfBank, BYTES / 4), core, effort),
            strides: stream::strides(effort),
        }
    }

    fn better_of(mut self, other: Memory) -> Memory {
        self.stream.one_cpu_gbps = self.stream.one_cpu_gbps.max(other.stream.one_cpu_gbps);
        self.stream.all_cpus_gbps = self.stream.all_cpus_gbps.max(other.stream.all_cpus_gbps);
        self.stream.last_level_gbps = self.stream.last_level_gbps.max(other.stream.last_level_gbps);
        // Medians of both times: of a busy moment too, as programs meet it.
        for (ns, other) in [
            (&mut self.stream.memory_line_ns, other.stream.memory_line_ns),
            (&mut self.stream.huge_memory_line_ns, other.stream.huge_memory_line_ns),
        ] {
            *ns = match *ns > 0.0 && other > 0.0 {
                true => f64::midpoint(*ns, other),
                false => ns.max(other),
            };
        }
        for (chains, others) in [
            (&mut self.chains, other.chains),
            (&mut self.chains_of_all, other.chains_of_all),
            (&mut self.chains_of_bank, other.chains_of_bank),
        ] {
            for (at, other) in chains.iter_mut().zip(others) {
                at.ns = at.ns.min(other.ns);
            }
        }
        for (at, other) in self.strides.iter_mut().zip(other.strides) {
            at.ns = at.ns.min(other.ns);
        }
        self
    }
}

/// Twice the capacity of the caches before a third level, if that has four times as much; else 0.
fn beyond_second(host: &HostReport) -> u64 {
    let data = || {
        host.machine
            .caches
            .iter()
            .filter(|cache| cache.kind != Kind::Instruction)
    };
    let second = data().filter(|cache| cache.level == 2).map(|cache| cache.bytes).max();
    let third = data().filter(|cache| cache.level >= 3).map(|cache| cache.bytes).max();
    match (second, third) {
        (Some(second), Some(third)) if third >= 4 * second => 2 * second,
        _ => 0,
    }
}

/// The least, since other work can only slow them down.
fn least(seen: Vec<f64>) -> f64 {
    seen.into_iter().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parallelism_is_that_of_the_best_number_of_chains() {
        let chains = |chains, ns| Chains { chains, ns };
        let processor = Processor {
            pace: Pace::default(),
            sets: Sets::default(),
            faults: Faults::default(),
            chains: vec![chains(1, 100.0), chains(4, 26.0), chains(8, 20.0), chains(16, 25.0)],
            window: None,
            chains_of_all: Vec::new(),
            chains_of_bank: Vec::new(),
            pairs: Pairs::default(),
            walks: Walks::default(),
            stream: Stream::default(),
            strides: Vec::new(),
            transfers: Vec::new(),
        };
        assert_eq!(processor.lines_at_once(), 5.0);
    }

    #[test]
    fn this_machine_is_measured_whole() {
        let host = machine::host(&sys::Root::default()).unwrap();
        let processor = measure(&host, Effort::Quick);
        assert!(processor.lines_at_once() >= 1.0, "{processor:?}");
        assert!(processor.pace.clock_mhz > 0.0, "{processor:?}");
        assert!(
            processor.stream.one_cpu_gbps > 0.0 && processor.stream.all_cpus_gbps > 0.0,
            "{processor:?}"
        );
        assert!(processor.strides.iter().all(|point| point.ns > 0.0), "{processor:?}");
        assert!(
            processor.transfers.iter().all(|transfer| transfer.ns > 0.0),
            "{processor:?}"
        );
    }
}
