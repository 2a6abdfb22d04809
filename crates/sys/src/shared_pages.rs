//! Pages of a memfd that several processes map, parts of it on nodes of their own, and a window on them that can be pointed
//! at another part while it is being read.
//!
//! Memory that another process may write at any moment is never exposed as a Rust slice here. It is copied, or read
//! through a pointer whose user must tolerate concurrent writes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::fs::{FlockOperation, MemfdFlags, SealFlags};

use crate::mbind;
use crate::memory::{PAGE, Span, populate};
use crate::move_pages::{Pages, nodes_of};
use crate::numa_maps::Wish;

/// The memfd. Its size is sealed, so that no access can fault.
#[derive(Debug)]
pub struct SharedPages {
    file: OwnedFd,
    bytes: usize,
}

impl SharedPages {
    /// Pre: `bytes` is a positive multiple of [`PAGE`]. All zeros, and nothing is populated.
    pub fn create(name: &str, bytes: usize) -> io::Result<SharedPages> {
        if bytes == 0 || !bytes.is_multiple_of(PAGE) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "shared pages are whole pages",
            ));
        }
        SharedPages::sealed(name, bytes, MemfdFlags::empty())
    }

    /// The same for pages that may be mapped to be executed. Pre: as of [`SharedPages::create`].
    pub fn executable(name: &str, bytes: usize) -> io::Result<SharedPages> {
        // Before Linux 6.3 every memfd is.
        SharedPages::sealed(name, bytes, MemfdFlags::EXEC)
            .or_else(|_| SharedPages::sealed(name, bytes, MemfdFlags::empty()))
    }

    fn sealed(name: &str, bytes: usize, more: MemfdFlags) -> io::Result<SharedPages> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | more)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(SharedPages { file, bytes })
    }

    /// Wraps pages that another process created.
    ///
    /// Errors: InvalidInput where it is something else.
    pub fn given(file: OwnedFd) -> io::Result<SharedPages> {
        let no = || io::Error::new(io::ErrorKind::InvalidInput, "this is no memory of sealed size");
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(|_| no())?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(no());
        }
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| no())?;
        Ok(SharedPages { file, bytes })
    }

    /// The path at which other processes of this user find them, as long as this process has them.
    pub fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// Opens the pages that another process has at this path ([`SharedPages::path`]).
    pub fn at(path: &Path) -> io::Result<SharedPages> {
        let file = std::fs::File::options().read(true).write(true).open(path)?;
        SharedPages::given(file.into())
    }

    /// Waits until no other process that came by [`SharedPages::at`] has the lock; not for ever.
    ///
    /// Errors: TimedOut.
    pub fn lock(&self, most: Duration) -> io::Result<PagesLock<'_>> {
        const NAP: Duration = Duration::from_millis(1);
        let begun = std::time::Instant::now();
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(PagesLock(self)),
                Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < most => std::thread::sleep(NAP),
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(io::ErrorKind::TimedOut.into()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Populates a part, on that node as far as it has memory, and says where its pages came to lie.
    ///
    /// Pre: whole pages. Errors: as of [`crate::near::NearMemory::map`] and [`nodes_of`].
    pub fn populate(&self, at: usize, bytes: usize, node: Option<u32>) -> io::Result<Pages> {
        let part = Part::map(self, at, bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        let span = Span::new(part.start.addr().get(), bytes);
        if let Some(node) = node {
            mbind::wish(span, &Wish::Prefer(vec![node]))?;
        }
        populate(span)?;
        let start = part.start.addr().get();
        let pages: Vec<usize> = (start..start + bytes).step_by(PAGE).collect();
        nodes_of(None, &pages)
    }

    /// Gives back the memory of a part, which reads as zeros afterwards.
    pub fn free(&self, at: usize, bytes: usize) -> io::Result<()> {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, at as u64, bytes as u64)?)
    }

    /// Writes all of `bytes` from place `at` on, by way of the kernel.
    pub fn write(&self, mut at: usize, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pwrite(&self.file, bytes, at as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(done) => (at, bytes) = (at + done, &bytes[done..]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The same by way of a mapping: the limit of writes to files (`RLIMIT_FSIZE`, whose signal ends the process) does
    /// not apply then.
    ///
    /// Errors: ENOMEM; InvalidInput beyond the end.
    pub fn put(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (first, within) = (at / PAGE * PAGE, at % PAGE);
        let whole = bytes.len().saturating_add(within + PAGE - 1) / PAGE * PAGE;
        let part = Part::map(self, first, whole, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: so many bytes are mapped there, and nobody sees them as a slice.
        unsafe {
            part.start
                .add(within)
                .copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
        };
        Ok(())
    }

    /// Fills all of `bytes` from place `at` on, by way of the kernel.
    pub fn read(&self, mut at: usize, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::pread(&self.file, &mut *bytes, at as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(done) => (at, bytes) = (at + done, &mut bytes[done..]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The lock, held. A process that dies with it loses it.
#[derive(Debug)]
pub struct PagesLock<'a>(&'a SharedPages);

impl Drop for PagesLock<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0.file, FlockOperation::Unlock);
    }
}

/// A mapping of a part; it ends with this.
#[derive(Debug)]
struct Part {
    start: NonNull<u8>,
    bytes: usize,
}

impl Part {
    fn map(pages: &SharedPages, at: usize, bytes: usize, access: libc::c_int) -> io::Result<Part> {
        Part::map_at(pages, at, bytes, access, None)
    }

    /// Pre: whole pages. Errors: EEXIST if something is mapped at `address`.
    fn map_at(
        pages: &SharedPages,
        at: usize,
        bytes: usize,
        access: libc::c_int,
        address: Option<usize>,
    ) -> io::Result<Part> {
        use std::os::fd::AsRawFd;
        let beyond = at.checked_add(bytes).is_none_or(|end| end > pages.bytes);
        if beyond || bytes == 0 || !bytes.is_multiple_of(PAGE) || !at.is_multiple_of(PAGE) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no part of these pages"));
        }
        let fixed = address.map_or(0, |_| libc::MAP_FIXED_NOREPLACE);
        // SAFETY: the mapping replaces nothing, and what can be read there never ends: the size is sealed.
        let start = unsafe {
            libc::mmap(
                address.unwrap_or(0) as *mut _,
                bytes,
                access,
                libc::MAP_SHARED | fixed,
                pages.file.as_raw_fd(),
                at as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap returned a null address"))?;
        let part = Part { start, bytes };
        // Before Linux 4.17 the address is but a hint.
        if address.is_some_and(|address| address != part.start.addr().get()) {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        // SAFETY: our own mapping; a child of fork will not have it, and nothing changes here.
        match unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTFORK) } {
            0 => Ok(part),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Addresses that show one part of the pages, to be read only, and later another. A child of fork does not have them.
#[derive(Debug)]
pub struct Window(Part);

// SAFETY: the mapping belongs to this value; it is never read or written by it.
unsafe impl Send for Window {}
// SAFETY: as above; to show another part is the kernel's work, which does one after the other.
unsafe impl Sync for Window {}

impl Window {
    /// Opens it at that address, or where there is room.
    ///
    /// Pre: whole pages. Errors: EEXIST if something is mapped there.
    pub fn open(pages: &SharedPages, at: usize, bytes: usize, address: Option<usize>) -> io::Result<Window> {
        Part::map_at(pages, at, bytes, libc::PROT_READ, address).map(Window)
    }

    pub fn start(&self) -> NonNull<u8> {
        self.0.start
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Shows the part that begins at `at` from now on. A concurrent reader gets the old part or the new one, byte by
    /// byte, and never faults.
    ///
    /// Post: no thread of this process reads the part before through the window any more: the kernel has flushed the
    /// processors' translations of it. Errors: it shows the old part.
    pub fn show(&self, pages: &SharedPages, at: usize) -> io::Result<()> {
        let bytes = self.0.bytes;
        // The part is made ready beside the window. A child never gets it, since its advice moves along.
        let part = Part::map(pages, at, bytes, libc::PROT_READ)?;
        let (from, to) = (part.start.as_ptr(), self.0.start.as_ptr());
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: `from` is our own mapping, which nobody knows; `to` is the window, which stays mapped, with other bytes of
        // the same kind: who reads it bears with that.
        let moved = unsafe { libc::mremap(from.cast(), bytes, bytes, flags, to.cast::<libc::c_void>()) };
        if moved == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            // The kernel unmaps the place before it moves pages there, and may run out of memory in between.
            let again = Part::map_at(pages, at, bytes, libc::PROT_READ, Some(to.addr()));
            return again.map(std::mem::forget).map_err(|_| error);
        }
        // There is nothing left where it was.
        std::mem::forget(part);
        Ok(())
    }
}

/// Numbers at the beginning of the pages that all processes see, change and wait for.
#[derive(Debug)]
pub struct SharedWords(Part);

// SAFETY: what is mapped is atomic words only.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps so many bytes from the beginning of the pages. Pre: whole pages, of which nobody thinks as anything but words.
    pub fn open(pages: &SharedPages, bytes: usize) -> io::Result<SharedWords> {
        Part::map(pages, 0, bytes, libc::PROT_READ | libc::PROT_WRITE).map(SharedWords)
    }

    /// Panics beyond the end.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < self.0.bytes / 4, "beyond the words");
        // SAFETY: within the mapping, which lives as long as `self`, aligned; any bits are a number, and all processes
        // access them as atomic words.
        unsafe { &*self.0.start.as_ptr().cast::<AtomicU32>().add(at) }
    }

    /// Waits until the word is woken, or is no longer `expected`, or the time is over; or for less.
    pub fn wait(&self, at: usize, expected: u32, most: Duration) {
        let time = libc::timespec {
            tv_sec: most.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: most.subsec_nanos().into(),
        };
        let word = self.word(at).as_ptr();
        // SAFETY: the word and the time live; the kernel reads them only.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, expected, &raw const time) };
    }

    /// Wakes all that wait for the word, in all processes.
    pub fn wake(&self, at: usize) {
        let word = self.word(at).as_ptr();
        // SAFETY: the word lives; the kernel changes nothing.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    fn three() -> SharedPages {
        let pages = SharedPages::create("domicile-test", 3 * PAGE).unwrap();
        for (at, byte) in [(PAGE, 1), (2 * PAGE, 2)] {
            pages.write(at, &[byte; PAGE]).unwrap();
        }
        pages
    }

    fn first(window: &Window) -> u8 {
        // SAFETY: the window is mapped.
        unsafe { window.start().as_ptr().read_volatile() }
    }

    #[test]
    fn a_window_that_turns_is_mapped_at_every_moment() {
        let pages = three();
        // Far from other mappings: nothing joins it.
        let window = Window::open(&pages, 0, PAGE, Some(0x2100_0000_0000)).unwrap();
        let span = crate::memory::Span::new(window.start().addr().get(), PAGE);
        let mapped = || crate::mappings::is_mapped(std::process::id(), span).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..5000 {
                    window.show(&pages, turn % 3 * PAGE).unwrap();
                }
                over.store(true, SeqCst);
            });
            while !over.load(SeqCst) {
                assert!(mapped());
            }
        });
        drop(window);
        assert!(!mapped());
    }

    #[test]
    fn a_window_shows_one_part_and_then_another_at_the_same_address() {
        let pages = three();
        let window = Window::open(&pages, PAGE, PAGE, None).unwrap();
        let start = window.start();
        assert_eq!(first(&window), 1);
        window.show(&pages, 2 * PAGE).unwrap();
        assert_eq!((window.start(), first(&window)), (start, 2));
        pages.write(2 * PAGE, &[7]).unwrap();
        assert_eq!(first(&window), 7);
        assert!(window.show(&pages, 3 * PAGE).is_err() && window.show(&pages, 1).is_err());
        assert_eq!(first(&window), 7);
        let taken = Window::open(&pages, PAGE, PAGE, Some(start.addr().get())).unwrap_err();
        assert_eq!(taken.raw_os_error(), Some(libc::EEXIST));
        let mut byte = [0];
        pages.read(PAGE, &mut byte).unwrap();
        pages.free(2 * PAGE, PAGE).unwrap();
        assert_eq!((byte, first(&window)), ([1], 0));
    }

    #[test]
    fn what_is_put_is_there_and_nothing_else_changes() {
        let pages = three();
        pages.put(2 * PAGE - 2, &[5, 6, 7]).unwrap();
        let mut bytes = [0; 5];
        pages.read(2 * PAGE - 3, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 5, 6, 7, 2]);
        assert!(pages.put(3 * PAGE - 1, &[1, 2]).is_err() && pages.put(usize::MAX, &[1]).is_err());
        pages.put(3 * PAGE, &[]).unwrap();
    }

    #[test]
    fn readers_go_on_while_a_window_is_turned() {
        let pages = three();
        let window = Window::open(&pages, PAGE, PAGE, None).unwrap();
        let done = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = [0u64; 3];
                while done.load(SeqCst) == 0 {
                    seen[usize::from(first(&window))] += 1;
                }
                seen
            });
            for turn in 0..2000 {
                window.show(&pages, PAGE * (1 + turn % 2)).unwrap();
                // The part shown before is no longer read.
                assert_eq!(usize::from(first(&window)), 1 + turn % 2);
            }
            done.store(1, SeqCst);
            assert_eq!(reader.join().unwrap()[0], 0);
        });
    }

    #[test]
    fn a_child_does_not_have_the_window() {
        let pages = three();
        let window = Window::open(&pages, PAGE, PAGE, None).unwrap();
        window.show(&pages, 2 * PAGE).unwrap();
        // SAFETY: the child calls nothing but the read and `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            first(&window);
            // SAFETY: as above.
            unsafe { libc::_exit(0) }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the status lives.
        assert_eq!(child, unsafe { libc::waitpid(child, &raw mut status, 0) });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status}"
        );
        assert_eq!(first(&window), 2);
    }

    #[test]
    fn words_are_waited_for() {
        let pages = SharedPages::create("domicile-test", PAGE).unwrap();
        let words = SharedWords::open(&pages, PAGE).unwrap();
        let other = SharedPages::given(pages.descriptor().try_clone_to_owned().unwrap()).unwrap();
        let same = SharedWords::open(&other, PAGE).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while words.word(3).load(SeqCst) == 0 {
                    words.wait(3, 0, Duration::from_secs(60));
                }
            });
            same.word(3).store(1, SeqCst);
            same.wake(3);
        });
        let file = tempfile::tempfile().unwrap();
        assert!(SharedPages::given(file.into()).is_err());
        assert!(SharedPages::create("domicile-test", 1).is_err());
    }
}
