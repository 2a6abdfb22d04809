//! `domicile daemon --homes`: pages of processes that run already follow them between memory nodes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use live::homes::{Whom, moving};
use policy::Name;
use results::saved;
use sys::service;
use sys::signals::{self, Caught};

use crate::console::Console;
use crate::destination::Overwrite;
use crate::failure::Failure;
use crate::suggested;
use crate::verbs::Done;
use crate::verbs::watching::{self, Watching};

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

#[derive(Args)]
#[command(next_help_heading = "Pages that follow their users")]
pub struct Homes {
    /// Instead of serving frames: move pages of chosen processes to the memory nodes that use them
    #[arg(long, requires = "whom", conflicts_with_all = ["socket", "stock", "quota", "metrics", "log", "verbose"])]
    homes: bool,

    /// The processes
    #[arg(long, value_name = "NUMBER", num_args = 1.., value_delimiter = ',', group = "whom", requires = "homes")]
    pid: Vec<u32>,

    /// The processes of a control group and of those below it, whoever joins it: its folder, or its path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", group = "whom", requires = "homes")]
    cgroup: Option<PathBuf>,

    /// The policy: migrate, or replicate or migrate-replicate, whose copies are counted and not made
    #[arg(long, value_name = "NAME", default_value = "migrate", requires = "homes", hide_possible_values = true,
          value_parser = suggested::policy(moving()))]
    policy: Name,

    /// Stop after so long [default: when the processes have ended]
    #[arg(long, value_name = "TIME", requires = "homes", value_parser = results::quantities::duration)]
    duration: Option<Duration>,

    #[command(flatten)]
    watching: Watching,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl Homes {
    pub fn is_wanted(&self) -> bool {
        self.homes
    }

    /// Options of `--homes` that were given without it.
    pub fn refuse(&self) -> Result<(), Failure> {
        if self.watching.is_unused() && !self.overwrite.force {
            return Ok(());
        }
        Err(Failure::usage(
            "--set, --interval, --source, --observations and --force are for pages that follow their users: add `--homes`",
        ))
    }

    /// Watches until there is nobody left, the time is up, or a signal asks to end.
    pub fn run(&self, console: &mut Console) -> Done {
        let whom = match &self.cgroup {
            Some(group) => Whom::Group(folder(group)),
            None => Whom::Processes(self.pid.clone()),
        };
        let (prepared, log) = self.watching.prepare(&self.policy, self.duration, self.overwrite)?;
        let mut signals = Caught::begin().map_err(|error| Failure::work(format!("signals: {error}")))?;
        let source = prepared.source();
        let mut host = prepared.watch(whom, log).map_err(watching::failure)?;
        watching::announce(source);
        // Started by no service manager: nobody is to be notified.
        let _ = service::notify("READY=1");
        let done = host.run(|| {
            let mut came = std::iter::from_fn(|| signals.take());
            came.any(|signal| signal.number != signals::HANGUP)
        });
        let _ = service::notify("STOPPING=1");
        let report = host.report().map_err(watching::failure)?;
        if console.json() {
            console.line(&saved(&report))?;
        } else {
            console.text(&watching::text(&report))?;
        }
        done.map_err(watching::failure)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A group by its folder, or by the path that `/proc/PID/cgroup` has for it.
fn folder(group: &Path) -> PathBuf {
    if group.starts_with(GROUPS) {
        return group.to_path_buf();
    }
    let below = group.strip_prefix("/").unwrap_or(group);
    Path::new(GROUPS).join(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_goes_by_its_folder_or_its_path() {
        for group in ["jobs/one", "/jobs/one", "/sys/fs/cgroup/jobs/one"] {
            assert_eq!(folder(Path::new(group)), Path::new("/sys/fs/cgroup/jobs/one"));
        }
    }
}
