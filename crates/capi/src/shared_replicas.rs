//! Replicated data that several processes share, as an object: the same address in each of them shows the copy of its node
//! (Verghese96, section 8.1). The safe library is `replicas::SharedReplicas`.
//!
//! As in `replicated`, handles are pointers, and reading is reading through a plain pointer. What differs is who promises: other
//! processes write, too.
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

/// Does something with shared replicas.
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

/// Makes data of so many bytes with these contents, which are copied, to be shared with other
/// processes: a copy on each memory node that has cpus. Their number never changes.
///
/// Others get domicile_shared_replicas_descriptor(), as a child of fork and exec or over a Unix
/// socket, and call domicile_shared_replicas_attach(). They trust each other: who has the descriptor
/// can write to all of it. Where the call fails, *shared is NULL, and domicile_replicated_message()
/// says why.
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

/// The same with copies on the given nodes, by the kernel's numbers: the master on the first, a
/// replica on each other. A node may be named more than once. No nodes: one copy, anywhere.
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

/// As many as any Linux has.
const MOST_NODES: usize = 1024;

/// Joins the processes that share what one of them created, of which this one has the descriptor. It
/// is copied: the caller may close its own.
///
/// The bytes appear at the same address as in the others. DOMICILE_INVALID: the descriptor is of
/// something else. DOMICILE_REFUSED: this process has something else at the address, or is attached
/// already; or there are too many processes.
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
        // SAFETY: it is used only to be copied; where it is no descriptor, the kernel says so.
        let given = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let own = given
            .try_clone_to_owned()
            .map_err(|error| Failure::saying(DOMICILE_INVALID, format!("descriptor {descriptor}: {error}")))?;
        boxed(SharedReplicas::attach(own))
    };
    // SAFETY: the caller's promise.
    unsafe { make(shared, work) }
}

/// Leaves those who share. The bytes are not to be read any more; other processes keep them. NULL is
/// allowed. A child of fork may call it for what was its parent's.
///
/// # Safety
/// `shared` is null or was made by domicile_shared_replicas_create, _create_on or _attach and not yet destroyed, and nobody else uses
/// it.
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

/// What other processes attach by. It is the object's own, lives as long as that, and is closed on
/// exec unless the program says otherwise (FD_CLOEXEC). -1 where shared is NULL.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_descriptor(shared: *const domicile_shared_replicas) -> c_int {
    // SAFETY: the caller's promise.
    let descriptor = unsafe { with(shared, |data| Ok(data.descriptor().as_raw_fd())) };
    descriptor.unwrap_or(-1)
}

/// Where the bytes are, in each of the processes: to be read at any moment, by any thread, until
/// domicile_shared_replicas_destroy(). Who writes to them is ended by SIGSEGV, and so is a child of
/// fork that reads. NULL where shared is NULL.
///
/// It is shared memory: who reads while another process writes may see a part of the write. What
/// was written is seen by all when the write has returned.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_start(shared: *const domicile_shared_replicas) -> *const c_void {
    // SAFETY: the caller's promise.
    let start = unsafe { with(shared, |data| Ok(data.start().as_ptr().cast_const().cast())) };
    start.unwrap_or(ptr::null())
}

/// How many bytes there are. 0 where shared is NULL.
///
/// # Safety
/// `shared` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_shared_replicas_bytes(shared: *const domicile_shared_replicas) -> usize {
    // SAFETY: the caller's promise.
    unsafe { with(shared, |data| Ok(data.len())) }.unwrap_or(0)
}

/// Has this process read the copy of the node that the calling thread is on: after it was moved
/// there. All threads of a process read the same copy.
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

/// Writes bytes from place offset on, for all processes. All of them have turned to one copy before
/// anything is written, and stay with it until somebody replicates; when it returns, every process
/// reads the new bytes.
///
/// Writers wait for each other and for each process to turn. Nothing was changed where it fails with
/// DOMICILE_INVALID (beyond the end) or DOMICILE_UNKNOWN_HANDLE (this process was forked; it attaches
/// by itself, in a program of its own). DOMICILE_REFUSED: the kernel refused memory or a mapping.
///
/// # Safety
/// `shared` is null or alive; `contents` is null or points to `bytes` bytes that nobody writes
/// meanwhile.
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

/// Frees all replicas, once every process has turned to the master. It fails as
/// domicile_shared_replicas_write() does.
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

/// Makes a replica on each node that is to have one and has memory for it; every process turns to its
/// node's by and by. It fails as domicile_shared_replicas_write() does.
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

/// How it stands: which mode, how many copies, what they cost. Nothing is read through a region, so
/// readers_pay is 0.
///
/// # Safety
/// `shared` is null or alive; `state` is null or points to as many bytes as it says in `size`.
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

/// The same in words for people, which live as those of domicile_replicated_message(), and take
/// their place.
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
