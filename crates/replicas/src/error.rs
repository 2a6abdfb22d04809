//! Errors of replicated data.

use std::io;

/// Why a call was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("replicated data of 0 bytes; give it its first contents")]
    Empty,
    #[error("{given} elements for replicated data of {length}; new contents are as long as the old ones")]
    Length { given: usize, length: usize },
    #[error("elements {first} to {end} of replicated data that has {length}")]
    Beyond { first: usize, end: usize, length: usize },
    #[error(
        "the calling thread is inside a region of this data and would wait for itself; leave the region, then write"
    )]
    Inside,
    #[error(
        "the calling thread is changing this data already and would wait for itself; change what it was given, or write afterwards"
    )]
    Writing,
    #[error("this data is the parent's: a process that was forked may read what it found, and makes its own to write")]
    Forked,
    #[error("{bytes} bytes of memory for a copy: {source}")]
    Memory { bytes: usize, source: io::Error },
    #[error("{doing}: {source}")]
    Shared { doing: &'static str, source: io::Error },
    #[error("what was handed over cannot be attached to: {0}")]
    Foreign(&'static str),
    #[error("this process has something else at address {address:#x}, or is attached already")]
    Occupied { address: usize },
    #[error("{most} processes are attached already, and there can be no more")]
    Crowded { most: usize },
    #[error("no barrier in other threads (membarrier): {0}; nothing was changed")]
    NoBarrier(io::Error),
    #[error("the new contents are in place, but threads inside a region may still read the old ones (membarrier): {0}")]
    Unconfirmed(io::Error),
}

impl Error {
    /// True if the contents are certainly what they were before the call.
    pub fn nothing_changed(&self) -> bool {
        !matches!(self, Error::Unconfirmed(_) | Error::Shared { .. })
    }
}
