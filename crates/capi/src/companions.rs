//! What belongs to the paper's three calls but is not among them, and what belongs to all.

use std::ffi::{c_char, c_int};

use crate::error::Failure;
use crate::error::domicile_error;
use crate::error::domicile_error::{DOMICILE_NULL, DOMICILE_OK};
use crate::program::PROGRAM;
use crate::sized::Destination;
use crate::structures::{domicile_order_attributes, domicile_order_report};

/// Sets for th_fork and th_run what th_init cannot: workers, tour, levels, sides that differ. hints
/// is 0 or 3. A th_init that comes later changes the sides and the bins to be ready for, and
/// nothing else.
///
/// Without it, the environment variables DOMICILE_WORKERS (a number) and DOMICILE_TOUR (first-fork,
/// nearest or hilbert) say how a program with only the paper's calls runs.
///
/// # Safety
/// `attributes` is null or points to as many bytes as it says in `size`; one thread of the
/// operating system calls this and `th_*` at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_configure(attributes: *const domicile_order_attributes) -> domicile_error {
    // SAFETY: the caller's promise.
    answer("domicile_th_configure", || unsafe {
        PROGRAM.configure(domicile_order_attributes::read(attributes)?)
    })
}

/// What the last th_run did.
///
/// # Safety
/// `report` points to as many bytes as it says in `size`; one thread of the operating system calls
/// this and `th_*` at a time.
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

/// Why the last th_init or th_run that was left undone was (a domicile_error), and forgets it;
/// DOMICILE_OK when all was done. What th_fork and th_run cannot leave undone without losing a
/// thread ends the program.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_th_error() -> c_int {
    PROGRAM.undone()
}

/// The version of the library, as in "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn domicile_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Lets no panic out, and keeps a failure for [`domicile_th_error`].
fn answer(call: &str, work: impl FnOnce() -> Result<(), Failure>) -> domicile_error {
    match crate::order::guarded(work) {
        Ok(()) => DOMICILE_OK,
        Err(failure) => {
            PROGRAM.leave_undone(call, &failure);
            failure.code
        }
    }
}
