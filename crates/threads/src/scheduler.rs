//! The scheduler: fork, depend, run.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64 as Word, Ordering};

use policy::order::{BinId, Shape, Tour};

use crate::dependencies::{Dependencies, Refused};
use crate::groups::{Place, at_of, group_of};
use crate::inside::Outbox;
use crate::queue::Queue;
use crate::store::Store;
use crate::sync::{AtomicBool, Condvar, Mutex};
use crate::turns::Turns;
use crate::waits::Waits;
use crate::worker::{Ended, Shared, work};
use crate::{Error, Inside, ThreadId};

/// What becomes of the threads that a run has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are gone.
    No,
    /// They stay, with their dependencies, so that the next run runs them again. Threads forked inside are not kept: running
    /// the threads that forked them forks them again.
    Yes,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Threads that ran, those forked inside among them.
    pub threads: u64,
    /// Bins that the tour visited.
    pub bins: u64,
    /// Further turns that bins got, for threads forked inside or released after their bin had been passed.
    pub turns: u64,
    /// Workers that took part.
    pub workers: usize,
}

/// Pending threads in their bins, and the order in which the bins will run.
///
/// `T` is what a thread is: whatever the body of a run needs to run it. For a function with two arguments that is 24
/// bytes, and then a pending thread takes 24 bytes and little more; [`Closures`](crate::Closures) is a scheduler of closures.
///
/// ```
/// use threads::{Keep, Scheduler, Shape, Tour};
///
/// // Dot products of rows and columns, in blocks of two by two.
/// let mut scheduler = Scheduler::new(Shape::new(&[2, 2])?, Tour::FirstFork);
/// for row in 0..4u64 {
///     for column in 0..4u64 {
///         scheduler.fork(&[row, column], (row, column))?;
///     }
/// }
/// let mut order = Vec::new();
/// scheduler.run(Keep::No, |&thread, _| order.push(thread))?;
/// assert_eq!(order[..4], [(0, 0), (0, 1), (1, 0), (1, 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The threads of a run on several workers are shared between them, so they must be `Sync`:
///
/// ```compile_fail,E0277
/// use threads::{Keep, Scheduler, Shape, Tour};
///
/// let mut scheduler = Scheduler::new(Shape::new(&[2]).unwrap(), Tour::FirstFork);
/// scheduler.fork(&[0], std::cell::Cell::new(0)).unwrap();
/// scheduler.run_on(2.try_into().unwrap(), Keep::No, |thread, _| thread.set(1)).unwrap();
/// ```
///
/// A thread cannot reach the scheduler that runs it except through [`Inside`]:
///
/// ```compile_fail,E0499
/// use threads::{Keep, Scheduler, Shape, Tour};
///
/// let mut scheduler = Scheduler::new(Shape::new(&[2]).unwrap(), Tour::FirstFork);
/// scheduler.run(Keep::No, |_: &u32, _| {
///     scheduler.fork(&[0], 1).unwrap();
/// }).unwrap();
/// ```
pub struct Scheduler<T> {
    store: Store<T>,
    tour: Tour,
    dependencies: Dependencies,
    turns: Turns<T>,
    /// For each group, threads that ran in a run that a panic ended; empty when there was none.
    gone: Vec<u64>,
    /// For each group, threads that ran in this run.
    done: Vec<Word>,
    /// Threads forked inside that have not found their way into bins when a run ended early.
    strays: Vec<Outbox<T>>,
    /// Counts the runs that have taken all threads away.
    epoch: u32,
    /// Threads forked since then, from outside.
    forked: usize,
}

impl<T> Scheduler<T> {
    /// A scheduler without threads. It takes no memory until the first fork.
    pub fn new(shape: Shape, tour: Tour) -> Scheduler<T> {
        Scheduler {
            store: Store::new(shape.clone()),
            tour,
            dependencies: Dependencies::default(),
            turns: Turns::new(shape),
            gone: Vec::new(),
            done: Vec::new(),
            strays: Vec::new(),
            epoch: 0,
            forked: 0,
        }
    }

