//! The abilities of a running thread: it can fork further ones.

use std::collections::VecDeque;

use policy::order::HINTS_MAX;

use crate::Error;

/// Passed to a running thread, so that it can fork further ones, and see which worker runs it.
pub struct Inside<T> {
    pub(crate) worker: usize,
    pub(crate) outbox: Outbox<T>,
}

impl<T> Inside<T> {
    /// Forks a thread from inside a running one. It runs in the same run, as a separate thread, after this one has
    /// returned: in its bin if that has not been passed, else its bin gets another turn at the end of the tour.
    ///
    /// It is never kept, even if the run keeps threads: running its parent again forks it again.
    pub fn fork(&mut self, hints: &[u64], item: T) -> Result<(), Error> {
        if hints.len() != self.outbox.dimensions {
            return Err(Error::Hints {
                expected: self.outbox.dimensions,
                given: hints.len(),
            });
        }
        self.outbox.items.try_reserve(1)?;
        self.outbox.hints.try_reserve(hints.len())?;
        self.outbox.hints.extend(hints);
        self.outbox.items.push_back(item);
        Ok(())
    }

    /// The number of the worker that runs this thread: 0 is the caller of the run.
    pub fn worker(&self) -> usize {
        self.worker
    }
}

/// Threads forked inside that have not reached their bins: at most those of one group, unless there is no memory.
pub(crate) struct Outbox<T> {
    dimensions: usize,
    /// `dimensions` for each thread.
    hints: VecDeque<u64>,
    items: VecDeque<T>,
}

impl<T> Outbox<T> {
    pub fn new(dimensions: usize) -> Outbox<T> {
        Outbox {
            dimensions,
            hints: VecDeque::new(),
            items: VecDeque::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The first thread, without its hints: to be run right away.
    pub fn take(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.hints.drain(..self.dimensions);
        Some(item)
    }

    /// Passes threads on in order, until one is returned. Returns whether all were taken.
    pub fn empty_into(&mut self, mut take: impl FnMut(&[u64], T) -> Result<(), T>) -> bool {
        while let Some(item) = self.items.pop_front() {
            let mut hints = [0; HINTS_MAX];
            for (to, &hint) in hints.iter_mut().zip(self.hints.iter()).take(self.dimensions) {
                *to = hint;
            }
            if let Err(item) = take(&hints[..self.dimensions], item) {
                self.items.push_front(item);
                return false;
            }
            self.hints.drain(..self.dimensions);
        }
        true
    }
}
