//! A scheduler as C holds it, and what it takes to find it again from within its threads.
//!
//! A fork must cost next to nothing, so there is no lock: a handle belongs to one thread of the
//! operating system at a time, and a running thread that forks finds the worker that runs it. On
//! one worker that is a pointer in the handle; on several, each worker keeps it in storage of its
//! own.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, Thread};

use threads::{Caches, Error, Inside, Keep, Report, Scheduler, ThreadId};

use crate::call::Call;
use crate::error::Failure;
use crate::error::domicile_error::{
    DOMICILE_CYCLE, DOMICILE_INTERNAL, DOMICILE_INVALID, DOMICILE_NOT_INSIDE, DOMICILE_OUT_OF_MEMORY, DOMICILE_PANIC,
    DOMICILE_RUNNING, DOMICILE_UNKNOWN_THREAD,
};

/// A scheduler, or a place for one, that can be reached from any thread.
///
/// What is unsafe asks for the same each time: **one thread of the operating system uses the handle
/// at a time**, save that while it runs, its running threads may all call `fork` and `worker`.
pub struct Handle {
    /// Not to be touched by anyone but `run` while `running` is not 0.
    scheduler: UnsafeCell<Option<Scheduler<Call>>>,
    /// The operating system's thread that is in `run`, as [`here`] names it; 0 when none is.
    running: AtomicUsize,
    /// On one worker, what the running thread's forks go to; null otherwise. Only for the thread in
    /// `run`.
    inside: Cell<*mut Inside<Call>>,
}

// SAFETY: the cells are used under the rule above, which every function that touches them either asks
// of its caller or checks; calls themselves may go to any thread.
unsafe impl Sync for Handle {}
// SAFETY: a handle that does not run holds a scheduler of calls, which may go to any thread, and no other pointers.
unsafe impl Send for Handle {}

impl Handle {
    /// A place without a scheduler.
    pub const fn empty() -> Handle {
        Handle {
            scheduler: UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            inside: Cell::new(ptr::null_mut()),
        }
    }

    /// Whether it is running; always true when asked by one of its running threads.
    pub fn is_running(&self) -> bool {
        self.running.load(Relaxed) != 0
    }

    /// The scheduler, to look at or to change.
    ///
    /// # Safety
    /// One thread uses the handle at a time, and the reference is gone before the next use of the
    /// handle.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps the rule of the type")]
    #[inline]
    pub unsafe fn idle(&self) -> Result<&mut Option<Scheduler<Call>>, Failure> {
        if self.is_running() {
            return Err(Failure::from(DOMICILE_RUNNING));
        }
        // SAFETY: no run is under way, and the caller is the only user.
        Ok(unsafe { &mut *self.scheduler.get() })
    }

    /// Forks a thread while nothing runs, and gives its name. `start` makes the scheduler where there is none yet.
    ///
    /// # Safety
    /// One thread uses the handle at a time; it does not run.
    #[inline]
    pub unsafe fn fork(
        &self,
        hints: &[u64],
        call: Call,
        start: impl FnOnce() -> Result<Scheduler<Call>, Failure>,
    ) -> Result<ThreadId, Failure> {
        debug_assert!(!self.is_running());
        // SAFETY: no run is under way, and the caller is the only user.
        let place = unsafe { &mut *self.scheduler.get() };
        let scheduler = match place {
            Some(scheduler) => scheduler,
            None => fill(place, start)?,
        };
        match scheduler.fork(hints, call) {
            Ok(id) => Ok(id),
            Err(error) => Err(failure(error)),
        }
    }

    /// Forks a thread from a running one; it runs in the same run, and has no name.
    ///
    /// The call comes in pieces: one whose address is known elsewhere would be built in memory by those
    /// forks too that do not come here, and copied from there before it has arrived.
    #[cold]
    #[inline(never)]
    pub fn fork_inside(
        &self,
        hints: impl AsRef<[u64]>,
        function: *const (),
        arg1: *mut c_void,
        arg2: *mut c_void,
    ) -> Result<(), Failure> {
        let call = Call::from_parts(function, arg1, arg2);
        match self.with_inside(|inside| inside.fork(hints.as_ref(), call)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(failure(error)),
            None => Err(Failure::from(DOMICILE_NOT_INSIDE)),
        }
    }

    /// Which worker runs the calling thread; none when it is not a running thread of this handle.
    pub fn worker(&self) -> Option<usize> {
        self.with_inside(|inside| inside.worker())
    }

    fn with_inside<R>(&self, use_it: impl FnOnce(&mut Inside<Call>) -> R) -> Option<R> {
        let mut inside = ptr::null_mut();
        if self.running.load(Relaxed) == here() {
            inside = self.inside.get();
        }
        if inside.is_null() {
            inside = frame_of(self)?;
        }
        // SAFETY: the pointer was made by the worker that runs the calling thread, from a reference that
        // it does not use until that thread returns; the caller of this function being that thread, nobody
        // else uses it now.
        Some(use_it(unsafe { &mut *inside }))
    }

