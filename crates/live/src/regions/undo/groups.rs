//! Control groups whose cpusets were given cpus, as they were before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sys::cpus::{list, parse_list};
use sys::{Problem, SysError, cpusets};

use super::super::error::RegionsError;
use super::super::linux::Linux;
use super::Undo;
use super::kept::Cpus;

const NO_CHOICE: &str = "its cpuset.cpus is empty, and the kernel refuses to empty that again while processes are in the group; one \
                         that has a list, such as that of all cpus, can be used";

/// A group as it was, and the cpus that it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    folder: PathBuf,
    id: u64,
    /// The cpus that were chosen for it, as they were read.
    before: String,
    /// The cpus that it was given: those of now, and those of before until it is known to have the new ones.
    given: Vec<Cpus>,
}

impl Held {
    /// True for the group as it was given cpus here: an owner's choice comes before.
    fn is_ours(&self, group: &cpusets::Group) -> bool {
        let has = parse_list(&group.cpus).unwrap_or_default();
        group.id == self.id && self.given.iter().any(|given| given.0 == has)
    }
}

/// The groups that were given cpus, and the errors of those that could not have their own again.
#[derive(Debug, Default)]
pub struct Groups {
    pub held: BTreeMap<PathBuf, Held>,
    pub stuck: BTreeMap<PathBuf, String>,
}

impl Groups {
    pub fn known(saved: Vec<Held>) -> BTreeMap<PathBuf, Held> {
        saved.into_iter().map(|held| (held.folder.clone(), held)).collect()
    }

    pub fn saved(&self) -> Vec<Held> {
        self.held.values().cloned().collect()
    }
}

impl Undo {
    /// True if a group has the cpus still that it was given here; `None` if it is gone, or has no cpuset any more.
    pub fn has_group(&self, linux: &mut impl Linux, folder: &Path) -> Option<bool> {
        let group = linux.group(folder).ok()?;
        Some(self.groups.held.get(folder)?.is_ours(&group))
    }

    /// The cpus that a group leaves its processes when it has its own choice again.
    pub fn without(&self, linux: &mut impl Linux, folder: &Path) -> Option<Vec<u32>> {
        let above = linux.group(folder).ok()?.above;
        let chosen = parse_list(&self.groups.held.get(folder)?.before).unwrap_or_default();
        let has: Vec<u32> = above.iter().copied().filter(|cpu| chosen.contains(cpu)).collect();
        Some(if has.is_empty() { above } else { has })
    }

    /// Gives a group these cpus. Its earlier state is written to the file first.
    ///
    /// Returns why it did not get them. Errors: the file cannot be written; then nothing is changed.
    pub fn give_group(
        &mut self,
        linux: &mut impl Linux,
        folder: &Path,
        cpus: &[u32],
    ) -> Result<Result<(), String>, RegionsError> {
        let group = match linux.group(folder) {
            Ok(group) => group,
            Err(error) if matches!(error.problem, Problem::Absent) => {
                return Ok(Err(
                    "it has no cpuset: the group above it does not hand the controller on".to_string(),
                ));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Some(obstacle) = group.obstacle {
            return Ok(Err(obstacle.to_string()));
        }
        // The kernel would not take back its earlier cpus (ENOSPC).
        if group.cpus.is_empty() {
            return Ok(Err(NO_CHOICE.to_string()));
        }
        let wanted = vec![Cpus(cpus.to_vec())];
        let mut held = match self.groups.held.get(folder) {
            Some(held) if held.is_ours(&group) && held.given == wanted => return Ok(Ok(())),
            Some(held) if held.is_ours(&group) => held.clone(),
            Some(_) => return Ok(Err("its owner has chosen its cpus meanwhile".to_string())),
            None => Held {
                folder: folder.to_path_buf(),
                id: group.id,
                before: group.cpus,
                given: Vec::new(),
            },
        };
        held.given.extend(wanted.clone());
        self.groups.held.insert(folder.to_path_buf(), held.clone());
        self.write()?;
        if let Err(error) = linux.choose(folder, &list(cpus)) {
            self.restore_group(linux, folder)?;
            return Ok(Err(error.to_string()));
        }
        held.given = wanted;
        self.groups.held.insert(folder.to_path_buf(), held);
        Ok(Ok(()))
    }

    /// Gives a group the choice again that it had. Returns how many threads have the cpus of that.
    pub fn restore_group(&mut self, linux: &mut impl Linux, folder: &Path) -> Result<u64, RegionsError> {
        if !self.groups.held.contains_key(folder) {
            return Ok(0);
        }
        let restored = self.put_group_back(linux, folder);
        self.write()?;
        Ok(restored)
    }

    pub(super) fn put_groups_back(&mut self, linux: &mut impl Linux) -> u64 {
        let folders: Vec<PathBuf> = self.groups.held.keys().cloned().collect();
        folders.iter().map(|folder| self.put_group_back(linux, folder)).sum()
    }

    fn put_group_back(&mut self, linux: &mut impl Linux, folder: &Path) -> u64 {
        self.groups.stuck.remove(folder);
        let Some(held) = self.groups.held.remove(folder) else {
            return 0;
        };
        let done = linux.group(folder).and_then(|group| match held.is_ours(&group) {
            true => with_pins_kept(linux, folder, &held.before),
            false => Ok(0),
        });
        match done {
            Ok(threads) => threads,
            Err(error) if matches!(error.problem, Problem::Absent) => 0,
            Err(error) => {
                self.groups.stuck.insert(folder.to_path_buf(), error.to_string());
                self.groups.held.insert(folder.to_path_buf(), held);
                0
            }
        }
    }
}

/// Chooses cpus for a group. Threads that their owners have pinned within those of before stay pinned: Linux before 6.2 forgets
/// that at a change. Returns how many threads are in the group.
fn with_pins_kept(linux: &mut impl Linux, folder: &Path, cpus: &str) -> Result<u64, SysError> {
    let mut threads = Vec::new();
    for process in linux.in_group(folder) {
        let cpuset = linux.cpuset(process).unwrap_or_default();
        for thread in linux.threads(process) {
            if let Some(mask) = linux.mask(process, thread.number) {
                let pinned = cpuset.iter().any(|cpu| !mask.contains(cpu));
                threads.push((process, thread.number, pinned.then_some(mask)));
            }
        }
    }
    linux.choose(folder, cpus)?;
    for (process, thread, pinned) in &threads {
        let Some(pinned) = pinned else { continue };
        if linux.mask(*process, *thread) == linux.cpuset(*process) {
            // A thread that is gone, or was pinned again, needs nothing.
            let _ = linux.allow(*thread, pinned);
        }
    }
    Ok(threads.len() as u64)
}
