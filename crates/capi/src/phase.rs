//! `domicile_phase` of `domicile/summary.h`, for programs that cannot use the macro of `domicile/trace.h`, mainly in
//! Fortran.

use std::ffi::{CStr, CString, c_char};

/// The most bytes that are read of a name from Fortran.
const LONGEST: usize = 4096;

/// Tells the recorder that the program enters a phase; does nothing without a recorder, and nothing for null.
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

/// The same as Fortran calls it: the name is padded with blanks, and its length follows it.
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
