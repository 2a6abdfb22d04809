//! Pages that follow their users on a running system: the policies of [`policy::registry`] that move pages between
//! nodes, with observations of the processes, and with moves by `move_pages(2)`.
//!
//! [`prepare`] and [`Prepared::watch`] begin; [`Host::run`] goes on until no process is left, and [`Host::report`]
//! gives the outcome. Programs are not changed and need not know: their pages keep address and content.
//!
//! Linux has no transparent replicas. A policy's request for a copy is counted and not carried out.
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
mod replay;
mod scale;
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

pub use carry::{Left, Wanted, carry_out};
pub use decisions::moving;
pub use error::HomesError;
pub use host::Host;
pub use layout::Layout;
pub use linux::{Chosen, Here, Linux, Unit};
pub use log::{Asked, Log};
pub use replay::{ReplayError, Replayed, replay};

/// How processes are watched.
#[derive(Clone, Debug)]
pub struct Config {
    pub policy: Name,
    /// Texts of the form `policy.parameter=value`, over those that follow from the source.
    pub settings: Vec<String>,
    pub interval: Duration,
    /// The most pages of a process that its policy is told of in an interval; a huge page counts as
    /// one.
    pub pages: usize,
    /// How long at most.
    pub duration: Option<Duration>,
    /// True if writes are found out beside a source that does not report them.
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

/// The processes to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    Processes(Vec<u32>),
    /// A process and all that descend from it.
    Family(u32),
    /// A control group with those below it: its folder.
    Group(PathBuf),
}

impl Whom {
    /// Returns whether there is nothing to wait for once no process is left.
    fn ends(&self) -> bool {
        !matches!(self, Whom::Group(_))
    }
}

/// The findings before any process is watched: a source of information, and the machine's nodes.
pub struct Prepared {
    config: Config,
    layout: Layout,
    choice: sources::Choice,
}

/// Looks for the best source of information that works here, or for the one that is asked for.
///
/// Errors: the machine has one node; no source works; the policy moves nothing, or its settings are wrong.
pub fn prepare(mut config: Config, source: Option<&str>) -> Result<Prepared, HomesError> {
    let root = Root::default();
    let layout = Layout::read(&root, false)?;
    // Errors in the policy are reported before anything is taken.
    decisions::Decisions::new(config.policy.clone(), config.settings.clone(), layout.world())?;
    if layout.count() < 2 {
        return Err(HomesError::OneNode);
    }
    let choice = sources::choose(&root, source, config.interval)?;
    let layout = Layout::read(&root, choice.source.knows_cpus())?;
    config.tell_writes =
        wants_writes(&config.policy) && !choice.source.knows_writes() && sources::dirty::works() == Ok(true);
    Ok(Prepared { config, layout, choice })
}

impl Prepared {
    /// The source's name.
    pub fn source(&self) -> &'static str {
        self.choice.source.name()
    }

    /// Begins to watch. The thread that calls this is the one whose time is [`results::LiveHomes::own_ns`].
    ///
    /// Errors: there is no such process or group; the log cannot be written.
    pub fn watch(self, whom: Whom, log: Option<Box<dyn Write + Send>>) -> Result<Host<Here>, HomesError> {
        let mut linux = Here::default();
        if let Whom::Processes(processes) = &whom
            && let Some(none) = processes.iter().find(|&&process| linux.began(process).is_none())
        {
            return Err(HomesError::Nobody(format!("there is no process {none}")));
        }
        if let Whom::Group(folder) = &whom
            && !folder.join("cgroup.procs").exists()
        {
            return Err(HomesError::Nobody(format!("{} is no control group", folder.display())));
        }
        let mut host = Host::new(linux, self.layout, self.choice, self.config, whom, Log::new(log))?;
        let state = sys::balancing::state(&Root::default()).ok();
        host.balancing(state.map(|state| KernelBalancing {
            among_nodes: state.among_nodes,
            among_tiers: state.among_tiers,
        }));
        Ok(host)
    }
}

/// Returns whether a policy decides by writes.
fn wants_writes(name: &Name) -> bool {
    let homes = name.of(Kind::Home);
    homes.is_some_and(|entry| entry.params.iter().any(|param| param.name == "writes"))
}
