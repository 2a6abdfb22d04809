//! Threads that are closures.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use policy::order::{Shape, Tour};

use crate::{Error, Inside, Keep, Report, Scheduler, ThreadId};

/// A scheduler of closures, which run once. A pending one takes 24 bytes and its captures, in a separate box.
///
/// ```
/// use threads::{Closures, Shape, Tour};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// let numbers = vec![1u64; 4096];
/// let sum = AtomicU64::new(0);
/// let mut threads = Closures::new(Shape::new(&[4096])?, Tour::FirstFork);
/// for part in numbers.chunks(512) {
///     let sum = &sum;
///     threads.fork(&[part.as_ptr().addr() as u64], move |_| {
///         sum.fetch_add(part.iter().sum(), Relaxed);
///     })?;
/// }
/// threads.run()?;
/// assert_eq!(sum.load(Relaxed), 4096);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A closure's borrows outlive the scheduler:
///
/// ```compile_fail,E0597
/// use threads::{Closures, Shape, Tour};
///
/// let mut threads = Closures::new(Shape::new(&[64]).unwrap(), Tour::FirstFork);
/// {
///     let short = String::from("gone");
///     threads.fork(&[0], |_| println!("{short}")).unwrap();
/// }
/// threads.run().unwrap();
/// ```
pub struct Closures<'a> {
    scheduler: Scheduler<Closure<'a>>,
}

/// A closure that has not run yet. Several workers share the memory of pending threads, so one takes it out under a
/// lock, which is never contended.
pub struct Closure<'a>(Mutex<Option<Boxed<'a>>>);

type Boxed<'a> = Box<dyn FnOnce(&mut Inside<Closure<'a>>) + Send + 'a>;

impl<'a> Closure<'a> {
    /// Boxes a closure, for [`Inside::fork`].
    pub fn new(closure: impl FnOnce(&mut Inside<Closure<'a>>) + Send + 'a) -> Closure<'a> {
        Closure(Mutex::new(Some(Box::new(closure))))
    }

    fn run(&self, inside: &mut Inside<Closure<'a>>) {
        let closure = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(closure) = closure {
            closure(inside);
        }
    }
}

impl<'a> Closures<'a> {
    /// As [`Scheduler::new`].
    pub fn new(shape: Shape, tour: Tour) -> Closures<'a> {
        Closures {
            scheduler: Scheduler::new(shape, tour),
        }
    }

    /// As [`Scheduler::fork`].
    pub fn fork(
        &mut self,
        hints: &[u64],
        closure: impl FnOnce(&mut Inside<Closure<'a>>) + Send + 'a,
    ) -> Result<ThreadId, Error> {
        self.scheduler.fork(hints, Closure::new(closure))
    }

    /// As [`Scheduler::fork_after`].
    pub fn fork_after(
        &mut self,
        hints: &[u64],
        closure: impl FnOnce(&mut Inside<Closure<'a>>) + Send + 'a,
        earlier: &[ThreadId],
    ) -> Result<ThreadId, Error> {
        self.scheduler.fork_after(hints, Closure::new(closure), earlier)
    }

    /// As [`Scheduler::depend`].
    pub fn depend(&mut self, later: ThreadId, earlier: ThreadId) -> Result<(), Error> {
        self.scheduler.depend(later, earlier)
    }

    /// How many closures are pending.
    pub fn len(&self) -> usize {
        self.scheduler.len()
    }

    /// Returns true if no closure is pending.
    pub fn is_empty(&self) -> bool {
        self.scheduler.is_empty()
    }

    /// As [`Scheduler::run`]. A closure that panics is dropped; those that have not run are still pending.
    pub fn run(&mut self) -> Result<Report, Error> {
        self.scheduler.run(Keep::No, |closure, inside| closure.run(inside))
    }

    /// As [`Scheduler::run_on`].
    pub fn run_on(&mut self, workers: NonZeroUsize) -> Result<Report, Error> {
        self.scheduler
            .run_on(workers, Keep::No, |closure, inside| closure.run(inside))
    }
}
