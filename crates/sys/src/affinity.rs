//! Which cpus a thread may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The calling thread, and what it starts, kept on one cpu; dropping this gives back the cpus there were.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: CpuSet,
}

/// Keeps the calling thread on the last cpu that it may run on: the first ones get most interrupts.
///
/// Ensures: `None`, and nothing changed, where the kernel refuses.
pub fn pin_to_last() -> Option<Pinned> {
    let before = sched_getaffinity(None).ok()?;
    let cpu = (0..CpuSet::MAX_CPU).rev().find(|&cpu| before.is_set(cpu))?;
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).ok()?;
    Some(Pinned { cpu, before })
}

impl Pinned {
    pub fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A cpu that went away meanwhile leaves the thread where it is.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// The kernel's number of the calling thread.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// The cpus that a thread may run on, lowest first; `None` is the calling one, else the kernel's number of any
/// thread.
///
/// Errors: ESRCH where there is no such thread.
pub fn allowed(thread: Option<u32>) -> std::io::Result<Vec<u32>> {
    let thread = match thread {
        None => None,
        Some(number) => {
            let raw = i32::try_from(number).ok().and_then(rustix::thread::Pid::from_raw);
            Some(raw.ok_or_else(|| std::io::Error::from(rustix::io::Errno::SRCH))?)
        }
    };
    let set = sched_getaffinity(thread)?;
    Ok((0..CpuSet::MAX_CPU as u32)
        .filter(|&cpu| set.is_set(cpu as usize))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_by_its_number() {
        assert_eq!(allowed(None).unwrap(), allowed(Some(this_thread())).unwrap());
        let error = allowed(Some(u32::MAX)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn a_pin_holds_until_it_is_dropped() {
        let allowed = || {
            let set = sched_getaffinity(None).unwrap();
            (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect::<Vec<_>>()
        };
        let before = allowed();
        let pinned = pin_to_last().unwrap();
        assert_eq!(allowed(), [pinned.cpu()]);
        assert_eq!(Some(&pinned.cpu()), before.last());
        drop(pinned);
        assert_eq!(allowed(), before);
    }
}
