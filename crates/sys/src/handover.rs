//! Handing page frames from one process to another.
//!
//! Linux keeps the frames that were freed last on a list of each cpu, and gives them out again last in,
//! first out (`mm/page_alloc.c`, per-cpu pages). So a process that gives up frames on a cpu chooses the
//! frames of the next page faults on that cpu: the same frames in reverse order. Nothing is promised:
//! another process may come in between, so both sides check the result afterwards.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::PidfdFlags;

use crate::frames::{Entry, Pagemap};
use crate::memory::{self, Area, PAGE, Size, Span};

/// As many ranges as one system call takes (`UIO_MAXIOV`).
const MOST_RANGES: usize = 1024;

/// An area of memory whose pages come and go for the sake of their frames; nobody reads or writes them.
pub struct Shelf {
    area: Area,
    map: Pagemap,
    own: Own,
}

impl Shelf {
    /// Address space for so many pages, none of which has a frame. Frames will be single ones, never pieces
    /// of a huge page: those cannot be freed one by one.
    ///
    /// They are not locked in memory on purpose: the kernel takes locked pages off its list in batches, and
    /// frees them out of order. [`Shelf::entries`] shows if one was swapped out or moved.
    pub fn reserve(pages: usize) -> io::Result<Shelf> {
        let bytes = pages.checked_mul(PAGE).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Shelf {
            area: Area::map(bytes, Size::Small)?,
            map: Pagemap::own()?,
            own: Own::new(),
        })
    }

    pub fn pages(&self) -> usize {
        self.area.pages()
    }

    /// Gives frames to those of `pages` that have none. An error, for want of memory, leaves some with and some
    /// without.
    pub fn collect(&mut self, pages: Range<usize>) -> io::Result<()> {
        memory::populate(self.span(pages)?)
    }

    /// Frees the frames of these pages in this order, on the cpu that the calling thread is on.
    ///
    /// Pre: each lies on the shelf. After an error some are freed, the first ones.
    pub fn let_go(&mut self, pages: &[u32]) -> io::Result<()> {
        self.span(0..pages.iter().max().map_or(0, |page| *page as usize + 1))?;
        self.own.each(self.area.span(), pages, libc::MADV_DONTNEED)
    }

    /// Replaces the content of `entries` by the kernel's entries of `pages`, one each.
    pub fn entries(&self, pages: Range<usize>, entries: &mut Vec<Entry>) -> io::Result<()> {
        let span = self.span(pages)?;
        entries.clear();
        entries.resize(span.bytes / PAGE, Entry::default());
        self.map.read(span.start, entries)
    }

    fn span(&self, pages: Range<usize>) -> io::Result<Span> {
        if pages.start > pages.end || pages.end > self.pages() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        Ok(self.area.part(pages.start, pages.len()))
    }
}

/// This process, for the system call that advises of many ranges at once; none if it is refused.
struct Own(Option<OwnedFd>);

impl Own {
    fn new() -> Own {
        Own(rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).ok())
    }

    /// Advises of each page of `within`, in order. Pre: they lie within; the advice changes no content that anybody
    /// needs.
    fn each(&mut self, within: Span, pages: &[u32], advice: libc::c_int) -> io::Result<()> {
        let pages = pages.iter().map(|&page| page as usize);
        self.ranges(within, pages.map(|page| page..page + 1), advice)
    }

    /// As [`each`](Own::each), of ranges of pages.
    fn ranges(
        &mut self,
        within: Span,
        mut ranges: impl Iterator<Item = Range<usize>>,
        advice: libc::c_int,
    ) -> io::Result<()> {
        let mut vector = Vec::with_capacity(ranges.size_hint().0.min(MOST_RANGES));
        loop {
            vector.clear();
            vector.extend(ranges.by_ref().take(MOST_RANGES).map(|range| libc::iovec {
                iov_base: (within.start + range.start * PAGE) as *mut libc::c_void,
                iov_len: range.len() * PAGE,
            }));
            if vector.is_empty() {
                return Ok(());
            }
            if self.at_once(&vector, advice)? {
                continue;
            }
            for range in &vector {
                // SAFETY: as the caller says; addresses where nothing is mapped are an error.
                if unsafe { libc::madvise(range.iov_base, range.iov_len, advice) } != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
    }

    /// Returns whether the kernel took all ranges in one call, as Linux 6.13 and later allow for the calling
    /// process. This takes a third of the time of single calls.
    fn at_once(&mut self, vector: &[libc::iovec], advice: libc::c_int) -> io::Result<bool> {
        let Some(own) = &self.0 else {
            return Ok(false);
        };
        // SAFETY: as the caller of `each` says; `vector` outlives the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                own.as_raw_fd(),
                vector.as_ptr(),
                vector.len(),
                advice,
                0,
            )
        };
        let all: usize = vector.iter().map(|range| range.iov_len).sum();
        if usize::try_from(done) == Ok(all) {
            return Ok(true);
        }
        if done < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOSYS | libc::EPERM) => self.0 = None,
                Some(libc::EINTR | libc::EAGAIN) => {}
                _ => return Err(error),
            }
        }
        Ok(false)
    }
}

/// Gives back the frames of pages of an area, many at a time.
pub struct Discard(Own);

impl Discard {
    pub fn new() -> Discard {
        Discard(Own::new())
    }

