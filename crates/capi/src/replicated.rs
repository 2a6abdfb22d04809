//! Replicated data as objects: contents that are read on all memory nodes and rarely written, with a copy on each node
//! (Verghese96, sections 3 and 8.1). The safe library is `replicas`.
//!
//! A program enters a region for each of its pieces of work, so handles are plain pointers and no table is searched:
//! the callers' contracts state the requirements.
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ffi::{c_char, c_void};
use std::ptr;

use replicas::{Error, Kept, Mode, Reader, Replicated, State};

use crate::error::domicile_error::{
    DOMICILE_IN_USE, DOMICILE_INVALID, DOMICILE_NULL, DOMICILE_OK, DOMICILE_OUT_OF_MEMORY, DOMICILE_REFUSED,
    DOMICILE_UNAVAILABLE, DOMICILE_UNKNOWN_HANDLE,
};
use crate::error::{Failure, domicile_error};
use crate::sized::{Destination, Structure};
use crate::slots::{answer, code, make, say, words};

/// Bytes that are read on all memory nodes and rarely written, with a copy on each node.
pub struct domicile_replicated(Replicated<u8>);

/// One thread's access to replicated data.
pub struct domicile_replicated_reader(Reader<u8>);

/// A copy that stays as it was when it was requested.
pub struct domicile_replicated_kept(Kept<u8>);

/// How the threads of a program find a copy. Linux keeps no copies by itself, so nothing here is
/// transparent: a program asks for a copy by entering a region.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_replicated_mode {
    /// One copy for all nodes, because more are impossible or after a collapse; domicile_replicated_means() says why.
    DOMICILE_REPLICATED_ONE = 1,
    /// A copy on each node that has cpus and had memory.
    DOMICILE_REPLICATED_NODES = 2,
}

/// The state of replicated data. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_replicated_state {
    /// sizeof(domicile_replicated_state), which tells the library what the program was compiled with.
    pub size: usize,
    /// A domicile_replicated_mode.
    pub mode: u32,
    /// How many copies there are, at least 1.
    pub copies: u32,
    /// How many nodes with cpus have no copy; their threads read the nearest one.
    pub without: u32,
    /// Not 0: each entry takes a full memory barrier, some 5 ns, since membarrier(2) does not work
    /// here.
    pub readers_pay: u32,
    /// Bytes of the contents, counted once.
    pub bytes: u64,
    /// Bytes of memory of all copies, in whole pages. During a write both the old and the new copies exist.
    pub memory: u64,
    /// Of these, the bytes beyond one copy: the cost of the replicas.
    pub extra: u64,
    /// How often the contents were written.
    pub writes: u64,
}

// SAFETY: it is `repr(C)`, its size comes first, and the rest is numbers.
unsafe impl Structure for domicile_replicated_state {
    const NAME: &'static str = "domicile_replicated_state";
}

impl From<State> for domicile_replicated_state {
    fn from(state: State) -> Self {
        domicile_replicated_state {
            size: size_of::<Self>(),
            mode: match state.mode {
                Mode::OneCopy => domicile_replicated_mode::DOMICILE_REPLICATED_ONE,
                Mode::CopyOnEachNode => domicile_replicated_mode::DOMICILE_REPLICATED_NODES,
            } as u32,
            copies: state.copies.len() as u32,
            without: state.without.len() as u32,
            readers_pay: u32::from(state.readers_pay),
            bytes: state.bytes,
            memory: state.memory(),
            extra: state.extra(),
            writes: state.writes,
        }
    }
}

pub(crate) fn failure(error: Error) -> Failure {
    let code = match &error {
        Error::Empty | Error::Length { .. } | Error::Beyond { .. } | Error::Foreign(_) => DOMICILE_INVALID,
        Error::Inside | Error::Writing => DOMICILE_IN_USE,
        Error::Forked => DOMICILE_UNKNOWN_HANDLE,
        Error::Memory { .. } => DOMICILE_OUT_OF_MEMORY,
        Error::NoBarrier(_) => DOMICILE_UNAVAILABLE,
        _ => DOMICILE_REFUSED,
    };
    Failure::saying(code, error.to_string())
}

/// The bytes that a pointer from C points to.
///
/// # Safety
/// `at` is null or points to this many bytes, and nobody writes them while they are used.
pub(crate) unsafe fn bytes_at<'a>(at: *const c_void, bytes: usize) -> Result<&'a [u8], Failure> {
    if bytes == 0 {
        return Ok(&[]);
    }
    if at.is_null() || isize::try_from(bytes).is_err() {
        let text = c"contents is NULL, or bytes is more than there can be";
        return Err(Failure::new(DOMICILE_NULL, text));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), bytes) })
}

