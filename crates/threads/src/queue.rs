//! A worker's queue: its remaining part of the tour.
//!
//! A queue is only a range of positions in the tour, so it fits into one atomic word, and every step is one
//! compare-and-swap of the whole state. The owner takes from the near end; a thief takes the far half, which is
//! farthest from the contents of the owner's cache. A position is in one queue, or with the one worker that took it
//! out.

use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::sync::AtomicU64;

/// The positions `near..far`, near in the low half of the word.
pub struct Queue(AtomicU64);

impl Queue {
    pub fn new(positions: Range<u32>) -> Queue {
        Queue(AtomicU64::new(pack(positions)))
    }

    /// The owner's next position.
    pub fn take(&self) -> Option<u32> {
        self.change(|left| (left.start..left.start + 1, left.start + 1..left.end))
            .map(|taken| taken.start)
    }

    /// The far half, for another worker: at least one position unless there is none.
    pub fn steal(&self) -> Option<Range<u32>> {
        self.change(|left| {
            let middle = left.start + (left.end - left.start) / 2;
            (middle..left.end, left.start..middle)
        })
    }

    /// Gives the owner a range that it stole. The queue must be empty, and only the owner fills it: no other thread
    /// changes it, because thieves leave an empty queue alone.
    pub fn refill(&self, positions: Range<u32>) {
        self.0.store(pack(positions), Release);
    }

    /// Splits the remaining range into a taken part and the rest. Returns the taken part.
    ///
    /// A word with an earlier value again also has the same meaning, so the exchange is safe from ABA.
    fn change(&self, split: impl Fn(Range<u32>) -> (Range<u32>, Range<u32>)) -> Option<Range<u32>> {
        let mut word = self.0.load(Acquire);
        loop {
            let left = unpack(word);
            if left.is_empty() {
                return None;
            }
            let (taken, stays) = split(left);
            match self.0.compare_exchange_weak(word, pack(stays), AcqRel, Acquire) {
                Ok(_) => return Some(taken),
                Err(now) => word = now,
            }
        }
    }
}

fn pack(positions: Range<u32>) -> u64 {
    u64::from(positions.end) << 32 | u64::from(positions.start)
}

fn unpack(word: u64) -> Range<u32> {
    word as u32..(word >> 32) as u32
}
