//! The report of the run.

use std::collections::BTreeSet;

use results::{LiveHomes, SourceNotUsed};

use super::super::error::HomesError;
use super::super::linux::Linux;
use super::super::sources::faults;
use super::{Host, nanos};

impl<L: Linux> Host<L> {
    /// Ends watching, and reports the outcome.
    pub fn report(mut self) -> Result<LiveHomes, HomesError> {
        let kernel = self.choice.source.kernel_time();
        let still: BTreeSet<u32> = self.watched.keys().copied().collect();
        for process in still {
            self.leave(process, None)?;
        }
        self.log.flush()?;
        let mut source = self.choice.source;
        let knows_writes = source.knows_writes() || self.config.tell_writes;
        // The kernel's time may have grown until the last process was left.
        let kernel = source.kernel_time().or(kernel);
        let mut notes = self.notes;
        notes.extend(source.notes());
        let samples = &self.tally.samples;
        if 2 * samples.shared > samples.local + samples.remote {
            notes.push(format!(
                "most counts are of several nodes, whose pages stay: source {} knows which cpu wrote",
                faults::NAME
            ));
        }
        Ok(LiveHomes {
            exit_code: None,
            policy: self.decisions.name().to_string(),
            settings: self.decisions.settings().to_vec(),
            source: source.name().to_string(),
            counts: source.counts(),
            writes_known: knows_writes,
            other_sources: self
                .choice
                .others
                .into_iter()
                .map(|(name, why)| SourceNotUsed { name, why })
                .collect(),
            nodes: self.layout.nodes().to_vec(),
            kernel_balancing: self.balancing,
            processes: self.processes,
            moves: self.tally.moves(self.moving),
            replication: Vec::new(),
            samples: self.tally.samples.clone(),
            intervals: self.tally.intervals().to_vec(),
            own_ns: nanos(self.linux.own_time().saturating_sub(self.own_begun)),
            kernel_ns: kernel.map(nanos),
            wall_ns: nanos(self.linux.now() - self.begun),
            notes,
        })
    }
}
