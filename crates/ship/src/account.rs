//! Counts of calls: where they ran, and why.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The reason why work runs on its caller's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inline {
    /// The caller is at the cache already.
    Here,
    /// The process may use one cache only.
    OneCache,
    /// This is a child of fork, where there are no workers.
    Forked,
    /// All data with a home fits into one cache (condition 2).
    FitsOneCache,
    /// All caches together are too small for the data (condition 3).
    FitsNoCaches,
    /// The work takes less time than four hand-overs, to a sleeping worker if it sleeps (condition 1). The mean of the
    /// home's calls counts.
    TooShort,
    /// Both ways were timed in turn, and shipping was not faster. It is tried again from time to time.
    NoGain,
    /// The worker's nested work is too deep, because its stack is finite: work within work that waits for others.
    Nested,
}

impl Inline {
    pub const ALL: [Inline; 8] = [
        Inline::Here,
        Inline::OneCache,
        Inline::Forked,
        Inline::FitsOneCache,
        Inline::FitsNoCaches,
        Inline::TooShort,
        Inline::NoGain,
        Inline::Nested,
    ];
}

impl fmt::Display for Inline {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Inline::Here => "the caller was at the cache",
            Inline::OneCache => "the process may use one cache only: nothing is to be gained",
            Inline::Forked => "a child of fork has no workers",
            Inline::FitsOneCache => "all data fits into one cache",
            Inline::FitsNoCaches => "all caches together are too small for the data",
            Inline::TooShort => "the work takes less time than four hand-overs",
            Inline::NoGain => "shipping was not faster, by calls that were timed both ways",
            Inline::Nested => "the worker is within work of others already",
        })
    }
}

/// Calls so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Calls whose work went to another cache.
    pub shipped: u64,
    /// Calls that ran on the caller's thread, by reason; only reasons that occurred.
    pub inline: Vec<(Inline, u64)>,
}

#[derive(Default)]
pub(crate) struct Counts {
    shipped: AtomicU64,
    inline: [AtomicU64; Inline::ALL.len()],
}

impl Counts {
    pub fn shipped(&self) {
        self.shipped.fetch_add(1, Ordering::Relaxed);
    }

    pub fn inline(&self, why: Inline) {
        self.inline[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn account(&self) -> Account {
        let of = |why: Inline| (why, self.inline[why as usize].load(Ordering::Relaxed));
        Account {
            shipped: self.shipped.load(Ordering::Relaxed),
            inline: Inline::ALL
                .into_iter()
                .map(of)
                .filter(|(_, calls)| *calls > 0)
                .collect(),
        }
    }
}
