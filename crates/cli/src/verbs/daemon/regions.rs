//! `domicile daemon --regions`: pairs running processes with caches.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use live::regions::{Config, Here, RegionsError, Reserved, Shown, Undo, Whom, by_hand, folder, kept_name, prepare};
use live::resctrl::Ways;
use results::saved;
use sys::Root;
use sys::service;
use sys::signals::{self, Caught};

use super::watched::Watched;
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::Done;
use crate::verbs::watching::created;

/// Columns that the names of facts take.
const NAMES: usize = 11;

#[derive(Args)]
#[command(next_help_heading = "Processes paired with caches")]
pub struct Regions {
    /// Instead of serving frames, give chosen processes the cpus of one cache each, so that their working sets share
    /// the machine's caches evenly; this is undone at the end. The first time is a dry run
    #[arg(long, group = "kind", requires = "whom", conflicts_with_all = ["socket", "stock", "quota", "metrics", "log", "verbose", "sets"])]
    regions: bool,

    /// The processes of programs with this name (as in /proc/PID/comm), including those that start later
    #[arg(long, value_name = "NAME", group = "whom", requires = "regions", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,

    /// All processes of a user, including those that start later
    #[arg(long, value_name = "NAME|NUMBER", group = "whom", requires = "regions")]
    user: Option<String>,

    /// The cpus of each cache, as lists such as 0-3 4-7 (also as '0-3;4-7'), if Linux does not show them [default: the
    /// outermost level of which the machine has several caches]
    #[arg(long, value_name = "CPUS", num_args = 1.., value_delimiter = ';', requires = "regions")]
    domains: Vec<String>,

    /// Give programs with this name caches of their own: as many as their working sets fill and their threads have cpus
    /// in. At least one cache is left to the others. If all cpus share each cache, the programs get half of the
    /// ways that are left of it, by resctrl
    #[arg(long, value_name = "NAME", requires = "regions", value_parser = NonEmptyStringValueParser::new())]
    preferred: Option<String>,

    /// Print what would be done and why, but change nothing [default: the first time]
    #[arg(long, requires = "regions", conflicts_with = "act")]
    dry_run: bool,

    /// Place processes at once, even the first time
    #[arg(long, requires = "regions")]
    act: bool,

    /// A file in which a program reports how many units of its work it has done: a number that grows, appended or
    /// written over the previous one. If a unit takes over 3% more processor time after a change, the change is undone;
    /// the time is that of the preferred program, or else of all watched processes. Without this file, instructions are
    /// the units, if the processor counts them
    #[arg(long, value_name = "FILE", requires = "regions")]
    progress: Option<PathBuf>,

    /// Folder that keeps the previous cpus of threads until the threads have them back [default: /run/domicile for
    /// root, else $XDG_RUNTIME_DIR/domicile]
    #[arg(long, value_name = "FOLDER", requires = "regions")]
    state: Option<PathBuf>,
}

impl Regions {
    pub fn is_wanted(&self) -> bool {
        self.regions
    }

