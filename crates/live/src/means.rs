//! The facilities that the pool and the engine use, and the reasons for them.

use std::fmt;

use crate::{Colors, Supply};

/// The facilities that the engine is to use. [`Config::new`] chooses those that work best here.
pub struct Config {
    pub colors: Colors,
    /// Asked for frames before the process's own pool: the daemon.
    pub supply: Option<Box<dyn Supply>>,
    /// Only this way of bringing frames into place.
    pub placing: Option<Placing>,
    /// Only this way of knowing the colors of our own frames.
    pub knowledge: Option<Knowledge>,
    /// The locking of colored ranges in memory.
    pub lock: Lock,
    /// Bytes of frames that the own pool keeps for later.
    pub reserve_bytes: u64,
    /// Bytes of frames that the own pool may hold while it looks for those it needs; half of the
    /// memory that is available, if that is less.
    pub collect_bytes: u64,
    /// How many mappings the process may have after [`Placing::Remap`]; never more than
    /// `vm.max_map_count`.
    pub mappings: usize,
    /// How many pages are in flight at a time while others run.
    pub batch: usize,
}

impl Config {
    pub fn new(colors: Colors) -> Config {
        Config {
            colors,
            supply: None,
            placing: None,
            knowledge: None,
            lock: Lock::default(),
            reserve_bytes: 32 << 20,
            collect_bytes: 8 << 30,
            mappings: 32_000,
            batch: 64,
        }
    }
}

/// The locking of pages once they are colored. It prevents only swapping; against moves for compaction
/// see [`repair`](crate::Engine::repair).
///
/// A locked range is not quite the program's any more: `madvise` does not empty it, and its bytes count
/// against the program's limit (`RLIMIT_MEMLOCK`). So pages are locked only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lock {
    #[default]
    Never,
    /// Locks if the limit of locked memory allows and no mapping has to be split for it.
    Free,
    /// Locks if the limit of locked memory allows.
    Allowed,
}

/// How frames come into place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// `UFFDIO_MOVE`: the page keeps its address, no mapping is added (Linux 6.8).
    Move,
    /// The frames wanted are freed and at once taken again at their place, from the cpu's own list
    /// of free frames, which hands out first the frame freed last. Needs a page map that shows
    /// frames.
    Refill,
    /// `mremap` of pool pages that the content was copied to: a mapping more for each run.
    Remap,
}

/// How the colors of our own frames are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// `/proc/self/pagemap` shows frame numbers (CAP_SYS_ADMIN).
    Pagemap,
    /// A transparent huge page fixes bits 12 to 20 of the addresses of its frames.
    HugePages,
}

/// The facilities in use; each line with its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Means {
    pub placing: Option<Placing>,
    pub knowledge: Option<Knowledge>,
    /// True if ranges that others use may be colored.
    pub running: bool,
    /// True if a child has every page of such ranges whatever call makes it: also `_Fork` and a bare `clone`, which
    /// run no handlers. If false, only `fork` is held while pages are in flight, and a child made by another call
    /// meanwhile may find zeros.
    pub forks: bool,
    /// Each facility and the reason for it, a sentence each.
    pub reasons: Vec<String>,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reasons.iter().try_for_each(|reason| writeln!(f, "{reason}"))
    }
}
