//! Whether this process may count what its own processor does (`perf_event_open(2)`).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions, by the processor's counters.
    Instructions,
    /// Misses of the last cache, by the processor's counters.
    CacheMisses,
    /// Page faults, by the kernel.
    PageFaults,
}

/// `struct perf_event_attr`, as long as its second version was.
#[repr(C)]
pub(crate) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    pub period: u64,
    pub sample: u64,
    read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    breakpoint: u32,
    pub config1: u64,
    pub config2: u64,
}

const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

impl Attributes {
    pub fn new(kind: u32, config: u64) -> Attributes {
        Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            period: 0,
            sample: 0,
            read_format: 0,
            flags: 0,
            wakeup: 0,
            breakpoint: 0,
            config1: 0,
            config2: 0,
        }
    }
}

/// Opens an event by itself, of this thread (0) or all (-1), on one cpu or any (-1).
pub(crate) fn open(attributes: &Attributes, thread: i32, cpu: i32) -> io::Result<File> {
    open_beside(attributes, thread, cpu, None)
}

/// The same in the group of another event.
pub(crate) fn open_beside(attributes: &Attributes, thread: i32, cpu: i32, leader: Option<&File>) -> io::Result<File> {
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the structure lives and is as long as it says; the leader's descriptor is open.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            thread,
            cpu,
            leader,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just given us.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// Counts while this thread runs `work`, in user mode only.
///
/// Errors: EACCES or EPERM where the kernel's paranoia forbids it, ENOENT or EOPNOTSUPP where the
/// processor has no such counter, or its hypervisor hides it; ENOSYS.
pub fn count(event: Event, work: impl FnOnce()) -> io::Result<u64> {
    let (kind, config) = match event {
        Event::Instructions => (0, 1),
        Event::CacheMisses => (0, 3),
        Event::PageFaults => (1, 2),
    };
    let mut attributes = Attributes::new(kind, config);
    attributes.flags = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
    let mut file = open(&attributes, 0, -1)?;
    let mut read = || {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
    };
    let before = read()?;
    work();
    Ok(read()? - before)
}

const _: () = assert!(size_of::<Attributes>() == 72);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_was_done() {
        let pages = 64;
        let touch = || {
            let area = crate::memory::Area::map(pages * 4096, crate::memory::Size::Small).unwrap();
            for page in 0..pages {
                area.set_word(page, 0, 1);
            }
        };
        // Not every machine lets us count.
        if let Ok(faults) = count(Event::PageFaults, touch) {
            assert!(faults >= pages as u64, "{faults}");
        }
        let spin = || {
            for step in 0..1000u64 {
                std::hint::black_box(step);
            }
        };
        if let Ok(instructions) = count(Event::Instructions, spin) {
            assert!(instructions >= 1000, "{instructions}");
        }
    }
}
