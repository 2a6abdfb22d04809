//! Policy `cdpc`: where its hints come from (Bugnion96, section 5).
//!
//! Before a run, what the compiler said of each parallel loop is gathered from the trace's events; where it said
//! nothing, the trace itself is gone through for which cpus touch which pages. README.md, "Compiler-directed page
//! coloring", tells the rules.

mod arrays;
mod derive;
mod explain;
mod gather;
mod map;
mod material;
mod replay;
mod teams;
mod told;
mod touches;

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::cdpc::{Machine, Source, Wanted};
use results::PageMap;

pub use material::{Material, OfTrace};
pub use told::Told;

use crate::config::Config;
use crate::error::SimError;
use crate::layout::Layout;
use crate::outcome::Simulated;
use gather::gather;
use touches::touches;

/// The hints that policies of a simulation want, by where they are to come from.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    told: BTreeMap<Wanted, Arc<Told>>,
}

impl Prepared {
    /// Makes the hints that are wanted, each kind once.
    pub fn new(
        wanted: impl Iterator<Item = Wanted>,
        config: &Config,
        material: &dyn Material,
    ) -> Result<Prepared, SimError> {
        let mut told: BTreeMap<Wanted, Arc<Told>> = BTreeMap::new();
        for wanted in wanted {
            if !told.contains_key(&wanted) {
                let new = make(wanted, config, material)?;
                // What `auto` comes to is the same as what it stands for.
                let same = told
                    .iter()
                    .find(|(other, made)| other.weigh == wanted.weigh && made.from == new.from);
                let same = same.map(|(_, made)| Arc::clone(made));
                told.insert(wanted, same.unwrap_or(new));
            }
        }
        Ok(Prepared { told })
    }

    pub fn get(&self, wanted: Wanted) -> Option<&Arc<Told>> {
        self.told.get(&wanted)
    }
}

/// The page access map of what is counted of a run, with the runs of its policies, which kept
/// [`crate::Detail::placements`].
pub fn page_map(config: &Config, material: &dyn Material, runs: &[Simulated]) -> Result<PageMap, SimError> {
    Layout::new(&config.machine)?;
    let machine = &config.machine;
    let mut input = material.open()?;
    let touches = touches(input.as_mut(), machine.page_bytes, machine.cpus, config.window.as_ref())?;
    Ok(map::map(config, &touches, runs))
}

fn make(wanted: Wanted, config: &Config, material: &dyn Material) -> Result<Arc<Told>, SimError> {
    // What is wrong with the machine is told as in a run.
    Layout::new(&config.machine)?;
    let source = wanted.from;
    let ways = wanted.weigh.then(|| crate::frames::ways(&config.machine));
    let machine = Machine {
        page_bytes: config.machine.page_bytes,
        colors: crate::frames::colors(&config.machine),
        cpus: config.machine.cpus,
    };
    let mut input = material.open()?;
    let mut malformed = gather::Malformed::default();
    if source != Source::Trace {
        let said = gather(&input.names().tables, |visit| material.each_event(visit))?;
        let told = Told::of_summaries(said, &machine, ways)?;
        if !told.is_empty() {
            return Ok(Arc::new(told));
        }
        malformed = told.malformed;
        if source == Source::Summaries {
            return Err(SimError::NoSummaries {
                malformed: malformed.told.first().cloned(),
            });
        }
    }
    let touches = touches(input.as_mut(), machine.page_bytes, machine.cpus, config.window.as_ref())?;
    Ok(Arc::new(Told::of_touches(&touches, malformed, &machine, ways)?))
}
