//! A comparison of both ways: shipped calls and calls on their callers' threads, timed in turn.
//!
//! The conditions of the paper are rules of thumb, and a cache may be smaller than the kernel reports. So after some
//! calls a trial begins: blocks of shipped calls alternate with blocks of others. The first calls of a block fetch the
//! data to where it is then used, and are not timed. The way with the smaller median of its blocks is kept for the
//! following calls, and then tried again. A way that stays faster is tried less and less often.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Calls before the first trial.
const FIRST: u64 = 64;
/// Calls of a block, and how many of them only fetch the data.
const BLOCK: u64 = 32;
const SETTLES: u64 = 8;
/// Blocks of each way: an odd number, for the median.
const BLOCKS: usize = 3;
const TRIAL: u64 = 2 * BLOCKS as u64 * BLOCK;
/// Calls between two trials, at first and at most.
const LEAST_KEPT: u64 = 512;
const MOST_KEPT: u64 = 1 << 16;
/// The other way is taken only if it takes less than this part of the time.
const BETTER: f64 = 0.97;

/// The calls of all homes together: if one region of several is fetched to the caller, the others wait, too.
#[derive(Default)]
pub(crate) struct Trial {
    calls: AtomicU64,
    /// The call at which the next trial begins.
    next: AtomicU64,
    /// True if work stays on its callers' threads.
    stays: AtomicBool,
    /// Nanoseconds and calls of each block, those of shipped calls at even numbers.
    blocks: [[AtomicU64; 2]; 2 * BLOCKS],
    /// For how many calls the faster way was kept.
    kept: Mutex<u64>,
}

/// The way of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub stays: bool,
    /// The block that its time belongs to.
    block: Option<usize>,
}

impl Way {
    pub fn is_timed(self) -> bool {
        self.block.is_some()
    }
}

impl Trial {
    /// A call begins.
    pub fn begins(&self) -> Way {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let into = number.checked_sub(self.next.load(Ordering::Relaxed).max(FIRST));
        if into == Some(TRIAL) {
            self.decide(number);
        }
        self.at(into)
    }

    /// The way of a call inside another one's work: the same.
    pub fn within(&self) -> Way {
        let number = self.calls.load(Ordering::Relaxed).saturating_sub(1);
        let into = number.checked_sub(self.next.load(Ordering::Relaxed).max(FIRST));
        Way {
            block: None,
            ..self.at(into)
        }
    }

    fn at(&self, into: Option<u64>) -> Way {
        let Some(into) = into.filter(|into| *into < TRIAL) else {
            return Way {
                stays: self.stays.load(Ordering::Relaxed),
                block: None,
            };
        };
        let block = (into / BLOCK) as usize;
        Way {
            stays: block % 2 == 1,
            block: (into % BLOCK >= SETTLES).then_some(block),
        }
    }

    /// A call has ended, its work and the way to it.
    pub fn took(&self, way: Way, time: Duration) {
        if let Some(block) = way.block {
            let [sum, calls] = &self.blocks[block];
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
            calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the faster way for the following calls. Calls of other threads that began in the trial may still run: they
    /// are left out.
    fn decide(&self, number: u64) {
        let median = |way: usize| {
            let means = (way..2 * BLOCKS).step_by(2).filter_map(|block| {
                let [sum, calls] = self.blocks[block].each_ref().map(|of| of.swap(0, Ordering::Relaxed));
                (calls > 0).then(|| sum as f64 / calls as f64)
            });
            let mut means: Vec<f64> = means.collect();
            means.sort_by(f64::total_cmp);
            means.get(means.len() / 2).copied()
        };
        let before = self.stays.load(Ordering::Relaxed);
        let stays = match (median(0), median(1)) {
            (Some(shipped), Some(stayed)) if before => shipped >= BETTER * stayed,
            (Some(shipped), Some(stayed)) => stayed < BETTER * shipped,
            _ => before,
        };
        self.stays.store(stays, Ordering::Relaxed);
        let mut kept = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *kept = match stays == before {
            true => (*kept * 2).clamp(LEAST_KEPT, MOST_KEPT),
            false => LEAST_KEPT,
        };
        self.next.store(number + *kept, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes this many calls, of which shipped ones take `shipped` and others `stayed`; returns how many stayed.
    fn calls(trial: &Trial, number: u64, [shipped, stayed]: [u64; 2]) -> u64 {
        let mut count = 0;
        for _ in 0..number {
            let way = trial.begins();
            count += u64::from(way.stays);
            let ns = if way.stays { stayed } else { shipped };
            trial.took(way, Duration::from_nanos(ns));
        }
        count
    }

    const LEARNED: u64 = FIRST + TRIAL + 1;
    const OTHERS: u64 = TRIAL / 2;

    #[test]
    fn the_faster_way_is_kept() {
        let (ships, stays) = (Trial::default(), Trial::default());
        assert_eq!(calls(&ships, LEARNED, [100, 200]), OTHERS);
        assert_eq!(calls(&ships, LEAST_KEPT - 1, [100, 200]), 0);
        // The first call after the trial goes the faster way.
        assert_eq!(calls(&stays, LEARNED, [200, 100]), OTHERS + 1);
        assert_eq!(calls(&stays, LEAST_KEPT - 1, [200, 100]), LEAST_KEPT - 1);
    }

    #[test]
    fn what_changes_is_noticed_and_what_stays_is_tried_less_often() {
        let trial = Trial::default();
        calls(&trial, LEARNED + LEAST_KEPT - 1, [100, 200]);
        calls(&trial, TRIAL + 1, [200, 100]);
        assert!(trial.begins().stays);
        let trial = Trial::default();
        let tried = calls(&trial, 1 << 20, [100, 200]);
        assert!(tried < (1 << 20) / 50, "{tried}");
    }

    #[test]
    fn one_long_call_of_a_block_decides_nothing() {
        let trial = Trial::default();
        for number in 0..LEARNED {
            let way = trial.begins();
            let ns = if way.stays { 200 } else { 100 };
            // The kernel ran something else for four milliseconds.
            let ns = if number == FIRST + SETTLES + 1 { 4_000_000 } else { ns };
            trial.took(way, Duration::from_nanos(ns));
        }
        assert!(!trial.begins().stays);
    }

    #[test]
    fn as_fast_as_before_is_no_reason_to_change() {
        let trial = Trial::default();
        calls(&trial, LEARNED, [100, 99]);
        assert!(!trial.begins().stays);
    }

    #[test]
    fn work_within_work_goes_as_that_does() {
        let trial = Trial::default();
        calls(&trial, FIRST + BLOCK, [100, 100]);
        assert!(!trial.within().stays);
        trial.begins();
        let way = trial.within();
        assert!(way.stays && !way.is_timed());
    }
}
