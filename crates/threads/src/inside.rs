//! What a running thread can do.

use crate::Error;

/// Given to a running thread: forks further ones.
pub struct Inside<T> {
    pub(crate) hints: usize,
    pub(crate) outbox: Vec<(Vec<u64>, T)>,
}

impl<T> Inside<T> {
    /// Forks a thread from inside a running one. It runs in the same run.
    pub fn fork(&mut self, hints: &[u64], item: T) -> Result<(), Error> {
        if hints.len() != self.hints {
            return Err(Error::Hints {
                expected: self.hints,
                given: hints.len(),
            });
        }
        self.outbox.push((hints.to_vec(), item));
        Ok(())
    }

    /// Which worker runs this thread, from 0.
    pub fn worker(&self) -> usize {
        0
    }
}
