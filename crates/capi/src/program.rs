//! The single order of a program that uses the paper's three calls.

use std::cell::UnsafeCell;
use std::mem;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use sys::cancellation::Uncancelled;
use threads::{Keep, Report, Scheduler};

use crate::call::Call;
use crate::error::Failure;
use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_NULL, DOMICILE_OK, DOMICILE_RUNNING};
use crate::handle::Handle;
use crate::plan::Plan;
use crate::stderr;

use crate::structures::{DOMICILE_HINTS_MAX, DOMICILE_WORKERS_MAX, domicile_order_attributes};

/// Hints of the paper's calls (section 3).
const HINTS: usize = 3;
/// The most bins that memory is reserved for ahead; there may be more.
const BINS_READY_MAX: usize = 1 << 20;

/// The order of the whole program.
pub static PROGRAM: Program = Program {
    handle: Handle::empty(),
    settings: UnsafeCell::new(Settings {
        attributes: None,
        workers: 1,
        earlier: Vec::new(),
        done: None,
    }),
    undone: AtomicI32::new(DOMICILE_OK as i32),
};

/// As for [`Handle`], the unsafe functions require that **one thread of the operating system calls at a time**, running
/// threads excepted.
pub struct Program {
    handle: Handle,
    /// While the handle runs, only the `run` that runs it touches this.
    settings: UnsafeCell<Settings>,
    /// Why the last failed call did nothing; a `domicile_error`.
    undone: AtomicI32,
}

// SAFETY: only calls that come one at a time touch the settings, while nothing runs; the rest is `Sync`.
unsafe impl Sync for Program {}

struct Settings {
    /// None until something is set or forked: then those from the environment.
    attributes: Option<domicile_order_attributes>,
    workers: usize,
    /// Schedulers made with earlier attributes, with threads that are still pending. They run first.
    earlier: Vec<Scheduler<Call>>,
    /// The report of the last run.
    done: Option<Report>,
}

impl Program {
    /// `th_init`.
    ///
    /// # Safety
    /// See [`Program`].
    pub unsafe fn init(&self, blocksize: usize, hashsize: usize) {
        // SAFETY: the caller's promise.
        let changed = unsafe {
            self.change(|attributes| {
                attributes.block = [blocksize as u64; DOMICILE_HINTS_MAX];
                attributes.bins = hashsize.min(BINS_READY_MAX) as u32;
                Ok(())
            })
        };
        if let Err(failure) = changed {
            self.leave_undone("th_init", &failure);
        }
    }

    /// Sets everything that the paper's `th_init` cannot.
    ///
    /// # Safety
    /// See [`Program`].
    pub unsafe fn configure(&self, attributes: domicile_order_attributes) -> Result<(), Failure> {
        if !matches!(attributes.hints, 0 | 3) {
            let text = format!("hints is {}: th_fork has {HINTS}", attributes.hints);
            return Err(Failure::saying(DOMICILE_INVALID, text));
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.change(|now| {
                *now = attributes;
                now.hints = HINTS as u32;
                Ok(())
            })
        }
    }

