//! The scheduler: the pending threads, and how they are added. `run.rs` runs them.

use std::sync::atomic::AtomicU64 as Word;

use policy::order::{Shape, Tour};

use crate::dependencies::{Dependencies, Refused};
use crate::groups::{Place, at_of, group_of};
use crate::inside::Outbox;
use crate::store::Store;
use crate::turns::Turns;
use crate::{Error, ThreadId};

/// Pending threads in their bins, and the order in which the bins will run.
///
/// `T` is a thread: everything that the body of a run needs to run it. For a function with two arguments that is 24
/// bytes, and then a pending thread takes little more than 24 bytes; [`Closures`](crate::Closures) is a scheduler of
/// closures.
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
/// A thread cannot reach the scheduler that runs it except through [`Inside`](crate::Inside):
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
    pub(crate) store: Store<T>,
    pub(crate) tour: Tour,
    pub(crate) dependencies: Dependencies,
    pub(crate) turns: Turns<T>,
    /// For each group, threads that ran in a run that a panic ended; empty if there was none.
    pub(crate) gone: Vec<u64>,
    /// For each group, threads that ran in this run.
    pub(crate) done: Vec<Word>,
    /// Threads forked inside that did not reach their bins because a run ended early.
    pub(crate) strays: Vec<Outbox<T>>,
    /// Counts the runs that removed all threads.
    pub(crate) epoch: u32,
    /// Threads forked since then, from outside.
    pub(crate) forked: usize,
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

    /// Adds a thread with its hints, as many as the shape has sides; it runs at the next run. Threads in one bin run in
    /// the order in which they were forked.
    #[inline(always)]
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

    /// Makes a pending thread wait until an earlier one has run. It does not wait for one that has already run.
    ///
    /// # Errors
    /// [`Error::Cycle`] names the threads that would wait for each other, each before the next; the dependency is then
    /// refused, and nothing is changed.
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

    /// Reserves room for this many threads in total, in this many bins, and touches the memory, so that forks find it
    /// mapped.
    pub fn reserve(&mut self, threads: usize, bins: usize) -> Result<(), Error> {
        self.store.reserve(threads, bins)
    }

    /// How many threads are pending.
    pub fn len(&self) -> usize {
        let gone: u32 = self.gone.iter().map(|gone| gone.count_ones()).sum();
        let strays: usize = self.strays.iter().map(Outbox::len).sum();
        self.forked - gone as usize + self.turns.threads() + strays
    }

    /// Returns true if no thread is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bins have been used since the last run that kept nothing.
    pub fn bins(&self) -> usize {
        self.store.bins().len()
    }

    /// How the hints' space is divided into blocks.
    pub fn shape(&self) -> &Shape {
        self.store.bins().shape()
    }

    /// Bytes of memory held for pending and future threads.
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

    /// Frees memory that no pending thread needs.
    pub fn shrink(&mut self) {
        self.store.shrink();
        self.turns.shrink();
        self.done = Vec::new();
    }

    /// Returns true if a thread has run and was removed.
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

/// Returns true if a thread ran in a run that ended early.
pub(crate) fn is_gone(gone: &[u64], place: Place) -> bool {
    gone.get(group_of(place) as usize)
        .is_some_and(|gone| gone >> at_of(place) & 1 == 1)
}
