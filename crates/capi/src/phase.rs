//! `domicile_phase` of `domicile/summary.h`, for who cannot use the macro of `domicile/trace.h`: Fortran above all.

use std::ffi::{CStr, CString, c_char};

/// Bytes of a name from Fortran that are looked at.
const LONGEST: usize = 4096;

/// Lets the recorder know that the program enters a phase; does nothing elsewhere, and nothing for null.
///
/// # Safety
/// `name` is null or ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_phase(name: *const c_char) {
    if !name.is_null() {
        // SAFETY: the caller's promise.
        sys::requests::phase(unsafe { CStr::from_ptr(name) });
    }
}

/// The same as Fortran calls it, with the length of the name behind it and blanks at its end.
///
/// # Safety
/// `name` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_phase_(name: *const u8, length: usize) {
    if name.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { std::slice::from_raw_parts(name, length.min(LONGEST)) };
    let name: Vec<u8> = name
        .trim_ascii_end()
        .iter()
        .copied()
        .take_while(|&byte| byte != 0)
        .collect();
    if let Ok(name) = CString::new(name) {
        sys::requests::phase(&name);
    }
}
