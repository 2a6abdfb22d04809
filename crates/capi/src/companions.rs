//! Calls that belong to the paper's three but are not in the paper, and calls that belong to the whole library.

use std::ffi::{c_char, c_int};

use crate::error::Failure;
use crate::error::domicile_error;
use crate::error::domicile_error::{DOMICILE_NULL, DOMICILE_OK};
use crate::program::PROGRAM;
use crate::sized::Destination;
use crate::structures::{domicile_order_attributes, domicile_order_report};

/// Sets what th_init cannot, for th_fork and th_run: workers, tour, levels, sides that differ. hints is 0 or 3. A later
/// th_init changes only the sides and the expected number of bins.
///
/// Without this call, the environment variables DOMICILE_WORKERS (a number) and DOMICILE_TOUR (first-fork, nearest or
/// hilbert) configure a program that uses only the paper's calls.
///
/// # Safety
/// `attributes` is null or points to as many bytes as its `size` says; only one thread of the operating system at a
/// time calls this and `th_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_configure(attributes: *const domicile_order_attributes) -> domicile_error {
    // SAFETY: the caller's promise.
    answer("domicile_th_configure", || unsafe {
        PROGRAM.configure(domicile_order_attributes::read(attributes)?)
    })
}

/// Reports on the last th_run.
///
/// # Safety
/// `report` points to as many bytes as its `size` says; only one thread of the operating system at a time calls this
/// and `th_*`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_report(report: *mut domicile_order_report) -> domicile_error {
    answer("domicile_th_report", || {
        if report.is_null() {
            return Err(Failure::from(DOMICILE_NULL));
        }
        // SAFETY: the caller's promise.
        let (report, done) = unsafe { (Destination::new(report)?, PROGRAM.report()?) };
        report.fill(&(&done).into());
        Ok(())
    })
}

/// Returns why the last failed th_init, th_run, domicile_th_configure or domicile_th_report did nothing (a
/// domicile_error), and clears it; DOMICILE_OK if none failed. A failure of th_fork or th_run that would lose a thread
/// ends the program instead.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_th_error() -> c_int {
    PROGRAM.undone()
}

/// The version of the library, as in "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn domicile_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Stops every panic here, and keeps a failure for [`domicile_th_error`].
fn answer(call: &str, work: impl FnOnce() -> Result<(), Failure>) -> domicile_error {
    match crate::order::guarded(work) {
        Ok(()) => DOMICILE_OK,
        Err(failure) => {
            PROGRAM.leave_undone(call, &failure);
            failure.code
        }
    }
}
