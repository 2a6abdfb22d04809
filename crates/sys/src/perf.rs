//! Whether this process may count what its own processor does (`perf_event_open(2)`).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

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

/// `struct perf_event_attr`, as long as its first version was.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    more: u64,
}

const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

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
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        period: 0,
        sample: 0,
        read_format: 0,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        wakeup: 0,
        breakpoint: 0,
        more: 0,
    };
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    // SAFETY: the structure lives and is as long as it says; this thread, any cpu, no group.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that the kernel has just given us.
    let mut file = unsafe { File::from_raw_fd(fd as i32) };
    let mut read = || {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
    };
    let before = read()?;
    work();
    Ok(read()? - before)
}

const _: () = assert!(size_of::<Attributes>() == 64);

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
