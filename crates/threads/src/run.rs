//! A run: its preparation, its workers, and the clean-up.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64 as Word, Ordering};
use std::time::Instant;

use policy::order::{BinId, cut};

use crate::caches::{Caches, Kept};
use crate::inside::Outbox;
use crate::queue::Queue;
use crate::scheduler::is_gone;
use crate::sync::{AtomicBool, Condvar, Mutex};
use crate::waits::Waits;
use crate::worker::{Ended, Shared, work};
use crate::{Error, Inside, Scheduler};

/// The most workers that are started.
const WORKERS_MAX: usize = 1024;

/// The fate of the threads after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are removed.
    No,
    /// They stay, with their dependencies, so that the next run runs them again. Threads forked inside are not kept:
    /// running the threads that forked them forks them again.
    Yes,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Threads that ran, including those forked inside.
    pub threads: u64,
    /// Bins that the tour visited.
    pub bins: u64,
    /// Further turns that bins got, for threads forked inside or released after their bin had been passed.
    pub turns: u64,
    /// Workers that took part.
    pub workers: usize,
    /// True if bins ran at the caches of their blocks ([`Scheduler::run_at`]).
    pub at_caches: bool,
}

impl<T> Scheduler<T> {
    /// Runs all pending threads on the calling operating system thread, bin after bin in the order of the tour.
    ///
    /// # Errors
    /// If there is no memory to begin. No thread has run then.
    ///
    /// # Panics
    /// A thread's panic ends the run and propagates to the caller. That thread counts as run. The others are still
    /// pending, none is lost, and the next run runs them; with [`Keep::Yes`] the next run runs all of them again.
    pub fn run<F>(&mut self, keep: Keep, mut body: F) -> Result<Report, Error>
    where
        F: FnMut(&T, &mut Inside<T>),
    {
        self.drive(1, keep, None, |shared, insides| {
            insides
                .into_iter()
                .map(|inside| work(shared, inside, &mut body))
                .collect()
        })
    }

    /// [`Scheduler::run`] with several workers: the calling operating system thread and `workers - 1` more.
    ///
    /// Each worker gets a part of the tour, so that consecutive bins stay on one worker, and runs whole bins. A worker
    /// that has finished takes the far half of another's remaining part. If the system cannot start more threads, fewer
    /// (never more than 1024) workers do the same work.
    ///
    /// # Panics
    /// As [`Scheduler::run`]. Other workers finish their current group of at most 64 threads; of several panics, one
    /// propagates.
    pub fn run_on<F>(&mut self, workers: NonZeroUsize, keep: Keep, body: F) -> Result<Report, Error>
    where
        T: Send + Sync,
        F: Fn(&T, &mut Inside<T>) + Sync,
    {
        self.drive(workers.get(), keep, None, |shared, insides| {
            several(shared, insides, &body, &|_| None)
        })
    }

    /// [`Scheduler::run_on`], with each bin at the cache that has its block from the run before, if that is faster.
    ///
    /// Workers are pinned to the cpus of their caches during the run, including the calling thread. The first runs are
    /// timed with and without, and the faster way is kept; [`Report::at_caches`] says which it was.
    pub fn run_at<F>(
        &mut self,
        workers: NonZeroUsize,
        caches: &mut Caches,
        keep: Keep,
        body: F,
    ) -> Result<Report, Error>
    where
        T: Send + Sync,
        F: Fn(&T, &mut Inside<T>) + Sync,
    {
        if !caches.are_several() || workers.get() == 1 {
            return self.run_on(workers, keep, body);
        }
        let began = Instant::now();
        let at_caches = caches.are_next();
        let done = match at_caches {
            false => self.run_on(workers, keep, body),
            true => {
                let count = workers.get().min(WORKERS_MAX);
                let cpus: Vec<Vec<u32>> = (0..count).map(|worker| caches.cpus(worker).to_vec()).collect();
                let kept = |worker: usize| cpus.get(worker).map(|cpus| Kept::on(cpus));
                self.drive(count, keep, Some(&mut *caches), |shared, insides| {
                    several(shared, insides, &body, &kept)
                })
            }
        };
        let mut report = done?;
        report.at_caches = at_caches;
        caches.took(at_caches, began.elapsed(), report.threads);
        Ok(report)
    }

