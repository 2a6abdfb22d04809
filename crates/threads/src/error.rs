//! Errors between a fork and its run.

use policy::order::BinsError;
use thiserror::Error;

use crate::ThreadId;

/// Why a thread was refused, or a run did not begin. Threads forked before are unchanged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    #[error("a thread of this scheduler has {expected} hints, not {given}")]
    Hints { expected: usize, given: usize },
    #[error("out of memory: the thread was not forked; those forked before are still pending")]
    OutOfMemory,
    #[error("too many threads are pending: run them first")]
    TooMany,
    #[error("these threads would wait for each other: {}", names(.0))]
    Cycle(Vec<ThreadId>),
    #[error("thread {0} has run already: it cannot wait any more")]
    HasRun(ThreadId),
    #[error("this scheduler never forked thread {0}")]
    Unknown(ThreadId),
}

impl From<BinsError> for Error {
    fn from(error: BinsError) -> Self {
        match error {
            BinsError::Hints { expected, given } => Error::Hints { expected, given },
            BinsError::OutOfMemory => Error::OutOfMemory,
        }
    }
}

impl From<std::collections::TryReserveError> for Error {
    fn from(_: std::collections::TryReserveError) -> Self {
        Error::OutOfMemory
    }
}

/// "3 before 7 before 3".
fn names(cycle: &[ThreadId]) -> String {
    let mut text = String::new();
    for id in cycle.iter().chain(cycle.first()) {
        if !text.is_empty() {
            text.push_str(" before ");
        }
        text.push_str(&id.to_string());
    }
    text
}
