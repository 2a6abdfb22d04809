//! The threads that share data, those that belong under one cache, and the gain of that placement on a machine with
//! several caches for several cpus each.
//!
//! The graph and the groups show candidates. The simulation decides: the threads placed in their order, each group
//! under its own cache, and all of them spread over the caches.

mod file;
mod forms;
mod groups;
mod places;
mod verdict;

use results::{Outcome, SharingAdvice, ThreadPlacement};
use sim::{Config, Detail, Sharing, SimError};
use trace::Trace;

use crate::settings::Settings;
use crate::words::{NOTHING, saved};
use places::Caches;

pub use file::placement;
pub use forms::{PlacementForm, placement_text};

/// Names of the placements that are simulated.
const IN_ORDER: &str = "in order";
const GROUPED: &str = "grouped";
const SPREAD: &str = "spread";

/// `None` if the machine has no choice of caches, or no threads share a cache.
pub fn advice(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    sharing: &Sharing,
) -> Result<Option<SharingAdvice>, SimError> {
    let machine = &config.machine;
    let Some(cache) = machine
        .divided_cache_for(trace.threads().len())
        .filter(|_| trace.threads().len() > 1)
    else {
        return Ok(None);
    };
    let caches = Caches {
        count: machine.cpus / cache.cpus_per_instance,
        cpus: cache.cpus_per_instance,
    };
    let threads = trace.threads().len() as u32;
    // With more threads than cpus, each cpu has several.
    let most = caches.cpus * threads.div_ceil(machine.cpus);
    let mut groups = groups::groups(sharing, most as usize, cache.bytes);
    let in_order = places::in_order(threads, caches);
    let grouped = places::grouped(threads, &mut groups, caches);
    let spread = places::spread(threads, caches);
    let mut placements = vec![ThreadPlacement {
        name: IN_ORDER.to_string(),
        cpus: in_order,
        wall_ns: base.time_ns.wall,
        gain: 0.0,
    }];
    for (name, cpus) in [(GROUPED, grouped), (SPREAD, spread)] {
        let wall_ns = match placements.iter().find(|known| known.cpus == cpus) {
            Some(same) => same.wall_ns,
            None => wall(trace, settings, config, base, &cpus)?,
        };
        placements.push(ThreadPlacement {
            name: name.to_string(),
            cpus,
            wall_ns,
            gain: saved(base.time_ns.wall, wall_ns),
        });
    }
    // Of equals, groups come first: they give the reason.
    placements.sort_by_key(|placement| (placement.wall_ns, placement.name != GROUPED));
    let mut advice = SharingAdvice {
        cache: cache.name.clone(),
        cache_bytes: cache.bytes,
        cpus_per_cache: cache.cpus_per_instance,
        graph: sharing.graph.clone(),
        groups,
        placements,
        ..SharingAdvice::default()
    };
    advice.verdict = verdict::of(&advice);
    Ok(Some(advice))
}

/// True if it matters under which caches the threads are: the best and the worst way differ by more than the model's
/// error.
pub fn matters(advice: &SharingAdvice) -> bool {
    let ends = advice.placements.first().zip(advice.placements.last());
    ends.is_some_and(|(best, worst)| saved(worst.wall_ns, best.wall_ns) >= NOTHING)
}

/// The time of the run with threads on these cpus.
fn wall(trace: &Trace, settings: &Settings, config: &Config, base: &Outcome, cpus: &[u32]) -> Result<u64, SimError> {
    let placed = Config {
        policies: config.detailed().into_iter().cloned().collect(),
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        placement: Some(cpus.to_vec()),
        ..config.clone()
    };
    let runs = settings.simulate(trace, &placed)?;
    Ok(runs.first().map_or(base.time_ns.wall, |run| run.outcome.time_ns.wall))
}
