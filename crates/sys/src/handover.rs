//! Handing page frames from one process to another.
//!
//! Linux keeps the frames that were freed last on a list of each cpu, and gives them out again last in,
//! first out (`mm/page_alloc.c`, per-cpu pages). So a process that gives up frames on a cpu chooses what
//! whoever faults next on that cpu gets: the same frames in reverse order. Nothing is promised: another
//! process may come in between, and so both sides look afterwards at what became of it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::PidfdFlags;

const PAGE: usize = 4096;

/// An area of memory whose pages come and go for the sake of their frames; nobody reads or writes them.
pub struct Shelf {
    at: NonNull<u8>,
    pages: usize,
    map: Pagemap,
    /// Ourselves, for the system call that gives up many ranges at once; `None` where it is refused.
    own: Option<OwnedFd>,
}

// SAFETY: the mapping belongs to this value alone, no reference into it is ever made, and the calls on it may
// come from any thread.
unsafe impl Send for Shelf {}

impl Shelf {
    /// Address space for so many pages, none of which has a frame. Frames will be single ones, never pieces
    /// of a huge page: those cannot be freed one by one.
    ///
    /// They are not locked in memory on purpose: the kernel takes locked pages off its list in batches, and
    /// frees them out of order. Whether one was swapped out or moved shows in [`Shelf::frames`].
    pub fn reserve(pages: usize) -> io::Result<Shelf> {
        let bytes = pages.checked_mul(PAGE).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let at = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, flags)? };
        let at = NonNull::new(at.cast()).ok_or_else(|| io::Error::other("mmap returned a null address"))?;
        let shelf = Shelf {
            at,
            pages,
            map: Pagemap(File::open("/proc/self/pagemap")?),
            own: rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()).ok(),
        };
        match shelf.advise(0..pages, Advice::LinuxNoHugepage) {
            // A kernel without huge pages.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            done => done?,
        }
        // A child has no use for it, and sharing frames with one would pin them.
        shelf.advise(0..pages, Advice::LinuxDontFork)?;
        Ok(shelf)
    }

    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Gives frames to those of `pages` that have none. An error leaves some with and some without: no memory.
    pub fn collect(&mut self, pages: Range<usize>) -> io::Result<()> {
        self.advise(pages, Advice::LinuxPopulateWrite)
    }

    /// Frees the frames of `pages`, where they have some.
    pub fn clear(&mut self, pages: Range<usize>) -> io::Result<()> {
        self.advise(pages, Advice::LinuxDontNeed)
    }

    /// Frees the frames of these pages in this order, on the cpu that the calling thread is on.
    ///
    /// Pre: each lies on the shelf. After an error some are freed, the first ones.
    pub fn let_go(&mut self, pages: &[u32]) -> io::Result<()> {
        let mut vector = Vec::with_capacity(pages.len().min(MOST_RANGES));
        for pages in pages.chunks(MOST_RANGES) {
            vector.clear();
            for &page in pages {
                vector.push(libc::iovec {
                    iov_base: self.address(page as usize, 1)? as *mut libc::c_void,
                    iov_len: PAGE,
                });
            }
            if !self.let_go_at_once(&vector)? {
                for &page in pages {
                    self.advise(page as usize..page as usize + 1, Advice::LinuxDontNeed)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the kernel takes many ranges in one call: Linux 6.13 and later allow it on oneself.
    fn let_go_at_once(&mut self, vector: &[libc::iovec]) -> io::Result<bool> {
        let Some(own) = &self.own else {
            return Ok(false);
        };
        let bytes = vector.len() * PAGE;
        // SAFETY: each range is a page of the shelf, whose content nobody refers to; `vector` outlives the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                own.as_raw_fd(),
                vector.as_ptr(),
                vector.len(),
                libc::MADV_DONTNEED,
                0,
            )
        };
        if usize::try_from(done) == Ok(bytes) {
            return Ok(true);
        }
        if done < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOSYS | libc::EPERM) => self.own = None,
                _ => return Err(error),
            }
        }
        Ok(false)
    }

    /// Replaces what `frames` holds by the frames of `pages`; see [`Pagemap::read`].
    pub fn frames(&self, pages: Range<usize>, frames: &mut Vec<Option<u64>>) -> io::Result<()> {
        let at = self.address(pages.start, pages.len())?;
        self.map.read(at / PAGE, pages.len(), frames)
    }

    fn address(&self, page: usize, count: usize) -> io::Result<usize> {
        if page > self.pages || count > self.pages - page {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        Ok(self.at.as_ptr() as usize + page * PAGE)
    }

    fn advise(&self, pages: Range<usize>, advice: Advice) -> io::Result<()> {
        let at = self.address(pages.start, pages.len())?;
        // SAFETY: the range lies on the shelf, and nobody refers to what its pages hold.
        unsafe { rustix::mm::madvise(at as *mut _, pages.len() * PAGE, advice)? };
        Ok(())
    }
}

/// As many ranges as one system call takes (`UIO_MAXIOV`).
const MOST_RANGES: usize = 1024;