    /// Runs what is pending.
    ///
    /// # Safety
    /// One thread uses the handle at a time, running threads excepted; every pending call may be
    /// called, on any thread where there are several workers.
    pub unsafe fn run(&self, keep: Keep, workers: usize, caches: Option<&mut Caches>) -> Result<Report, Failure> {
        if self.is_running() {
            return Err(Failure::new(DOMICILE_RUNNING, c"a run inside a run: nothing was run"));
        }
        // SAFETY: no run is under way, and the caller is the only user; from here on `running` keeps others away.
        let place = unsafe { &mut *self.scheduler.get() };
        let Some(scheduler) = place else {
            return Ok(Report::default());
        };
        let _over = self.begin();
        let done = match NonZeroUsize::new(workers).filter(|workers| workers.get() > 1) {
            None => catch_unwind(AssertUnwindSafe(|| {
                scheduler.run(keep, |call, inside| {
                    self.inside.set(inside);
                    // SAFETY: the caller's promise of its calls.
                    unsafe { call.call() }
                })
            })),
            Some(workers) => catch_unwind(AssertUnwindSafe(|| {
                // Rust's own handle of the first thread that comes here is never freed, and only a pointer into its
                // middle is known. Keeping its start too stops leak checkers from reporting a leak.
                static CALLER: OnceLock<Thread> = OnceLock::new();
                CALLER.get_or_init(thread::current);
                let running = Shared(self);
                let body = move |call: &Call, inside: &mut Inside<Call>| {
                    let frame = Frame::new(running.handle(), inside);
                    let _left = frame.enter();
                    // SAFETY: the caller's promise of its calls.
                    unsafe { call.call() }
                };
                match caches {
                    None => scheduler.run_on(workers, keep, body),
                    Some(caches) => scheduler.run_at(workers, caches, keep, body),
                }
            })),
        };
        match done {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(error)) => Err(failure(error)),
            Err(panic) => Err(Failure::saying(DOMICILE_PANIC, words(&*panic))),
        }
    }

    fn begin(&self) -> Over<'_> {
        self.inside.set(ptr::null_mut());
        self.running.store(here(), Relaxed);
        Over(self)
    }
}

/// Apart from the fork, which is short without it.
#[cold]
#[inline(never)]
fn fill(
    place: &mut Option<Scheduler<Call>>,
    start: impl FnOnce() -> Result<Scheduler<Call>, Failure>,
) -> Result<&mut Scheduler<Call>, Failure> {
    Ok(place.insert(start()?))
}

/// Ends a run when it goes, however that comes.
struct Over<'a>(&'a Handle);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.inside.set(ptr::null_mut());
        self.0.running.store(0, Relaxed);
    }
}

/// The handle that several workers run.
#[derive(Clone, Copy)]
struct Shared<'a>(&'a Handle);

impl<'a> Shared<'a> {
    fn handle(self) -> &'a Handle {
        self.0
    }
}

/// What a worker runs at the moment, and what it was running when that began: threads of one order
/// may run another.
struct Frame {
    handle: *const Handle,
    inside: *mut Inside<Call>,
    outer: Cell<*const Frame>,
}

thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
    /// Its address names the operating system's thread while that lives.
    static HERE: Cell<u8> = const { Cell::new(0) };
}

impl Frame {
    fn new(handle: &Handle, inside: &mut Inside<Call>) -> Frame {
        Frame {
            handle,
            inside,
            outer: Cell::new(ptr::null()),
        }
    }

    fn enter(&self) -> Left<'_> {
        self.outer.set(INNERMOST.replace(self));
        Left(self)
    }
}

struct Left<'a>(&'a Frame);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        INNERMOST.set(self.0.outer.get());
    }
}

/// What the forks of this thread go to, if it is run by one of several workers of this handle.
fn frame_of(handle: &Handle) -> Option<*mut Inside<Call>> {
    let mut at = INNERMOST.get();
    // SAFETY: every frame in the list is on this thread's stack, below the caller's; `Left` takes it out of the
    // list before it goes.
    while let Some(frame) = unsafe { at.as_ref() } {
        if ptr::eq(frame.handle, handle) {
            return Some(frame.inside);
        }
        at = frame.outer.get();
    }
    None
}

/// A number that no other thread of the operating system has at this time, and never 0.
fn here() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// The scheduler's errors as ours.
#[cold]
#[inline(never)]
pub fn failure(error: Error) -> Failure {
    let code = match &error {
        // It has no text of its own: that would take memory.
        Error::OutOfMemory => return Failure::from(DOMICILE_OUT_OF_MEMORY),
        Error::Hints { .. } | Error::TooMany | Error::HasRun(_) => DOMICILE_INVALID,
        Error::Cycle(_) => DOMICILE_CYCLE,
        Error::Unknown(_) => DOMICILE_UNKNOWN_THREAD,
        _ => DOMICILE_INTERNAL,
    };
    Failure::saying(code, error.to_string())
}

/// What a panic said.
pub fn words(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a thread panicked: {}", said.unwrap_or("(no words)"))
}
