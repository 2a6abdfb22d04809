//! Places by the cpuset of a control group, in place of the affinity of each thread: if all processes of a watched
//! group (`--cgroup`) have the same place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::Whom;
use super::super::error::RegionsError;
use super::super::linux::Linux;
use super::Host;
use super::watched::Watched;

const APART: &str = "its processes had not all the same place any more";

/// Control groups of those that are watched.
#[derive(Default)]
pub struct Grouped {
    /// Groups that were given cpus, and those that had been at any time.
    now: BTreeSet<PathBuf>,
    ever: BTreeSet<PathBuf>,
    /// The reasons why others are left alone for the rest of the run.
    not: BTreeMap<PathBuf, String>,
}

impl<L: Linux> Host<L> {
    /// The cpus that a process may use where nothing was chosen for its group here; `None` if it is gone.
    pub(super) fn own_cpuset(&mut self, process: u32) -> Option<Vec<u32>> {
        let group = self.watched.get(&process).and_then(|watched| watched.group.clone());
        match group.and_then(|group| self.undo.without(&mut self.linux, &group)) {
            Some(cpus) => Some(cpus),
            None => self.linux.cpuset(process),
        }
    }

    /// Gives the control group of a process these cpus, if all that are in it have this place. Returns whether it has them: else
    /// affinity is left.
    pub(super) fn place_group(&mut self, process: u32, domains: &[u32], cpus: &[u32]) -> Result<bool, RegionsError> {
        let Whom::Group(all) = &self.whom else {
            return Ok(false);
        };
        let Some(group) = self.linux.group_of(process).filter(|group| group.starts_with(all)) else {
            let why = "its processes are in no group below it of version 2".to_string();
            self.grouped.not.insert(all.clone(), why);
            return Ok(false);
        };
        if self.grouped.not.contains_key(&group) {
            return Ok(false);
        }
        let members = self.linux.in_group(&group);
        let belongs = |member: &u32| {
            let placeable = self
                .watched
                .get(member)
                .is_some_and(|watched| watched.refused.is_none());
            placeable && self.decisions.place(*member) == Some(domains)
        };
        if !members.contains(&process) || !members.iter().all(belongs) {
            return Ok(false);
        }
        // Affinity refuses it, too, and says so.
        if members.iter().any(|&member| self.has_pinned(member)) {
            return Ok(false);
        }
        if let Err(why) = self.undo.give_group(&mut self.linux, &group, cpus)? {
            self.grouped.not.insert(group, why);
            return Ok(false);
        }
        self.grouped.now.insert(group.clone());
        self.grouped.ever.insert(group.clone());
        for member in members {
            self.restored += self.undo.restore(&mut self.linux, member)?;
            if let Some(watched) = self.watched.get_mut(&member) {
                watched.placed = true;
                watched.group = Some(group.clone());
                watched.cpuset.clear();
            }
        }
        Ok(true)
    }

    /// True if its owner has pinned a process.
    fn has_pinned(&mut self, process: u32) -> bool {
        let cpuset = self.linux.cpuset(process).unwrap_or_default();
        let threads = self.linux.threads(process);
        self.pinned(process, &threads, &cpuset).is_some()
    }

    /// The group of a process has its own choice again. Others in it keep their places, by affinity.
    pub(super) fn leave_group(&mut self, process: u32) -> Result<(), RegionsError> {
        match self.watched.get(&process).and_then(|watched| watched.group.clone()) {
            Some(group) => self.give_back_group(&group, Some(process)),
            None => Ok(()),
        }
    }

    fn give_back_group(&mut self, group: &Path, but: Option<u32>) -> Result<(), RegionsError> {
        self.restored += self.undo.restore_group(&mut self.linux, group)?;
        self.grouped.now.remove(group);
        let mut others = Vec::new();
        for (&process, watched) in &mut self.watched {
            if watched.group.as_deref() == Some(group) {
                watched.leave_group();
                others.push(process);
            }
        }
        others.retain(|&other| Some(other) != but);
        if !others.is_empty() {
            self.grouped.not.insert(group.to_path_buf(), APART.to_string());
        }
        for other in others {
            let place = self.decisions.place(other).map(<[u32]>::to_vec);
            self.place(other, place.as_deref())?;
        }
        Ok(())
    }

    /// Groups whose owners have chosen again, or that processes have joined or left.
    pub(super) fn look_at_groups(&mut self) -> Result<(), RegionsError> {
        for group in self.grouped.now.clone() {
            let members = self.linux.in_group(&group);
            let of = |(_, watched): &(&u32, &Watched)| watched.group.as_ref() == Some(&group);
            let placed = self.watched.iter().filter(of).map(|(&process, _)| process);
            let (placed, gone): (Vec<u32>, Vec<u32>) = placed.partition(|process| members.contains(process));
            self.unsettle(&gone, "its owner has put it into another control group");
            if placed.is_empty() {
                self.restored += self.undo.restore_group(&mut self.linux, &group)?;
                self.grouped.now.remove(&group);
            } else if self.undo.has_group(&mut self.linux, &group) != Some(true) {
                // The group has changed entirely: the record of it is only dropped.
                self.undo.restore_group(&mut self.linux, &group)?;
                self.grouped.now.remove(&group);
                self.unsettle(&placed, "the cpus of its control group were changed meanwhile");
                let why = "its owner has chosen its cpus meanwhile".to_string();
                self.grouped.not.insert(group, why);
            } else if members.iter().any(|member| !placed.contains(member)) {
                // A process that has joined must not be kept where the others belong.
                self.give_back_group(&group, None)?;
            }
        }
        Ok(())
    }

    /// They lose their places for an interval: decisions start over with them.
    fn unsettle(&mut self, these: &[u32], why: &str) {
        for process in these {
            if let Some(watched) = self.watched.get_mut(process) {
                watched.leave_group();
                watched.unsettled = Some(why.to_string());
            }
        }
    }

    /// How groups were placed, and why others were not.
    pub(super) fn notes_of_groups(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.grouped.ever.is_empty() {
            notes.push(format!(
                "control groups that were placed as a whole, by cpuset.cpus: {}",
                self.grouped.ever.len()
            ));
        }
        if let Some((group, why)) = self.grouped.not.iter().next() {
            notes.push(format!(
                "control groups whose cpuset was not used, or not to the end: {}; affinity was used there. One is {}: {why}",
                self.grouped.not.len(),
                group.display()
            ));
        }
        let stuck: Vec<String> = (self.undo.stuck_groups())
            .map(|(group, why)| format!("{}: {why}", group.display()))
            .collect();
        if !stuck.is_empty() {
            notes.push(format!(
                "control groups that could not have their own cpuset.cpus again: {}. {} keeps them, and the next start tries again",
                stuck.join("; "),
                self.undo.file().display()
            ));
        }
        notes
    }
}
