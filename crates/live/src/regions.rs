//! Processes paired with cache domains on a running system: [`policy::regions::pairing`] decides, threads are placed by
//! affinity, and all of it is undone at the end.
//!
//! [`prepare`] and [`Prepared::watch`] begin; [`Host::run`] goes on until no process is left, and [`Host::end`] gives
//! each thread the cpus that it had before, and reports the outcome. Programs are not changed and need not know.
#![forbid(unsafe_code)]

mod counters;
mod decisions;
mod error;
#[cfg(test)]
mod fake;
mod host;
mod linux;
mod log;
mod replay;
mod reserved;
mod sources;
mod undo;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use sys::Root;

pub use error::RegionsError;
pub use host::Host;
pub use linux::{Here, Linux, kept_name};
pub use log::{Action, Entry};
pub use replay::{ReplayError, Replayed, replay};
pub use reserved::Reserved;
pub use sources::{NAMES, Source};
pub use sys::cache_domains::{CacheDomain, by_hand, find};
pub use undo::{Shown, Undo, folder};

/// How processes are watched.
#[derive(Clone, Debug)]
pub struct Config {
    pub interval: Duration,
    /// How long at most.
    pub duration: Option<Duration>,
    /// The name of a program that gets domains of its own.
    pub preferred: Option<String>,
    /// True: processes are placed. False: a dry run decides once, and changes nothing.
    pub acts: bool,
    /// The file in which a program writes how many units of its work it has done.
    pub progress: Option<PathBuf>,
}

/// The processes that are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    Processes(Vec<u32>),
    /// A control group with those below it: its folder.
    Group(PathBuf),
    /// Programs of this name, as `/proc/PID/comm` has it.
    Name(String),
    /// All processes of a user.
    User(u32),
    /// All that this process has started or adopted, beside others: by number with when each began, and by name.
    Beside {
        processes: Vec<(u32, u64)>,
        names: Vec<String>,
    },
}

impl Whom {
    /// True if there is nothing to wait for once no process is left.
    fn ends(&self) -> bool {
        matches!(self, Whom::Processes(_) | Whom::Beside { .. })
    }
}

/// The machine's domains and a source, found before anybody is watched.
pub struct Prepared {
    config: Config,
    domains: Vec<CacheDomain>,
    choice: sources::Choice,
}

/// Looks for the domains, unless some are given, and for a source that works here, or the one that is asked for.
///
/// Errors: there is one domain only; no source works.
pub fn prepare(
    config: Config,
    domains: Option<Vec<CacheDomain>>,
    source: Option<&str>,
) -> Result<Prepared, RegionsError> {
    let root = Root::default();
    sources::known(source)?;
    let domains = match domains {
        Some(domains) => domains,
        None => find(&root)?,
    };
    let choice = sources::choose(&root, source, config.interval)?;
    Ok(Prepared {
        config,
        domains,
        choice,
    })
}

/// Frees the processes that the program of this one has left behind, as [`sys::supervise::Supervisor::adopt`] keeps them: threads that were started on the cpus
/// of one of these places get those of this process, with which the program began. Returns how many.
///
/// A thread that its owner has pinned to just these cpus is taken for one of them.
pub fn free_left_behind(places: &[Vec<u32>]) -> u64 {
    let root = Root::default();
    let Ok(own) = sys::affinity::allowed(None) else {
        return 0;
    };
    let mut freed = 0;
    let left = sys::processes::family(&root, std::process::id()).unwrap_or_default();
    for process in left.into_iter().filter(|&process| process != std::process::id()) {
        for thread in sys::tasks::demand(&root, process).unwrap_or_default() {
            let mask = sys::tasks::thread_mask(&root, process, thread.number).ok();
            let placed = mask.is_some_and(|mask| mask != own && places.contains(&mask));
            freed += u64::from(placed && sys::affinity::allow(Some(thread.number), &own).is_ok());
        }
    }
    freed
}

impl Prepared {
    /// The source's name.
    pub fn source(&self) -> &'static str {
        self.choice.source.name()
    }

    pub fn domains(&self) -> &[CacheDomain] {
        &self.domains
    }

    /// Begins to watch. Threads that a killed run has left get their cpus first.
    ///
    /// Errors: there is no such process or group; the log cannot be written.
    pub fn watch(self, whom: Whom, undo: Undo, log: Option<Box<dyn Write + Send>>) -> Result<Host<Here>, RegionsError> {
        let mut linux = Here::new(self.config.progress.clone());
        if let Whom::Processes(processes) = &whom
            && let Some(none) = processes.iter().find(|&&process| linux.began(process).is_none())
        {
            return Err(RegionsError::Nobody(format!("there is no process {none}")));
        }
        if let Whom::Group(folder) = &whom
            && !folder.join("cgroup.procs").exists()
        {
            return Err(RegionsError::Nobody(format!(
                "{} is no control group",
                folder.display()
            )));
        }
        Host::new(linux, self.domains, self.choice, self.config, whom, undo, log)
    }
}
