//! The cpus that a thread may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The calling thread, and its children, kept on one cpu; dropping this gives back the cpus there were.
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

/// The cpu that the calling thread is on, at the moment.
#[inline]
pub fn here() -> usize {
    // The C library's call: it reads the number that the kernel keeps in the thread's own memory (rseq),
    // without a system call.
    // SAFETY: the call takes nothing and changes nothing.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).unwrap_or(0)
}

/// Keeps the calling thread on the cpu that it is on.
///
/// Ensures: `None`, and nothing changed, where the kernel refuses.
pub fn pin_here() -> Option<Pinned> {
    let before = sched_getaffinity(None).ok()?;
    let cpu = here();
    let mut one = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU || !before.is_set(cpu) {
        return None;
    }
    one.set(cpu);
    sched_setaffinity(None, &one).ok()?;
    // The thread may have been moved between the question and the answer; now it is there.
    Some(Pinned { cpu, before })
}

/// A thread that goes from cpu to cpu as it is asked to.
#[derive(Debug)]
pub struct Wanderer {
    home: CpuSet,
    at: Option<usize>,
}

impl Wanderer {
    /// Wraps the calling thread, which keeps its current cpus whenever it is not sent elsewhere.
    pub fn new() -> std::io::Result<Wanderer> {
        Ok(Wanderer {
            home: sched_getaffinity(None)?,
            at: None,
        })
    }

    /// Returns whether the thread may go there.
    pub fn may(&self, cpu: usize) -> bool {
        cpu < CpuSet::MAX_CPU && self.home.is_set(cpu)
    }

    /// Takes the calling thread, which made this, to a cpu. Ensures: it runs there when this returns.
    pub fn go(&mut self, cpu: usize) -> std::io::Result<()> {
        if self.at == Some(cpu) {
            return Ok(());
        }
        if !self.may(cpu) {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one)?;
        self.at = Some(cpu);
        Ok(())
    }

    /// Lets it run anywhere again.
    pub fn rest(&mut self) {
        if self.at.take().is_some() {
            // A cpu that went away meanwhile leaves the thread where it is.
            let _ = sched_setaffinity(None, &self.home);
        }
    }
}

/// The cpus that a thread may run on, for another thread: one that is started may run where the one that starts it may
/// at that moment.
#[derive(Clone, Copy, Debug)]
pub struct Home(CpuSet);

impl Home {
    /// The calling thread's.
    pub fn here() -> std::io::Result<Home> {
        Ok(Home(sched_getaffinity(None)?))
    }

    /// Lets the calling thread run there, and nowhere else. If the kernel refuses, the thread stays where
    /// it is.
    pub fn take(&self) {
        let _ = sched_setaffinity(None, &self.0);
    }
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
/// Errors: ESRCH if there is no such thread.
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

/// Lets a thread run on these cpus, and nowhere else; `None` is the calling one.
///
/// Errors: ESRCH if there is no such thread, EPERM if it is another user's, EINVAL if its cpuset has none of the cpus.
pub fn allow(thread: Option<u32>, cpus: &[u32]) -> std::io::Result<()> {
    let raw = |thread| i32::try_from(thread).ok().and_then(rustix::thread::Pid::from_raw);
    let thread = match thread {
        None => None,
        Some(thread) => Some(raw(thread).ok_or_else(|| std::io::Error::from(rustix::io::Errno::SRCH))?),
    };
    let mut set = CpuSet::new();
    // The type has room for as many cpus as most kernels are built for.
    let known = cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU);
    known.for_each(|&cpu| set.set(cpu as usize));
    Ok(sched_setaffinity(thread, &set)?)
}

/// The calling thread gets the cpu sooner when it wakes, and for shorter; dropping this restores the earlier
/// setting.
///
/// Fair scheduling gives each thread the same share. A thread that asks for shorter turns gets them sooner, which
/// matters if two threads do a piece of work in turns.
#[derive(Debug)]
pub struct Brisk {
    before: Attributes,
}

/// `struct sched_attr` of Linux in its first form.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Shortest turn that the kernel grants, in nanoseconds.
const TURN: u64 = 100_000;

/// Asks for the shortest turns there are, without any privilege.
///
/// Needs: Linux 6.12. Ensures: `None`, and nothing changed, where it is older, or the thread is not scheduled as usual.
pub fn brisk() -> Option<Brisk> {
    let mut before = Attributes::default();
    let bytes = size_of::<Attributes>() as u32;
    // SAFETY: the kernel writes at most `bytes` to `before`, which has as many and may hold any bits.
    let asked = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut before, bytes, 0) };
    if asked != 0 || before.policy != libc::SCHED_OTHER as u32 {
        return None;
    }
    let wish = Attributes {
        runtime: TURN,
        ..before
    };
    set(&wish).then_some(Brisk { before })
}

fn set(wish: &Attributes) -> bool {
    let wish = Attributes {
        size: size_of::<Attributes>() as u32,
        ..*wish
    };
    // SAFETY: the kernel reads `size` bytes, which are there, and changes how this thread is scheduled only.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) == 0 }
}

impl Drop for Brisk {
    fn drop(&mut self) {
        set(&self.before);
    }
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
    fn another_thread_is_sent_elsewhere_and_back() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let before = allowed(Some(child.id())).unwrap();
        allow(Some(child.id()), &before[..1]).unwrap();
        assert_eq!(allowed(Some(child.id())).unwrap(), before[..1]);
        allow(Some(child.id()), &before).unwrap();
        assert_eq!(allowed(Some(child.id())).unwrap(), before);
        assert_eq!(
            allow(Some(child.id()), &[]).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(allow(Some(u32::MAX), &before).is_err());
    }

    #[test]
    fn short_turns_are_given_back() {
        let now = || {
            let mut attributes = Attributes::default();
            let bytes = size_of::<Attributes>() as u32;
            // SAFETY: as above.
            assert_eq!(0, unsafe {
                libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, bytes, 0)
            });
            (attributes.policy, attributes.nice, attributes.runtime)
        };
        let before = now();
        let Some(brisk) = brisk() else {
            return harness::not_here("the scheduler has no turns to choose");
        };
        let (policy, nice, runtime) = now();
        assert_eq!((policy, nice), (before.0, before.1));
        assert!(runtime == TURN || runtime == before.2);
        drop(brisk);
        assert_eq!(now(), before);
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
        let pinned = pin_here().unwrap();
        assert_eq!(allowed(), [pinned.cpu()]);
        drop(pinned);
        let home = Home::here().unwrap();
        let pinned = pin_here().unwrap();
        std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                let at_first = allowed();
                home.take();
                (at_first, allowed())
            });
            assert_eq!(started.join().unwrap(), (vec![pinned.cpu()], before.clone()));
        });
        drop(pinned);
        let mut wanderer = Wanderer::new().unwrap();
        for &cpu in &before {
            assert!(wanderer.may(cpu));
            wanderer.go(cpu).unwrap();
            assert_eq!(rustix::thread::sched_getcpu(), cpu);
        }
        assert!(wanderer.go(CpuSet::MAX_CPU).is_err());
        wanderer.rest();
        assert_eq!(allowed(), before);
    }
}
