//! The frames behind pages: `/proc/PID/pagemap`, read in bulk. `/proc/PID/pagemap`, read in bulk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::ioctl::{Opcode, opcode};

use crate::kept::Kept;
use crate::memory::{PAGE, Span};

/// The kernel's record of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Returns whether the page has a frame.
    pub fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Returns whether its content lies in swap.
    pub fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    /// Returns whether it belongs to a file or to shared memory.
    pub fn of_file(self) -> bool {
        self.0 >> 61 & 1 == 1
    }

    /// Returns whether it was written since the soft-dirty bits of its process were last cleared, or is younger than
    /// that; always false if the kernel does not keep these bits.
    pub fn soft_dirty(self) -> bool {
        self.0 >> 55 & 1 == 1
    }

    /// Returns whether no other mapping has this frame.
    pub fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }

    /// The frame's number (physical address / 4096); `None` if the page has none, or where the
    /// kernel hides the numbers, which it does by showing 0 to users without CAP_SYS_ADMIN. Frame 0
    /// is never given to a process.
    pub fn frame(self) -> Option<u64> {
        let frame = self.0 & ((1 << 55) - 1);
        (self.present() && frame != 0).then_some(frame)
    }
}

/// A process's page map, opened once.
#[derive(Debug)]
pub struct Pagemap {
    file: Kept,
}

impl Pagemap {
    /// Our own. A child of fork must open its own: this one stays with the parent.
    pub fn own() -> io::Result<Pagemap> {
        Ok(Pagemap {
            file: Kept::file(File::open("/proc/self/pagemap")?)?,
        })
    }

    /// Opens another process's, for users that may trace it.
    ///
    /// Errors: kind `NotFound` if there is no such process, or none that has memory: it has ended, or is the kernel's.
    pub fn of(process: u32) -> io::Result<Pagemap> {
        match File::open(format!("/proc/{process}/pagemap")) {
            Ok(file) => Ok(Pagemap {
                file: Kept::file(file)?,
            }),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(error),
        }
    }

    /// Fills `entries` with those of the pages from address `start` on.
    ///
    /// Pre: `start` is the address of a page. Pages where nothing is mapped come out as absent; so
    /// does the rest beyond the highest address of a process, and for a process that is gone.
    pub fn read(&self, start: usize, entries: &mut [Entry]) -> io::Result<()> {
        // SAFETY: `Entry` is one u64 in memory (checked below) and any bits are one.
        let bytes: &mut [u8] =
            unsafe { std::slice::from_raw_parts_mut(entries.as_mut_ptr().cast(), size_of_val(entries)) };
        let file = self.file.get()?;
        let mut done = 0;
        while done < bytes.len() {
            let at = (start / PAGE * size_of::<Entry>() + done) as u64;
            match rustix::io::pread(file, &mut bytes[done..], at) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        bytes[done..].fill(0);
        Ok(())
    }

    /// Returns whether it is still open: the program may have closed it without knowing.
    pub fn is_ours(&self) -> bool {
        self.file.is_ours()
    }

    /// Returns whether the address space that this was opened for still exists: it ends with its last process, or an
    /// exec.
    ///
    /// Ensures: does not wait, whatever the process does to its address space.
    pub fn lives(&self) -> bool {
        // Less than an entry is refused, and only where there is an address space: the kernel looks for it first, and
        // takes its lock later (fs/proc/task_mmu.c, pagemap_read).
        self.file
            .get()
            .is_ok_and(|file| rustix::io::pread(file, &mut [0u8; 4], 0).is_err())
    }

    /// The entries of all pages of a span.
    pub fn entries(&self, span: Span) -> io::Result<Vec<Entry>> {
        let mut entries = vec![Entry::default(); span.bytes.div_ceil(PAGE)];
        self.read(span.start, &mut entries)?;
        Ok(entries)
    }

    /// The pages that lie in transparent huge pages, a flag a page (Linux 6.7, for any user).
    ///
    /// Errors: ENOTTY if the kernel cannot report it.
    pub fn huge(&self, span: Span) -> io::Result<Vec<bool>> {
        const HUGE: u64 = 1 << 6;
        let mut huge = vec![false; span.bytes.div_ceil(PAGE)];
        self.scan(span, HUGE, 0, |found, _| {
            let page = |address: usize| address.saturating_sub(span.start) / PAGE;
            let (first, end) = (page(found.start), page(found.end()).min(huge.len()));
            huge[first.min(end)..end].fill(true);
            true
        })?;
        Ok(huge)
    }

    /// Calls `visit` with each range of pages that have frames, lowest first, until it returns false (Linux 6.7). A
    /// part without frames costs next to nothing, however large.
    ///
    /// Errors: ENOTTY if the kernel cannot report it.
    pub fn present(&self, mut visit: impl FnMut(Span) -> bool) -> io::Result<()> {
        const PRESENT: u64 = 1 << 3;
        // The size of an address space depends on the processor; a scan beyond its end looks at no page.
        for bits in [56, 52, 48] {
            match self.scan(Span::new(0, (1 << bits) - PAGE), PRESENT, 0, |span, _| visit(span)) {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {}
                done => return done,
            }
        }
        self.scan(Span::new(0, (1 << 47) - PAGE), PRESENT, 0, |span, _| visit(span))
    }

    /// Calls `visit` with each range of pages of the span that have frames and were written since the soft-dirty bits were
    /// cleared, until it returns false (Linux 6.7).
    ///
    /// Errors: ENOTTY if the kernel cannot report it.
    pub fn soft_dirty(&self, span: Span, mut visit: impl FnMut(Span) -> bool) -> io::Result<()> {
        const PRESENT_AND_DIRTY: u64 = 1 << 3 | 1 << 7;
        self.scan(span, PRESENT_AND_DIRTY, 0, |span, _| visit(span))
    }

    /// Calls `visit` with each range of pages of the span that have frames, and whether those lie in huge pages, until it
    /// returns false (Linux 6.7).
    ///
    /// Errors: ENOTTY if the kernel cannot report it.
    pub fn sizes(&self, span: Span, mut visit: impl FnMut(Span, bool) -> bool) -> io::Result<()> {
        const PRESENT: u64 = 1 << 3;
        const HUGE: u64 = 1 << 6;
        self.scan(span, PRESENT, HUGE, |span, also| visit(span, also & HUGE != 0))
    }

    /// Ranges of pages that have all of `wanted`, cut where they differ in `also`.
    fn scan(&self, span: Span, wanted: u64, also: u64, mut visit: impl FnMut(Span, u64) -> bool) -> io::Result<()> {
        let file = self.file.get()?;
        let mut at = span.start as u64;
        while at < span.end() as u64 {
            let mut regions = [Region::default(); 64];
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end: span.end() as u64,
                regions: regions.as_mut_ptr() as u64,
                regions_len: regions.len() as u64,
                wanted,
                returned: wanted | also,
                ..Scan::default()
            };
            const REQUEST: Opcode = opcode::read_write::<Scan>(b'f', 16);
            // SAFETY: the structure is what PAGEMAP_SCAN wants, and names an array that lives and
            // has that many places.
            let found = unsafe { libc::ioctl(file.as_raw_fd(), REQUEST as _, &raw mut scan) };
            let found = usize::try_from(found).map_err(|_| io::Error::last_os_error())?;
            for region in &regions[..found.min(regions.len())] {
                let bytes = region.end.saturating_sub(region.start) as usize;
                if !visit(Span::new(region.start as usize, bytes), region.categories) {
                    return Ok(());
                }
            }
            if scan.walked_to <= at {
                break;
            }
            at = scan.walked_to;
        }
        Ok(())
    }