    /// Frees the frames of these pages, in this order; they read as zeros afterwards. After an error some are freed, the
    /// first ones. A page beyond the area is an error, and nothing is freed.
    pub fn each(&mut self, area: &mut Area, pages: &[u32]) -> io::Result<()> {
        if pages.iter().any(|&page| page as usize >= area.pages()) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        self.0.each(area.span(), pages, libc::MADV_DONTNEED)
    }

    /// As [`each`](Discard::each), of ranges of pages.
    pub fn ranges(&mut self, area: &mut Area, ranges: &[Range<usize>]) -> io::Result<()> {
        if ranges
            .iter()
            .any(|range| range.start > range.end || range.end > area.pages())
        {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        self.0.ranges(area.span(), ranges.iter().cloned(), libc::MADV_DONTNEED)
    }
}

impl Default for Discard {
    fn default() -> Discard {
        Discard::new()
    }
}

/// Gives pages frames in an order of one's choice, as if each was written; changes no content.
pub struct Populate(Own);

impl Populate {
    pub fn new() -> Populate {
        Populate(Own::new())
    }

    /// `pages` are counted from the start of `within`. Errors: as of [`memory::populate`]; a page beyond.
    pub fn each(&mut self, within: Span, pages: &[u32]) -> io::Result<()> {
        let beyond = |page: &u32| *page as usize >= within.bytes / PAGE;
        if pages.iter().any(beyond) || within.start.checked_add(within.bytes).is_none() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        self.0.each(within, pages, libc::MADV_POPULATE_WRITE)
    }
}

impl Default for Populate {
    fn default() -> Populate {
        Populate::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(shelf: &Shelf) -> Vec<usize> {
        let mut entries = Vec::new();
        shelf.entries(0..shelf.pages(), &mut entries).unwrap();
        (0..entries.len()).filter(|&page| entries[page].present()).collect()
    }

    #[test]
    fn pages_come_and_go() {
        let mut shelf = Shelf::reserve(64).unwrap();
        assert!(there(&shelf).is_empty());
        shelf.collect(8..40).unwrap();
        assert_eq!(there(&shelf), (8..40).collect::<Vec<_>>());
        shelf.let_go(&[9, 39, 12]).unwrap();
        assert_eq!(
            there(&shelf),
            (8..39).filter(|page| ![9, 12].contains(page)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn nothing_beyond_the_shelf_is_touched() {
        let mut shelf = Shelf::reserve(4).unwrap();
        assert!(shelf.collect(3..5).is_err());
        assert!(shelf.let_go(&[4]).is_err());
        assert!(shelf.entries(usize::MAX - 1..usize::MAX, &mut Vec::new()).is_err());
        assert!(Shelf::reserve(0).is_err() && Shelf::reserve(usize::MAX).is_err());
    }

    #[test]
    fn both_ways_free_the_same() {
        for single in [false, true] {
            let mut shelf = Shelf::reserve(2500).unwrap();
            if single {
                shelf.own.0 = None;
            }
            shelf.collect(0..2500).unwrap();
            let pages: Vec<u32> = (0..2500).step_by(2).collect();
            shelf.let_go(&pages).unwrap();
            assert_eq!(there(&shelf), (1..2500).step_by(2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_areas_pages_are_freed_one_here_one_there() {
        for single in [false, true] {
            let mut area = Area::map(1500 * PAGE, Size::Small).unwrap();
            (0..1500).for_each(|page| area.set_word(page, 0, 7));
            let mut discard = Discard::new();
            if single {
                discard.0.0 = None;
            }
            let pages: Vec<u32> = (0..1500).filter(|page| page % 3 == 0).collect();
            discard.each(&mut area, &pages).unwrap();
            assert!((0..1500).all(|page| (area.word(page, 0) == 0) == (page % 3 == 0)));
            assert!(discard.each(&mut area, &[1500]).is_err());
            (0..1500).for_each(|page| area.set_word(page, 0, 7));
            discard.ranges(&mut area, &[0..3, 7..8, 1400..1500]).unwrap();
            let freed = |page| page < 3 || page == 7 || page >= 1400;
            assert!((0..1500).all(|page| (area.word(page, 0) == 0) == freed(page)));
            let backwards = Range { start: 2, end: 1 };
            assert!(
                [1400..1501, backwards]
                    .iter()
                    .all(|range| discard.ranges(&mut area, std::slice::from_ref(range)).is_err())
            );
        }
    }

    #[test]
    fn pages_are_populated_in_any_order_and_keep_what_they_hold() {
        for single in [false, true] {
            let area = Area::map(1500 * PAGE, Size::Small).unwrap();
            area.set_word(3, 5, 77);
            let mut populate = Populate::new();
            if single {
                populate.0.0 = None;
            }
            let pages: Vec<u32> = (0..1500).rev().filter(|page| page % 3 == 0).collect();
            populate.each(area.span(), &pages).unwrap();
            let entries = Pagemap::own().unwrap().entries(area.span()).unwrap();
            assert!((0..1500).all(|page| entries[page].present() == (page % 3 == 0)));
            assert_eq!(area.word(3, 5), 77);
            assert!(populate.each(area.span(), &[1500]).is_err());
        }
        assert!(Populate::new().each(Span::new(0x1000, PAGE), &[0]).is_err());
    }
}
