//! Reasons in words.

use super::{Free, Why};

impl Why {
    /// The reason for a change, or for none.
    pub fn in_words(self) -> &'static str {
        match self {
            Why::Cpus => "threads get cpus that were idle, or fewer of them share a cpu",
            Why::Fullest => "the fullest cache gets less to hold",
            Why::Preferred => "a preferred program gets caches of its own",
            Why::Released => "a place gains nothing any more",
            Why::Nothing => "nothing is to be gained, or less than an eighth",
        }
    }
}

impl Free {
    /// The reason why a process has no place.
    pub fn in_words(self) -> &'static str {
        match self {
            Free::Fixed => "it is left alone",
            Free::Idle => "it is idle",
            Free::NoDomain => "it may use the cpus of no domain",
            Free::OneDomain => "it may use the cpus of one domain only",
            Free::OneFits => "one domain only has cpus for all of its busy threads",
            Free::Wide => "it keeps more cpus busy than it may use in one domain",
            Free::Taken => {
                "it may use none of the domains in its share: those of the preferred program, or those left to the others"
            }
            Free::Lost => "its cpuset has changed: it may not use the cpus of its place any more",
            Free::NoParts => "no program needs caches of its own any more",
            Free::NoGain => "a place of its own would gain nothing, or less than an eighth",
        }
    }
}
