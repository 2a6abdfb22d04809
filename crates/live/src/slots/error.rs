//! Errors of slots, worded so that a program can act on them and a person can mend them.

use policy::slots::{InvalidCaches, Refused};

use crate::resctrl::WaysError;

/// The reason why a call failed. No data has changed, and no colors are held for a refused request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no colors, or no means of moving pages; what to change is in the text.
    #[error(transparent)]
    Live(#[from] crate::Error),
    /// The ledger of this process refuses; over-commitment tells the free part, and its cache.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The daemon's ledger refuses; `full`: because of over-commitment.
    #[error("the daemon refuses: {text}")]
    Daemon { full: bool, text: String },
    /// A slot of ways could not be had.
    #[error(transparent)]
    Ways(#[from] WaysError),
    #[error("caches that cannot be: {0}")]
    Caches(#[from] InvalidCaches),
    #[error("addresses {start:#x} to {end:#x}: {why}")]
    Range {
        start: usize,
        end: usize,
        why: &'static str,
    },
    /// All of its pages are shared with something else.
    #[error(
        "the data set covers no page whole ({bytes} bytes in {ranges} ranges): slots go by pages of 4096 bytes; allocate the data page-aligned, or put small data together"
    )]
    NoWholePage { ranges: usize, bytes: u64 },
    #[error("addresses {start:#x} to {end:#x} are placed already, in another data set; free that one first")]
    Overlap { start: usize, end: usize },
    /// Discarding makes zeros of memory, which takes that it is lent for that.
    #[error("part of the data set is used by others, or was given by its address: it is not the data set's to discard")]
    NotLent,
    #[error("there is no thread {thread}: {source}")]
    NoThread { thread: u32, source: std::io::Error },
    #[error("the group has no threads and no cpus; add those that use the data, or take all of them")]
    NoThreads,
    #[error("{asked} processors are asked for; the process may use {there} shared caches ({cache})")]
    Processors { asked: u32, there: u32, cache: String },
    #[error("cpu {cpu} is none that the process may use: {allowed}")]
    Cpu { cpu: u32, allowed: String },
    #[error("the slot belongs to another application")]
    OtherApplication,
    #[error("the application has exited; its data sets and slots are gone")]
    Exited,
    /// A child of fork has neither frames of its parent nor its connections.
    #[error("the application was started by process {parent}, before a fork; start one in this process")]
    Forked { parent: u32 },
}

impl Error {
    /// Returns whether less would have been granted: over-commitment, of cache or of frames.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Daemon { full, .. } => *full,
            Error::Ways(WaysError::Full { .. }) => true,
            Error::Refused(refused) => matches!(
                refused,
                Refused::Full { .. } | Refused::Taken { .. } | Refused::TooLarge { .. } | Refused::Frames { .. }
            ),
            _ => false,
        }
    }
}
