//! Counters of the processor's and the kernel's events of a thread (`perf_event_open(2)`).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// The counted event.
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
    pub read_format: u64,
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
/// Errors: EACCES or EPERM if the kernel's paranoia forbids it, ENOENT or EOPNOTSUPP if the
/// processor has no such counter, or its hypervisor hides it; ENOSYS.
pub fn count(event: Event, work: impl FnOnce()) -> io::Result<u64> {
    // 0: the calling thread.
    let mut counter = Counter::of_thread(event, 0)?;
    let before = counter.read()?.count;
    work();
    Ok(counter.read()?.count - before)
}

/// Tries whether instructions of this process are counted.
///
/// Errors: the reason, for people.
pub fn try_instructions() -> Result<(), String> {
    let work = || {
        for step in 0..1000u64 {
            std::hint::black_box(step);
        }
    };
    match count(Event::Instructions, work) {
        Ok(0) => Err("the counter of instructions stands still; the hypervisor may hide it".to_string()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err("this user may not (kernel.perf_event_paranoid)".to_string())
        }
        Err(error) => Err(format!("there are no counters, or the hypervisor hides them ({error})")),
    }
}

/// Counts the events of one thread in user mode, whichever cpu it runs on, from the moment that this is
/// made.
#[derive(Debug)]
pub struct Counter(File);

/// A reading since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub count: u64,
    /// The thread's processor time in which it was counted: all of it, unless counters were scarce.
    pub ran_ns: u64,
}

impl Counter {
    /// Begins to count; thread 0 is the calling one.
    ///
    /// Errors: as of [`count`]; ESRCH if there is no such thread, EACCES if it is of another user, EMFILE.
    pub fn of_thread(event: Event, thread: u32) -> io::Result<Counter> {
        /// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
        const TIMES: u64 = 1 | 2;
        let (kind, config) = match event {
            Event::Instructions => (0, 1),
            Event::CacheMisses => (0, 3),
            Event::PageFaults => (1, 2),
        };
        let mut attributes = Attributes::new(kind, config);
        attributes.flags = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        attributes.read_format = TIMES;
        let thread = i32::try_from(thread).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
        open(&attributes, thread, -1).map(Counter)
    }

    pub fn read(&mut self) -> io::Result<Counted> {
        let mut words = [[0; 8]; 3];
        self.0.read_exact(words.as_flattened_mut())?;
        let [count, _, ran_ns] = words.map(u64::from_ne_bytes);
        Ok(Counted { count, ran_ns })
    }
}

const _: () = assert!(size_of::<Attributes>() == 72);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_is_counted_while_it_runs() {
        use std::sync::mpsc::channel;
        let ((tell, told), (go, wait), (done, all_done)) = (channel(), channel::<()>(), channel());
        let worker = std::thread::spawn(move || {
            tell.send(crate::affinity::this_thread()).unwrap();
            wait.recv().unwrap();
            let area = crate::memory::Area::map(64 * 4096, crate::memory::Size::Small).unwrap();
            (0..64).for_each(|page| area.set_word(page, 0, 1));
            done.send(()).unwrap();
            // The thread exists until its counter is read.
            let _ = wait.recv();
        });
        let number = told.recv().unwrap();
        let counter = Counter::of_thread(Event::PageFaults, number);
        go.send(()).unwrap();
        all_done.recv().unwrap();
        if let Ok(mut counter) = counter {
            let counted = counter.read().unwrap();
            assert!(counted.count >= 64 && counted.ran_ns > 0, "{counted:?}");
        }
        drop(go);
        worker.join().unwrap();
        assert!(Counter::of_thread(Event::PageFaults, u32::MAX).is_err());
    }

    #[test]
    fn what_is_counted_is_what_was_done() {
        let pages = 64;
        let touch = || {
            let area = crate::memory::Area::map(pages * 4096, crate::memory::Size::Small).unwrap();
            for page in 0..pages {
                area.set_word(page, 0, 1);
            }
        };
        // Some machines do not let us count.
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
