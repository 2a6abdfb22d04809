//! The caches that bins run at: a bin runs in each run at the cache that has its block from the run before.
//!
//! The workers of a cache are pinned to its cpus, each bin's cache is remembered by its block, and the bins of a cache
//! are divided among its workers. Stealing continues: first from workers of the same cache. `policy::order::caches_of`
//! decides.
//!
//! It does not always pay: a block that is written, or that is larger than its cache, is fetched again each time. So
//! the first runs are timed both ways, and the faster one is kept.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

use policy::order::{BinId, Block, caches_of, cut};
use sys::cache_domains::{CacheDomain, DomainsError};
use sys::{affinity, cache_domains};

/// How many runs are timed each way before one is kept.
const TRIALS: u32 = 3;
/// The other way is timed again once in this many runs.
const AGAIN: u32 = 64;

/// Caches for [`Scheduler::run_at`](crate::Scheduler::run_at), and the known bins that ran there.
pub struct Caches {
    domains: Vec<CacheDomain>,
    of_block: HashMap<Block, u32>,
    trial: Trial,
}

impl Caches {
    /// The outermost caches of which the machine has several, as far as the calling thread may use their cpus. If there
    /// is only one, runs are as those of [`Scheduler::run_on`](crate::Scheduler::run_on).
    pub fn find() -> Result<Caches, DomainsError> {
        cache_domains::usable().map(Caches::with)
    }

    /// These caches, whatever the machine has.
    pub fn with(domains: Vec<CacheDomain>) -> Caches {
        Caches {
            domains,
            of_block: HashMap::new(),
            trial: Trial::default(),
        }
    }

    /// Returns true if there are several, so that it matters where a bin runs.
    pub fn are_several(&self) -> bool {
        self.domains.len() > 1
    }

    /// Makes every run at the caches, or none, without timing both.
    pub fn always(&mut self, at_caches: bool) {
        self.trial.always = Some(at_caches);
    }

    /// A worker for each cpu of the caches.
    pub fn workers(&self) -> NonZeroUsize {
        let cpus = self.domains.iter().map(|domain| domain.cpus.len()).sum();
        NonZeroUsize::new(cpus).unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns true if the next run is at the caches.
    pub(crate) fn are_next(&self) -> bool {
        self.are_several() && self.trial.next()
    }

    pub(crate) fn took(&mut self, at_caches: bool, time: Duration, threads: u64) {
        if threads > 0 {
            self.trial.took(at_caches, time.as_nanos() as f64 / threads as f64);
        }
    }

    /// The cpus of a worker's cache.
    pub(crate) fn cpus(&self, worker: usize) -> &[u32] {
        &self.domains[self.of_worker(worker) as usize].cpus
    }

    pub(crate) fn of_worker(&self, worker: usize) -> u32 {
        (worker % self.domains.len()) as u32
    }

    /// Orders the tour by caches, and cuts it into a part for each worker. Remembers each bin's cache.
    pub(crate) fn share_out(
        &mut self,
        tour: &mut Vec<BinId>,
        workers: usize,
        block: impl Fn(BinId) -> Block,
        weight: impl Fn(BinId) -> u64,
    ) -> Vec<Range<u32>> {
        // With fewer workers than caches some have none.
        let caches = self.domains.len().min(workers) as u32;
        let weights: Vec<u64> = tour.iter().map(|&bin| weight(bin)).collect();
        let known = |&bin: &BinId| self.of_block.get(&block(bin)).copied().filter(|cache| *cache < caches);
        let now: Vec<Option<u32>> = tour.iter().map(known).collect();
        let given = caches_of(&weights, &now, caches);
        let mut ordered: Vec<(u32, BinId, u64)> = Vec::with_capacity(tour.len());
        for ((&bin, cache), weight) in tour.iter().zip(given).zip(weights) {
            self.of_block.insert(block(bin), cache);
            ordered.push((cache, bin, weight));
        }
        // Within a cache the order of the tour stays.
        ordered.sort_by_key(|(cache, ..)| *cache);
        *tour = ordered.iter().map(|(_, bin, _)| *bin).collect();
        let mut shares = vec![0..0; workers];
        let mut from = 0;
        for cache in 0..caches {
            let to = ordered.partition_point(|(of, ..)| *of <= cache);
            let own: Vec<usize> = (0..workers).filter(|worker| self.of_worker(*worker) == cache).collect();
            let weights: Vec<u64> = ordered[from..to].iter().map(|(.., weight)| *weight).collect();
            for (part, worker) in cut(&weights, own.len()).into_iter().zip(own) {
                shares[worker] = (from + part.start) as u32..(from + part.end) as u32;
            }
            from = to;
        }
        shares
    }
}

/// Decides which way is faster: at the caches, or by stealing alone.
#[derive(Debug, Default)]
struct Trial {
    always: Option<bool>,
    runs: u32,
    /// Nanoseconds per thread, by stealing alone and at the caches: of the fastest trial, later a moving average.
    fastest: [Option<f64>; 2],
}

impl Trial {
    fn next(&self) -> bool {
        if let Some(always) = self.always {
            return always;
        }
        if self.runs < 2 * TRIALS {
            return self.runs.is_multiple_of(2);
        }
        let better = self.is_better();
        match self.runs % AGAIN {
            0 => !better,
            _ => better,
        }
    }

