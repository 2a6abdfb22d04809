//! Which frames stand behind pages: `/proc/PID/pagemap`, read in bulk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::ioctl::{Opcode, opcode};

use crate::kept::Kept;
use crate::memory::{PAGE, Span};

/// What the kernel tells of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Whether the page has a frame.
    pub fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Whether its content lies in swap.
    pub fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    /// Whether it belongs to a file or to shared memory.
    pub fn of_file(self) -> bool {
        self.0 >> 61 & 1 == 1
    }

    /// Whether no other mapping has this frame.
    pub fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }

    /// The frame's number (physical address / 4096); `None` where the page has none, or where the
    /// kernel hides the numbers, which it does by telling 0 to whoever lacks CAP_SYS_ADMIN. Frame 0
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

    /// Another process's, for those who may trace it.
    pub fn of(process: u32) -> io::Result<Pagemap> {
        Ok(Pagemap {
            file: Kept::file(File::open(format!("/proc/{process}/pagemap"))?)?,
        })
    }

    /// Fills `entries` with those of the pages from address `start` on.
    ///
    /// Pre: `start` is the address of a page. Pages where nothing is mapped come out as absent;
    /// beyond the highest address of a process, and for a process that is gone, so do the rest.
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

    /// Whether it is still open: the program may have closed it without knowing.
    pub fn is_ours(&self) -> bool {
        self.file.is_ours()
    }

    /// Whether the address space that this was opened for is still there: it ends with its last process, or an exec.
    ///
    /// Ensures: waits for nobody, whatever the process does to its address space.
    pub fn lives(&self) -> bool {
        // Less than an entry is refused, and only where there is an address space: the kernel looks for it first, and
        // takes its lock later (fs/proc/task_mmu.c, pagemap_read).
        self.file.get().is_ok_and(|file| rustix::io::pread(file, &mut [0u8; 4], 0).is_err())
    }

    /// The entries of all pages of a span.
    pub fn entries(&self, span: Span) -> io::Result<Vec<Entry>> {
        let mut entries = vec![Entry::default(); span.bytes.div_ceil(PAGE)];
        self.read(span.start, &mut entries)?;
        Ok(entries)
    }

    /// Which pages lie in transparent huge pages, a flag a page (Linux 6.7, for anybody).
    ///
    /// Errors: ENOTTY where the kernel cannot tell.
    pub fn huge(&self, span: Span) -> io::Result<Vec<bool>> {
        const HUGE: u64 = 1 << 6;
        let file = self.file.get()?;
        let mut huge = vec![false; span.bytes.div_ceil(PAGE)];
        let mut at = span.start as u64;
        while at < span.end() as u64 {
            let mut regions = [Region::default(); 64];
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end: span.end() as u64,
                regions: regions.as_mut_ptr() as u64,
                regions_len: regions.len() as u64,
                wanted: HUGE,
                told: HUGE,
                ..Scan::default()
            };
            const REQUEST: Opcode = opcode::read_write::<Scan>(b'f', 16);
            // SAFETY: the structure is what PAGEMAP_SCAN wants, and names an array that lives and
            // has that many places.
            let found = unsafe { libc::ioctl(file.as_raw_fd(), REQUEST as _, &raw mut scan) };
            let found = usize::try_from(found).map_err(|_| io::Error::last_os_error())?;
            for region in &regions[..found.min(regions.len())] {
                let page = |address: u64| (address as usize).saturating_sub(span.start) / PAGE;
                let (first, end) = (page(region.start), page(region.end).min(huge.len()));
                huge[first.min(end)..end].fill(true);
            }
            if scan.walked_to <= at {
                break;
            }
            at = scan.walked_to;
        }
        Ok(huge)
    }

    /// Whether frame numbers are shown: tried on a page of this process that has a frame.
    pub fn own_numbers_visible() -> bool {
        let here = [1u8; 8];
        let page = std::hint::black_box(&here).as_ptr() as usize / PAGE * PAGE;
        let entries = Pagemap::own().and_then(|map| map.entries(Span::new(page, PAGE)));
        entries.is_ok_and(|entries| entries[0].frame().is_some())
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
    told: u64,
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
    fn huge_pages_are_seen_where_the_kernel_tells() {
        let area = Area::map(2 * HUGE, Size::Huge).unwrap();
        area.set_word(600, 0, 1);
        let huge = match Pagemap::own().unwrap().huge(area.span()) {
            Ok(huge) => huge,
            Err(error) => return skips::not_in_this_kernel((6, 7), format_args!("PAGEMAP_SCAN: {error}")),
        };
        assert!(huge[..512].iter().all(|huge| !huge));
        // All of it or nothing, as the kernel had a huge page at hand or not.
        assert!(huge[512..].iter().all(|&at| at == huge[600]));
        let small = Area::map(HUGE, Size::Small).unwrap();
        small.set_word(0, 0, 1);
        assert!(!Pagemap::own().unwrap().huge(small.span()).unwrap().contains(&true));
    }
}
