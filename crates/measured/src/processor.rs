//! How a cpu overlaps: how many lines it has on their way at once and how many instructions under way, how fast it walks through memory
//! in order, how many instructions it carries out in a clock, how fast lines come to one set of the first cache, how long
//! a line takes from one cpu to another, and what a page fault takes.
//!
//! These figures are what a model of a processor needs beyond capacities and latencies. They take
//! seconds, so only `domicile probe` measures them; whoever describes this machine takes what is
//! [kept](kept).

mod chains;
mod faults;
mod pace;
mod sets;
mod stream;
mod transfer;
mod window;

use serde::{Deserialize, Serialize};

use super::saved::Identity;
use super::{Effort, Point, saved};
use machine::HostReport;

use chains::Room;

pub use chains::Chains;
pub use faults::Faults;
pub use pace::Pace;
pub use sets::Sets;
pub use stream::Stream;
pub use transfer::Transfer;

/// What was measured of one cpu, and between two.
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
    pub stream: Stream,
    /// A load from memory over the distance to the load before, where each waits for that one: bytes apart, in order.
    pub strides: Vec<Point>,
    /// A line handed from cpu to cpu, for each kind of neighbour; none on one cpu.
    pub transfers: Vec<Transfer>,
}

impl Processor {
    /// Lines of one cpu that were on their way at once: the best of the chains.
    ///
    /// It is the ratio of a load's time alone and among others (McVoy and Staelin's `lat_mem_rd` against `par_mem`).
    pub fn lines_at_once(&self) -> f64 {
        let alone = self.chains.first().map_or(0.0, |chains| chains.ns);
        let best = self.chains.iter().map(|chains| chains.ns).fold(alone, f64::min);
        if best > 0.0 { alone / best } else { 1.0 }
    }
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

/// Measures now, and keeps nothing.
pub fn measure(host: &HostReport, effort: Effort) -> Processor {
    let room = Room::new();
    Processor {
        pace: pace::pace(effort),
        sets: sets::sets(host, effort),
        faults: faults::faults(host, effort),
        chains: chains::chains(&room, effort),
        window: window::window(&room, effort),
        stream: stream::stream(host.machine.cpus, effort),
        strides: stream::strides(effort),
        transfers: transfer::transfers(host, effort),
    }
}

/// Rounds of each trial, of which the median counts.
fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 3,
        Effort::Careful => 7,
    }
}

/// The middle one, which a busy moment does not move.
pub(crate) fn median(mut seen: Vec<f64>) -> f64 {
    seen.sort_by(f64::total_cmp);
    seen.get(seen.len() / 2).copied().unwrap_or(0.0)
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