    /// Returns whether the kernel shows frame numbers: tried on a page of this process that has a
    /// frame.
    pub fn own_numbers_visible() -> bool {
        let here = [1u8; 8];
        let page = std::hint::black_box(&here).as_ptr() as usize / PAGE * PAGE;
        let entries = Pagemap::own().and_then(|map| map.entries(Span::new(page, PAGE)));
        entries.is_ok_and(|entries| entries[0].frame().is_some())
    }
}

/// Returns whether a page map could not be scanned because the kernel is older than Linux 6.7.
pub fn cannot_scan(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOTTY)
}

/// The kernel's flags of frames themselves: `/proc/kpageflags`.
#[derive(Debug)]
pub struct Flags {
    file: File,
}

impl Flags {
    /// Errors: it may be read by root only, or there is none.
    pub fn open() -> io::Result<Flags> {
        Ok(Flags {
            file: File::open("/proc/kpageflags")?,
        })
    }

    /// Those of `frames` that hold anonymous memory of any process, even if no page shows them: a frame that only a
    /// pipe or a device still uses counts, too.
    ///
    /// Pre: ascending.
    pub fn anonymous(&self, frames: &[u64]) -> io::Result<Vec<u64>> {
        const ANONYMOUS: u64 = 1 << 12;
        /// Frames that are read together, where they follow each other or nearly so.
        const TOGETHER: u64 = 512;
        let mut found = Vec::new();
        let mut flags = [0u8; 8 * TOGETHER as usize];
        let mut rest = frames;
        while let Some(&first) = rest.first() {
            let count = rest.partition_point(|frame| frame - first < TOGETHER);
            let (these, others) = rest.split_at(count);
            // A read of a single frame costs no more than a few unneeded entries.
            let sparse = these.len() < 8;
            let (these, others) = if sparse { rest.split_at(1) } else { (these, others) };
            let last = these[these.len() - 1];
            let bytes = &mut flags[..(last - first + 1) as usize * 8];
            let got = self.file.read_at(bytes, first * 8)?;
            for frame in these {
                let at = (frame - first) as usize * 8;
                // Frames beyond the end of memory have no flags.
                let word = bytes[..got].get(at..at + 8).and_then(|word| word.try_into().ok());
                if u64::from_ne_bytes(word.unwrap_or([0; 8])) & ANONYMOUS != 0 {
                    found.push(*frame);
                }
            }
            rest = others;
        }
        Ok(found)
    }
}

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walked_to: u64,
    regions: u64,
    regions_len: u64,
    pages_max: u64,
    inverted: u64,
    wanted: u64,
    any_of: u64,
    returned: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const _: () = assert!(size_of::<Entry>() == 8 && align_of::<Entry>() == 8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Area, HUGE, Size};

    #[test]
    fn a_page_is_present_once_written_and_numbers_are_hidden_as_a_whole_or_not_at_all() {
        let area = Area::map(4 * PAGE, Size::Small).unwrap();
        area.set_word(1, 0, 1);
        area.set_word(3, 0, 1);
        let entries = Pagemap::own().unwrap().entries(area.span()).unwrap();
        let present: Vec<bool> = entries.iter().map(|entry| entry.present()).collect();
        assert_eq!(present, [false, true, false, true]);
        assert!(entries[1].exclusive() && !entries[1].of_file() && !entries[1].swapped());
        let visible = Pagemap::own_numbers_visible();
        assert_eq!(entries[1].frame().is_some(), visible);
        assert_eq!(entries[3].frame().is_some(), visible);
        assert!(entries[0].frame().is_none());
        assert!(!visible || entries[1] != entries[3]);
    }

    #[test]
    fn our_own_map_by_number_is_the_same() {
        let area = Area::map(PAGE, Size::Small).unwrap();
        area.set_word(0, 0, 1);
        let own = Pagemap::own().unwrap().entries(area.span()).unwrap();
        let other = Pagemap::of(std::process::id()).unwrap().entries(area.span()).unwrap();
        assert_eq!(own, other);
        assert!(Pagemap::of(u32::MAX).is_err());
    }

    #[test]
    fn an_address_space_lives_as_long_as_its_process() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let map = Pagemap::of(child.id()).unwrap();
        assert!(map.lives());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!map.lives());
    }

    #[test]
    fn frames_are_anonymous_while_somebody_has_them() {
        let area = Area::map(600 * PAGE, Size::Small).unwrap();
        (0..600).for_each(|page| area.set_word(page, 0, 1));
        let entries = Pagemap::own().unwrap().entries(area.span()).unwrap();
        let mut frames: Vec<u64> = entries.iter().filter_map(|entry| entry.frame()).collect();
        let (Ok(flags), 600) = (Flags::open(), frames.len()) else {
            return harness::not_allowed("frames and their flags are shown to root only");
        };
        frames.sort_unstable();
        assert_eq!(flags.anonymous(&frames).unwrap(), frames);
        // Some, in pieces and one by one.
        let some: Vec<u64> = frames.iter().copied().step_by(7).collect();
        assert_eq!(flags.anonymous(&some).unwrap(), some);
        assert!(flags.anonymous(&[u64::MAX >> 20]).unwrap().is_empty());
        drop(area);
        // Others may have a few by now.
        assert!(flags.anonymous(&frames).unwrap().len() < 500);
    }

    #[test]
    fn what_has_frames_is_found_wherever_it_lies() {
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        (8..16).chain([40]).for_each(|page| area.set_word(page, 0, 1));
        let mut found = Vec::new();
        let seen = Pagemap::own().unwrap().present(|span| {
            found.extend(
                (span.start..span.end())
                    .step_by(PAGE)
                    .filter(|page| area.span().contains(*page)),
            );
            true
        });
        if let Err(error) = seen {
            assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
            return harness::not_in_this_kernel((6, 7), "the kernel cannot scan a page map");
        }
        let pages: Vec<usize> = found.iter().map(|page| (page - area.start()) / PAGE).collect();
        assert_eq!(pages, (8..16).chain([40]).collect::<Vec<_>>());
    }

    #[test]
    fn huge_pages_are_seen_where_the_kernel_tells() {
        let area = Area::map(2 * HUGE, Size::Huge).unwrap();
        area.set_word(600, 0, 1);
        let huge = match Pagemap::own().unwrap().huge(area.span()) {
            Ok(huge) => huge,
            Err(error) => return harness::not_in_this_kernel((6, 7), format_args!("PAGEMAP_SCAN: {error}")),
        };
        assert!(huge[..512].iter().all(|huge| !huge));
        // All of it or nothing, as the kernel had a huge page at hand or not.
        assert!(huge[512..].iter().all(|&at| at == huge[600]));
        let small = Area::map(HUGE, Size::Small).unwrap();
        small.set_word(0, 0, 1);
        assert!(!Pagemap::own().unwrap().huge(small.span()).unwrap().contains(&true));
    }
}
