//! A scheduler as C holds it, and how its threads find it again.
//!
//! A fork must cost next to nothing, so there is no lock: a handle belongs to one thread of the operating system at a
//! time, and a running thread that forks finds the worker that runs it. With one worker, the handle holds a pointer;
//! with several, each worker keeps the pointer in thread-local storage.

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

/// A scheduler, or an empty place for one, that any thread can reach.
///
/// All unsafe functions have the same requirement: **one thread of the operating system uses the handle at a time**.
/// While it runs, however, all its running threads may call `fork_inside` and `worker`.
pub struct Handle {
    /// Only `run` may touch it while `running` is not 0.
    scheduler: UnsafeCell<Option<Scheduler<Call>>>,
    /// The operating system's thread that is in `run`, as [`here`] identifies it; 0 when there is none.
    running: AtomicUsize,
    /// With one worker, the target of the running thread's forks; otherwise null. Only for the thread in `run`.
    inside: Cell<*mut Inside<Call>>,
}

// SAFETY: the cells are used under the rule above: every function that touches them either requires it from its caller
// or checks it; the calls themselves may go to any thread.
unsafe impl Sync for Handle {}
// SAFETY: a handle that does not run holds a scheduler of calls, which may go to any thread, and no other pointers.
unsafe impl Send for Handle {}

impl Handle {
    /// A handle without a scheduler.
    pub const fn empty() -> Handle {
        Handle {
            scheduler: UnsafeCell::new(None),
            running: AtomicUsize::new(0),
            inside: Cell::new(ptr::null_mut()),
        }
    }

    /// Returns true if it is running; always true when asked by one of its running threads.
    pub fn is_running(&self) -> bool {
        self.running.load(Relaxed) != 0
    }

    /// The scheduler, to read or to change.
    ///
    /// # Safety
    /// One thread uses the handle at a time, and the reference ends before the next use of the handle.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps the rule of the type")]
    #[inline]
    pub unsafe fn idle(&self) -> Result<&mut Option<Scheduler<Call>>, Failure> {
        if self.is_running() {
            return Err(Failure::from(DOMICILE_RUNNING));
        }
        // SAFETY: no run is under way, and the caller is the only user.
        Ok(unsafe { &mut *self.scheduler.get() })
    }

    /// Forks a thread while nothing runs, and returns its id. `start` makes the scheduler if there is none yet.
    ///
    /// # Safety
    /// One thread uses the handle at a time; the handle does not run.
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

    /// Forks a thread from a running one; it runs in the same run, and has no id.
    ///
    /// The call comes in parts. If its address escaped, even forks that do not come here would build it in memory, and
    /// read it back before the stores have completed.
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

    /// The number of the worker that runs the calling thread; none when it is not a running thread of this handle.
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
        // SAFETY: the worker that runs the calling thread made the pointer from a reference, and does not use that
        // reference until the thread returns. The caller of this function is that thread, so nobody else uses it now.
        Some(use_it(unsafe { &mut *inside }))
    }

    /// Runs what is pending.
    ///
    /// # Safety
    /// One thread uses the handle at a time, running threads excepted; every pending call may be made, on any thread if
    /// there are several workers.
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
                    // SAFETY: the caller's promise about its calls.
                    unsafe { call.call() }
                })
            })),
            Some(workers) => catch_unwind(AssertUnwindSafe(|| {
                // Rust's own handle of the first thread that comes here is never freed, and only a pointer into its
                // middle is kept. A pointer to its start stops leak checkers from reporting a leak.
                static CALLER: OnceLock<Thread> = OnceLock::new();
                CALLER.get_or_init(thread::current);
                let running = Shared(self);
                let body = move |call: &Call, inside: &mut Inside<Call>| {
                    let frame = Frame::new(running.handle(), inside);
                    let _left = frame.enter();
                    // SAFETY: the caller's promise about its calls.
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

/// Separate from the fork, which stays short.
#[cold]
#[inline(never)]
fn fill(
    place: &mut Option<Scheduler<Call>>,
    start: impl FnOnce() -> Result<Scheduler<Call>, Failure>,
) -> Result<&mut Scheduler<Call>, Failure> {
    Ok(place.insert(start()?))
}

/// Ends a run when dropped, on every path.
struct Over<'a>(&'a Handle);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.inside.set(ptr::null_mut());
        self.0.running.store(0, Relaxed);
    }
}

/// The handle, shared by several workers.
#[derive(Clone, Copy)]
struct Shared<'a>(&'a Handle);

impl<'a> Shared<'a> {
    fn handle(self) -> &'a Handle {
        self.0
    }
}

/// The current work of a worker, and its earlier work: threads of one order may run another order.
struct Frame {
    handle: *const Handle,
    inside: *mut Inside<Call>,
    outer: Cell<*const Frame>,
}

thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
    /// Its address identifies the operating system's thread as long as the thread lives.
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

/// The target of this thread's forks, if one of several workers of this handle runs the thread.
fn frame_of(handle: &Handle) -> Option<*mut Inside<Call>> {
    let mut at = INNERMOST.get();
    // SAFETY: every frame in the list is on this thread's stack, below the caller's; `Left` removes it from the list
    // before the frame ends.
    while let Some(frame) = unsafe { at.as_ref() } {
        if ptr::eq(frame.handle, handle) {
            return Some(frame.inside);
        }
        at = frame.outer.get();
    }
    None
}

/// A number that is unique among the live threads of the operating system, and never 0.
fn here() -> usize {
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Converts the scheduler's errors.
#[cold]
#[inline(never)]
pub fn failure(error: Error) -> Failure {
    let code = match &error {
        // It has no message of its own, because that would need memory.
        Error::OutOfMemory => return Failure::from(DOMICILE_OUT_OF_MEMORY),
        Error::Hints { .. } | Error::TooMany | Error::HasRun(_) => DOMICILE_INVALID,
        Error::Cycle(_) => DOMICILE_CYCLE,
        Error::Unknown(_) => DOMICILE_UNKNOWN_THREAD,
        _ => DOMICILE_INTERNAL,
    };
    Failure::saying(code, error.to_string())
}

/// The message of a panic.
pub fn words(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a thread panicked: {}", said.unwrap_or("(no words)"))
}
