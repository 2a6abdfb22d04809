//! Pages that follow their users on a running system: the policies of [`policy::registry`] that move pages between nodes,
//! told what processes do, and their moves carried out by `move_pages(2)`.
//!
//! [`watch`] begins; [`Host::run`] goes on until there is nobody left, and [`Host::report`] says what became of it. Programs
//! are not changed and need not know: their pages keep address and content.
//!
//! Linux has no transparent replicas. Where a policy asks for a copy, that is counted and not carried out.
#![forbid(unsafe_code)]

mod carry;
mod decisions;
mod error;
#[cfg(test)]
mod fake;
mod host;
mod layout;
mod linux;
mod log;
pub mod sources;
mod tally;
mod watched;
mod whereabouts;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use policy::{Kind, Name};
use results::KernelBalancing;
use sys::Root;

pub use decisions::moving;
pub use error::HomesError;
pub use host::Host;
pub use layout::Layout;
pub use linux::{Chosen, Here, Linux, Unit};
pub use log::{Asked, Log, ReplayError, Replayed, replay};

/// How processes are watched.
#[derive(Clone, Debug)]
pub struct Config {
    pub policy: Name,
    /// Texts of the form `policy.parameter=value`, over those that follow from the source.
    pub settings: Vec<String>,
    pub interval: Duration,
    /// Pages of a process that its policy is told of in an interval, at most; a huge page is one.
    pub pages: usize,
    /// How long at most.
    pub duration: Option<Duration>,
    /// Whether writes are found out beside a source that does not tell them.
    pub tell_writes: bool,
}

impl Config {
    pub fn new(policy: Name) -> Config {
        Config {
            policy,
            settings: Vec::new(),
            interval: Duration::from_secs(1),
            pages: 16_384,
            duration: None,
            tell_writes: false,
        }
    }
}

/// Who is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    Processes(Vec<u32>),
    /// A process and all that descend from it.
    Family(u32),
    /// A control group with those below it: its folder.
    Group(PathBuf),
}

impl Whom {
    /// Whether there is nothing to wait for once nobody is there.
    fn ends(&self) -> bool {
        !matches!(self, Whom::Group(_))
    }
}

/// Begins to watch, by the best source of information that works here, or by the one that is asked for.
///
/// Errors: the machine has one node; no source works; the policy moves nothing; there is no such process.
pub fn watch(
    mut config: Config,
    whom: Whom,
    source: Option<&str>,
    log: Option<Box<dyn Write + Send>>,
) -> Result<Host<Here>, HomesError> {
    let root = Root::default();
    let mut linux = Here::default();
    let layout = Layout::read(&root, false)?;
    if layout.count() < 2 {
        return Err(HomesError::OneNode);
    }
    // What is wrong with the policy is said before anything is taken.
    decisions::Decisions::new(config.policy.clone(), config.settings.clone(), layout.world())?;
    let named = match &whom {
        Whom::Processes(processes) => processes.clone(),
        Whom::Family(process) => vec![*process],
        Whom::Group(_) => Vec::new(),
    };
    if let Some(none) = named.into_iter().find(|&process| linux.began(process).is_none()) {
        return Err(HomesError::Nobody(format!("there is no process {none}")));
    }
    if let Err(error) = linux.members(&whom) {
        return Err(HomesError::Nobody(error.to_string()));
    }
    let choice = sources::choose(&root, source, config.interval)?;
    let layout = Layout::read(&root, choice.source.knows_cpus())?;
    config.tell_writes =
        wants_writes(&config.policy) && !choice.source.knows_writes() && sources::dirty::works() == Ok(true);
    let mut host = Host::new(linux, layout, choice, config, whom, Log::new(log))?;
    let state = sys::balancing::state(&root).ok();
    host.balancing(state.map(|state| KernelBalancing {
        among_nodes: state.among_nodes,
        among_tiers: state.among_tiers,
    }));
    Ok(host)
}

/// Whether a policy decides by writes.
fn wants_writes(name: &Name) -> bool {
    let homes = name.of(Kind::Home);
    homes.is_some_and(|entry| entry.params.iter().any(|param| param.name == "writes"))
}
