//! Which cpus a thread may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The calling thread, and what it starts, kept on one cpu; dropping this gives back the cpus there were.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: CpuSet,
}

/// Keeps the calling thread on the cpu where it runs now.
///
/// Ensures: `None`, and nothing changed, where the kernel refuses.
pub fn pin_here() -> Option<Pinned> {
    let before = sched_getaffinity(None).ok()?;
    let cpu = rustix::thread::sched_getcpu();
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).ok()?;
    Some(Pinned { cpu, before })
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let here = pin_here().unwrap();
        assert_eq!(allowed(), [here.cpu()]);
        drop(here);
        assert_eq!(allowed(), before);
    }
}
