//! Functions of C that the Fortran module `domicile` cannot call directly: those with procedures, with integers that
//! are kept, or with character strings. All arguments are by reference, and the length of a string follows all other
//! arguments.

use std::ffi::{CStr, c_int, c_void};
use std::slice;

use crate::ask::{domicile_order_message, domicile_order_reason};
use crate::call::{Call, Value};
use crate::error::{domicile_error, domicile_error_text};
use crate::fork::{domicile_order_fork, domicile_order_fork_after, fork, fork_after};
use crate::fortran::Procedure;
use crate::order::domicile_order;

/// # Safety
/// As for `domicile_order_fork`, with the pointers that the arguments point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_ptr_(
    order: &*mut domicile_order,
    f: Procedure,
    arg1: &*mut c_void,
    arg2: &*mut c_void,
    hints: *const u64,
    thread: *mut u64,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { domicile_order_fork(*order, f, *arg1, *arg2, hints, thread) }
}

/// # Safety
/// As for `domicile_order_fork`; `f` can be called with two integers by reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_int32_(
    order: &*mut domicile_order,
    f: Procedure,
    arg1: &i32,
    arg2: &i32,
    hints: *const u64,
    thread: *mut u64,
) -> domicile_error {
    let call = |function| Call::with_values(function, Value::Int32(*arg1), Value::Int32(*arg2));
    // SAFETY: the caller's promise.
    unsafe { fork(*order, f, call, hints, thread) }
}

/// # Safety
/// As for `domicile_order_fork`; `f` can be called with two integers by reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_int64_(
    order: &*mut domicile_order,
    f: Procedure,
    arg1: &i64,
    arg2: &i64,
    hints: *const u64,
    thread: *mut u64,
) -> domicile_error {
    let call = |function| Call::with_values(function, Value::Int64(*arg1), Value::Int64(*arg2));
    // SAFETY: the caller's promise.
    unsafe { fork(*order, f, call, hints, thread) }
}

/// # Safety
/// As for `domicile_order_fork_after`, with the pointers that the arguments point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_after_ptr_(
    order: &*mut domicile_order,
    f: Procedure,
    arg1: &*mut c_void,
    arg2: &*mut c_void,
    hints: *const u64,
    earlier: *const u64,
    count: &i32,
    thread: *mut u64,
) -> domicile_error {
    let count = usize::try_from(*count).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { domicile_order_fork_after(*order, f, *arg1, *arg2, hints, earlier, count, thread) }
}

/// # Safety
/// As for `domicile_order_fork_after`; `f` can be called with two integers by reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_after_int32_(
    order: &*mut domicile_order,
    f: Procedure,
    arg1: &i32,
    arg2: &i32,
    hints: *const u64,
    earlier: *const u64,
    count: &i32,
    thread: *mut u64,
) -> domicile_error {
    let call = |function| Call::with_values(function, Value::Int32(*arg1), Value::Int32(*arg2));
    let count = usize::try_from(*count).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { fork_after(*order, f, call, hints, earlier, count, thread) }
}

/// The address of a variable, as a hint.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_hint_(place: *const c_void) -> u64 {
    place.addr() as u64
}

/// # Safety
/// `order` is null or alive; `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_reason_(order: &*mut domicile_order, text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives as long as the order.
    unsafe { fill(text, length, CStr::from_ptr(domicile_order_reason(*order))) }
}

/// # Safety
/// `order` is null or alive; `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_message_(order: &*mut domicile_order, text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives until the next failure.
    unsafe { fill(text, length, CStr::from_ptr(domicile_order_message(*order))) }
}

/// # Safety
/// `text` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_error_text_(error: &c_int, text: *mut u8, length: usize) {
    // SAFETY: the caller's promise; the words are a C string that lives as long as the program.
    unsafe { fill(text, length, CStr::from_ptr(domicile_error_text(*error))) }
}

/// Fills a Fortran string with the words, cut to its length or padded with blanks.
///
/// # Safety
/// `text` has room for `length` bytes.
pub unsafe fn fill(text: *mut u8, length: usize, words: &CStr) {
    if text.is_null() || length == 0 {
        return;
    }
    // SAFETY: the caller's promise; the bytes of a Fortran string are initialized.
    let text = unsafe { slice::from_raw_parts_mut(text, length) };
    let words = words.to_bytes();
    let (front, behind) = text.split_at_mut(words.len().min(length));
    front.copy_from_slice(&words[..front.len()]);
    behind.fill(b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fortran_string_is_cut_or_filled_with_blanks() {
        let mut text = *b"........";
        // SAFETY: it has that many bytes.
        unsafe { fill(text.as_mut_ptr(), text.len(), c"four") };
        assert_eq!(&text, b"four    ");
        // SAFETY: as above.
        unsafe { fill(text.as_mut_ptr(), text.len(), c"longer than that") };
        assert_eq!(&text, b"longer t");
    }
}
