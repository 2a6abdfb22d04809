//! Orders as objects: any number of hints, several workers, tours, dependencies, errors.
//!
//! `domicile/domicile.h` is generated from this file and others, such as `fork`, `ask`, `structures`, `error` and
//! `companions`.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use sys::cancellation::Uncancelled;
use threads::{Caches, Keep, Scheduler};

use crate::call::Call;
use crate::error::domicile_error::{
    DOMICILE_INTERNAL, DOMICILE_NULL, DOMICILE_OK, DOMICILE_RUNNING, DOMICILE_UNAVAILABLE,
};
use crate::error::{Failure, domicile_error};
use crate::handle::{Handle, failure, words};
use crate::plan::{Always, Plan, hints};
use crate::sized::Destination;
use crate::structures::{domicile_order_attributes, domicile_order_report};

/// Threads that are pending, and the order in which they will run.
pub struct domicile_order {
    pub(crate) handle: Handle,
    pub(crate) plan: Plan,
    /// The workers' caches; the current run uses them.
    caches: Mutex<Option<Caches>>,
    reason: CString,
    message: Mutex<Cow<'static, CStr>>,
}

/// Makes an order without threads.
///
/// attributes may be NULL: all defaults. If the call fails, *order is NULL, and domicile_order_message(NULL) says why.
///
/// # Safety
/// `attributes` is null or points to as many bytes as its `size` says; `order` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_create(
    attributes: *const domicile_order_attributes,
    order: *mut *mut domicile_order,
) -> domicile_error {
    if order.is_null() {
        return refused(Failure::new(
            DOMICILE_NULL,
            c"order is NULL: say where to put the new order",
        ));
    }
    // SAFETY: the caller's promise; the memory may be uninitialized.
    unsafe { order.write(std::ptr::null_mut()) };
    let _uncancelled = Uncancelled::begin();
    let made = guarded(|| {
        // SAFETY: the caller's promise.
        let attributes = unsafe { domicile_order_attributes::read(attributes) }?;
        domicile_order::new(&attributes)
    });
    match made {
        Ok(made) => {
            // SAFETY: as above.
            unsafe { order.write(Box::into_raw(Box::new(made))) };
            DOMICILE_OK
        }
        Err(failure) => refused(failure),
    }
}

/// Frees an order with all its pending threads, which do not run. NULL is allowed; a running order is not freed
/// (DOMICILE_RUNNING). Do not use the handle afterwards.
///
/// # Safety
/// `order` is null or was made by `domicile_order_create` and not yet destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_destroy(order: *mut domicile_order) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(known) = (unsafe { order.as_ref() }) else {
        return DOMICILE_OK;
    };
    if known.handle.is_running() {
        return known.failed(Failure::new(
            DOMICILE_RUNNING,
            c"an order that is running cannot be destroyed",
        ));
    }
    // SAFETY: it came from a box, and the caller gives it up.
    drop(unsafe { Box::from_raw(order) });
    DOMICILE_OK
}

/// Reserves memory for this many threads in this many bins, so that later forks need no allocation for them.
///
/// # Safety
/// `order` is alive, and only one thread of the operating system at a time uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_reserve(
    order: *mut domicile_order,
    threads: usize,
    bins: usize,
) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    order.answer(|| {
        // SAFETY: the caller's promise.
        let scheduler = unsafe { order.idle() }?;
        scheduler.reserve(threads, bins).map_err(failure)
    })
}

