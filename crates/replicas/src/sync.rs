//! The primitives that readers and writers share: the standard library's, or loom's for tests of every interleaving.
//!
//! A reader that enters must be visible to writers before it loads the contents. That takes a full barrier between a
//! store and a load, some 5 ns, which [`Barriers`] moves to the writer if Linux has `membarrier(2)`. Loom does not
//! model that call. With loom both sides have a full barrier, which orders the same two pairs of accesses.

use std::io;

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, fence},
};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, fence},
};

use std::sync::atomic::Ordering::SeqCst;

/// The side that passes the barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barriers {
    /// Writers, on behalf of all threads.
    #[cfg_attr(feature = "loom", expect(dead_code))]
    Writers,
    /// Each side itself: `membarrier` does not work here.
    Everybody,
}

impl Barriers {
    pub fn of_this_system() -> Barriers {
        #[cfg(not(any(feature = "loom", miri)))]
        if sys::barriers::announce().is_ok() && sys::barriers::in_all_threads().is_ok() {
            return Barriers::Writers;
        }
        Barriers::Everybody
    }

    /// Between a reader's two accesses.
    #[inline]
    pub fn reader(self) {
        match self {
            // The compiler keeps their order; the writer ensures that the processor did.
            Barriers::Writers => std::sync::atomic::compiler_fence(SeqCst),
            Barriers::Everybody => fence(SeqCst),
        }
    }

    /// Between a writer's two accesses. Errors: nothing is promised then.
    pub fn writer(self) -> io::Result<()> {
        fence(SeqCst);
        match self {
            Barriers::Writers => sys::barriers::in_all_threads(),
            Barriers::Everybody => Ok(()),
        }
    }
}

/// The calling thread's number; no other thread that lives has it.
#[cfg(not(feature = "loom"))]
pub(crate) fn this_thread() -> u32 {
    sys::affinity::this_thread()
}

#[cfg(feature = "loom")]
pub(crate) fn this_thread() -> loom::thread::ThreadId {
    loom::thread::current().id()
}

#[cfg(not(feature = "loom"))]
pub(crate) type ThreadNumber = u32;
#[cfg(feature = "loom")]
pub(crate) type ThreadNumber = loom::thread::ThreadId;

/// Lets others run; `turn` is how often the caller has waited already. False: the awaited thread has ended.
#[cfg(not(feature = "loom"))]
pub(crate) fn wait(turn: u32, thread: ThreadNumber) -> bool {
    const SPINS: u32 = 64;
    const YIELDS: u32 = 256;
    match turn {
        ..SPINS => std::hint::spin_loop(),
        SPINS..YIELDS => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(200)),
    }
    turn < YIELDS || !sys::tasks::is_gone(thread)
}

#[cfg(feature = "loom")]
pub(crate) fn wait(_: u32, _: ThreadNumber) -> bool {
    loom::thread::yield_now();
    true
}
