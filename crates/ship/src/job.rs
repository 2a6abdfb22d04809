//! A closure on its caller's stack, handed to another thread by its address.
//!
//! The address is good until the caller returns from [`Job::wait`], and the caller does not return before the worker has set the
//! job's state to [`DONE`]. That is the last thing that the worker does with it: the handle to wake the caller is cloned before.
//!
//! ```text
//! caller: writes the closure | hands over the address ............ waits until DONE | reads the result
//! worker:                      takes it | runs | writes the result | sets DONE | wakes the caller, if it sleeps
//! ```
#![allow(unsafe_code)]

pub(crate) mod slot;

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::worker::Worker;

const WAITED_FOR: u32 = 0;
/// The caller sleeps: whoever ends the job wakes it.
const SLEEPING: u32 = 1;
const DONE: u32 = 2;

/// Turns of a loop that only looks, between two looks at the clock.
pub(crate) const LOOKS: u32 = 64;

/// The part of a job that does not depend on its closure.
pub(crate) struct Header {
    run: unsafe fn(*const Header),
}

#[repr(C)]
struct Job<Work, Value> {
    header: Header,
    work: UnsafeCell<Option<Work>>,
    value: UnsafeCell<Option<thread::Result<Value>>>,
    state: AtomicU32,
    caller: Thread,
}

/// The address of a job, for one worker.
pub(crate) struct Errand(*const Header);

// SAFETY: the closure and its value are `Send` where the address is made (`Job::errand`), and only one thread runs it.
unsafe impl Send for Errand {}

/// Has a worker run a closure, and waits for it. Its value is returned, and its panic goes on here.
///
/// `own`: the worker that the caller is, if it is one. It serves others while it waits: they may wait for this very job. The caller
/// looks for `spin` before it sleeps.
pub(crate) fn hand_over<Work: FnOnce() -> Value + Send, Value: Send>(
    work: Work,
    worker: &Worker,
    spin: Duration,
    own: Option<&Worker>,
) -> Value {
    let job = Job::new(work);
    // SAFETY: the job stays where it is until it was waited for, and nothing unwinds before: `hand` and `wait` do not, and errands
    // that are served meanwhile catch panics.
    worker.hand(unsafe { job.errand() });
    job.wait(spin, own);
    match job.value.into_inner() {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("a job that is done has a value"),
    }
}

impl<Work: FnOnce() -> Value + Send, Value: Send> Job<Work, Value> {
    fn new(work: Work) -> Job<Work, Value> {
        Job {
            header: Header {
                run: run::<Work, Value>,
            },
            work: UnsafeCell::new(Some(work)),
            value: UnsafeCell::new(None),
            state: AtomicU32::new(WAITED_FOR),
            caller: thread::current(),
        }
    }

    /// The address of the job.
    ///
    /// # Safety
    ///
    /// There is one errand for each job, it is run exactly once, and the job is neither moved nor dropped before [`Job::wait`] has
    /// returned, nor does its owner unwind before.
    unsafe fn errand(&self) -> Errand {
        Errand((&raw const *self).cast())
    }

    /// Waits until the job has been run.
    fn wait(&self, spin: Duration, own: Option<&Worker>) {
        let mut began: Option<Instant> = None;
        let mut looks = 0u32;
        while self.state.load(Ordering::Acquire) != DONE {
            if own.is_some_and(Worker::serve) {
                (began, looks) = (None, 0);
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && began.get_or_insert_with(Instant::now).elapsed() > spin {
                let sleeps = self
                    .state
                    .compare_exchange(WAITED_FOR, SLEEPING, Ordering::AcqRel, Ordering::Acquire);
                let is_done = || self.state.load(Ordering::Acquire) == DONE;
                match own {
                    _ if sleeps == Err(DONE) => {}
                    Some(own) => own.sleep(is_done),
                    // Others may wake this thread, too: the state is looked at again.
                    None => thread::park(),
                }
            } else {
                spin_loop();
            }
        }
    }
}

impl Errand {
    pub fn into_raw(self) -> *mut Header {
        self.0.cast_mut()
    }

    /// # Safety
    ///
    /// The address came from [`Errand::into_raw`], and nobody else takes it.
    pub unsafe fn from_raw(address: *mut Header) -> Errand {
        Errand(address)
    }

    /// Runs the job and wakes its caller.
    pub fn run(self) {
        // SAFETY: whoever made the errand keeps the job in place until it is done, and runs it once: `self` is consumed.
        unsafe { ((*self.0).run)(self.0) }
    }
}

/// # Safety
///
/// The header is that of a `Job<Work, Value>` that is in place, and was not run yet.
unsafe fn run<Work: FnOnce() -> Value + Send, Value: Send>(header: *const Header) {
    // SAFETY: the header is the first field of a job of this type, which stays until its state is `DONE`.
    let job = unsafe { &*header.cast::<Job<Work, Value>>() };
    // SAFETY: until the job is done its cells are the worker's.
    let work = unsafe { (*job.work.get()).take() };
    let Some(work) = work else { return };
    let value = catch_unwind(AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe { *job.value.get() = Some(value) };
    let caller = job.caller.clone();
    if job.state.swap(DONE, Ordering::AcqRel) == SLEEPING {
        caller.unpark();
    }
}
