//! Fork waits while pages are in flight.
//!
//! A child of fork gets a copy of the page tables as they are. A page that has been taken out and
//! not yet put back would be missing in the child, for good. So a thread that takes pages out holds
//! a [`Flight`]. `fork` waits until no flight is left; flights wait while a thread forks.
//!
//! A process made by `_Fork` or a bare `clone` system call does not wait. If userfaultfd reports it
//! ([`crate::faults::Event::Forked`]), its missing pages are copied there; otherwise they stay
//! missing.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Within one page, whose address [`place`] returns.
#[repr(align(64))]
struct Counts {
    flights: AtomicU32,
    forks: AtomicU32,
}

static COUNTS: Counts = Counts {
    flights: AtomicU32::new(0),
    forks: AtomicU32::new(0),
};

/// The address of the counts.
pub(crate) fn place() -> usize {
    &raw const COUNTS as usize
}

/// From now on `fork` waits for flights.
///
/// The C library holds the lock of its handlers from before a fork until after it, and the fork may wait meanwhile
/// until its event is read. The thread that reads it must not wait for that lock.
///
/// Pre: nothing is registered with a userfaultfd that reports forks and that this thread reads.
///
/// Errors: ENOMEM.
pub fn watch() -> io::Result<()> {
    // No `Once`: a child that is made while another thread is in it would wait for ever. Handlers that are there twice
    // count twice, and take back as much.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if WATCHED.load(Ordering::SeqCst) {
        return Ok(());
    }
    // SAFETY: the handlers are functions for good and touch nothing but two atomics.
    match unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) } {
        0 => WATCHED.store(true, Ordering::SeqCst),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    Ok(())
}

static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Makes [`generation`] count the forks that this process descends from. A process made by `_Fork` or a bare `clone` is
/// not counted.
///
/// Errors: ENOMEM.
pub fn count() -> io::Result<()> {
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::SeqCst);
    }
    // A handler that is there twice counts twice: the number still differs.
    static COUNTED: AtomicBool = AtomicBool::new(false);
    if COUNTED.load(Ordering::SeqCst) {
        return Ok(());
    }
    // SAFETY: the handler is a function for good and touches nothing but an atomic.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => COUNTED.store(true, Ordering::SeqCst),
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    Ok(())
}

/// The forks that this process has come from since [`count`] was called first: another number means that it is a child.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// While it lives no thread forks.
#[must_use]
pub struct Flight(());

impl Flight {
    /// Begins a flight, unless a thread forks.
    ///
    /// A forking thread may itself wait: for a lock of the allocator whose holder waits for a page, or for a change of
    /// its mappings to be read. The thread that serves such waits therefore goes on serving them before it tries again.
    ///
    /// Pre: [`watch`] was called. The flight is short (it keeps `fork` waiting), and its holder does not fork. This
    /// takes no lock.
    pub fn try_begin() -> Option<Flight> {
        COUNTS.flights.fetch_add(1, Ordering::SeqCst);
        let flight = Flight(());
        (COUNTS.forks.load(Ordering::SeqCst) == 0).then_some(flight)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        COUNTS.flights.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether this process has one thread only, for now.
pub fn alone() -> bool {
    // A line such as `Threads:	1`.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    threads.is_some_and(|threads| threads.trim() == "1")
}

extern "C" fn before() {
    COUNTS.forks.fetch_add(1, Ordering::SeqCst);
    while COUNTS.flights.load(Ordering::SeqCst) != 0 {
        rustix::thread::sched_yield();
    }
}

extern "C" fn after() {
    COUNTS.forks.fetch_sub(1, Ordering::SeqCst);
}

/// The child has one thread, and nothing in flight.
extern "C" fn in_child() {
    COUNTS.forks.store(0, Ordering::SeqCst);
    COUNTS.flights.store(0, Ordering::SeqCst);
    crate::changes::in_child();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_fork_waits_for_the_flight_and_the_next_flight_for_the_fork() {
        let landed = AtomicBool::new(false);
        let flight = Flight::try_begin().unwrap();
        std::thread::scope(|scope| {
            let fork = scope.spawn(|| {
                before();
                let seen = landed.load(Ordering::SeqCst);
                std::thread::yield_now();
                after();
                seen
            });
            while COUNTS.forks.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            assert!(Flight::try_begin().is_none(), "a flight began while somebody forks");
            landed.store(true, Ordering::SeqCst);
            drop(flight);
            while Flight::try_begin().is_none() {
                std::thread::yield_now();
            }
            assert!(fork.join().unwrap(), "the fork went on while a page was in flight");
        });
    }
}
