//! What a child of fork has: its parent's blocks, page by page copied when either writes, and no slots.
//!
//! The engine's means are the parent's own, and so are the colors. A child's new blocks are ordinary ones; a program
//! that the child starts is not ours any more, or has the run-time anew.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::placing::{self, FORKS, State, Stay};
use crate::{aside, files};

thread_local! {
    /// The state, while this thread forks: nobody is in the middle of a change when the copy is made.
    static HELD: RefCell<Option<(MutexGuard<'static, Option<State>>, Stay)>> = const { RefCell::new(None) };
    static ENTERED: Cell<u32> = const { Cell::new(0) };
}

/// Fork waits for us from now on.
pub fn watch() {
    // The engine's own handlers first, so that they run behind ours: fork must not wait for pages in flight while who
    // moves them waits for the state.
    let _ = sys::forks::watch();
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

extern "C" fn before() {
    // A state that does not change any more needs nobody to hold it.
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
