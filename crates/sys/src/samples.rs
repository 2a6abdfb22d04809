//! Accesses to memory as they happen, each with its address, thread and cpu: sampled by `perf_event_open(2)`, for all processes.
//!
//! An [`Event`] is sampled: page faults, which every kernel has, or accesses that the processor itself samples (IBS of
//! AMD, PEBS of Intel). The records have one form, and one reader. Each cpu has one ring of memory, which the kernel
//! fills and we empty. Samples that arrive while a ring is full are lost, and counted.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::PAGE;
use crate::perf::{Attributes, open, open_beside};
use crate::perf_devices::Fields;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub process: u32,
    pub thread: u32,
    pub cpu: u32,
    pub address: usize,
    pub access: Access,
}

/// The details of an access besides its address, `union perf_mem_data_src`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// `None` if it is not reported, or if it was neither.
    pub write: Option<bool>,
    /// True if all of this cpu's caches missed, so that memory or another socket's cache served it. `None` if
    /// not reported.
    pub missed: Option<bool>,
}

impl Access {
    fn decoded(source: u64) -> Access {
        const LOAD: u64 = 1 << 1;
        const STORE: u64 = 1 << 2;
        let operation = source & 0x1f;
        let write = match (operation & LOAD != 0, operation & STORE != 0) {
            (_, true) => Some(true),
            (true, false) => Some(false),
            (false, false) => None,
        };
        Access {
            write,
            missed: missed(source),
        }
    }
}

/// Decodes the newer fields, the level's number and the remote flag, if the kernel fills them; else the older one, bits
/// of levels.
fn missed(source: u64) -> Option<bool> {
    const UNKNOWN: u64 = 1;
    const CACHES: u64 = 0b1111 << 3;
    const MEMORY: u64 = 0b111 << 7;
    const OTHER_CACHES: u64 = 0b11 << 10;
    let (number, remote) = (source >> 33 & 0xf, source >> 37 & 1 == 1);
    let by_number = match number {
        // L1 to L4, caches beside them, buffers of lines on their way.
        1..=5 | 0xc => Some(remote),
        // Caches beside memory, CXL, any memory, persistent memory.
        6 | 9 | 0xd | 0xe => Some(true),
        // Another cpu's cache.
        0xb => Some(remote),
        _ => None,
    };
    let levels = source >> 5 & 0x3fff;
    by_number.or(match levels {
        0 | UNKNOWN => None,
        _ if levels & (MEMORY | OTHER_CACHES) != 0 => Some(true),
        _ if levels & CACHES != 0 => Some(false),
        _ => None,
    })
}

/// The sampled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The number of the device that counts it ([`crate::perf_devices::kind`]).
    pub kind: u32,
    pub fields: Fields,
    /// One event in so many is sampled.
    pub one_in: u64,
    /// How exact the address of the instruction must be: 0 to 3. PEBS takes 2.
    pub exact: u8,
    /// An event that must be counted in the same group, before it.
    pub beside: Option<Fields>,
}

impl Event {
    /// Every page fault.
    pub const PAGE_FAULTS: Event = Event {
        kind: 1,
        fields: Fields {
            config: 2,
            config1: 0,
            config2: 0,
        },
        one_in: 1,
        exact: 0,
        beside: None,
    };

    fn attributes(&self) -> Attributes {
        const THREAD: u64 = 1 << 1;
        const ADDRESS: u64 = 1 << 3;
        const CPU: u64 = 1 << 7;
        const DATA_SOURCE: u64 = 1 << 15;
        const EXACT: u32 = 15;
        let mut attributes = Attributes::new(self.kind, self.fields.config);
        attributes.config1 = self.fields.config1;
        attributes.config2 = self.fields.config2;
        attributes.period = self.one_in;
        attributes.sample = THREAD | ADDRESS | CPU | DATA_SOURCE;
        attributes.flags = u64::from(self.exact & 3) << EXACT;
        // No thread needs a wake-up: the ring is emptied at intervals.
        attributes.wakeup = u32::MAX;
        attributes
    }
}

/// The rings of some cpus.
#[derive(Debug)]
pub struct Sampler {
    rings: Vec<Ring>,
}

