//! A range of addresses for the blocks of the data sets.
//!
//! A single range, so that one comparison shows whose block an address is. It lies far from all mappings, where the
//! kernel maps nothing unasked, and only its blocks are mapped: the program's limits (`ulimit -v`, strict accounting of
//! memory) count what it asked for, as without us, and refuse what they would refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use live::{PAGE_BYTES, Pages};

use crate::next;

/// The preferred number of addresses, and the smallest useful one.
const MOST_BYTES: usize = 1 << 40;
const LEAST_BYTES: usize = 1 << 30;

static START: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns true if an address belongs to the arena.
#[inline]
pub fn holds(address: usize) -> bool {
    address.wrapping_sub(START.load(Ordering::Relaxed)) < BYTES.load(Ordering::Relaxed)
}

/// The addresses in use. Pages are numbered from the arena's start.
pub struct Arena {
    start: usize,
    pages: usize,
    /// Pages from the start on that were ever taken.
    used: usize,
    /// Free pages with later pages in use: number of pages, by start.
    free: BTreeMap<usize, usize>,
    by_size: BTreeSet<(usize, usize)>,
}

impl Arena {
    /// Finds addresses; `None` if the mappings are unknown.
    pub fn find() -> Option<Arena> {
        let (start, bytes) = gap(&sys::mappings::all(None).ok()?)?;
        START.store(start, Ordering::Relaxed);
        BYTES.store(bytes, Ordering::Release);
        Some(Arena {
            start,
            pages: bytes / PAGE_BYTES,
            used: 0,
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
        })
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
            map(self.numbered(at, count))?;
            self.remove(start, pages);
            self.insert(start, at - start);
            self.insert(at + count, start + pages - at - count);
            return Some(self.numbered(at, count));
        }
        let at = aligned(self.used);
        let end = at.checked_add(count).filter(|end| *end <= self.pages)?;
        map(self.numbered(at, count))?;
        if at > self.used {
            self.insert(self.used, at - self.used);
        }
        self.used = end;
        Some(self.numbered(at, count))
    }

    /// Takes back pages, with their memory. Addresses that the kernel does not take back are not used again.
    pub fn put(&mut self, pages: Pages) {
        if !unmap(pages) {
            return;
        }
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

/// The widest gap between mappings, if it is wide enough, and the arena's place in its middle: libraries and the
/// kernel's mappings grow downwards from above, the program's heap grows upwards from below. The gap between the
/// libraries and the stack is narrower: the kernel makes it anything up to 1 TiB.
fn gap(mappings: &[sys::mappings::Mapping]) -> Option<(usize, usize)> {
    let room = |pair: &[sys::mappings::Mapping]| (pair[0].span.end(), pair[1].span.start);
    let width = |&(from, to): &(usize, usize)| to.saturating_sub(from);
    // The kernel's own page at the end of all addresses is not the program's.
    let end = mappings.partition_point(|mapping| mapping.span.start <= isize::MAX as usize);
    let (from, to) = mappings[..end].windows(2).map(room).max_by_key(width)?;
    if width(&(from, to)) / 4 < LEAST_BYTES {
        return None;
    }
    let bytes = ((to - from) / 4).min(MOST_BYTES) / PAGE_BYTES * PAGE_BYTES;
    let start = (from + (to - from) / 2).next_multiple_of(LEAST_BYTES);
    (start + bytes < to).then_some((start, bytes))
}

/// Maps addresses, which have no frames yet; `None` if the program's limits or the kernel refuse.
fn map(pages: Pages) -> Option<()> {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let at = std::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: a new mapping that replaces none.
    let start = unsafe { next::mmap(at, pages.bytes(), libc::PROT_READ | libc::PROT_WRITE, FLAGS, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    if start != at {
        // Before Linux 4.17 the address is only a hint.
        // SAFETY: the mapping just made.
        unsafe { next::munmap(start, pages.bytes()) };
        return None;
    }
    // The same kind of page throughout, so that neighbours are one mapping.
    // SAFETY: advice for the mapping just made.
    unsafe { libc::madvise(start, pages.bytes(), libc::MADV_NOHUGEPAGE) };
    start.expose_provenance();
    Some(())
}

/// Gives pages back to the kernel; also their addresses, if it can divide the mapping.
fn unmap(pages: Pages) -> bool {
    debug_assert!(holds(pages.start));
    let start = std::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: no block uses these pages of the arena any more.
    if unsafe { next::munmap(start, pages.bytes()) } == 0 {
        return true;
    }
    // SAFETY: as above.
    unsafe { libc::madvise(start, pages.bytes(), libc::MADV_DONTNEED) };
    false
}

#[cfg(test)]
mod tests {
    use sys::mappings::Mapping;
    use sys::memory::Span;

    use super::*;

    #[test]
    fn it_lies_far_from_all_that_is_mapped() {
        let mapping = |start: usize, bytes| Mapping {
            span: Span::new(start, bytes),
            ..sys::mappings::all(None).unwrap()[0].clone()
        };
        let program = [
            mapping(0x5555_5555_4000, 1 << 20),
            mapping(0x5555_5600_0000, 1 << 30),
            mapping(0x7fff_e000_0000, 1 << 28),
            mapping(0x7fff_f7fc_0000, 1 << 16),
        ];
        let (start, bytes) = gap(&program).unwrap();
        assert_eq!(bytes, MOST_BYTES);
        assert!(
            start > 0x6000_0000_0000 && start + bytes < 0x7000_0000_0000,
            "{start:#x}"
        );
        assert_eq!(gap(&program[2..]), None);
        // The libraries may lie far below the stack.
        let mut far = program;
        far[2] = mapping(0x7ff8_0000_0000, 1 << 28);
        let (start, bytes) = gap(&far).unwrap();
        assert_eq!(bytes, MOST_BYTES);
        assert!(start < 0x7000_0000_0000, "{start:#x}");
    }
}