/// Runs all pending threads, bin by bin, and returns when they and the threads that they forked have run.
///
/// With keep = 0 the threads are then forgotten; otherwise they stay for the next run. report may be NULL. A thread's
/// function must return: leaving it by longjmp or by a C++ exception ends the program or worse. A Rust function that
/// panics ends the run with DOMICILE_PANIC. If the caller is cancelled (pthread_cancel) during the run, the
/// cancellation takes effect after the run.
///
/// # Safety
/// `order` is alive, and only one thread of the operating system at a time uses it, apart from its running threads;
/// `report` is null or points to as many bytes as its `size` says; the promises made for the forked functions hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_run(
    order: *mut domicile_order,
    keep: c_int,
    report: *mut domicile_order_report,
) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    // The order's threads may call cancellation points, and our frames are below them.
    let _uncancelled = Uncancelled::begin();
    order.answer(|| {
        let keep = if keep == 0 { Keep::No } else { Keep::Yes };
        // SAFETY: the caller's promise.
        let report = unsafe { Destination::new(report) }?;
        // SAFETY: the caller's promise.
        let done = {
            let mut caches = order.caches.try_lock().ok();
            let caches = caches.as_mut().and_then(|caches| caches.as_mut());
            // SAFETY: the caller's promise.
            unsafe { order.handle.run(keep, order.plan.workers, caches) }?
        };
        report.fill(&(&done).into());
        Ok(())
    })
}

/// Forgets all pending threads; they do not run.
///
/// # Safety
/// `order` is alive, and only one thread of the operating system at a time uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_clear(order: *mut domicile_order) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    order.answer(|| {
        // SAFETY: the caller's promise.
        unsafe { order.idle() }?.clear();
        Ok(())
    })
}

thread_local! {
    static REFUSED: std::cell::RefCell<Cow<'static, CStr>> = const { std::cell::RefCell::new(Cow::Borrowed(c"")) };
}

/// Keeps the message of a failure that has no order to keep it.
fn refused(failure: Failure) -> domicile_error {
    REFUSED.set(failure.message);
    failure.code
}

/// Turns a panic into an error.
pub fn guarded<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::saying(DOMICILE_INTERNAL, words(&*panic))))
}

impl domicile_order {
    fn new(attributes: &domicile_order_attributes) -> Result<domicile_order, Failure> {
        let plan = Plan::new(attributes, hints(attributes)?)?;
        let caches = plan.at_caches.map(|Always(always)| {
            let found = Caches::find().map_err(|error| Failure::saying(DOMICILE_UNAVAILABLE, error.to_string()));
            found.map(|mut caches| {
                if always {
                    caches.always(true);
                }
                caches
            })
        });
        let order = domicile_order {
            handle: Handle::empty(),
            caches: Mutex::new(caches.transpose()?),
            reason: CString::new(plan.reason.as_str()).unwrap_or_default(),
            plan,
            message: Mutex::new(Cow::Borrowed(c"")),
        };
        // SAFETY: no other thread knows the order yet.
        *unsafe { order.handle.idle() }? = Some(order.scheduler()?);
        Ok(order)
    }

    /// Why the block has its sides.
    pub(crate) fn reason(&self) -> &CStr {
        &self.reason
    }

    /// The message of the last failure; for no order, that of the last order that could not be made.
    pub(crate) fn message(order: Option<&domicile_order>) -> *const c_char {
        match order {
            // The text stays in place until the next failure replaces it, as the header says.
            Some(order) => order.message.lock().unwrap_or_else(PoisonError::into_inner).as_ptr(),
            None => REFUSED.with_borrow(|message| message.as_ptr()),
        }
    }

    pub(crate) fn scheduler(&self) -> Result<Scheduler<Call>, Failure> {
        self.plan.scheduler()
    }

    /// # Safety
    /// As for [`Handle::idle`].
    #[expect(clippy::mut_from_ref, reason = "the caller keeps the rule of the handle")]
    pub(crate) unsafe fn idle(&self) -> Result<&mut Scheduler<Call>, Failure> {
        // SAFETY: the caller's promise.
        let place = unsafe { self.handle.idle() }?;
        place.as_mut().ok_or(Failure::from(DOMICILE_INTERNAL))
    }

    /// Turns a panic into an error, and keeps the message of a failure.
    pub(crate) fn answer(&self, work: impl FnOnce() -> Result<(), Failure>) -> domicile_error {
        match guarded(work) {
            Ok(()) => DOMICILE_OK,
            Err(failure) => self.failed(failure),
        }
    }

    #[cold]
    pub(crate) fn failed(&self, failure: Failure) -> domicile_error {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = failure.message;
        failure.code
    }
}
