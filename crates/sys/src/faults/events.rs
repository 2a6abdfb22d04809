//! The events that a userfaultfd reports.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Faults;
use crate::kept::Kept;
use crate::memory::Span;

/// A change of a span.
#[derive(Debug)]
pub enum Event {
    /// A thread waits for the page at this address.
    Missing(usize),
    /// The process was copied, by any call. In the child the same spans are registered with this userfaultfd, and
    /// absent pages can be filled there: a [`copy`](Faults::copy) reads here and writes into the child. If it is
    /// dropped, the child goes on with the pages that it has.
    Forked(Faults),
    /// `mremap` took pages elsewhere.
    Moved { from: usize, to: usize, bytes: usize },
    /// `madvise` gives these pages up; it waits until this is read and empties them afterwards.
    Emptied(Span),
    /// They are no longer mapped.
    Unmapped(Span),
    /// An event that was not asked for.
    Other(u8),
}

/// `struct uffd_msg`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    arguments: [u64; 3],
}

impl Faults {
    /// The next event, if there is one. Does not wait.
    pub fn event(&self) -> io::Result<Option<Event>> {
        // If the descriptor now names another file, its data is not ours to read.
        let fd = self.fd.get()?;
        let mut message = Message::default();
        // SAFETY: room for one message, and the kernel writes whole ones of plain numbers.
        let got = unsafe { libc::read(fd.as_raw_fd(), (&raw mut message).cast(), size_of::<Message>()) };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let [a, b, c] = message.arguments.map(|number| number as usize);
        let span = Span::new(a, b.saturating_sub(a));
        Ok(Some(match message.event {
            0x12 => Event::Missing(b),
            // SAFETY: a descriptor that the kernel has just given us.
            0x13 => Event::Forked(self.in_child(unsafe { OwnedFd::from_raw_fd(message.arguments[0] as u32 as i32) })?),
            0x14 => Event::Moved {
                from: a,
                to: b,
                bytes: c,
            },
            0x15 => Event::Emptied(span),
            0x16 => Event::Unmapped(span),
            other => Event::Other(other),
        }))
    }

    fn in_child(&self, fd: OwnedFd) -> io::Result<Faults> {
        let (scope, door, offered, forks) = (self.scope, self.door, self.offered, self.forks);
        let fd = Kept::new(fd)?;
        Ok(Faults {
            fd,
            scope,
            door,
            offered,
            forks,
        })
    }
}
