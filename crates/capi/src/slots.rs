//! Cache slots as objects, with errors: what `domicile/ulcc.h` does with one application for the whole program
//! (Ding11, section 3.1).
//!
//! | file | what it is |
//! | --- | --- |
//! | `application` | what cache there is, by which means |
//! | `slot`, `group`, `data_set` | a part of the caches, who uses data, what data |
//! | `memory` | memory that has a slot's colors from the start |
//! | `structures` | what goes in and comes out |
//! | `handles` | what C holds in its hands |
//! | `terms` | the safe library in C's terms |
//!
//! Any thread may call at any time: all that is shared is behind a lock or within `live`, which has its own.
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
    /// What the thread's last call that failed said.
    static SAID: RefCell<Cow<'static, CStr>> = const { RefCell::new(Cow::Borrowed(c"")) };
}

/// Why the caller's last call for slots that failed did, in words for people; empty where none has.
/// It lives until the next one of the same thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_slots_message() -> *const c_char {
    words()
}

/// What the thread's last call that failed said.
pub(crate) fn words() -> *const c_char {
    // The words stay where they are until the next failure takes their place, as the header says. A thread that is
    // about to end has none.
    SAID.try_with(|said| said.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Keeps words for the caller that come without a failure.
pub(crate) fn say(text: String) {
    let said = Failure::saying(DOMICILE_OK, text).message;
    let _ = SAID.try_with(|before| before.replace(said));
}

/// Lets no panic out, and keeps the words of a failure for its thread, which is not cancelled meanwhile.
pub(crate) fn answer<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, domicile_error> {
    let _uncancelled = Uncancelled::begin();
    guarded(work).map_err(|failure| {
        let code = failure.code;
        let _ = SAID.try_with(|said| said.replace(failure.message));
        code
    })
}

/// As C has it.
pub(crate) fn code(done: Result<(), domicile_error>) -> domicile_error {
    done.err().unwrap_or(DOMICILE_OK)
}

/// Makes something whose handle goes where `to` points; null is put there where it fails.
///
/// # Safety
/// `to` is null or points to a pointer.
pub(crate) unsafe fn make<C>(to: *mut *mut C, work: impl FnOnce() -> Result<*mut C, Failure>) -> domicile_error {
    code(answer(|| {
        if to.is_null() {
            let text = c"the last argument is NULL: say where to put the new handle";
            return Err(Failure::new(domicile_error::DOMICILE_NULL, text));
        }
        // SAFETY: the caller's promise; what lies there may never have been written.
        unsafe { to.write(std::ptr::null_mut()) };
        let made = work()?;
        // SAFETY: as above.
        unsafe { to.write(made) };
        Ok(())
    }))
}
