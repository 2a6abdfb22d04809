//! The end: everything is undone, and said.

use results::{LiveRegions, PairedProcess, PairingDomain, PairingMeasure, SourceNotUsed};

use super::super::error::RegionsError;
use super::super::linux::Linux;
use super::{Host, nanos};

/// Threads without their cpus that are named, at most.
const STUCK: usize = 8;

impl<L: Linux> Host<L> {
    /// Gives each thread the cpus that it had before, and reports the outcome.
    ///
    /// Errors: the state cannot be removed.
    pub fn end(mut self) -> Result<LiveRegions, RegionsError> {
        for &process in self.watched.keys() {
            self.choice.source.end(process);
        }
        self.restored += self.undo.restore_all(&mut self.linux)?;
        self.log.flush()?;
        let plan = self.decisions.plan();
        let domains = self.domains.iter().enumerate().map(|(at, domain)| {
            let load = |of: fn(&policy::regions::pairing::Plan) -> &Vec<policy::regions::pairing::Load>| {
                plan.map(|plan| of(plan)[at]).unwrap_or_default()
            };
            let (seen, after) = (load(|plan| &plan.seen), load(|plan| &plan.after));
            PairingDomain {
                cpus: domain.list(),
                level: domain.level,
                cache_bytes: domain.bytes,
                seen_bytes: seen.bytes,
                decided_bytes: after.bytes,
                seen_busy: seen.busy,
                decided_busy: after.busy,
            }
        });
        let mut processes: Vec<PairedProcess> = self.listed.values().cloned().collect();
        processes.sort_by_key(|process| {
            (
                process.domains.is_none(),
                std::cmp::Reverse(process.busy),
                process.process,
            )
        });
        let why = self.decisions.why().unwrap_or("no process was watched for long enough");
        let source = &self.choice.source;
        Ok(LiveRegions {
            acted: self.config.acts,
            source: source.name().to_string(),
            source_limit: source.limit().to_string(),
            other_sources: self
                .choice
                .others
                .iter()
                .map(|(name, why)| SourceNotUsed {
                    name: name.clone(),
                    why: why.clone(),
                })
                .collect(),
            preferred: self.config.preferred.clone(),
            domains: domains.collect(),
            processes,
            fullest_before_bytes: plan.map(|plan| plan.fullest_before),
            fullest_after_bytes: plan.map(|plan| plan.fullest_after),
            why: why.to_string(),
            actions: self.actions.iter().cloned().collect(),
            actions_count: self.actions_count,
            measure: self.measure(),
            trials: self.decisions.trials(),
            verified: self.decisions.verified(),
            restored_threads: self.restored,
            recovered_threads: self.recovered,
            intervals: self.intervals,
            own_ns: nanos(self.linux.own_time().saturating_sub(self.own_begun)),
            wall_ns: nanos(self.linux.now() - self.begun),
            notes: self.notes(),
        })
    }

    /// The unit of work by which changes are judged.
    fn measure(&self) -> Option<PairingMeasure> {
        if !self.config.acts {
            return None;
        }
        match &self.config.progress {
            Some(_) => Some(PairingMeasure::Progress),
            None if self.linux.uncountable().is_none() => Some(PairingMeasure::Instructions),
            None => None,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.config.acts && self.actions_count > 0 && !self.decisions.verified() {
            let why = match (&self.config.progress, self.linux.uncountable()) {
                (Some(file), _) => format!(
                    "{} held no numbers that grow for long enough, or the change lost",
                    file.display()
                ),
                (None, Some(why)) => {
                    format!("no progress was given (--progress FILE), and instructions cannot be counted here: {why}")
                }
                (None, None) => {
                    "no process ran for long enough before and after the last change, or it lost".to_string()
                }
            };
            notes.push(format!("the gain was not verified: {why}"));
        }
        notes.extend(self.stuck());
        notes.extend(self.notes_of_groups());
        if let Some(last) = &self.unread_last {
            notes.push(format!(
                "working sets that could not be read: {}; each was tried again in the next interval. The last one was that of {last}",
                self.unread
            ));
        }
        if let Some(name) = &self.config.preferred
            && !self.listed.values().any(|process| process.name == *name)
        {
            notes.push(format!(
                "no process that was watched is named {name}: nobody was preferred"
            ));
        }
        if self.domains.iter().all(|domain| domain.cpus.len() == 1) {
            let turns = "each cache serves one cpu: processes that share it take turns, so a place saves only what they bring in \
                         again after each turn";
            notes.push(turns.to_string());
        }
        let what = "memory that processes share counts for each of them, and the work of processes that are not watched does not \
                    count";
        notes.push(what.to_string());
        notes
    }

    /// Threads that do not have the cpus that they had before.
    fn stuck(&self) -> Option<String> {
        let all: Vec<_> = self.undo.stuck().collect();
        let said = all.iter().take(STUCK);
        let said: Vec<String> = said
            .map(|stuck| format!("thread {} of process {}: {}", stuck.thread, stuck.process, stuck.why))
            .collect();
        let more = match all.len() > STUCK {
            true => "; and others",
            false => "",
        };
        (!all.is_empty()).then(|| {
            format!(
                "threads that could not have the cpus again that they had before: {} ({}{more}). {} keeps them, and the next start \
                 tries again",
                all.len(),
                said.join("; "),
                self.undo.file().display()
            )
        })
    }
}