    /// Prepares, lets workers work, and cleans up after them.
    fn drive(
        &mut self,
        workers: usize,
        keep: Keep,
        caches: Option<&mut Caches>,
        work: impl FnOnce(&Shared<'_, T>, Vec<Inside<T>>) -> Vec<Ended<T>>,
    ) -> Result<Report, Error> {
        self.absorb()?;
        let mut tour = self.tour();
        let workers = workers.clamp(1, WORKERS_MAX);
        let weight = |bin: BinId| u64::from(self.store.weight(bin));
        let (shares, cache_of) = match caches {
            Some(caches) => {
                let shares = caches.share_out(&mut tour, workers, |bin| self.store.bins().block(bin), weight);
                (shares, (0..workers).map(|worker| caches.of_worker(worker)).collect())
            }
            None => (self.share_out(&tour, workers), Vec::new()),
        };
        let groups = self.store.groups.used();
        let waits = if self.dependencies.is_empty() {
            None
        } else {
            let gone = &self.gone;
            Some(Waits::new(&self.dependencies, |place| is_gone(gone, place))?)
        };
        self.done.clear();
        self.done.try_reserve_exact(groups)?;
        self.done.resize_with(groups, || Word::new(0));
        self.gone.try_reserve_exact(groups.saturating_sub(self.gone.len()))?;
        self.strays.try_reserve(workers)?;
        self.turns.begin(&self.store, &tour, workers, waits.as_ref())?;
        let dimensions = self.shape().hints();
        let insides: Vec<Inside<T>> = (0..workers)
            .map(|worker| Inside {
                worker,
                outbox: Outbox::new(dimensions),
            })
            .collect();
        let shared = Shared {
            store: &self.store,
            gone: &self.gone,
            done: &self.done,
            tour: &tour,
            queues: shares.into_iter().map(Queue::new).collect(),
            cache_of,
            waits,
            turns: Mutex::new(&mut self.turns),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
        };
        let ended = work(&shared, insides);
        drop(shared);
        let mut report = Report {
            workers: ended.len(),
            ..Report::default()
        };
        let mut panic = None;
        for worker in ended {
            report.threads += worker.threads;
            report.bins += worker.bins;
            report.turns += worker.turns;
            panic = panic.or(worker.panic);
            if !worker.outbox.is_empty() {
                self.strays.push(worker.outbox);
            }
        }
        match (keep, panic) {
            (Keep::No, None) => self.clear(),
            (Keep::Yes, None) => self.turns.reset(),
            (Keep::No, Some(panic)) => {
                self.gone.resize(groups, 0);
                for (gone, done) in self.gone.iter_mut().zip(&self.done) {
                    *gone |= done.load(Ordering::Relaxed);
                }
                if self.is_empty() {
                    self.clear();
                }
                resume_unwind(panic);
            }
            (Keep::Yes, Some(panic)) => {
                self.turns.reset();
                self.strays.clear();
                resume_unwind(panic);
            }
        }
        Ok(report)
    }

    /// Turns threads that were forked inside an interrupted run, before they ran, into ordinary ones.
    fn absorb(&mut self) -> Result<(), Error> {
        while let Some(stray) = self.strays.last_mut() {
            let mut refused = None;
            let forked = &mut self.forked;
            let store = &mut self.store;
            stray.empty_into(|hints, item| match store.push(hints, item) {
                Ok(_) => {
                    *forked += 1;
                    Ok(())
                }
                Err((error, item)) => {
                    refused = Some(error);
                    Err(item)
                }
            });
            if let Some(error) = refused {
                return Err(error);
            }
            self.strays.pop();
        }
        let before = self.turns.threads();
        let absorbed = self.turns.absorb_into(&mut self.store);
        self.forked += before - self.turns.threads();
        absorbed
    }

    /// The bins that hold threads, in the order in which they run.
    fn tour(&self) -> Vec<BinId> {
        let mut tour = self.store.bins().tour(self.tour);
        tour.retain(|&bin| self.store.weight(bin) > 0);
        tour
    }

    /// Cuts the tour into one part for each worker, with about equally many threads each.
    fn share_out(&self, tour: &[BinId], workers: usize) -> Vec<Range<u32>> {
        let weights: Vec<u64> = tour.iter().map(|&bin| u64::from(self.store.weight(bin))).collect();
        let part = |part: Range<usize>| part.start as u32..part.end as u32;
        cut(&weights, workers).into_iter().map(part).collect()
    }
}

/// The calling thread works, and one more thread for each further worker. `kept`: keeps a worker at its cache while it
/// works.
fn several<T: Send + Sync, F: Fn(&T, &mut Inside<T>) + Sync>(
    shared: &Shared<'_, T>,
    mut insides: Vec<Inside<T>>,
    body: &F,
    kept: &(dyn Fn(usize) -> Option<Kept> + Sync),
) -> Vec<Ended<T>> {
    let begin = |inside: Inside<T>| {
        let _kept = kept(inside.worker);
        work(shared, inside, &mut |thread: &T, inside: &mut Inside<T>| {
            body(thread, inside)
        })
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = insides
            .drain(1..)
            .filter_map(|inside| {
                let spawned = std::thread::Builder::new()
                    .name("domicile-worker".into())
                    .spawn_scoped(scope, move || begin(inside));
                if spawned.is_err() {
                    shared.turns().lost_worker();
                }
                spawned.ok()
            })
            .collect();
        let mut ended: Vec<_> = insides.into_iter().map(begin).collect();
        ended.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
        );
        ended
    })
}