impl Sampler {
    /// Begins to sample on these cpus. A missing cpu is skipped.
    ///
    /// Errors: EACCES or EPERM without CAP_PERFMON (`kernel.perf_event_paranoid`); EPERM, too, where the rings are more memory
    /// than may be locked; ENOENT, EINVAL or EOPNOTSUPP if the processor has no such event; ENOSYS; none of the cpus is there.
    pub fn open(event: &Event, cpus: &[u32]) -> io::Result<Sampler> {
        let mut rings = Vec::with_capacity(cpus.len());
        for &cpu in cpus {
            match Ring::open(event, cpu) {
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

/// Bytes of a ring behind its first page: a power of two, for some 26 000 samples.
const RING: usize = 1 << 20;

#[derive(Debug)]
struct Ring {
    start: usize,
    _event: File,
    _beside: Option<File>,
}

impl Ring {
    fn open(event: &Event, cpu: u32) -> io::Result<Ring> {
        let attributes = event.attributes();
        let cpu = i32::try_from(cpu).unwrap_or(i32::MAX);
        let beside = event.beside.map(|fields| {
            let mut attributes = Attributes::new(event.kind, fields.config);
            attributes.config1 = fields.config1;
            attributes.config2 = fields.config2;
            open(&attributes, -1, cpu)
        });
        let beside = beside.transpose()?;
        let event = open_beside(&attributes, -1, cpu, beside.as_ref())?;
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
            _beside: beside,
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
            // A record is never empty: a ring with an empty one is not read on.
            if bytes < 8 {
                at = head;
                break;
            }
            match kind {
                SAMPLE if bytes >= 40 => {
                    let (who, address, cpu) = (self.read(at + 8), self.read(at + 16), self.read(at + 24));
                    let access = Access::decoded(self.read(at + 32));
                    each(Sample {
                        process: who as u32,
                        thread: (who >> 32) as u32,
                        cpu: cpu as u32,
                        address: address as usize,
                        access,
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
    fn what_a_processor_tells_of_an_access_is_read() {
        let of = |operation: u64, levels: u64, number: u64, remote: u64| {
            let access = Access::decoded(operation | levels << 5 | number << 33 | remote << 37);
            (access.write, access.missed)
        };
        // PEBS's words: L1, L3, local memory, another socket's cache; a store to memory.
        assert_eq!(of(2, 0x0a, 1, 0), (Some(false), Some(false)));
        assert_eq!(of(2, 0x42, 3, 0), (Some(false), Some(false)));
        assert_eq!(of(2, 0x82, 0xd, 0), (Some(false), Some(true)));
        assert_eq!(of(2, 0x802, 0xb, 1), (Some(false), Some(true)));
        assert_eq!(of(4, 0x82, 0, 0), (Some(true), Some(true)));
        // IBS's words: levels alone, or the number alone.
        assert_eq!(of(2, 0x202, 0, 0), (Some(false), Some(true)));
        assert_eq!(of(2, 0, 0xb, 0), (Some(false), Some(false)));
        assert_eq!(of(2, 0, 9, 0), (Some(false), Some(true)));
        // Unknown: no access to memory, uncached.
        assert_eq!(of(1, 1, 0xf, 0), (None, None));
        assert_eq!(of(2, 0x2002, 8, 0), (Some(false), None));
    }

    #[test]
    fn a_processor_that_samples_nothing_is_found_out() {
        let none = Event {
            kind: u32::MAX,
            ..Event::PAGE_FAULTS
        };
        assert!(Sampler::open(&none, &[0]).is_err());
    }

    #[test]
    fn a_fault_is_told_with_who_and_where_and_what_is_too_much_is_lost_and_counted() {
        let pinned = crate::affinity::pin_here().unwrap();
        let cpu = pinned.cpu() as u32;
        let mut sampler = match Sampler::open(&Event::PAGE_FAULTS, &[cpu]) {
            Ok(sampler) => sampler,
            Err(error) => return harness::not_here(format_args!("page faults cannot be sampled: {error}")),
        };
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        let me = (std::process::id(), crate::affinity::this_thread());
        let mine = |sampler: &mut Sampler, area: &Area| {
            let mut found = Vec::new();
            let lost = sampler.take(|sample| {
                if area.span().contains(sample.address) {
                    assert_eq!((sample.process, sample.thread, sample.cpu), (me.0, me.1, cpu));
                    // The kernel says of a fault that it knows neither.
                    assert_eq!((sample.access.write, sample.access.missed), (None, None));
                    found.push((sample.address - area.start()) / PAGE);
                }
            });
            (found, lost)
        };
        [9, 5, 60].into_iter().for_each(|page| area.set_word(page, 0, 1));
        assert_eq!(mine(&mut sampler, &area).0, [9, 5, 60]);
        // A present page no longer faults.
        [9, 5, 61].into_iter().for_each(|page| area.set_word(page, 0, 2));
        assert_eq!(mine(&mut sampler, &area).0, [61]);
        // More than a ring takes, over its end and around.
        let area = Area::map(40_000 * PAGE, Size::Small).unwrap();
        (0..40_000).for_each(|page| area.set_word(page, 0, 1));
        let (found, _) = mine(&mut sampler, &area);
        assert!(found.len() > 15_000 && found.len() < 40_000, "{}", found.len());
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
        // The next sample that finds room reports the loss of others.
        let last = Area::map(PAGE, Size::Small).unwrap();
        last.set_word(0, 0, 1);
        let (found, lost) = mine(&mut sampler, &last);
        assert!(found == [0] && lost > 0, "{lost}");
    }
}
