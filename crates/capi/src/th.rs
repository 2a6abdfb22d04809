//! The paper's three calls (section 3.1), with state for the whole program; `domicile/th.h` is generated from this file.
//!
//! They return nothing, so what cannot be done ends the program with a message: a thread is never
//! lost without a word. What can be left undone without harm (`th_init` or `th_run` by a running thread) is
//! left undone; `domicile_th_error` tells.

use std::ffi::{c_int, c_void};

/** Set the bytes of a block in each dimension, and how many bins to be ready for.
 *
 * 0 is the default: blocks whose dimensions add up to the cache that this program really gets, shared
 * among as many dimensions as the first thread has hints (or less where the reach of the TLB is the
 * tighter limit), and a table that grows as needed.
 *
 * May be called more than once; without a call, both are the defaults. Threads that are pending keep the
 * blocks they have and run before those that are forked from now on.
 */
#[unsafe(no_mangle)]
pub extern "C" fn th_init(blocksize: usize, hashsize: usize) {
    todo!()
}

/** Fork a thread that will call f(arg1, arg2).
 *
 * The hints are addresses of memory that it will use: threads whose hints lie in the same block run
 * together, in the order of their forks. A hint of 0 is a dimension that is absent: of two hints hint3 is 0, of
 * one hint2 and hint3. A running thread may fork; its forks run in the same th_run.
 *
 * Out of memory, the program ends with a message: no thread is lost. The same holds for f = 0.
 */
#[unsafe(no_mangle)]
pub unsafe extern "C" fn th_fork(
    f: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void)>,
    arg1: *mut c_void,
    arg2: *mut c_void,
    hint1: *const c_void,
    hint2: *const c_void,
    hint3: *const c_void,
) {
    todo!()
}

/** Run all threads that have been forked, then return.
 *
 * With keep = 0 they are forgotten, else they are there to be run again by the next th_run. A running thread
 * that calls th_run gets a message on stderr, and nothing is run by that call.
 */
#[unsafe(no_mangle)]
pub extern "C" fn th_run(keep: c_int) {
    todo!()
}