    /// At the caches, unless stealing alone is faster.
    fn is_better(&self) -> bool {
        match self.fastest {
            [Some(stealing), Some(at_caches)] => at_caches <= stealing,
            _ => true,
        }
    }

    fn took(&mut self, at_caches: bool, ns: f64) {
        let trying = self.runs < 2 * TRIALS;
        let fastest = &mut self.fastest[usize::from(at_caches)];
        // Later times gradually replace earlier ones: the work may have changed.
        *fastest = Some(match *fastest {
            None => ns,
            Some(before) if trying => before.min(ns),
            Some(before) => before + (ns - before) / 4.0,
        });
        self.runs = self.runs.wrapping_add(1).max(1);
    }
}

/// Keeps the calling thread on cpus; restores its earlier cpus when dropped.
pub(crate) struct Kept(Option<Vec<u32>>);

impl Kept {
    /// If the kernel refuses, the thread runs anywhere: slower, but correct.
    pub fn on(cpus: &[u32]) -> Kept {
        let before = affinity::allowed(None).ok();
        let _ = affinity::allow(None, cpus);
        Kept(before)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = affinity::allow(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(trial: &mut Trial, ns: [f64; 2]) -> bool {
        let at_caches = trial.next();
        trial.took(at_caches, ns[usize::from(at_caches)]);
        at_caches
    }

    #[test]
    fn the_faster_way_is_kept_and_the_other_tried_again() {
        for faster in [false, true] {
            let mut trial = Trial::default();
            let ns = if faster { [10.0, 8.0] } else { [8.0, 10.0] };
            let first: Vec<bool> = (0..2 * TRIALS).map(|_| run(&mut trial, ns)).collect();
            assert_eq!(first.iter().filter(|at| **at).count() as u32, TRIALS);
            let later: Vec<bool> = (2 * TRIALS..4 * AGAIN).map(|_| run(&mut trial, ns)).collect();
            assert_eq!(later.iter().filter(|at| **at != faster).count(), 3);
        }
        // The slower way becomes faster.
        let mut trial = Trial::default();
        for _ in 0..2 * TRIALS {
            run(&mut trial, [8.0, 10.0]);
        }
        for _ in 0..40 * AGAIN {
            run(&mut trial, [8.0, 4.0]);
        }
        assert!(trial.is_better());
    }

    #[test]
    fn bins_stay_at_their_caches_and_each_worker_has_a_part() {
        let domain = |cpus: &[u32]| CacheDomain {
            cpus: cpus.to_vec(),
            level: None,
            bytes: None,
        };
        let mut caches = Caches::with(vec![domain(&[0, 2]), domain(&[1, 3])]);
        let block = |bin: BinId| Block([u64::from(bin), 0, 0, 0, 0, 0, 0, 0]);
        let mut tour: Vec<BinId> = (0..8).collect();
        let shares = caches.share_out(&mut tour, 4, block, |_| 1);
        assert_eq!(tour, [0, 1, 2, 3, 4, 5, 6, 7]);
        // Workers 0 and 2 are at the first cache.
        assert_eq!(shares, [0..2, 4..6, 2..4, 6..8]);
        // In another order, with other weights: each at its cache.
        let mut tour: Vec<BinId> = (0..8).rev().collect();
        let shares = caches.share_out(&mut tour, 2, block, |_| 2);
        assert_eq!((tour, shares), (vec![3, 2, 1, 0, 7, 6, 5, 4], vec![0..4, 4..8]));
    }
}
