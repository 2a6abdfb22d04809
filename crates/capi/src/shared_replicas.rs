//! Replicated data that several processes share, as an object: the same address in each process shows the copy of that
//! process's node (Verghese96, section 8.1). The safe library is `replicas::SharedReplicas`.
//!
//! As in `replicated`, handles are pointers, and reads go through a plain pointer. The difference: other processes may
//! write, too.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use replicas::SharedReplicas;

use crate::error::domicile_error::{DOMICILE_INVALID, DOMICILE_NULL, DOMICILE_OK};
use crate::error::{Failure, domicile_error};
use crate::replicated::{bytes_at, domicile_replicated_state, failure};
use crate::sized::Destination;
use crate::slots::{answer, code, make, say, words};

/// Bytes that several processes read at the same address and rarely write, with a copy on each node.
pub struct domicile_shared_replicas(SharedReplicas);

/// Calls a function with shared replicas.
///
/// # Safety
/// `shared` is null or alive.
unsafe fn with<T>(
    shared: *const domicile_shared_replicas,
    work: impl FnOnce(&SharedReplicas) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let known = unsafe { shared.as_ref() };
    let missing = || Failure::new(DOMICILE_NULL, c"the domicile_shared_replicas is NULL");
    work(&known.ok_or_else(missing)?.0)
}

fn boxed(made: Result<SharedReplicas, replicas::Error>) -> Result<*mut domicile_shared_replicas, Failure> {
    let made = made.map_err(failure)?;
    Ok(Box::into_raw(Box::new(domicile_shared_replicas(made))))
}

/// Makes data of this many bytes, to be shared with other processes, with a copy on each memory node that has cpus. The
/// contents are copied. The number of bytes never changes.
///
/// Other processes receive domicile_shared_replicas_descriptor(), as children of fork and exec or over a Unix socket,
/// and call domicile_shared_replicas_attach(). They must trust each other: each holder of the descriptor can write to
/// all of the data. If the call fails, *shared is NULL, and domicile_replicated_message() says why.
///
/// # Safety
/// `contents` is null or points to `bytes` bytes; `shared` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_create(
    contents: *const c_void,
    bytes: usize,
    shared: *mut *mut domicile_shared_replicas,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let contents = unsafe { bytes_at(contents, bytes) }?;
        boxed(SharedReplicas::create(contents))
    };
    // SAFETY: the caller's promise.
    unsafe { make(shared, work) }
}

/// The same with copies on the given nodes, by the kernel's numbers: the master on the first, a replica on each other.
/// A node may occur more than once. Without nodes there is one copy, anywhere.
///
/// # Safety
/// `contents` is null or points to `bytes` bytes; `nodes` is null or points to `count` numbers; `shared` is null or points to a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_create_on(
    contents: *const c_void,
    bytes: usize,
    nodes: *const u32,
    count: usize,
    shared: *mut *mut domicile_shared_replicas,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let contents = unsafe { bytes_at(contents, bytes) }?;
        let nodes = match count {
            0 => &[],
            _ if nodes.is_null() => return Err(Failure::new(DOMICILE_NULL, c"nodes is NULL")),
            _ if count > MOST_NODES => {
                return Err(Failure::new(
                    DOMICILE_INVALID,
                    c"there are more nodes than Linux can have",
                ));
            }
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(nodes, count) },
        };
        boxed(SharedReplicas::create_on(contents, nodes))
    };
    // SAFETY: the caller's promise.
    unsafe { make(shared, work) }
}

/// The most nodes that Linux supports.
const MOST_NODES: usize = 1024;

/// Attaches this process to the data behind a descriptor that another process created. The descriptor is duplicated:
/// the caller may close its own.
///
/// The bytes appear at the same address as in the other processes. DOMICILE_INVALID: the descriptor is for something
/// else. DOMICILE_REFUSED: this process has something else at the address, or is attached already; or there are too
/// many processes.
///
/// # Safety
/// `shared` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_attach(
    descriptor: c_int,
    shared: *mut *mut domicile_shared_replicas,
) -> domicile_error {
    let work = || {
        if descriptor < 0 {
            return Err(Failure::new(
                DOMICILE_INVALID,
                c"the descriptor is negative, and so is none",
            ));
        }
        // SAFETY: it is only duplicated; if it is not a valid descriptor, the kernel reports that.
        let given = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let own = given
            .try_clone_to_owned()
            .map_err(|error| Failure::saying(DOMICILE_INVALID, format!("descriptor {descriptor}: {error}")))?;
        boxed(SharedReplicas::attach(own))
    };
    // SAFETY: the caller's promise.
    unsafe { make(shared, work) }
}

