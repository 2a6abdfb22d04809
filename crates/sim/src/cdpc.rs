//! Policies `cdpc` and `summary-homes`: the source of their hints (Bugnion96, section 5).
//!
//! Before a run, the compiler's description of each parallel loop is gathered from the trace's events; if there is
//! none, a pass over the trace finds which cpus touch which pages. README.md, "Compiler-directed page coloring" and
//! "Homes by summaries", has the rules.

mod arrays;
mod derive;
mod explain;
mod gather;
mod homes;
mod map;
mod material;
mod replay;
mod run_hints;
mod teams;
mod touches;

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::cdpc::{Machine, Source, Wanted};
use policy::{BestHomes, HomesFrom, Policy};
use results::PageMap;

pub use material::{Material, OfTrace};
pub use run_hints::RunHints;

use crate::config::Config;
use crate::error::SimError;
use crate::layout::Layout;
use crate::outcome::Simulated;
use gather::gather;
use touches::touches;

/// The hints that policies of a simulation want: colors, by their source, and homes.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    hints: BTreeMap<Wanted, Arc<RunHints>>,
    homes: Option<Arc<BestHomes>>,
}

impl Prepared {
    /// Makes the hints that are wanted, each kind once.
    pub fn new<'a>(
        policies: impl Iterator<Item = &'a dyn Policy>,
        config: &Config,
        material: &dyn Material,
    ) -> Result<Prepared, SimError> {
        let mut hints: BTreeMap<Wanted, Arc<RunHints>> = BTreeMap::new();
        let mut homes = None;
        for policy in policies {
            if let Some(wanted) = policy.hints_wanted()
                && !hints.contains_key(&wanted)
            {
                let new = make(wanted, config, material)?;
                // The result of `auto` equals that of the choice it stands for.
                let same = hints
                    .iter()
                    .find(|(other, made)| (other.weigh, other.fit, made.from) == (wanted.weigh, wanted.fit, new.from));
                let same = same.map(|(_, made)| Arc::clone(made));
                hints.insert(wanted, same.unwrap_or(new));
            }
            if policy.wants_best_homes() == Some(HomesFrom::Summaries) && homes.is_none() {
                homes = Some(Arc::new(homes::by_summaries(config, material)?));
            }
        }
        Ok(Prepared { hints, homes })
    }

    /// The homes by summaries.
    pub fn homes(&self) -> Option<&Arc<BestHomes>> {
        self.homes.as_ref()
    }

    pub fn get(&self, wanted: Wanted) -> Option<&Arc<RunHints>> {
        self.hints.get(&wanted)
    }
}

/// The page access map of the counted part of a run, with the runs of its policies, which kept
/// [`crate::Detail::placements`].
pub fn page_map(config: &Config, material: &dyn Material, runs: &[Simulated]) -> Result<PageMap, SimError> {
    Layout::new(&config.machine)?;
    let machine = &config.machine;
    let mut input = material.open()?;
    let touches = touches(input.as_mut(), machine.page_bytes, machine.cpus, config.window.as_ref())?;
    Ok(map::map(config, &touches, runs))
}

fn make(wanted: Wanted, config: &Config, material: &dyn Material) -> Result<Arc<RunHints>, SimError> {
    // Errors in the machine are reported as in a run.
    Layout::new(&config.machine)?;
    let source = wanted.from;
    let ways = wanted.weigh.then(|| crate::frames::ways(&config.machine));
    let machine = Machine {
        page_bytes: config.machine.page_bytes,
        colors: crate::frames::colors(&config.machine),
        cpus: config.machine.cpus,
        fit: wanted.fit,
    };
    let mut input = material.open()?;
    let mut malformed = gather::Malformed::default();
    if source != Source::Trace {
        let described = gather(&input.names().tables, |visit| material.each_event(visit))?;
        let hints = RunHints::of_summaries(described, &machine, ways)?;
        if !hints.is_empty() {
            return Ok(Arc::new(hints));
        }
        malformed = hints.malformed;
        if source == Source::Summaries {
            return Err(SimError::NoSummaries {
                wanted: "cdpc.from is summaries",
                instead: "use `--set cdpc.from=trace`",
                malformed: malformed.first.first().cloned(),
            });
        }
    }
    let touches = touches(input.as_mut(), machine.page_bytes, machine.cpus, config.window.as_ref())?;
    Ok(Arc::new(RunHints::of_touches(&touches, malformed, &machine, ways)?))
}