/// Calls a function with replicated data.
///
/// # Safety
/// `replicated` is null or alive.
unsafe fn with(
    replicated: *const domicile_replicated,
    work: impl FnOnce(&Replicated<u8>) -> Result<(), Failure>,
) -> domicile_error {
    code(answer(|| {
        // SAFETY: the caller's promise.
        let known = unsafe { replicated.as_ref() };
        let missing = || Failure::new(DOMICILE_NULL, c"the domicile_replicated is NULL");
        work(&known.ok_or_else(missing)?.0)
    }))
}

/// The message of the calling thread's last failed call for replicated data, in words for people; empty if none has
/// failed. It lives until the thread's next call fails, for replicated data, slots or caches.
#[unsafe(no_mangle)]
pub extern "C" fn domicile_replicated_message() -> *const c_char {
    words()
}

/// Makes replicated data of this many bytes, with a copy on each memory node that has cpus. The contents are copied.
/// The number of bytes never changes. Each copy begins on a page boundary.
///
/// A node that cannot have a copy has none, and a machine with one node has one copy: domicile_replicated_ask() and
/// domicile_replicated_means() report this. If the call fails (0 bytes, no memory), *replicated is NULL.
///
/// # Safety
/// `contents` is null or points to `bytes` bytes; `replicated` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_create(
    contents: *const c_void,
    bytes: usize,
    replicated: *mut *mut domicile_replicated,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let contents = unsafe { bytes_at(contents, bytes) }?;
        let made = Replicated::new(contents).map_err(failure)?;
        Ok(Box::into_raw(Box::new(domicile_replicated(made))))
    };
    // SAFETY: the caller's promise.
    unsafe { make(replicated, work) }
}

/// Destroys replicated data. Its copies stay until its last reader is also destroyed. NULL is allowed.
///
/// # Safety
/// `replicated` is null or was made by `domicile_replicated_create` and not yet destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_destroy(replicated: *mut domicile_replicated) -> domicile_error {
    code(answer(|| {
        if !replicated.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(replicated) });
        }
        Ok(())
    }))
}

/// Makes a reader for the calling thread. No other thread may use it, and the thread must destroy it before it ends.
///
/// # Safety
/// `replicated` is null or alive; `reader` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_reader_create(
    replicated: *const domicile_replicated,
    reader: *mut *mut domicile_replicated_reader,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let known = unsafe { replicated.as_ref() };
        let missing = || Failure::new(DOMICILE_NULL, c"the domicile_replicated is NULL");
        let made = known.ok_or_else(missing)?.0.reader();
        Ok(Box::into_raw(Box::new(domicile_replicated_reader(made))))
    };
    // SAFETY: the caller's promise.
    unsafe { make(reader, work) }
}

/// Destroys a reader, which leaves its region. NULL is allowed.
///
/// # Safety
/// `reader` is null or was made by the calling thread and not yet destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_reader_destroy(reader: *mut domicile_replicated_reader) -> domicile_error {
    code(answer(|| {
        if !reader.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(reader) });
        }
        Ok(())
    }))
}

/// Enters a region: returns the copy of the thread's current node. It has as many bytes as were given to
/// domicile_replicated_create(), and is read-only, until domicile_replicated_leave(). A write to it raises SIGSEGV.
///
/// Writers wait for the region to end: keep regions short. A thread that moves to another node meanwhile gets that
/// node's copy with its next region. Returns NULL if the reader is NULL or already inside a region.
///
/// # Safety
/// `reader` is null or was made by the calling thread and not yet destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_enter(reader: *mut domicile_replicated_reader) -> *const c_void {
    // SAFETY: the caller's promise.
    match unsafe { reader.as_mut() } {
        Some(reader) if !reader.0.is_inside() => reader.0.enter_unguarded().as_ptr().cast_const().cast(),
        _ => ptr::null(),
    }
}

/// Leaves the region, if the reader is in one. Do not read what domicile_replicated_enter() returned any more. NULL is
/// allowed.
///
/// # Safety
/// `reader` is null or was made by the calling thread and not yet destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_leave(reader: *mut domicile_replicated_reader) {
    // SAFETY: the caller's promise.
    if let Some(reader) = unsafe { reader.as_mut() } {
        reader.0.leave();
    }
}

