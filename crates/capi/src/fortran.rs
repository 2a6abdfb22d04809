//! The paper's calls as the module `domicile_th` makes them: all arguments by reference, names in lower case with a
//! trailing underscore, absent arguments null.

use std::ffi::{c_int, c_void};

use crate::call::{Call, Value};
use crate::error::{Failure, domicile_error::DOMICILE_INVALID};
use crate::program::{PROGRAM, end_without_function};
use crate::th;

type Hint = *const c_void;

/// A Fortran procedure; the module knows nothing else about it.
pub type Procedure = Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void)>;

/// # Safety
/// As for `th_fork`; `arg1` and `arg2` point to integers, and `f` can be called with two such integers by reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_fork_int32_(
    f: Procedure,
    arg1: &i32,
    arg2: &i32,
    hint1: Hint,
    hint2: Hint,
    hint3: Hint,
) {
    // SAFETY: the caller's promise.
    unsafe { fork_values(f, Value::Int32(*arg1), Value::Int32(*arg2), [hint1, hint2, hint3]) }
}

/// # Safety
/// As for `th_fork`; `arg1` and `arg2` point to integers, and `f` can be called with two such integers by reference.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_fork_int64_(
    f: Procedure,
    arg1: &i64,
    arg2: &i64,
    hint1: Hint,
    hint2: Hint,
    hint3: Hint,
) {
    // SAFETY: the caller's promise.
    unsafe { fork_values(f, Value::Int64(*arg1), Value::Int64(*arg2), [hint1, hint2, hint3]) }
}

/// # Safety
/// As for `th_fork`, with the pointers that `arg1` and `arg2` point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_fork_ptr_(
    f: Procedure,
    arg1: &*mut c_void,
    arg2: &*mut c_void,
    hint1: Hint,
    hint2: Hint,
    hint3: Hint,
) {
    // SAFETY: the caller's promise.
    unsafe { th::th_fork(f, *arg1, *arg2, hint1, hint2, hint3) }
}

/// # Safety
/// As for `th_fork`.
#[inline]
unsafe fn fork_values(f: Procedure, arg1: Value, arg2: Value, hints: [Hint; 3]) {
    let Some(function) = f else {
        end_without_function("th_fork");
    };
    let hints = hints.map(|hint| hint.addr() as u64);
    // SAFETY: the caller's promise.
    unsafe { PROGRAM.fork(&hints, Call::with_values(function, arg1, arg2)) }
}

/// # Safety
/// As for `th_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_init_int32_(blocksize: &i32, hashsize: &i32) {
    // SAFETY: the caller's promise.
    unsafe { init(i64::from(*blocksize), i64::from(*hashsize)) }
}

/// # Safety
/// As for `th_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_init_int64_(blocksize: &i64, hashsize: &i64) {
    // SAFETY: the caller's promise.
    unsafe { init(*blocksize, *hashsize) }
}

/// # Safety
/// As for `th_init`.
unsafe fn init(blocksize: i64, hashsize: i64) {
    match (usize::try_from(blocksize), usize::try_from(hashsize)) {
        // SAFETY: the caller's promise.
        (Ok(blocksize), Ok(hashsize)) => unsafe { th::th_init(blocksize, hashsize) },
        _ => {
            let message = c"a size is less than 0: nothing was changed";
            PROGRAM.leave_undone("th_init", &Failure::new(DOMICILE_INVALID, message));
        }
    }
}

/// # Safety
/// As for `th_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_run_int32_(keep: &i32) {
    // SAFETY: the caller's promise.
    unsafe { th::th_run(c_int::from(*keep != 0)) }
}

/// # Safety
/// As for `th_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_th_run_int64_(keep: &i64) {
    // SAFETY: the caller's promise.
    unsafe { th::th_run(c_int::from(*keep != 0)) }
}
