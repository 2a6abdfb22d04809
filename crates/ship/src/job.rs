//! A closure on its caller's stack, handed to another thread by its address.
//!
//! The address is valid until the caller returns from [`Job::wait`], and the caller does not return before the worker
//! has set the job's state to [`DONE`]. That is the worker's last access: it clones the handle for waking a sleeping
//! caller before.
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

const WAITED_FOR: u32 = 0;
/// The caller sleeps: the thread that ends the job wakes it.
const SLEEPING: u32 = 1;
const DONE: u32 = 2;

/// Turns of a polling loop between two looks at the clock.
pub(crate) const LOOKS: u32 = 64;

/// Pauses between two looks. The awaited thread may need this cpu: after some looks the cpu is yielded.
pub(crate) fn look_again(looks: u32) {
    match looks.is_multiple_of(LOOKS) {
        true => thread::yield_now(),
        false => spin_loop(),
    }
}

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

/// A waiting caller, and its other work meanwhile.
pub(crate) trait Waits {
    /// Does other work, if there is any, and returns whether it did.
    fn serve(&self) -> bool;
    /// Sleeps until the thread is woken; not at all if `ready`.
    fn sleep(&self, ready: &dyn Fn() -> bool);
}

/// Makes another thread run a closure, and waits for it. Returns its value, and propagates its panic.
///
/// `hand` passes the errand to its runner. The caller polls for `spin` before it sleeps.
pub(crate) fn hand_over<Work: FnOnce() -> Value + Send, Value: Send>(
    work: Work,
    hand: impl FnOnce(Errand),
    spin: Duration,
    caller: &impl Waits,
) -> Value {
    let job = Job::new(work);
    let whole = Whole;
    // SAFETY: the single run consumes the errand. The job stays in place until the wait has ended: unwinding before
    // ends the process (`whole`).
    hand(unsafe { job.errand() });
    job.wait(spin, caller);
    std::mem::forget(whole);
    match job.value.into_inner() {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("a job that is done has a value"),
    }
}

/// Ends the process if a frame would be left that another thread still uses.
struct Whole;

impl Drop for Whole {
    fn drop(&mut self) {
        std::process::abort();
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
    /// There is one errand for each job, it is run exactly once, and the job is neither moved nor dropped before
    /// [`Job::wait`] has returned, nor does its owner unwind before.
    unsafe fn errand(&self) -> Errand {
        Errand((&raw const *self).cast())
    }

    /// Waits until the job has been run.
    fn wait(&self, spin: Duration, caller: &impl Waits) {
        let mut began: Option<Instant> = None;
        let mut looks = 0u32;
        while self.state.load(Ordering::Acquire) != DONE {
            if caller.serve() {
                (began, looks) = (None, 0);
                continue;
            }
            looks += 1;
            if looks.is_multiple_of(LOOKS) && began.get_or_insert_with(Instant::now).elapsed() > spin {
                let sleeps = self
                    .state
                    .compare_exchange(WAITED_FOR, SLEEPING, Ordering::AcqRel, Ordering::Acquire);
                // Others may also wake this thread: the state is checked again.
                if sleeps != Err(DONE) {
                    caller.sleep(&|| self.state.load(Ordering::Acquire) == DONE);
                }
            } else {
                look_again(looks);
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
        // SAFETY: the maker of the errand keeps the job in place until it is done, and runs it once: `self` is
        // consumed.
        unsafe { ((*self.0).run)(self.0) }
    }
}

/// # Safety
///
/// The header is that of a `Job<Work, Value>` that is in place, and has not run yet.
unsafe fn run<Work: FnOnce() -> Value + Send, Value: Send>(header: *const Header) {
    // SAFETY: the header is the first field of a job of this type, which stays until its state is `DONE`.
    let job = unsafe { &*header.cast::<Job<Work, Value>>() };
    // SAFETY: until the job is done its cells are the worker's.
    let work = unsafe { (*job.work.get()).take() };
    let Some(work) = work else { return };
    let value = catch_unwind(AssertUnwindSafe(work));
    // SAFETY: as above.
    unsafe { *job.value.get() = Some(value) };
    let looks = job
        .state
        .compare_exchange(WAITED_FOR, DONE, Ordering::Release, Ordering::Relaxed);
    if looks.is_err() {
        // The handle outlives the job, which may be gone once it is done. Cloning it costs as much as a hand-over, so
        // it happens only here.
        let caller = job.caller.clone();
        job.state.store(DONE, Ordering::Release);
        caller.unpark();
    }
}
