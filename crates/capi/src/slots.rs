//! Cache slots as objects, with errors: what `domicile/ulcc.h` does with one application for the whole program
//! (Ding11, section 3.1).
//!
//! | file | what it is |
//! | --- | --- |
//! | `application` | the available cache, and the means to divide it |
//! | `slot`, `group`, `data_set` | a part of the caches, the threads that use data, the data |
//! | `memory` | memory that has a slot's colors from the start |
//! | `structures` | inputs and outputs |
//! | `handles` | the handles that C holds |
//! | `terms` | the safe library in C's terms |
//!
//! Any thread may call at any time: all shared state is behind a lock or within `live`, which has its own locks.
#![allow(non_camel_case_types, reason = "these are C's names")]

pub mod application;
pub mod data_set;
pub mod group;
mod handles;
pub mod memory;
mod numbers;
pub mod slot;
pub mod structures;
mod terms;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};

use sys::cancellation::Uncancelled;

use crate::error::domicile_error::DOMICILE_OK;
use crate::error::{Failure, domicile_error};
use crate::order::guarded;

/// A program that divides the shared caches among its data.
pub struct domicile_slots(());

/// A part of the shared caches.
pub struct domicile_slot(());

/// Threads that use a data set.
pub struct domicile_thread_group(());

/// Ranges of memory that get a slot together.
pub struct domicile_data_set(());

thread_local! {
    /// The message of the thread's last failed call.
    static SAID: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"")) };
}

/// The message of the calling thread's last failed call for slots, in words for people; empty if none has failed. It
/// lives until the thread's next call fails, for slots, replicated data or caches.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_message() -> *const c_char {
    words()
}

/// The message of the thread's last failed call.
pub(crate) fn words() -> *const c_char {
    // The text stays in place until the next failure replaces it, as the header says. A thread that is about to end has
    // none.
    SAID.try_with(|said| said.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Keeps a message for the caller without a failure.
pub(crate) fn say(text: String) {
    let said = Failure::saying(DOMICILE_OK, text).message;
    let _ = SAID.try_with(|before| before.replace(said));
}

/// Turns a panic into an error, and keeps the message of a failure for its thread, which is not cancelled meanwhile.
pub(crate) fn answer<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, domicile_error> {
    let _uncancelled = Uncancelled::begin();
    guarded(work).map_err(|failure| {
        let code = failure.code;
        let _ = SAID.try_with(|said| said.replace(failure.message));
        code
    })
}

/// The result as C sees it.
pub(crate) fn code(done: Result<(), domicile_error>) -> domicile_error {
    done.err().unwrap_or(DOMICILE_OK)
}

/// Makes something and stores its handle at `to`; stores null if that fails.
///
/// # Safety
/// `to` is null or points to a pointer.
pub(crate) unsafe fn make<C>(to: *mut *mut C, work: impl FnOnce() -> Result<*mut C, Failure>) -> domicile_error {
    code(answer(|| {
        if to.is_null() {
            let text = c"the last argument is NULL: say where to put the new handle";
            return Err(Failure::new(domicile_error::DOMICILE_NULL, text));
        }
        // SAFETY: the caller's promise; the memory may be uninitialized.
        unsafe { to.write(std::ptr::null_mut()) };
        let made = work()?;
        // SAFETY: as above.
        unsafe { to.write(made) };
        Ok(())
    }))
}