    /// Takes a thread with its hints, as many as the shape has sides; it runs at the next run. Threads in one bin run in the
    /// order in which they were forked.
    #[inline]
    pub fn fork(&mut self, hints: &[u64], item: T) -> Result<ThreadId, Error> {
        match self.store.push(hints, item) {
            Ok(place) => {
                self.forked += 1;
                Ok(ThreadId {
                    epoch: self.epoch,
                    place,
                })
            }
            Err((error, _)) => Err(error),
        }
    }

    /// [`Scheduler::fork`] of a thread that runs after these have run.
    pub fn fork_after(&mut self, hints: &[u64], item: T, earlier: &[ThreadId]) -> Result<ThreadId, Error> {
        for &id in earlier {
            self.check(id)?;
        }
        let later = self.fork(hints, item)?;
        for &id in earlier {
            if let Err(error) = self.depend(later, id) {
                self.dependencies.forget(later.place);
                drop(self.store.take_last(later.place));
                self.forked -= 1;
                return Err(error);
            }
        }
        Ok(later)
    }

    /// Makes a pending thread wait until an earlier one has run. One that has run already is not waited for.
    ///
    /// # Errors
    /// [`Error::Cycle`] names the threads that would wait for each other, each before the next; the dependency is not
    /// taken then, and everything stays as it was.
    pub fn depend(&mut self, later: ThreadId, earlier: ThreadId) -> Result<(), Error> {
        if self.check(later)? {
            return Err(Error::HasRun(later));
        }
        if self.check(earlier)? {
            return Ok(());
        }
        self.dependencies
            .add(later.place, earlier.place)
            .map_err(|refused| match refused {
                Refused::OutOfMemory => Error::OutOfMemory,
                Refused::Cycle(places) => Error::Cycle(
                    places
                        .into_iter()
                        .map(|place| ThreadId {
                            epoch: self.epoch,
                            place,
                        })
                        .collect(),
                ),
            })
    }

    /// Makes room for so many threads in all, in so many bins, and touches the memory, so that forks find it mapped.
    pub fn reserve(&mut self, threads: usize, bins: usize) -> Result<(), Error> {
        self.store.reserve(threads, bins)
    }

    /// How many threads are pending.
    pub fn len(&self) -> usize {
        let gone: u32 = self.gone.iter().map(|gone| gone.count_ones()).sum();
        let strays: usize = self.strays.iter().map(Outbox::len).sum();
        self.forked - gone as usize + self.turns.threads() + strays
    }

    /// Whether no thread is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bins have been used since the last run that kept nothing.
    pub fn bins(&self) -> usize {
        self.store.bins().len()
    }

    /// How the space of hints is cut into blocks.
    pub fn shape(&self) -> &Shape {
        self.store.bins().shape()
    }

