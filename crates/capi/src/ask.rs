//! Queries about an order.

use std::ffi::{c_char, c_int};

use crate::order::domicile_order;

/// How many threads are pending; 0 for NULL and while the order runs.
///
/// # Safety
/// `order` is null, or alive and used by one thread of the operating system at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_pending(order: *const domicile_order) -> u64 {
    // SAFETY: the caller's promise.
    let Some(order) = (unsafe { order.as_ref() }) else {
        return 0;
    };
    // SAFETY: the caller's promise.
    unsafe { order.idle() }.map_or(0, |scheduler| scheduler.len() as u64)
}

/// The number of the worker that runs the calling thread, from 0; -1 when the caller is not a running thread of the
/// order.
///
/// # Safety
/// `order` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_worker(order: *const domicile_order) -> c_int {
    // SAFETY: the caller's promise.
    let order = unsafe { order.as_ref() };
    let worker = order.and_then(|order| order.handle.worker());
    worker.and_then(|worker| c_int::try_from(worker).ok()).unwrap_or(-1)
}

/// The side of a block along a dimension, in the units of the hints; 0 if there is no such dimension.
///
/// # Safety
/// `order` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_block(order: *const domicile_order, dimension: u32) -> u64 {
    // SAFETY: the caller's promise.
    let shape = unsafe { order.as_ref() }.map(|order| &order.plan.shape);
    let shape = shape.filter(|shape| (dimension as usize) < shape.hints());
    shape.map_or(0, |shape| shape.side(dimension as usize))
}

/// Why the block has its sides: which limit was chosen, and from which figures. Lives as long as the order.
///
/// # Safety
/// `order` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_reason(order: *const domicile_order) -> *const c_char {
    // SAFETY: the caller's promise.
    let order = unsafe { order.as_ref() };
    order.map_or(c"there is no order", |order| order.reason()).as_ptr()
}

/// The message of the last failed call, in words for people; empty if none has failed. It lives until the next call for
/// the order fails. For NULL: the message of the last domicile_order_create that failed on this thread of the operating
/// system.
///
/// # Safety
/// `order` is null or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn domicile_order_message(order: *const domicile_order) -> *const c_char {
    // SAFETY: the caller's promise.
    domicile_order::message(unsafe { order.as_ref() })
}
