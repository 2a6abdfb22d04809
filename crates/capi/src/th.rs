//! The paper's three calls (section 3.1), with state for the whole program; `domicile/th.h` is
//! generated from this file.
//!
//! They return nothing. A failure that would lose a thread ends the program with a message. A failure that does no harm
//! (`th_init` or `th_run` by a running thread) leaves the call undone, with a message on stderr, and
//! `domicile_th_error` reports it.

use std::ffi::{c_int, c_void};

use crate::call::Call;
use crate::program::{PROGRAM, end_without_function};

/// Set the bytes of a block in each dimension, and the expected number of bins.
///
/// 0 is the default. For blocksize, that is a block whose sides add up to the cache that this program actually gets,
/// shared among the dimensions that the first thread has (its hints that are not 0), or to the TLB's reach if that is
/// smaller. For hashsize, it is a table that grows as needed; more bins than expected only cost time once.
///
/// May be called more than once, or not at all. Pending threads keep their blocks, and run before those that are forked
/// from now on. A call by a running thread has no effect except a message on stderr.
///
/// # Safety
/// One thread of the operating system calls at a time, running threads excepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn th_init(blocksize: usize, hashsize: usize) {
    // SAFETY: the caller's promise.
    unsafe { PROGRAM.init(blocksize, hashsize) }
}

/// Fork a thread that will call f(arg1, arg2).
///
/// The hints are addresses of memory that it will use: threads whose hints lie in the same blocks run together, in the
/// order of their forks. A hint of 0 marks an absent dimension: with two hints hint3 is 0, with one hint2 as well. A
/// running thread may fork: such threads run in the same th_run.
///
/// If there is no memory, or f is 0, the program ends with a message: no thread is lost.
///
/// # Safety
/// One thread of the operating system calls at a time, running threads excepted; `f` may be called with these arguments
/// until the threads are forgotten.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn th_fork(
    f: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void)>,
    arg1: *mut c_void,
    arg2: *mut c_void,
    hint1: *const c_void,
    hint2: *const c_void,
    hint3: *const c_void,
) {
    let Some(function) = f else {
        end_without_function("th_fork");
    };
    let hints = [hint1.addr() as u64, hint2.addr() as u64, hint3.addr() as u64];
    // SAFETY: the caller's promise.
    unsafe { PROGRAM.fork(&hints, Call::new(function, arg1, arg2)) }
}

/// Run all threads that have been forked, then return.
///
/// With keep = 0 they are then forgotten; otherwise the next th_run runs them again. A call by a running thread has no
/// effect except a message on stderr.
///
/// # Safety
/// One thread of the operating system calls at a time, running threads excepted; the promises made for the functions
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn th_run(keep: c_int) {
    // SAFETY: the caller's promise.
    unsafe { PROGRAM.run(keep != 0) }
}
