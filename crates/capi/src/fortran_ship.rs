//! The calls for shipped work that the Fortran module `domicile` cannot make directly: a procedure, and the targets of
//! two pointers.

use std::ffi::{CStr, c_void};

use crate::error::domicile_error::DOMICILE_NULL;
use crate::error::{Failure, domicile_error};
use crate::fortran::Procedure;
use crate::fortran_order::fill;
use crate::ship::{domicile_home, domicile_ship_message, ship};
use crate::slots::{answer, code};

/// The two arguments of a procedure, on the caller's stack.
struct Arguments {
    procedure: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void),
    first: *mut c_void,
    second: *mut c_void,
}

/// # Safety
/// `home` is null or alive; `f` is null, or may be called with the two arguments by any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_ship_(
    home: &*mut domicile_home,
    f: Procedure,
    arg1: &*mut c_void,
    arg2: &*mut c_void,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { home.as_ref() };
        let home = known.ok_or(Failure::new(DOMICILE_NULL, c"the home is c_null_ptr"))?;
        let procedure = f.ok_or(Failure::new(DOMICILE_NULL, c"there is no procedure to call"))?;
        let mut arguments = Arguments {
            procedure,
            first: *arg1,
            second: *arg2,
        };
        let call = |arguments: *mut c_void| {
            // SAFETY: these are the arguments below, which live until the call has ended.
            let of = unsafe { &*arguments.cast::<Arguments>() };
            // SAFETY: the caller's promise.
            unsafe { (of.procedure)(of.first, of.second) };
            std::ptr::null_mut()
        };
        ship(home, call, (&raw mut arguments).cast())?;
        Ok(())
    }))
}

/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_ship_message_(text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives until the next failure.
    unsafe { fill(text, length, CStr::from_ptr(domicile_ship_message())) }
}