/// Keeps the copy of the caller's node as it is now, for programs that cannot say when a region ends.
///
/// Later writes do not change it, and writers do not wait for it. Its memory stays in use until
/// domicile_replicated_kept_destroy(), even after the replicated data is destroyed.
///
/// # Safety
/// `replicated` is null or alive; `kept` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_keep(
    replicated: *const domicile_replicated,
    kept: *mut *mut domicile_replicated_kept,
) -> domicile_error {
    let work = || {
        // SAFETY: the caller's promise.
        let known = unsafe { replicated.as_ref() };
        let missing = || Failure::new(DOMICILE_NULL, c"the domicile_replicated is NULL");
        let copy = known.ok_or_else(missing)?.0.keep();
        Ok(Box::into_raw(Box::new(domicile_replicated_kept(copy))))
    };
    // SAFETY: the caller's promise.
    unsafe { make(kept, work) }
}

/// The start of the bytes of a kept copy, which is read-only. NULL if kept is NULL.
///
/// # Safety
/// `kept` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_kept_start(kept: *const domicile_replicated_kept) -> *const c_void {
    // SAFETY: the caller's promise.
    unsafe { kept.as_ref() }.map_or(ptr::null(), |kept| kept.0.as_ptr().cast())
}

/// Frees a kept copy, on any thread. NULL is allowed.
///
/// # Safety
/// `kept` is null or was made by `domicile_replicated_keep` and not yet destroyed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_kept_destroy(kept: *mut domicile_replicated_kept) -> domicile_error {
    code(answer(|| {
        if !kept.is_null() {
            // SAFETY: it came from a box, and the caller gives it up.
            drop(unsafe { Box::from_raw(kept) });
        }
        Ok(())
    }))
}

/// Replaces the bytes from offset up to offset + bytes, in all copies.
///
/// When it returns, nobody reads the old contents any more, on any node; nobody has seen part of the write. It waits
/// for all threads that are inside a region, and for other writers. Twice the memory is in use meanwhile. Nothing was
/// changed if it fails with DOMICILE_INVALID (beyond the end), DOMICILE_IN_USE (the calling thread is inside a region
/// of this data and would wait for itself), DOMICILE_OUT_OF_MEMORY, DOMICILE_UNKNOWN_HANDLE (this process is a child of
/// fork; it must make its own data) or DOMICILE_UNAVAILABLE (the kernel refuses membarrier(2)). DOMICILE_REFUSED: the
/// new contents are in place, but threads inside a region may still read the old ones.
///
/// # Safety
/// `replicated` is null or alive; `contents` is null or points to `bytes` bytes that nobody writes meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_write(
    replicated: *mut domicile_replicated,
    offset: usize,
    contents: *const c_void,
    bytes: usize,
) -> domicile_error {
    let work = |data: &Replicated<u8>| {
        // SAFETY: the caller's promise.
        let contents = unsafe { bytes_at(contents, bytes) }?;
        data.write(offset, contents).map_err(failure)
    };
    // SAFETY: the caller's promise.
    unsafe { with(replicated, work) }
}

/// Frees all copies but that of the caller's node, and so the memory of the replicas. It waits and fails as
/// domicile_replicated_write() does.
///
/// # Safety
/// `replicated` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_collapse(replicated: *mut domicile_replicated) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { with(replicated, |data| data.collapse().map_err(failure)) }
}

/// Makes a copy on each node with cpus that has none, if the node has memory now. It waits and fails as
/// domicile_replicated_write() does.
///
/// # Safety
/// `replicated` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_replicate(replicated: *mut domicile_replicated) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { with(replicated, |data| data.replicate().map_err(failure)) }
}

/// The state of replicated data: its mode, how many copies there are, and their cost.
///
/// # Safety
/// `replicated` is null or alive; `state` is null or points to as many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_ask(
    replicated: *const domicile_replicated,
    state: *mut domicile_replicated_state,
) -> domicile_error {
    let work = |data: &Replicated<u8>| {
        // SAFETY: the caller's promise.
        let destination = unsafe { Destination::wanted(state) }?;
        destination.fill(&data.state().into());
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { with(replicated, work) }
}

/// The same in words for people: which nodes have a copy, and why others have none. The words live as long as those of
/// domicile_replicated_message(), and replace them.
///
/// # Safety
/// `replicated` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_replicated_means(replicated: *const domicile_replicated) -> *const c_char {
    let work = |data: &Replicated<u8>| {
        say(data.state().to_string());
        Ok(())
    };
    // SAFETY: the caller's promise.
    match unsafe { with(replicated, work) } {
        DOMICILE_OK => words(),
        _ => c"there is no such replicated data".as_ptr(),
    }
}
