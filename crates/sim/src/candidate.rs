//! A policy that is about to be simulated, and the common data of runs of several.

use std::sync::Arc;

use policy::slots::Plan;
use policy::{HomesFrom, Name, Policy};

use crate::cdpc::{Prepared, RunHints};
use crate::config::Config;
use crate::error::SimError;

/// Called now and then, from any thread, with the references carried out since it was called last
/// (of all policies together).
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// A policy and the name to report it by.
pub type Named = (String, Box<dyn Policy>);

/// A policy to simulate.
pub struct Candidate {
    pub name: String,
    /// The same as the registry has it; a policy that was made by hand has none.
    pub known: Option<Name>,
    pub policy: Box<dyn Policy>,
    pub plan: Option<Arc<Plan>>,
    /// The hints that it was handed, if it takes any.
    pub hints: Option<Arc<RunHints>>,
}

impl Candidate {
    /// Hands the policy the hints that it wants.
    pub fn new((name, mut policy): Named, prepared: &Prepared) -> Candidate {
        let hints = policy.hints_wanted().and_then(|wanted| prepared.get(wanted)).cloned();
        if let Some(hints) = &hints {
            policy.take_hints(&hints.colors);
        }
        let by_summaries = policy.wants_best_homes() == Some(HomesFrom::Summaries);
        if let Some(homes) = prepared.homes().filter(|_| by_summaries) {
            policy.take_best_homes(homes);
        }
        Candidate {
            name,
            known: None,
            policy,
            plan: None,
            hints,
        }
    }
}

/// The host's threads that policies may use.
pub fn pool(config: &Config) -> Result<rayon::ThreadPool, SimError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(config.threads.unwrap_or(0));
    pool.build().map_err(|error| SimError::Host(error.to_string()))
}
