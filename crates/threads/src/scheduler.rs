//! The scheduler (skeleton: the interface stands, the store below does not yet).

use std::num::NonZeroUsize;

use policy::order::{Bins, Shape, Tour};

use crate::{Error, Inside, ThreadId};

/// What becomes of the threads that a run has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are gone.
    No,
    /// They stay, so that the next run runs them again.
    Yes,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Threads that ran, those forked inside among them.
    pub threads: u64,
    /// Bins that the tour visited.
    pub bins: u64,
    /// Workers that took part.
    pub workers: usize,
}

/// Pending threads in their bins.
pub struct Scheduler<T> {
    bins: Bins,
    tour: Tour,
    items: Vec<Vec<T>>,
}

impl<T> Scheduler<T> {
    /// A scheduler without threads. Takes no memory until the first fork.
    pub fn new(shape: Shape, tour: Tour) -> Scheduler<T> {
        Scheduler {
            bins: Bins::new(shape),
            tour,
            items: Vec::new(),
        }
    }

    /// Takes a thread with its hints; it runs at the next run.
    pub fn fork(&mut self, hints: &[u64], item: T) -> Result<ThreadId, Error> {
        let bin = self.bins.bin(hints)? as usize;
        if bin >= self.items.len() {
            self.items.push(Vec::new());
        }
        self.items[bin].push(item);
        Ok(ThreadId { epoch: 0, place: 0 })
    }

    /// [`Scheduler::fork`] of a thread that runs after these.
    pub fn fork_after(&mut self, hints: &[u64], item: T, _earlier: &[ThreadId]) -> Result<ThreadId, Error> {
        self.fork(hints, item)
    }

    /// Makes a pending thread wait for another.
    pub fn depend(&mut self, _later: ThreadId, _earlier: ThreadId) -> Result<(), Error> {
        Ok(())
    }

    /// Makes room for so many threads in all, in so many bins, and touches the memory.
    pub fn reserve(&mut self, _threads: usize, _bins: usize) -> Result<(), Error> {
        Ok(())
    }

    /// Pending threads.
    pub fn len(&self) -> usize {
        self.items.iter().map(Vec::len).sum()
    }

    /// Whether no thread is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bins that hold pending threads.
    pub fn bins(&self) -> usize {
        self.bins.len()
    }

    /// Bytes of memory held for pending threads and for those to come.
    pub fn memory_bytes(&self) -> usize {
        self.bins.memory_bytes()
    }

    /// Forgets all pending threads.
    pub fn clear(&mut self) {
        self.bins.clear();
        self.items.clear();
    }

    /// Gives memory back that no pending thread needs.
    pub fn shrink(&mut self) {}

    /// Runs all pending threads on the calling operating system thread.
    pub fn run<F>(&mut self, keep: Keep, mut body: F) -> Result<Report, Error>
    where
        F: FnMut(&T, &mut Inside<T>),
    {
        let mut report = Report {
            workers: 1,
            ..Report::default()
        };
        loop {
            let mut inside = Inside {
                hints: self.bins.shape().hints(),
                outbox: Vec::new(),
            };
            for bin in self.bins.tour(self.tour) {
                report.bins += 1;
                for item in &self.items[bin as usize] {
                    body(item, &mut inside);
                    report.threads += 1;
                }
            }
            if keep == Keep::No {
                self.clear();
            }
            if inside.outbox.is_empty() {
                return Ok(report);
            }
            for (hints, item) in inside.outbox {
                self.fork(&hints, item)?;
            }
        }
    }

    /// [`Scheduler::run`] with several workers: the calling thread and `workers - 1` more.
    pub fn run_on<F>(&mut self, _workers: NonZeroUsize, keep: Keep, body: F) -> Result<Report, Error>
    where
        T: Send + Sync,
        F: Fn(&T, &mut Inside<T>) + Sync,
    {
        self.run(keep, body)
    }
}