    /// Bytes of memory held for pending threads and for those to come.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
            + self.turns.memory_bytes()
            + self.dependencies.memory_bytes()
            + (self.gone.capacity() + self.done.capacity()) * size_of::<u64>()
    }

    /// Forgets all pending threads. Memory stays for the next ones.
    pub fn clear(&mut self) {
        self.store.reset();
        self.turns.reset();
        self.dependencies.clear();
        self.gone.clear();
        self.strays.clear();
        self.forked = 0;
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Gives memory back that no pending thread needs.
    pub fn shrink(&mut self) {
        self.store.shrink();
        self.turns.shrink();
        self.done = Vec::new();
    }

    /// Runs all pending threads on the calling operating system thread, bin after bin in the order of the tour.
    ///
    /// # Errors
    /// Where there is no memory to begin. No thread has run then.
    ///
    /// # Panics
    /// A thread's panic ends the run and goes on to the caller. That thread has run. Those that have not are still
    /// pending, none is lost, and the next run runs them; with [`Keep::Yes`] the next run runs all of them again.
    pub fn run<F>(&mut self, keep: Keep, mut body: F) -> Result<Report, Error>
    where
        F: FnMut(&T, &mut Inside<T>),
    {
        self.drive(1, keep, |shared, insides| {
            insides
                .into_iter()
                .map(|inside| work(shared, inside, &mut body))
                .collect()
        })
    }

    /// [`Scheduler::run`] with several workers: the calling operating system thread and `workers - 1` more.
    ///
    /// Each worker gets a part of the tour, so that bins that follow one another stay on one worker, and runs whole bins. One
    /// that is through takes the far half of what another has left. Where the system has no more threads to give, fewer
    /// workers do the same work.
    ///
    /// # Panics
    /// As [`Scheduler::run`]. Other workers finish the group of at most 64 threads that they are in; of several panics, one goes on.
    pub fn run_on<F>(&mut self, workers: NonZeroUsize, keep: Keep, body: F) -> Result<Report, Error>
    where
        T: Send + Sync,
        F: Fn(&T, &mut Inside<T>) + Sync,
    {
        self.drive(workers.get(), keep, |shared, mut insides| {
            let body = &body;
            std::thread::scope(|scope| {
                let others: Vec<_> = insides
                    .drain(1..)
                    .filter_map(|inside| {
                        let begin = move || {
                            work(shared, inside, &mut |thread: &T, inside: &mut Inside<T>| {
                                body(thread, inside)
                            })
                        };
                        let spawned = std::thread::Builder::new()
                            .name("domicile-worker".into())
                            .spawn_scoped(scope, begin);
                        if spawned.is_err() {
                            shared.turns().lost_worker();
                        }
                        spawned.ok()
                    })
                    .collect();
                let mut ended: Vec<_> = insides
                    .into_iter()
                    .map(|inside| {
                        work(shared, inside, &mut |thread: &T, inside: &mut Inside<T>| {
                            body(thread, inside)
                        })
                    })
                    .collect();
                ended.extend(
                    others
                        .into_iter()
                        .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
                );
                ended
            })
        })
    }

    /// Prepares, lets workers work, and puts in order what they leave.
    fn drive(
        &mut self,
        workers: usize,
        keep: Keep,
        work: impl FnOnce(&Shared<'_, T>, Vec<Inside<T>>) -> Vec<Ended<T>>,
    ) -> Result<Report, Error> {
        self.absorb()?;
        let tour = self.tour();
        let workers = workers.clamp(1, tour.len().max(1));
        let groups = self.store.groups.used();
        let waits = if self.dependencies.is_empty() {
            None
        } else {
            let gone = &self.gone;
            Some(Waits::new(&self.dependencies, groups, |place| is_gone(gone, place))?)
        };
        self.done.clear();
        self.done.try_reserve(groups)?;
        self.done.resize_with(groups, || Word::new(0));
        self.gone.try_reserve(if self.gone.is_empty() {
            groups
        } else {
            groups - self.gone.len()
        })?;
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
            queues: self.share_out(&tour, workers),
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

    /// Makes ordinary threads of those that were forked inside a run that ended before they ran.
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

    /// Cuts the tour into one part for each worker, of about equally many threads.
    fn share_out(&self, tour: &[BinId], workers: usize) -> Vec<Queue> {
        let weight = |bin: &BinId| u64::from(self.store.weight(*bin));
        let total: u64 = tour.iter().map(weight).sum();
        let mut queues = Vec::with_capacity(workers);
        let (mut from, mut to, mut before) = (0, 0, 0);
        for worker in 1..=workers as u64 {
            while to < tour.len() && (before < total * worker / workers as u64 || worker == workers as u64) {
                before += weight(&tour[to]);
                to += 1;
            }
            queues.push(Queue::new(from as u32..to as u32));
            from = to;
        }
        queues
    }

    /// Whether a thread has run and is gone.
    fn check(&self, id: ThreadId) -> Result<bool, Error> {
        if id.epoch != self.epoch {
            return if id.epoch < self.epoch {
                Ok(true)
            } else {
                Err(Error::Unknown(id))
            };
        }
        if !self.store.holds(id.place) {
            return Err(Error::Unknown(id));
        }
        Ok(is_gone(&self.gone, id.place))
    }
}

fn is_gone(gone: &[u64], place: Place) -> bool {
    gone.get(group_of(place) as usize)
        .is_some_and(|gone| gone >> at_of(place) & 1 == 1)
}
