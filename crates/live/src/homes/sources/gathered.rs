//! The kernel's samples of all cpus, kept for each watched process until the next look at it.

use std::collections::HashMap;

use sys::Root;
use sys::cpus::cpus;
use sys::samples::{Event, Sample, Sampler};

use super::Lost;

/// Samples of a process that are kept until it is looked at.
const MOST: usize = 1 << 20;

pub struct Gathered {
    sampler: Sampler,
    pending: HashMap<u32, Vec<Sample>>,
    missed: u64,
}

impl Gathered {
    /// Begins to sample on all cpus. Errors: why it cannot.
    pub fn begin(root: &Root, event: &Event) -> Result<Gathered, String> {
        let online = cpus(root).map_err(|error| error.to_string())?.online;
        let sampler = Sampler::open(event, &online).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                format!("{error} (it takes CAP_PERFMON, or kernel.perf_event_paranoid=-1)")
            }
            _ => error.to_string(),
        })?;
        Ok(Gathered {
            sampler,
            pending: HashMap::new(),
            missed: 0,
        })
    }

    pub fn watch(&mut self, process: u32) {
        self.pending.insert(process, Vec::new());
    }

    pub fn leave(&mut self, process: u32) {
        self.pending.remove(&process);
    }

    /// Empties the rings of the cpus. Samples of other processes are skipped.
    pub fn gather(&mut self) {
        let pending = &mut self.pending;
        self.missed += self.sampler.take(|sample| {
            if let Some(samples) = pending.get_mut(&sample.process)
                && samples.len() < MOST
            {
                samples.push(sample);
            }
        });
    }

    /// The samples gathered of a process since the last call, in each cpu's order.
    pub fn take(&mut self, process: u32) -> Result<Vec<Sample>, Lost> {
        self.pending.get_mut(&process).map(std::mem::take).ok_or(Lost::Gone)
    }

    /// Reports the lost samples, of all processes of the machine.
    pub fn notes(&self, what: &str) -> Vec<String> {
        match self.missed {
            0 => Vec::new(),
            missed => vec![format!(
                "{missed} {what} of the machine were not seen: the rings were full"
            )],
        }
    }
}
