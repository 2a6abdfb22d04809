//! Identifiers of threads.

use std::fmt;

/// Identifies a forked thread, so that later ones can wait for it.
///
/// It is valid until a run has run the thread and not kept it. An older id means "this thread has run": nothing needs
/// to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    pub(crate) epoch: u32,
    pub(crate) place: u32,
}

impl ThreadId {
    /// The id as one number, for interfaces without structures.
    pub fn to_bits(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.place)
    }

    /// The id from [`ThreadId::to_bits`]. Other numbers are ids of threads that were never forked.
    pub fn from_bits(bits: u64) -> ThreadId {
        ThreadId {
            epoch: (bits >> 32) as u32,
            place: bits as u32,
        }
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.place)
    }
}
