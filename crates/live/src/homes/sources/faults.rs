//! Faults of writes: soft-dirty bits, cleared at each look, and the page faults that follow, sampled with thread and cpu.
//!
//! **What a count is.** The first write to a page since the bits were cleared, by the thread and on the cpu that made it, or the
//! first touch of a page that is new. Later writes of the interval, by whomever, are not seen: of a page that several nodes
//! write, each look finds one, now this and now that. Where bits are cleared more seldom ([`super::rests`]), a count is as many.
//!
//! **What is not seen.** Reads. What comes while the rings of the cpus are full ([`sys::samples`]).
//!
//! **What it costs.** As [`super::dirty`], and every page fault of every process on the machine is sampled: CAP_PERFMON.

use std::collections::HashMap;

use sys::Root;
use sys::cpus::cpus;
use sys::memory::{PAGE, Span};
use sys::samples::Sampler;

use super::rests::{Rests, works};
use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "write-faults";

/// Faults of a process that are kept until it is looked at.
const MOST: usize = 1 << 20;

struct Faults {
    sampler: Sampler,
    rests: Rests,
    /// By process: page, thread and cpu.
    pending: HashMap<u32, Vec<(usize, u32, u32)>>,
    missed: u64,
}

pub fn probe(root: &Root) -> Probed {
    if !works()? {
        return Err("the kernel keeps no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)".to_string());
    }
    let online = cpus(root).map_err(|error| error.to_string())?.online;
    let sampler = Sampler::page_faults(&online).map_err(|error| {
        format!("page faults cannot be sampled: {error} (CAP_PERFMON, or kernel.perf_event_paranoid=-1)")
    })?;
    Ok(Box::new(Faults {
        sampler,
        rests: Rests::default(),
        pending: HashMap::new(),
        missed: 0,
    }))
}

impl Faults {
    fn gather(&mut self) {
        let pending = &mut self.pending;
        self.missed += self.sampler.take(|sample| {
            if let Some(faults) = pending.get_mut(&sample.process)
                && faults.len() < MOST
            {
                faults.push((sample.address / PAGE, sample.thread, sample.cpu));
            }
        });
    }
}

impl Source for Faults {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> String {
        "the first write to a page since the look before, with its cpu; reads are not seen".to_string()
    }

    fn scale(&self) -> Scale {
        Scale::Looks(1)
    }

    fn knows_writes(&self) -> bool {
        true
    }

    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        self.rests.begin(process)?;
        self.pending.insert(process, Vec::new());
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        self.gather();
        let Some(faults) = self.pending.get_mut(&process) else {
            return Err(Lost::Gone);
        };
        let Some(counts) = self.rests.look(process) else {
            return Ok(Vec::new());
        };
        let faults = std::mem::take(faults);
        self.rests.found(process, faults.len() as u64)?;
        Ok(touched(faults, counts))
    }

    fn end(&mut self, process: u32) {
        self.rests.end(process);
        self.pending.remove(&process);
    }

    fn notes(&self) -> Vec<String> {
        match self.missed {
            0 => Vec::new(),
            missed => vec![format!(
                "{missed} page faults of the machine were not seen: the rings were full"
            )],
        }
    }
}

/// Pages that lie side by side and have the same writer are one span; of several writers of a page the first one counts.
fn touched(mut faults: Vec<(usize, u32, u32)>, counts: u32) -> Vec<Touched> {
    // Stable: the first fault of a page stays before the others.
    faults.sort_by_key(|(page, ..)| *page);
    faults.dedup_by_key(|(page, ..)| *page);
    let mut found: Vec<Touched> = Vec::new();
    for (page, thread, cpu) in faults {
        let (start, by) = (page * PAGE, Some((thread, cpu)));
        match found
            .last_mut()
            .filter(|last| last.span.end() == start && last.by == by)
        {
            Some(last) => last.span.bytes += PAGE,
            None => found.push(Touched {
                span: Span::new(start, PAGE),
                counts,
                by,
                write: Some(true),
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_writer_are_one_span_and_the_first_writer_counts() {
        let found = touched(
            vec![(7, 1, 0), (5, 1, 0), (6, 1, 0), (6, 2, 3), (8, 2, 3), (10, 2, 3)],
            2,
        );
        let spans: Vec<_> = found
            .iter()
            .map(|touched| (touched.span.start / PAGE, touched.span.bytes / PAGE, touched.by))
            .collect();
        assert_eq!(
            spans,
            [(5, 3, Some((1, 0))), (8, 1, Some((2, 3))), (10, 1, Some((2, 3)))]
        );
        assert!(
            found
                .iter()
                .all(|touched| touched.counts == 2 && touched.write == Some(true))
        );
    }
}
