//! Forking threads into an order, and dependencies between them.

use std::ffi::c_void;
use std::slice;

use threads::ThreadId;

use crate::call::{Call, Function};
use crate::error::domicile_error::{DOMICILE_NULL, DOMICILE_OUT_OF_MEMORY};
use crate::error::{Failure, domicile_error};
use crate::handle::failure;
use crate::order::domicile_order;

/// The id of a thread that a running thread forked: it has none.
pub const DOMICILE_NO_THREAD: u64 = u64::MAX;

/// Forks a thread that will call f(arg1, arg2).
///
/// hints points to as many hints as the attributes say: addresses, or coordinates. Threads whose hints lie in the same
/// block run together, in the order of their forks. thread may be NULL; otherwise *thread receives the thread's id, for
/// dependencies. A running thread may fork: the new thread runs in the same run, and its id is DOMICILE_NO_THREAD; it
/// is forgotten after the run even if the run keeps its threads.
///
/// # Safety
/// `order` is alive, and only one thread of the operating system at a time uses it, apart from its running threads;
/// `hints` points to that many numbers; `thread` is null or points to a number; any worker may call `f` with the
/// arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork(
    order: *mut domicile_order,
    f: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void)>,
    arg1: *mut c_void,
    arg2: *mut c_void,
    hints: *const u64,
    thread: *mut u64,
) -> domicile_error {
    // SAFETY: the caller's promise.
    unsafe { fork(order, f, |function| Call::new(function, arg1, arg2), hints, thread) }
}

/// Forks a thread that runs after the count threads whose ids are at earlier. Those that have already run do not delay
/// it. Not for running threads.
///
/// # Safety
/// As for `domicile_order_fork`; `earlier` points to `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_fork_after(
    order: *mut domicile_order,
    f: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut c_void)>,
    arg1: *mut c_void,
    arg2: *mut c_void,
    hints: *const u64,
    earlier: *const u64,
    count: usize,
    thread: *mut u64,
) -> domicile_error {
    let call = |function| Call::new(function, arg1, arg2);
    // SAFETY: the caller's promise.
    unsafe { fork_after(order, f, call, hints, earlier, count, thread) }
}

/// Makes a pending thread run after another one. A cycle is refused (DOMICILE_CYCLE), and the message names it. Not for
/// running threads.
///
/// # Safety
/// `order` is alive, and only one thread of the operating system at a time uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_depend(order: *mut domicile_order, later: u64, earlier: u64) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    order.answer(|| {
        // SAFETY: the caller's promise.
        let scheduler = unsafe { order.idle() }?;
        let (later, earlier) = (ThreadId::from_bits(later), ThreadId::from_bits(earlier));
        scheduler.depend(later, earlier).map_err(failure)
    })
}

const NO_FUNCTION: Failure = Failure::new(DOMICILE_NULL, c"f is NULL: a thread must have a function");

/// Forks the call that is made from the function.
///
/// # Safety
/// As for `domicile_order_fork`.
#[inline]
pub unsafe fn fork(
    order: *mut domicile_order,
    function: Option<Function>,
    call: impl FnOnce(Function) -> Call,
    hints: *const u64,
    thread: *mut u64,
) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    order.answer(|| {
        let function = function.ok_or(NO_FUNCTION)?;
        if hints.is_null() {
            return Err(Failure::new(DOMICILE_NULL, c"hints is NULL"));
        }
        // SAFETY: the caller's promise.
        let hints = unsafe { slice::from_raw_parts(hints, order.plan.shape.hints()) };
        let call = call(function);
        let id = if order.handle.is_running() {
            let (function, arg1, arg2) = call.into_parts();
            order.handle.fork_inside(hints, function, arg1, arg2)?;
            DOMICILE_NO_THREAD
        } else {
            // SAFETY: the caller's promise.
            unsafe { order.handle.fork(hints, call, || order.plan.scheduler()) }?.to_bits()
        };
        if !thread.is_null() {
            // SAFETY: the caller's promise; the memory may be uninitialized.
            unsafe { thread.write(id) };
        }
        Ok(())
    })
}

/// Forks the call that is made from the function, to run after others.
///
/// # Safety
/// As for `domicile_order_fork_after`.
pub unsafe fn fork_after(
    order: *mut domicile_order,
    function: Option<Function>,
    call: impl FnOnce(Function) -> Call,
    hints: *const u64,
    earlier: *const u64,
    count: usize,
    thread: *mut u64,
) -> domicile_error {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return DOMICILE_NULL;
    };
    order.answer(|| {
        let function = function.ok_or(NO_FUNCTION)?;
        if hints.is_null() || (earlier.is_null() && count > 0) {
            return Err(Failure::new(DOMICILE_NULL, c"hints or earlier is NULL"));
        }
        // SAFETY: the caller's promise.
        let scheduler = unsafe { order.idle() }?;
        let mut names = Vec::new();
        if names.try_reserve_exact(count).is_err() {
            return Err(Failure::from(DOMICILE_OUT_OF_MEMORY));
        }
        // SAFETY: the caller's promise.
        names.extend((0..count).map(|at| ThreadId::from_bits(unsafe { earlier.add(at).read() })));
        // SAFETY: the caller's promise.
        let hints = unsafe { slice::from_raw_parts(hints, order.plan.shape.hints()) };
        let id = scheduler.fork_after(hints, call(function), &names).map_err(failure)?;
        if !thread.is_null() {
            // SAFETY: the caller's promise; what lies there may never have been written.
            unsafe { thread.write(id.to_bits()) };
        }
        Ok(())
    })
}
