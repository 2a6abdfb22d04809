//! Faults of writes: soft-dirty bits, cleared at each look, and the page faults that follow, sampled with thread and cpu.
//!
//! **What a count is.** The first write to a page since the bits were cleared, by the thread and on the cpu that made
//! it, or the first touch of a page that is new. Later writes of the interval, by any thread, are not seen: if several
//! nodes write a page, each look finds one of them, now this and now that. If bits are cleared more seldom
//! ([`super::rests`]), a count stands for as many.
//!
//! **What is not seen.** Reads. Samples that arrive while the rings of the cpus are full ([`sys::samples`]).
//!
//! **What it costs.** As [`super::dirty`], and every page fault of every process on the machine is sampled: CAP_PERFMON.

use sys::Root;
use sys::memory::{PAGE, Span};
use sys::samples::{Event, Sample};

use super::gathered::Gathered;
use super::rests::{Rests, works};
use super::{Lost, Probed, Scale, Source, Touched};

pub const NAME: &str = "write-faults";

struct Faults {
    gathered: Gathered,
    rests: Rests,
}

pub fn probe(root: &Root) -> Probed {
    if !works()? {
        return Err("the kernel keeps no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)".to_string());
    }
    let gathered = Gathered::begin(root, &Event::PAGE_FAULTS);
    Ok(Box::new(Faults {
        gathered: gathered.map_err(|why| format!("page faults cannot be sampled: {why}"))?,
        rests: Rests::default(),
    }))
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
        self.gathered.watch(process);
        Ok(())
    }

    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        self.gathered.gather();
        if !self.rests.is_watched(process) {
            return Err(Lost::Gone);
        }
        let Some(counts) = self.rests.look(process) else {
            return Ok(Vec::new());
        };
        let faults = self.gathered.take(process)?;
        self.rests.found(process, faults.len() as u64)?;
        Ok(touched(&faults, counts))
    }

    fn end(&mut self, process: u32) {
        self.rests.end(process);
        self.gathered.leave(process);
    }

    fn notes(&self) -> Vec<String> {
        self.gathered.notes("page faults")
    }
}

/// Pages that lie side by side and have the same writer are one span; of several writers of a page the first one counts.
fn touched(samples: &[Sample], counts: u32) -> Vec<Touched> {
    let fault = |sample: &Sample| (sample.address / PAGE, sample.thread, sample.cpu);
    let mut faults: Vec<_> = samples.iter().map(fault).collect();
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
    use sys::samples::Access;

    use super::*;

    #[test]
    fn pages_of_one_writer_are_one_span_and_the_first_writer_counts() {
        let sample = |(page, thread, cpu)| Sample {
            process: 1,
            thread,
            cpu,
            address: page * PAGE + 8,
            access: Access {
                write: None,
                missed: None,
            },
        };
        let faults = [(7, 1, 0), (5, 1, 0), (6, 1, 0), (6, 2, 3), (8, 2, 3), (10, 2, 3)];
        let found = touched(&faults.map(sample), 2);
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
