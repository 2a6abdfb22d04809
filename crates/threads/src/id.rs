//! Names of threads.

use std::fmt;

/// Names a thread that was forked, so that later ones can wait for it.
///
/// It holds until a run has run the thread and not kept it. A name from before that still says "this thread has run":
/// whoever waits for it need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    pub(crate) epoch: u32,
    pub(crate) place: u32,
}

impl ThreadId {
    /// The name as one number, for interfaces that have no structures.
    pub fn to_bits(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.place)
    }

    /// The name that [`ThreadId::to_bits`] gave. Other numbers name threads that were never forked.
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
