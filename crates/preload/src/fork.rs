//! A child of fork has its parent's blocks, copied page by page on a write, and no slots.
//!
//! The engine's means belong to the parent, and so do the colors. A child's new blocks are ordinary ones; a program
//! that the child starts is either not ours, or has its own run-time.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::placing::{self, FORKS, State, Stay};
use crate::{aside, files};

thread_local! {
    /// The state, while this thread forks: no thread is in the middle of a change when the copy is made.
    static HELD: RefCell<Option<(MutexGuard<'static, Option<State>>, Stay)>> = const { RefCell::new(None) };
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// From now on fork waits for the run-time.
pub fn watch() {
    // The engine's own handlers first, so that they run after ours: fork must not wait for moving pages while their
    // mover waits for the state.
    let _ = sys::forks::watch();
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    // A frozen state needs no holder.
    if let Some(stay) = Stay::begin()
        && let Some(state) = placing::state()
    {
        HELD.set(Some((state, stay)));
        ENTERED.set(1);
    }
}

extern "C" fn in_parent() {
    if ENTERED.replace(0) == 1 {
        FORKS.fetch_add(1, Ordering::Relaxed);
        drop(HELD.take());
    }
}

extern "C" fn in_child() {
    if ENTERED.replace(0) == 1
        && let Some((mut state, stay)) = HELD.take()
    {
        placing::stop();
        files::leave_to_parent();
        aside::watch();
        if let Some(state) = state.as_mut() {
            state.data_sets.leave_to_parent();
        }
        drop((state, stay));
    }
}
