//! Errors of ways.

use std::path::PathBuf;

use policy::slots::Kind;

/// The reason why there is no slot of ways. The error changes nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaysError {
    #[error("resctrl is not mounted; where processor and kernel have it: mount -t resctrl resctrl /sys/fs/resctrl")]
    NotMounted,
    #[error("resctrl does not share out the ways of level {level} on this processor")]
    NoCache { level: u32 },
    #[error("Linux does not report which cache of level {level} cpu {cpu} has")]
    UnknownCpu { cpu: u32, level: u32 },
    #[error("resctrl does not know cache {cache}")]
    UnknownCache { cache: u32 },
    #[error("no cpus: say which ones run the threads")]
    NoCpus,
    /// Over-committed.
    #[error("not enough ways: {}", each(.free))]
    Full { kind: Kind, free: Vec<FreeWays> },
    #[error("the processor has no number left for another group (num_closids); free slots, or remove groups of others")]
    NoGroups,
    #[error("there is no thread {thread}")]
    NoThread { thread: u32 },
    #[error("{}: cannot {what}: {source}{said}", .path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
        /// The kernel's own reason, if it has one.
        said: String,
    },
    #[error("{} holds {found:?} where {expected} was expected", .path.display())]
    Malformed {
        path: PathBuf,
        found: String,
        expected: &'static str,
    },
}

/// The free part of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeWays {
    /// The kernel's number of the cache.
    pub cache: u32,
    /// Ways asked for, and as many as the slot could have had.
    pub asked: u32,
    pub free: u32,
    pub way_bytes: u64,
}

fn each(free: &[FreeWays]) -> String {
    let one = |free: &FreeWays| {
        format!(
            "cache {} can give {} of {} ways ({} of {} KiB)",
            free.cache,
            free.free,
            free.asked,
            u64::from(free.free) * free.way_bytes / 1024,
            u64::from(free.asked).saturating_mul(free.way_bytes) / 1024
        )
    };
    free.iter().take(8).map(one).collect::<Vec<_>>().join("; ")
}