/// Detaches this process. Do not read the bytes any more; other processes keep them. NULL is allowed. A child of fork
/// may call it for its parent's object.
///
/// # Safety
/// `shared` is null or was made by domicile_shared_replicas_create, _create_on or _attach and not yet destroyed, and no
/// other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_destroy(shared: *mut domicile_shared_replicas) -> domicile_error {
    code(answer(|| {
        if !shared.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(shared) });
        }
        Ok(())
    }))
}

/// The descriptor with which other processes attach. The object owns it; it lives as long as the object, and is closed
/// on exec unless the program changes that (FD_CLOEXEC). -1 if shared is NULL.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_descriptor(shared: *const domicile_shared_replicas) -> c_int {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { with(shared, |data| Ok(data.descriptor().as_raw_fd())) };
    descriptor.unwrap_or(-1)
}

/// The start of the bytes, the same in each process. Any thread may read them at any time until
/// domicile_shared_replicas_destroy(). A write to them raises SIGSEGV, and so does a read in a child of fork. NULL if
/// shared is NULL.
///
/// It is shared memory: a reader may see part of a write while another process writes. Every process sees the new bytes
/// once the write has returned.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_start(shared: *const domicile_shared_replicas) -> *const c_void {
    // SAFETY: the caller's promise.
    let start = unsafe { with(shared, |data| Ok(data.start().as_ptr().cast_const().cast())) };
    start.unwrap_or(ptr::null())
}

/// The number of bytes. 0 if shared is NULL.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_bytes(shared: *const domicile_shared_replicas) -> usize {
    // SAFETY: the caller's promise.
    unsafe { with(shared, |data| Ok(data.len())) }.unwrap_or(0)
}

/// Makes this process read the copy of the calling thread's node: for use after the thread was moved there. All threads
/// of a process read the same copy.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_follow(shared: *mut domicile_shared_replicas) -> domicile_error {
    // SAFETY: the caller's promise.
    code(answer(|| unsafe {
        with(shared, |data| data.follow().map_err(failure))
    }))
}

/// Writes bytes from offset on, for all processes. Before anything is written, all of them switch to one copy, and stay
/// with it until one of them replicates; when the call returns, every process reads the new bytes.
///
/// Writers wait for each other and for each process to switch. Nothing was changed if it fails with DOMICILE_INVALID
/// (beyond the end) or DOMICILE_UNKNOWN_HANDLE (this process is a child of fork; it must attach itself, in its own
/// program). DOMICILE_REFUSED: the kernel refused memory or a mapping.
///
/// # Safety
/// `shared` is null or alive; `contents` is null or points to `bytes` bytes that nobody writes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_write(
    shared: *mut domicile_shared_replicas,
    offset: usize,
    contents: *const c_void,
    bytes: usize,
) -> domicile_error {
    let work = |data: &SharedReplicas| {
        // SAFETY: the caller's promise.
        let contents = unsafe { bytes_at(contents, bytes) }?;
        data.write(offset, contents).map_err(failure)
    };
    // SAFETY: the caller's promise.
    code(answer(|| unsafe { with(shared, work) }))
}

/// Frees all replicas, once every process has switched to the master. It fails as domicile_shared_replicas_write()
/// does.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_collapse(shared: *mut domicile_shared_replicas) -> domicile_error {
    // SAFETY: the caller's promise.
    code(answer(|| unsafe {
        with(shared, |data| data.collapse().map_err(failure))
    }))
}

/// Makes a replica on each node that should have one and has memory for it; the processes switch to their nodes'
/// replicas gradually. It fails as domicile_shared_replicas_write() does.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_replicate(shared: *mut domicile_shared_replicas) -> domicile_error {
    // SAFETY: the caller's promise.
    code(answer(|| unsafe {
        with(shared, |data| data.replicate().map_err(failure))
    }))
}

/// The state of the data: mode, number of copies, and their cost. No read enters a region, so readers_pay is always 0.
///
/// # Safety
/// `shared` is null or alive; `state` is null or points to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_ask(
    shared: *const domicile_shared_replicas,
    state: *mut domicile_replicated_state,
) -> domicile_error {
    let work = |data: &SharedReplicas| {
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::wanted(state) }?;
        destination.fill(&data.state().map_err(failure)?.into());
        Ok(())
    };
    // SAFETY: the caller's promise.
    code(answer(|| unsafe { with(shared, work) }))
}

/// The same in words for people; they live as long as those of domicile_replicated_message(), and replace them.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_means(shared: *const domicile_shared_replicas) -> *const c_char {
    let work = |data: &SharedReplicas| {
        say(data.state().map_err(failure)?.to_string());
        Ok(())
    };
    // SAFETY: the caller's promise.
    match code(answer(|| unsafe { with(shared, work) })) {
        DOMICILE_OK => words(),
        _ => c"there are no such shared replicas".as_ptr(),
    }
}
