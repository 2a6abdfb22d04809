//! Waiting for any of many descriptors at once, at a cost that does not grow with their number.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

/// A set of watched descriptors. A descriptor leaves it when it is closed, or by [`Ready::forget`].
pub struct Ready {
    set: OwnedFd,
}

/// The condition waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Something to read, or the end.
    Read,
    /// Room to write, or the end.
    Write,
    /// An event of a file of `/proc/pressure`.
    Event,
}

impl Ready {
    pub fn new() -> io::Result<Ready> {
        Ok(Ready {
            set: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Raises this process's limit of open descriptors to `wanted`, or as far as it may; returns the new limit.
    pub fn room_for(wanted: u64) -> u32 {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let may = wanted.min(limit.maximum.unwrap_or(u64::MAX));
        let mut now = limit.current.unwrap_or(u64::MAX);
        let raised = Rlimit {
            current: Some(may),
            ..limit
        };
        if now < may && setrlimit(Resource::Nofile, raised).is_ok() {
            now = may;
        }
        u32::try_from(now).unwrap_or(u32::MAX)
    }

    /// Watches `source`, which is called `name` from now on. [`wait`](Ready::wait) reports it again and again for as
    /// long as it lasts.
    pub fn watch(&self, source: &impl AsFd, name: u64, wanted: Wanted) -> io::Result<()> {
        Ok(epoll::add(
            &self.set,
            source,
            epoll::EventData::new_u64(name),
            flags(wanted),
        )?)
    }

    /// Waits for something else of a source that is watched.
    pub fn change(&self, source: &impl AsFd, name: u64, wanted: Wanted) -> io::Result<()> {
        Ok(epoll::modify(
            &self.set,
            source,
            epoll::EventData::new_u64(name),
            flags(wanted),
        )?)
    }

    /// Stops watching it.
    pub fn forget(&self, source: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.set, source)?)
    }

    /// Replaces the content of `names` by the names of ready sources, 256 at most. Waits until there is one,
    /// for `most`, or until a signal comes.
    pub fn wait(&self, most: Duration, names: &mut Vec<u64>) -> io::Result<()> {
        names.clear();
        let most = Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        let mut space = [MaybeUninit::uninit(); 256];
        match epoll::wait(&self.set, &mut space, Some(&most)) {
            Ok((events, _)) => names.extend(events.iter().map(|event| event.data.u64())),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// A bell that one thread rings and another one waits for: it is readable from the first ring until it is silenced.
pub struct Bell {
    counter: OwnedFd,
}

impl Bell {
    pub fn new() -> io::Result<Bell> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Bell {
            counter: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub fn ring(&self) {
        // The only error is that it has rung 2^64 times, and it rings.
        let _ = rustix::io::write(&self.counter, &1u64.to_ne_bytes());
    }

    pub fn silence(&self) {
        // The only error is that it was silent.
        let _ = rustix::io::read(&self.counter, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}

fn flags(wanted: Wanted) -> epoll::EventFlags {
    match wanted {
        Wanted::Read => epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
        Wanted::Write => epoll::EventFlags::OUT,
        Wanted::Event => epoll::EventFlags::PRI,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn tells_only_what_is_ready() {
        let ready = Ready::new().unwrap();
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        for (name, (near, _)) in pairs.iter().enumerate() {
            ready.watch(near, name as u64, Wanted::Read).unwrap();
        }
        let mut names = vec![99];
        ready.wait(Duration::ZERO, &mut names).unwrap();
        assert!(names.is_empty());
        (&pairs[1].1).write_all(b"x").unwrap();
        ready.wait(Duration::from_secs(60), &mut names).unwrap();
        assert_eq!(names, [1]);
        ready.forget(&pairs[1].0).unwrap();
        assert!(Ready::room_for(8) >= 8);
        ready.change(&pairs[2].0, 7, Wanted::Write).unwrap();
        ready.wait(Duration::from_secs(60), &mut names).unwrap();
        assert_eq!(names, [7]);
    }

    #[test]
    fn a_bell_rings_until_it_is_silenced() {
        let bell = Bell::new().unwrap();
        let rings = || crate::packet::wait(&[bell.as_fd()], 0).unwrap()[0];
        assert!(!rings());
        bell.silence();
        bell.ring();
        bell.ring();
        assert!(rings());
        bell.silence();
        assert!(!rings());
    }
}
