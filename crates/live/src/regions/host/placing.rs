//! The carrying out of decisions, and owners' own choices, which take precedence.

use results::PairingAction;
use sys::tasks::Demand;

use super::super::error::RegionsError;
use super::super::linux::Linux;
use super::super::log::{Action, Entry, Observed};
use super::super::undo::{NOT_NOW, not_now};
use super::{Host, LISTED};

impl<L: Linux> Host<L> {
    /// The cpus to which its owner has pinned a process: a thread may not use all cpus of its cpuset, and not by our choice.
    pub(super) fn pinned(&mut self, process: u32, threads: &[Demand], cpuset: &[u32]) -> Option<Vec<u32>> {
        let mut is_pinned = false;
        let mut masks = Vec::new();
        for thread in threads {
            let Some(mask) = self.linux.mask(process, thread.number) else {
                continue;
            };
            let is_free = cpuset.iter().all(|cpu| mask.contains(cpu));
            is_pinned |= !is_free && !self.undo.is_ours(process, thread, &mask, cpuset);
            masks.extend(mask);
        }
        is_pinned.then(|| {
            masks.sort_unstable();
            masks.dedup();
            masks
        })
    }

    /// Gives up processes that have a place and must be left alone from now on, since their owners have chosen
    /// again. That choice stands.
    pub(super) fn give_up(&mut self, observed: &Observed) -> Result<(), RegionsError> {
        for seen in observed.processes.iter().filter(|seen| seen.left.is_some()) {
            if self.watched.get(&seen.process).is_some_and(|watched| watched.placed) {
                self.place(seen.process, None)?;
            }
        }
        // No decision is made for a process that could not be looked at, so it keeps no place
        // either.
        let is_missing = |process: &u32| observed.processes.iter().all(|seen| seen.process != *process);
        let placed = self.watched.iter().filter(|(_, watched)| watched.placed);
        let missing: Vec<u32> = placed.map(|(&process, _)| process).filter(is_missing).collect();
        for process in missing {
            self.place(process, None)?;
        }
        Ok(())
    }

    pub(super) fn carry(&mut self, action: Action, at: u64) -> Result<(), RegionsError> {
        self.log.write(&Entry::Acts(action.clone()))?;
        let process = action.process;
        let failed = match self.config.acts {
            true => self.place(process, action.domains.as_deref())?,
            false => None,
        };
        if let Some(why) = &failed {
            self.log.write(&Entry::Failed {
                process,
                why: why.clone(),
            })?;
        }
        let name = self.watched.get(&process).map(|watched| watched.name.clone());
        self.actions_count += 1;
        self.actions.push_back(PairingAction {
            at_ns: at,
            process,
            name: name.unwrap_or_default(),
            domains: action.domains,
            why: action.why,
            failed,
        });
        if self.actions.len() > LISTED {
            self.actions.pop_front();
        }
        Ok(())
    }

    /// Places a process. Returns the obstacle, if any. A process that could not be placed is left alone from
    /// then on.
    pub(super) fn place(&mut self, process: u32, domains: Option<&[u32]>) -> Result<Option<String>, RegionsError> {
        let Some(domains) = domains else {
            self.leave_group(process)?;
            self.restored += self.undo.restore(&mut self.linux, process)?;
            if let Some(watched) = self.watched.get_mut(&process) {
                watched.placed = false;
            }
            return Ok(None);
        };
        let Some(cpuset) = self.own_cpuset(process) else {
            return Ok(Some("it has ended".to_string()));
        };
        let mut cpus: Vec<u32> = domains
            .iter()
            .flat_map(|&domain| self.domains[domain as usize].cpus.clone())
            .collect();
        cpus.retain(|cpu| cpuset.contains(cpu));
        cpus.sort_unstable();
        if !cpus.is_empty() && self.place_group(process, domains, &cpus)? {
            return Ok(None);
        }
        self.leave_group(process)?;
        let error = match cpus.is_empty() {
            true => Some(not_now("its cpuset has no cpu of that place any more")),
            false => self.undo.give(&mut self.linux, process, &cpus)?.err(),
        };
        if error.is_some() {
            self.restored += self.undo.restore(&mut self.linux, process)?;
        }
        if let Some(watched) = self.watched.get_mut(&process) {
            watched.placed = error.is_none();
            let lasting = error.as_ref().filter(|error| error.kind() != NOT_NOW);
            watched.refused = lasting.map(|error| format!("it cannot be placed: {error}"));
        }
        Ok(error.map(|error| error.to_string()))
    }
}