    /// Watches until no process is left, the time is up, or a signal asks to end; a dry run until it has something to
    /// report.
    pub fn run(&self, watched: &Watched, console: &mut Console) -> Done {
        let whom = self.whom(watched)?;
        let state = self.state.clone().map_or_else(folder, Ok).map_err(refused)?;
        let mut signals = Caught::begin().map_err(|error| Failure::work(format!("signals: {error}")))?;
        // Processes left behind by a killed run are restored first, even if the current request is wrong.
        let mut undo = Undo::open(&state).map_err(refused)?;
        let recovered = undo.recover_here().map_err(refused)?;
        if recovered > 0 {
            console::warn(format_args!(
                "{recovered} threads have their cpus again from a run that was killed"
            ));
        }
        let shown = Shown::at(&state);
        let acts = self.act || (!self.dry_run && shown.is());
        let config = Config {
            interval: watched.watching.interval().unwrap_or(Duration::from_secs(1)),
            duration: watched.duration,
            preferred: self.preferred.as_deref().map(|name| kept_name(name).to_string()),
            acts,
            progress: self.progress.clone(),
        };
        let domains = match self.domains.is_empty() {
            true => None,
            false => Some(by_hand(&Root::default(), &self.domains).map_err(|error| refused(error.into()))?),
        };
        let observations = watched.watching.observations();
        if let Some(path) = observations {
            watched.overwrite.allows(path, "the observations")?;
        }
        let prepared = match prepare(config.clone(), domains, watched.watching.source()) {
            Err(RegionsError::OneDomain) if self.preferred.is_some() => {
                return self.reserve(config, whom, signals, console);
            }
            prepared => prepared.map_err(refused)?,
        };
        let log = observations.map(|path| created(path)).transpose()?;
        let count = prepared.domains().len();
        console::note(format_args!(
            "working sets are watched by {}, for {count} caches",
            prepared.source()
        ));
        console::note(match (acts, self.dry_run) {
            (true, _) => "processes are placed; they have the cpus again that they had before when this ends",
            (false, true) => "dry run: nothing is changed; `--act` places processes",
            (false, false) => {
                "dry run, since it is the first time: nothing is changed; `--act` places processes at once"
            }
        });
        let mut host = prepared.watch(whom, undo, log).map_err(refused)?;
        // Without a service manager there is nothing to notify.
        let _ = service::notify("READY=1");
        let done = host.run(|| {
            let mut came = std::iter::from_fn(|| signals.take());
            came.any(|signal| signal.number != signals::HANGUP)
        });
        let _ = service::notify("STOPPING=1");
        let mut report = host.end().map_err(refused)?;
        report.recovered_threads += recovered;
        if console.json() {
            console.line(&saved(&report))?;
        } else {
            console.text(&report::live_regions(&report).facts(NAMES))?;
        }
        done.map_err(refused)?;
        if !acts && report.fullest_before_bytes.is_some() {
            shown.remember().map_err(refused)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// All cpus share each cache: the preferred program gets ways of the outermost one, if resctrl provides them.
    fn reserve(&self, config: Config, whom: Whom, mut signals: Caught, console: &mut Console) -> Done {
        let root = Root::default();
        let cpus = sys::cpus::cpus(&root).map_err(Failure::work)?.online;
        let caches = sys::caches::caches(&root, cpus[0]).map_err(Failure::work)?;
        let level = caches.iter().map(|cache| cache.level).max().unwrap_or(3);
        let ways = Ways::mounted(level).map_err(|error| {
            Failure::work(format!(
                "{}. Ways of the cache could be given to the preferred program all the same: {error}",
                RegionsError::OneDomain
            ))
        })?;
        let acts = config.acts;
        let mut reserved = Reserved::begin(Here::new(None), &ways, (level, cpus), config, whom).map_err(refused)?;
        console::note(match acts {
            true => "the preferred program has ways of the cache for itself until this ends",
            false => "dry run: nothing is changed; `--act` gives the preferred program ways of the cache",
        });
        let done = reserved.run(|| {
            let mut came = std::iter::from_fn(|| signals.take());
            came.any(|signal| signal.number != signals::HANGUP)
        });
        let report = reserved.end().map_err(refused)?;
        match console.json() {
            true => console.line(&saved(&report))?,
            false => console.text(&report::live_regions(&report).facts(NAMES))?,
        }
        done.map_err(refused)?;
        Ok(ExitCode::SUCCESS)
    }

    fn whom(&self, watched: &Watched) -> Result<Whom, Failure> {
        if let Some(group) = watched.group() {
            return Ok(Whom::Group(group));
        }
        if let Some(name) = &self.name {
            return Ok(Whom::Name(name.clone()));
        }
        match &self.user {
            None => Ok(Whom::Processes(watched.pid.clone())),
            Some(user) => {
                let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
                number(user, &users).map(Whom::User).ok_or_else(|| {
                    Failure::usage(format!(
                        "there is no user {user} in /etc/passwd: give the user's number"
                    ))
                })
            }
        }
    }
}

/// A user's number, by the name or the number itself.
fn number(user: &str, users: &str) -> Option<u32> {
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(user)).then(|| fields.nth(1)?.parse().ok())?
    });
    named.or_else(|| user.parse().ok())
}

/// An error in the command line is the user's to correct.
pub fn refused(error: RegionsError) -> Failure {
    match error {
        RegionsError::Domains(_) | RegionsError::UnknownSource(..) => Failure::usage(error),
        error => Failure::work(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_goes_by_name_or_number() {
        let users = "root:x:0:0::/root:/bin/sh\n7:x:1007:1007::/:/bin/sh\n";
        assert_eq!(number("root", users), Some(0));
        assert_eq!(number("7", users), Some(1007));
        assert_eq!(number("12", users), Some(12));
        assert_eq!(number("nobody", users), None);
    }
}
