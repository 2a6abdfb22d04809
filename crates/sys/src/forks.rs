//! Fork waits while pages are in flight.
//!
//! A child of fork gets a copy of the page tables as they are. A page that has been taken out and
//! not yet put back would be missing in the child, for good. So whoever takes pages out holds a
//! [`Flight`], and `fork` waits until no flight is left; flights wait while somebody forks. (A
//! process made by a bare `clone` system call, without the C library, does not wait.)

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FLIGHTS: AtomicU32 = AtomicU32::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);

/// While it lives no thread forks.
#[must_use]
pub struct Flight(());

impl Flight {
    /// Waits until nobody forks.
    ///
    /// Pre: the flight is short (it keeps `fork` waiting), and whoever holds it does not fork.
    pub fn begin() -> Flight {
        static HANDLERS: Once = Once::new();
        // SAFETY: the handlers touch nothing but two atomics.
        HANDLERS.call_once(|| unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(in_child));
        });
        loop {
            FLIGHTS.fetch_add(1, Ordering::SeqCst);
            if FORKS.load(Ordering::SeqCst) == 0 {
                return Flight(());
            }
            FLIGHTS.fetch_sub(1, Ordering::SeqCst);
            while FORKS.load(Ordering::SeqCst) != 0 {
                rustix::thread::sched_yield();
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        FLIGHTS.fetch_sub(1, Ordering::SeqCst);
    }
}

extern "C" fn before() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    while FLIGHTS.load(Ordering::SeqCst) != 0 {
        rustix::thread::sched_yield();
    }
}

extern "C" fn after() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// The child has one thread, and nothing in flight.
extern "C" fn in_child() {
    FORKS.store(0, Ordering::SeqCst);
    FLIGHTS.store(0, Ordering::SeqCst);
}
