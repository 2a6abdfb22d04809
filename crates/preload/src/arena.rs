//! A range of addresses for the blocks of the data sets.
//!
//! One range, so that one comparison tells whose block an address is, and so that the process has hardly
//! a mapping more however many blocks there are. It is only reserved: pages are opened as they are needed, and a page that
//! nobody uses has no memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use live::{PAGE_BYTES, Pages};

/// Addresses wanted, and the fewest that are worth having.
const MOST_BYTES: usize = 1 << 40;
const LEAST_BYTES: usize = 1 << 26;
/// Pages opened at a time, at least.
const STEP: usize = 1024;

static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Whether an address is the arena's.
#[inline]
pub fn holds(address: usize) -> bool {
    address.wrapping_sub(START.load(Ordering::Relaxed)) < BYTES.load(Ordering::Relaxed)
}

/// Which addresses are in use. Pages are numbered from the arena's start.
pub struct Arena {
    start: usize,
    pages: usize,
    /// Pages from the start on that may be used.
    opened: usize,
    /// Pages from the start on that were ever taken.
    used: usize,
    /// Pages behind which others were taken, free again: number of pages, by start.
    free: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
}

impl Arena {
    /// Reserves addresses; `None` where there are none to be had (`ulimit -v`).
    pub fn reserve() -> Option<Arena> {
        let mut bytes = MOST_BYTES;
        loop {
            // SAFETY: a new mapping, at addresses that the kernel chooses, that nobody may use yet.
            let start = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_NONE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if start != libc::MAP_FAILED {
                // One kind of page throughout, so that the mapping stays one.
                // SAFETY: advice for the mapping just made.
                unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
                START.store(start.expose_provenance(), Ordering::Relaxed);
                BYTES.store(bytes, Ordering::Release);
                return Some(Arena::at(start.addr(), bytes / PAGE_BYTES));
            }
            bytes /= 4;
            if bytes < LEAST_BYTES {
                return None;
            }
        }
    }

    fn at(start: usize, pages: usize) -> Arena {
        Arena {
            start,
            pages,
            opened: 0,
            used: 0,
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
        }
    }

    /// Pages without memory, their start a multiple of `alignment` bytes; the smallest place that fits.
    pub fn take(&mut self, count: usize, alignment: usize) -> Option<Pages> {
        let step = (alignment / PAGE_BYTES).max(1);
        let aligned =
            |start: usize| ((self.start / PAGE_BYTES) + start).next_multiple_of(step) - self.start / PAGE_BYTES;
        let place = self
            .by_size
            .range((count, 0)..)
            .take(64)
            .find(|(pages, start)| aligned(*start) + count <= start + pages)
            .copied();
        if let Some((pages, start)) = place {
            let at = aligned(start);
            self.remove(start, pages);
            self.insert(start, at - start);
            self.insert(at + count, start + pages - at - count);
            return Some(self.numbered(at, count));
        }
        let at = aligned(self.used);
        let end = at.checked_add(count).filter(|end| *end <= self.pages)?;
        if end > self.opened {
            let wanted = end.next_multiple_of(STEP).min(self.pages);
            self.open(wanted)?;
        }
        if at > self.used {
            self.insert(self.used, at - self.used);
        }
        self.used = end;
        Some(self.numbered(at, count))
    }

    /// Takes back pages; they have no memory any more.
    pub fn put(&mut self, pages: Pages) {
        let mut start = (pages.start - self.start) / PAGE_BYTES;
        let mut count = pages.count;
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.remove(before, length);
            start = before;
            count += length;
        }
        if let Some(&length) = self.free.get(&(start + count)) {
            self.remove(start + count, length);
            count += length;
        }
        if start + count == self.used {
            self.used = start;
        } else {
            self.insert(start, count);
        }
    }

    fn open(&mut self, wanted: usize) -> Option<()> {
        let from = std::ptr::with_exposed_provenance_mut(self.start + self.opened * PAGE_BYTES);
        let bytes = (wanted - self.opened) * PAGE_BYTES;
        // SAFETY: reserved addresses of our own that nobody uses yet.
        let done = unsafe { libc::mprotect(from, bytes, libc::PROT_READ | libc::PROT_WRITE) };
        (done == 0).then(|| self.opened = wanted)
    }

    fn numbered(&self, at: usize, count: usize) -> Pages {
        Pages {
            start: self.start + at * PAGE_BYTES,
            count,
        }
    }

    fn insert(&mut self, start: usize, count: usize) {
        if count > 0 {
            self.free.insert(start, count);
            self.by_size.insert((count, start));
        }
    }

    fn remove(&mut self, start: usize, count: usize) {
        self.free.remove(&start);
        self.by_size.remove(&(count, start));
    }
}

/// Gives the memory of pages back to the kernel; they read as zeros afterwards.
pub fn discard(pages: Pages) {
    debug_assert!(holds(pages.start));
    let start = std::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: pages of the arena that no block has any more.
    unsafe { libc::madvise(start, pages.bytes(), libc::MADV_DONTNEED) };
}
