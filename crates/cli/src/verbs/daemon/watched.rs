//! Options that say which processes are watched, for how long, and how: shared by `--homes` and `--regions`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::destination::Overwrite;
use crate::failure::Failure;
use crate::verbs::watching::Watching;

/// The folder of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

#[derive(Args)]
#[command(next_help_heading = "Processes that are watched (--homes, --regions)")]
pub struct Watched {
    /// The processes
    #[arg(long, value_name = "NUMBER", num_args = 1.., value_delimiter = ',', group = "whom", requires = "kind")]
    pub pid: Vec<u32>,

    /// The processes of a control group and of the groups below it, including those that join later: its folder, or its
    /// path below /sys/fs/cgroup
    #[arg(long, value_name = "PATH", group = "whom", requires = "kind")]
    cgroup: Option<PathBuf>,

    /// Stop after this time [default: when the processes of `--pid` have ended; with other choices, at a signal]
    #[arg(long, value_name = "TIME", requires = "kind", value_parser = results::quantities::duration)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub watching: Watching,

    #[command(flatten)]
    pub overwrite: Overwrite,
}

impl Watched {
    /// The folder of the control group.
    pub fn group(&self) -> Option<PathBuf> {
        self.cgroup.as_deref().map(folder)
    }

    /// Refuses these options if nothing is watched.
    pub fn refuse(&self) -> Result<(), Failure> {
        if self.watching.is_unused() && !self.overwrite.force {
            return Ok(());
        }
        Err(Failure::usage(
            "--set, --interval, --source, --observations and --force are for processes that are watched: add `--homes` (pages \
             follow their users) or `--regions` (processes are paired with caches)",
        ))
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
