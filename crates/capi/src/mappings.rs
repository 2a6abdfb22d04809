//! Functions of the C library that exclude page moves ([`sys::changes`]): this library interposes them.
//!
//! Their declarations are those of the C library and libnuma.

use std::ffi::{c_int, c_long, c_ulong, c_void};

use sys::changes::change;

/// If part of its pages is being colored, the plain `mremap` would fail halfway (EFAULT), and leave the rest unmoved.
///
/// # Safety
/// As for the C library's function. (Its last argument is present only with some flags, and is passed on unchanged.)
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

/// The plain `move_pages` would report a page that is being moved as absent (ENOENT).
///
/// # Safety
/// As for libnuma's function.
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
