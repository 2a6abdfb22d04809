//! Windows of a trace that are counted, each after the part that warmed its caches.
//!
//! The counts of a window are put aside when it ends. Everything from then until the next one is counted happens, but
//! counts for nothing. At the end of the run the counts put aside are the result.

use results::{CountedWindow, Prefetches, Windows};

use crate::clock::{Spent, Units, whole_ns};
use crate::counts::{CacheCounts, Class, CpuCounts, PageCounts};
use crate::engine::Engine;
use crate::memory::Moved;

/// The progress of a run through the windows of its trace.
#[derive(Debug, Default)]
pub struct Counting {
    /// The window counted last, or at present.
    window: Option<u32>,
    counts: bool,
}

impl Counting {
    /// A thread reaches a window. Returns whether that ends the present counting.
    pub fn window(&mut self, index: u32) -> bool {
        let ends = self.counts && self.window < Some(index);
        self.counts &= !ends;
        ends
    }

    /// A thread reaches the point from which a window is counted. Returns whether counting begins now; true only for
    /// the first thread.
    pub fn counted(&mut self, index: u32) -> bool {
        let begins = self.window < Some(index);
        if begins {
            (self.window, self.counts) = (Some(index), true);
        }
        begins
    }

    pub fn counts(&self) -> bool {
        self.counts
    }
}

/// The counts of windows that have ended.
#[derive(Debug)]
pub struct Aside {
    /// By cpu and kind.
    counts: Vec<CacheCounts>,
    cpus: Vec<CpuAside>,
    moved: Moved,
    pages: PageCounts,
    prefetches: Vec<Prefetches>,
    windows: Vec<CountedWindow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuAside {
    spent: Spent,
    counts: CpuCounts,
    ran: Units,
}

impl Aside {
    pub fn new(engine: &Engine) -> Box<Aside> {
        let asked = engine.software_prefetch.as_ref();
        Box::new(Aside {
            counts: vec![CacheCounts::default(); engine.counts.len()],
            cpus: vec![CpuAside::default(); engine.cpus.len()],
            moved: Moved::default(),
            pages: PageCounts::default(),
            prefetches: vec![Prefetches::default(); asked.map_or(0, |prefetches| prefetches.counts.len())],
            windows: Vec::new(),
        })
    }

    /// Resets all counts.
    pub fn restart(&mut self) {
        self.counts.fill(CacheCounts::default());
        self.cpus.fill(CpuAside::default());
        self.prefetches.fill(Prefetches::default());
        (self.moved, self.pages) = (Moved::default(), PageCounts::default());
        self.windows.clear();
    }
}

impl Engine {
    /// Counting ends here, as at a run's end: cpus have waited for the last. The counts are put aside.
    pub fn put_aside(&mut self) {
        // Misses undecided at the end were false sharing; if one turns out to be something else it no longer counts.
        for pending in self.directory.records.undecided() {
            self.decide(pending, Class::FalseSharing);
        }
        self.directory.records.discard();
        if let Some(detail) = &mut self.detail {
            detail.quiet = true;
        }
        let window = self.window();
        let Some(aside) = &mut self.aside else { return };
        aside.windows.push(window);
        for (sum, counts) in aside.counts.iter_mut().zip(&self.counts) {
            sum.add(counts);
        }
        for (sum, cpu) in aside.cpus.iter_mut().zip(&self.cpus) {
            sum.spent.add(&cpu.spent);
            sum.counts.add(&cpu.counts);
            sum.ran += cpu.clock - cpu.begin;
        }
        aside.moved.add(&self.memory.moved);
        aside.pages.add_actions(&self.homes.counts);
        if let Some(prefetches) = &self.software_prefetch {
            for (sum, counts) in aside.prefetches.iter_mut().zip(&prefetches.counts) {
                *sum = sum.plus(*counts);
            }
        }
    }

    /// The figures of the window that has been counted.
    fn window(&self) -> CountedWindow {
        let kinds = self.layout.caches.len();
        let misses = |kind: usize| {
            self.counts
                .iter()
                .skip(kind)
                .step_by(kinds)
                .map(|counts| counts.misses)
                .sum()
        };
        let ran = self.cpus.iter().map(|cpu| cpu.clock - cpu.begin).max();
        CountedWindow {
            references: self.cpus.iter().map(|cpu| cpu.counts.references).sum(),
            wall_ns: whole_ns(ran.unwrap_or(0)),
            misses: (0..kinds).map(misses).collect(),
        }
    }

    /// The run is over: the counts put aside are its result. `None` if its trace has no windows that are warmed.
    pub fn take_back(&mut self, of_references: Option<u64>) -> Option<Windows> {
        let aside = self.aside.take()?;
        self.counts = aside.counts;
        for (cpu, of) in self.cpus.iter_mut().zip(aside.cpus) {
            (cpu.spent, cpu.counts, cpu.begin) = (of.spent, of.counts, cpu.clock - of.ran);
        }
        self.memory.moved = aside.moved;
        self.homes.counts.replace_actions(&aside.pages);
        if let Some(prefetches) = &mut self.software_prefetch {
            prefetches.counts = aside.prefetches;
        }
        Some(Windows::new(aside.windows, of_references))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thread_begins_a_window_and_the_first_at_the_next_ends_it() {
        let mut counting = Counting::default();
        assert!(!counting.window(0) && !counting.counts());
        assert!(counting.counted(0) && counting.counts());
        // Another thread comes later.
        assert!(!counting.window(0) && !counting.counted(0) && counting.counts());
        assert!(counting.window(1) && !counting.counts());
        assert!(!counting.window(1) && !counting.counted(0) && !counting.counts());
        assert!(counting.counted(1) && counting.counts());
    }
}
