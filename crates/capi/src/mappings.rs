//! Calls of the C library that take turns with pages on their way ([`sys::changes`]): this library stands in front of them.
//!
//! Their declarations are the C library's and libnuma's own.

use std::ffi::{c_int, c_long, c_ulong, c_void};

use sys::changes::change;

/// `mremap` would fail in the middle where part of its pages is being colored (EFAULT), and leave the rest where it was.
///
/// # Safety
/// As of the C library's function. (Its last argument is there only with some flags, and is handed on as it comes.)
#[unsafe(no_mangle)]
unsafe extern "C" fn mremap(
    at: *mut c_void,
    bytes: usize,
    wanted: usize,
    flags: c_int,
    place: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let moved = change(|| unsafe { libc::syscall(libc::SYS_mremap, at, bytes, wanted, flags, place) });
    std::ptr::with_exposed_provenance_mut(moved as usize)
}

/// `move_pages` would say of a page on its way that it is not there (ENOENT).
///
/// # Safety
/// As of libnuma's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn move_pages(
    process: c_int,
    count: c_ulong,
    pages: *mut *mut c_void,
    nodes: *const c_int,
    status: *mut c_int,
    flags: c_int,
) -> c_long {
    // SAFETY: the caller's promise.
    change(|| unsafe { libc::syscall(libc::SYS_move_pages, process, count, pages, nodes, status, flags) })
}
