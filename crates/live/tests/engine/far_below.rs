//! Memory whose place stays free when it is unmapped: unit tests and integration tests have it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Between two such places, and the most that one takes.
const APART: usize = 1 << 36;

/// Maps memory far below all addresses that the kernel chooses by itself; returns its address.
pub fn map(bytes: usize) -> usize {
    // Each place is tried once, so that no test gets another's.
    static NEXT: AtomicUsize = AtomicUsize::new(APART);
    loop {
        let start = NEXT.fetch_add(APART, Ordering::Relaxed);
        assert!(bytes <= APART && start < 1 << 45, "no place is free");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: with this flag nothing that is mapped is replaced.
        if unsafe { libc::mmap(start as *mut _, bytes, access, flags, -1, 0) } as usize == start {
            return start;
        }
    }
}