impl Drop for Shelf {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing was borrowed from it.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.pages * PAGE) };
    }
}

/// Which frames the pages of a process have: `/proc/<process>/pagemap`.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// `file` is a pagemap, opened by someone with CAP_SYS_ADMIN: to anybody else the kernel shows no frames.
    pub fn new(file: File) -> Pagemap {
        Pagemap(file)
    }

    /// Replaces what `frames` holds by the frames of the pages from number `first` on (address / 4096), one
    /// entry each: `None` where there is none, where it belongs to a file, or where the process is gone.
    ///
    /// Ensures: no frame is told as 0, which is how the kernel hides them.
    pub fn read(&self, first: usize, count: usize, frames: &mut Vec<Option<u64>>) -> io::Result<()> {
        const PRESENT: u64 = 1 << 63;
        const OF_FILE: u64 = 1 << 61;
        const FRAME: u64 = (1 << 55) - 1;
        frames.clear();
        frames.reserve(count);
        let mut bytes = [0; 8 * 512];
        while frames.len() < count {
            let want = (count - frames.len()).min(512) * 8;
            let at = (first as u64 + frames.len() as u64) * 8;
            let got = self.0.read_at(&mut bytes[..want], at)?;
            if got < 8 {
                break;
            }
            frames.extend(bytes[..got].as_chunks::<8>().0.iter().map(|entry| {
                let entry = u64::from_ne_bytes(*entry);
                let shown = entry & PRESENT != 0 && entry & OF_FILE == 0 && entry & FRAME != 0;
                shown.then_some(entry & FRAME)
            }));
        }
        frames.resize(count, None);
        Ok(())
    }
}

/// Gives frames to those of `count` pages from address `start` on that have none, without touching what the
/// others hold.
///
/// An error where the range is not memory that may be written, or there is no memory; nothing else happens.
pub fn populate(start: usize, count: usize) -> io::Result<()> {
    let bytes = count.checked_mul(PAGE).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: populating changes no byte that anybody could see: an absent page of anonymous memory reads as
    // zeros before and after, and of others the kernel reads in what is there.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, Advice::LinuxPopulateWrite)? };
    Ok(())
}

/// Frees the frames of `count` pages from address `start` on, on the cpu that the calling thread is on. What they
/// held is gone; anonymous pages read as zeros from then on.
///
/// Pre: the range is memory that nobody needs any more, such as a data set that is being freed: like an unmapping,
/// this cannot be checked here. An error where the range is not all mapped, or locked.
pub fn discard(start: usize, count: usize) -> io::Result<()> {
    let bytes = count.checked_mul(PAGE).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: the caller says that nobody uses what the range holds.
    unsafe { rustix::mm::madvise(start as *mut _, bytes, Advice::LinuxDontNeed)? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_and_go() {
        let mut shelf = Shelf::reserve(64).unwrap();
        let mut frames = Vec::new();
        shelf.frames(0..64, &mut frames).unwrap();
        assert_eq!(frames, vec![None; 64]);
        shelf.collect(8..40).unwrap();
        shelf.frames(0..64, &mut frames).unwrap();
        if frames.iter().all(|frame| frame.is_none()) {
            eprintln!("skipped: frames are shown to root only");
            return;
        }
        let there = |frames: &[Option<u64>]| -> Vec<usize> {
            (0..frames.len()).filter(|&page| frames[page].is_some()).collect()
        };
        assert_eq!(there(&frames), (8..40).collect::<Vec<_>>());
        let mut distinct: Vec<_> = frames.iter().flatten().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 32);
        shelf.let_go(&[9, 39, 12]).unwrap();
        shelf.clear(20..30).unwrap();
        shelf.frames(0..64, &mut frames).unwrap();
        let left: Vec<_> = (8..39)
            .filter(|page| ![9, 12].contains(page) && !(20..30).contains(page))
            .collect();
        assert_eq!(there(&frames), left);
    }

    #[test]
    fn nothing_beyond_the_shelf_is_touched() {
        let mut shelf = Shelf::reserve(4).unwrap();
        assert!(shelf.collect(3..5).is_err());
        assert!(shelf.let_go(&[4]).is_err());
        assert!(shelf.clear(usize::MAX - 1..usize::MAX).is_err());
        assert!(Shelf::reserve(0).is_err() && Shelf::reserve(usize::MAX).is_err());
        assert!(populate(usize::MAX & !0xfff, usize::MAX).is_err());
    }

    #[test]
    fn the_slow_way_frees_the_same() {
        let mut shelf = Shelf::reserve(2000).unwrap();
        shelf.own = None;
        shelf.collect(0..2000).unwrap();
        let pages: Vec<u32> = (0..2000).step_by(2).collect();
        shelf.let_go(&pages).unwrap();
        let mut frames = Vec::new();
        shelf.frames(0..2000, &mut frames).unwrap();
        assert!(frames.iter().step_by(2).all(|frame| frame.is_none()));
    }
}
