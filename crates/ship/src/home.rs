//! The cache of some data, and the duration of work with it there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Data that is assigned to one cache. Dropping it frees the room.
#[derive(Debug)]
pub struct Home {
    pub(crate) cache: u32,
    pub(crate) bytes: u64,
    /// Bytes assigned to each cache.
    loads: Arc<[AtomicU64]>,
    /// Calls, and the mean time of the work in nanoseconds.
    calls: AtomicU64,
    mean: AtomicU64,
    /// When a call last found its worker asleep, in nanoseconds since the home was made.
    found_asleep: AtomicU64,
    began: Instant,
}

/// One of this many calls is timed.
const TIMED: u64 = 8;

impl Home {
    /// In the cache with the least load.
    pub(crate) fn new(bytes: u64, loads: &Arc<[AtomicU64]>) -> Home {
        let load = |cache: &usize| loads[*cache].load(Ordering::Relaxed);
        let cache = (0..loads.len()).min_by_key(load).unwrap_or(0);
        loads[cache].fetch_add(bytes, Ordering::Relaxed);
        Home {
            cache: cache as u32,
            bytes,
            loads: Arc::clone(loads),
            calls: AtomicU64::new(0),
            mean: AtomicU64::new(0),
            found_asleep: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// The number of its cache, from 0.
    pub fn cache(&self) -> u32 {
        self.cache
    }

    /// A call begins. Returns its number, from 0, and whether to time it.
    pub(crate) fn called(&self) -> (u64, bool) {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        (number, number.is_multiple_of(TIMED))
    }

    /// Returns true if the home belongs to these caches.
    pub(crate) fn is_of(&self, loads: &Arc<[AtomicU64]>) -> bool {
        Arc::ptr_eq(&self.loads, loads)
    }

    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mean = match self.mean.load(Ordering::Relaxed) {
            0 => time,
            mean => mean - mean / 8 + time / 8,
        };
        self.mean.store(mean.max(1), Ordering::Relaxed);
    }

    /// A call finds its worker asleep. Returns whether the previous one did so within this time: then the worker would
    /// still have been awake.
    pub(crate) fn comes_often(&self, time: Duration) -> bool {
        let now = u64::try_from(self.began.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1);
        let before = self.found_asleep.swap(now, Ordering::Relaxed);
        before > 0 && u128::from(now.saturating_sub(before)) <= time.as_nanos()
    }

    /// The mean time of the work; `None` before the first.
    pub(crate) fn mean_ns(&self) -> Option<u64> {
        Some(self.mean.load(Ordering::Relaxed)).filter(|mean| *mean > 0)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.loads[self.cache as usize].fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
