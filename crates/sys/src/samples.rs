//! Page faults as they happen, each with its address, thread and cpu: sampled by `perf_event_open(2)`, for all processes.
//!
//! One ring of memory for each cpu, which the kernel fills and we empty. What comes while a ring is full is lost, and counted.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::PAGE;
use crate::perf::{Attributes, open};

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub process: u32,
    pub thread: u32,
    pub cpu: u32,
    pub address: usize,
}

/// The rings of some cpus.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
}

impl Sampler {
    /// Begins to sample every page fault on these cpus. A cpu that is not there is passed over.
    ///
    /// Errors: EACCES or EPERM without CAP_PERFMON (`kernel.perf_event_paranoid`); EPERM, too, where the rings are more memory
    /// than may be locked; ENOSYS; none of the cpus is there.
    pub fn page_faults(cpus: &[u32]) -> io::Result<Sampler> {
        let mut rings = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            match Ring::open(cpu) {
                Ok(ring) => rings.push(ring),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        if rings.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Sampler { rings })
    }

    /// Hands on all that was sampled since the last time, each cpu's in its order. Returns how many were lost.
    pub fn take(&mut self, mut each: impl FnMut(Sample)) -> u64 {
        self.rings.iter_mut().map(|ring| ring.take(&mut each)).sum()
    }
}

/// Bytes of a ring behind its first page: a power of two, for 32 768 faults.
const RING: usize = 1 << 20;

#[derive(Debug)]
struct Ring {
    start: usize,
    _event: File,
}

impl Ring {
    fn open(cpu: u32) -> io::Result<Ring> {
        const SOFTWARE: u32 = 1;
        const PAGE_FAULTS: u64 = 2;
        const THREAD: u64 = 1 << 1;
        const ADDRESS: u64 = 1 << 3;
        const CPU: u64 = 1 << 7;
        let mut attributes = Attributes::new(SOFTWARE, PAGE_FAULTS);
        attributes.period = 1;
        attributes.sample = THREAD | ADDRESS | CPU;
        // Nobody is to be woken: it is emptied at intervals.
        attributes.wakeup = u32::MAX;
        let event = open(&attributes, -1, i32::try_from(cpu).unwrap_or(i32::MAX))?;
        // SAFETY: a mapping wherever the kernel has room, of a descriptor that is open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE + RING,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            start: start as usize,
            _event: event,
        })
    }

    /// A word of the first page, `struct perf_event_mmap_page`.
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: aligned, within the first page of a mapping that lives as long as this; the kernel writes it, too, a word at
        // a time.
        unsafe { AtomicU64::from_ptr((self.start + offset) as *mut u64) }
    }

    /// Words of the ring at a position that only grows. They are written by the kernel before it moves the head past them.
    fn read(&self, position: u64) -> u64 {
        let at = PAGE + (position as usize & (RING - 1));
        // SAFETY: aligned, for records are of whole words, and within the mapping.
        unsafe { ((self.start + at) as *const u64).read_volatile() }
    }

    fn take(&mut self, each: &mut impl FnMut(Sample)) -> u64 {
        const HEAD: usize = 1024;
        const TAIL: usize = 1032;
        const LOST: u64 = 2;
        const SAMPLE: u64 = 9;
        let head = self.word(HEAD).load(Ordering::Acquire);
        let mut at = self.word(TAIL).load(Ordering::Relaxed);
        let mut lost = 0;
        while at < head {
            let header = self.read(at);
            let (kind, bytes) = (header & 0xffff_ffff, header >> 48);
            // A record is never empty: a ring that says so is not read on.
            if bytes < 8 {
                at = head;
                break;
            }
            match kind {
                SAMPLE if bytes >= 32 => {
                    let (who, address, cpu) = (self.read(at + 8), self.read(at + 16), self.read(at + 24));
                    each(Sample {
                        process: who as u32,
                        thread: (who >> 32) as u32,
                        cpu: cpu as u32,
                        address: address as usize,
                    });
                }
                LOST if bytes >= 24 => lost += self.read(at + 16),
                _ => {}
            }
            at += bytes;
        }
        self.word(TAIL).store(at, Ordering::Release);
        lost
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made for this, to which nothing else refers.
        unsafe { libc::munmap(self.start as *mut libc::c_void, PAGE + RING) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Area, Size};

    #[test]
    fn a_fault_is_told_with_who_and_where_and_what_is_too_much_is_lost_and_counted() {
        let pinned = crate::affinity::pin_here().unwrap();
        let cpu = pinned.cpu() as u32;
        let mut sampler = match Sampler::page_faults(&[cpu]) {
            Ok(sampler) => sampler,
            Err(error) => return skips::not_here(format_args!("page faults cannot be sampled: {error}")),
        };
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        let me = (std::process::id(), crate::affinity::this_thread());
        let mine = |sampler: &mut Sampler, area: &Area| {
            let mut found = Vec::new();
            let lost = sampler.take(|sample| {
                if area.span().contains(sample.address) {
                    assert_eq!((sample.process, sample.thread, sample.cpu), (me.0, me.1, cpu));
                    found.push((sample.address - area.start()) / PAGE);
                }
            });
            (found, lost)
        };
        [9, 5, 60].into_iter().for_each(|page| area.set_word(page, 0, 1));
        assert_eq!(mine(&mut sampler, &area).0, [9, 5, 60]);
        // Once a page is there it faults no more.
        [9, 5, 61].into_iter().for_each(|page| area.set_word(page, 0, 2));
        assert_eq!(mine(&mut sampler, &area).0, [61]);
        // More than a ring takes, over its end and around.
        let area = Area::map(40_000 * PAGE, Size::Small).unwrap();
        (0..40_000).for_each(|page| area.set_word(page, 0, 1));
        let (found, _) = mine(&mut sampler, &area);
        assert!(found.len() > 20_000 && found.len() < 40_000, "{}", found.len());
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
        // That some were lost is said with the next one that finds room.
        let last = Area::map(PAGE, Size::Small).unwrap();
        last.set_word(0, 0, 1);
        let (found, lost) = mine(&mut sampler, &last);
        assert!(found == [0] && lost > 0, "{lost}");
    }
}