    /// # Safety
    /// See [`Program`].
    unsafe fn change(
        &self,
        change: impl FnOnce(&mut domicile_order_attributes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // The cache may be measured, which opens files.
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the caller's promise.
        let scheduler = unsafe { self.handle.idle() }?;
        // SAFETY: nothing runs, and the caller is the only user.
        let settings = unsafe { &mut *self.settings.get() };
        let mut attributes = settings.attributes.unwrap_or_else(environment);
        change(&mut attributes)?;
        // Fails if the attributes are invalid, and measures the cache now rather than in the first fork.
        Plan::new(&attributes, HINTS)?;
        settings.attributes = Some(attributes);
        settings
            .earlier
            .extend(scheduler.take().filter(|scheduler| !scheduler.is_empty()));
        Ok(())
    }

    /// `th_fork`.
    ///
    /// # Safety
    /// See [`Program`]; any worker may make the call until it is forgotten.
    #[inline]
    pub unsafe fn fork(&self, hints: &[u64; HINTS], call: Call) {
        // Only the rarely called function gets copies, so that the hints themselves need not be in memory: a fork's
        // stores to the stack queue behind those to the bins, which miss the cache.
        let [hint1, hint2, hint3] = *hints;
        let forked = if self.handle.is_running() {
            let (function, arg1, arg2) = call.into_parts();
            self.handle.fork_inside([hint1, hint2, hint3], function, arg1, arg2)
        } else {
            // SAFETY: the caller's promise, and `start` is called while nothing runs.
            let named = unsafe { self.handle.fork(hints, call, || self.start(&[hint1, hint2, hint3])) };
            named.map(|_| ())
        };
        if let Err(failure) = forked {
            end("th_fork", &failure);
        }
    }

    /// The scheduler for a first thread with these hints.
    ///
    /// # Safety
    /// See [`Program`]; nothing runs.
    #[cold]
    unsafe fn start(&self, hints: &[u64; HINTS]) -> Result<Scheduler<Call>, Failure> {
        let _uncancelled = Uncancelled::begin();
        // SAFETY: the caller's promise.
        let settings = unsafe { &mut *self.settings.get() };
        let attributes = settings.attributes.get_or_insert_with(environment);
        let dimensions = hints.iter().rposition(|&hint| hint != 0).map_or(1, |last| last + 1);
        let plan = Plan::new(attributes, dimensions)?;
        settings.workers = plan.workers;
        plan.scheduler()
    }

    /// `th_run`.
    ///
    /// # Safety
    /// See [`Program`].
    pub unsafe fn run(&self, keep: bool) {
        // The threads may call cancellation points, and our frames are below them.
        let _uncancelled = Uncancelled::begin();
        if self.handle.is_running() {
            let failure = Failure::new(DOMICILE_RUNNING, c"called by a running thread: nothing was run");
            return self.leave_undone("th_run", &failure);
        }
        let keep = if keep { Keep::Yes } else { Keep::No };
        // SAFETY: the caller's promise.
        if let Err(failure) = unsafe { self.run_all(keep) } {
            end("th_run", &failure);
        }
    }

    /// # Safety
    /// See [`Program`].
    unsafe fn run_all(&self, keep: Keep) -> Result<(), Failure> {
        // SAFETY: nothing runs yet, and the caller is the only user; the runs below do not touch the settings.
        let settings = unsafe { &mut *self.settings.get() };
        let mut sum = Report::default();
        let mut kept = Vec::new();
        for scheduler in mem::take(&mut settings.earlier) {
            // SAFETY: the caller's promise; nothing runs between the runs.
            let newest = unsafe { self.handle.idle() }?.replace(scheduler);
            // SAFETY: the caller's promise.
            let done = unsafe { self.handle.run(keep, settings.workers, None) }?;
            add(&mut sum, &done);
            // SAFETY: the caller's promise; nothing runs between the runs.
            let ran = mem::replace(unsafe { self.handle.idle() }?, newest);
            kept.extend(ran.filter(|ran| !ran.is_empty()));
        }
        // SAFETY: the caller's promise.
        let done = unsafe { self.handle.run(keep, settings.workers, None) }?;
        add(&mut sum, &done);
        settings.earlier = kept;
        settings.done = Some(sum);
        Ok(())
    }

    /// The report of the last run; zeros before the first.
    ///
    /// # Safety
    /// See [`Program`].
    pub unsafe fn report(&self) -> Result<Report, Failure> {
        if self.handle.is_running() {
            return Err(Failure::from(DOMICILE_RUNNING));
        }
        // SAFETY: nothing runs, and the caller is the only user.
        Ok(unsafe { &*self.settings.get() }.done.unwrap_or_default())
    }

    /// Why the last failed call did nothing; clears it.
    pub fn undone(&self) -> i32 {
        self.undone.swap(DOMICILE_OK as i32, Relaxed)
    }

    pub fn leave_undone(&self, call: &str, failure: &Failure) {
        self.undone.store(failure.code as i32, Relaxed);
        say(call, failure);
    }
}

fn add(sum: &mut Report, done: &Report) {
    sum.threads += done.threads;
    sum.bins += done.bins;
    sum.workers = sum.workers.max(done.workers);
}

/// Ends the program because a call that returns nothing cannot do its work.
#[cold]
#[inline(never)]
pub fn end(call: &str, failure: &Failure) -> ! {
    say(call, failure);
    std::process::abort()
}

/// Ends the program because a thread has no function.
#[cold]
pub fn end_without_function(call: &str) -> ! {
    end(
        call,
        &Failure::new(DOMICILE_NULL, c"f is 0: a thread must have a function"),
    )
}

fn say(call: &str, failure: &Failure) {
    stderr::say(format_args!("{call}: {}", failure.message.to_string_lossy()));
}

/// The attributes of a program that sets none. `DOMICILE_WORKERS` and `DOMICILE_TOUR` configure a program that uses
/// only the paper's calls.
fn environment() -> domicile_order_attributes {
    let mut attributes = domicile_order_attributes {
        hints: HINTS as u32,
        ..Default::default()
    };
    if let Ok(text) = std::env::var("DOMICILE_WORKERS") {
        match text.parse() {
            Ok(workers) if (1..=DOMICILE_WORKERS_MAX).contains(&(workers as usize)) => attributes.workers = workers,
            _ => stderr::say(format_args!(
                "DOMICILE_WORKERS={text} is ignored: use 1 to {DOMICILE_WORKERS_MAX}"
            )),
        }
    }
    if let Ok(text) = std::env::var("DOMICILE_TOUR") {
        match ["first-fork", "nearest", "hilbert"]
            .iter()
            .position(|name| *name == text)
        {
            Some(tour) => attributes.tour = tour as u32,
            None => stderr::say(format_args!(
                "DOMICILE_TOUR={text} is ignored: use first-fork, nearest or hilbert"
            )),
        }
    }
    attributes
}
