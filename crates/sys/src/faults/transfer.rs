//! Requests that move or copy many pages, one after the other until all is done.
//!
//! Pages may be in flight meanwhile: no heap, no static variable.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::ioctl::opcode;

use super::{Faults, GROUP, Progress, Stop, stop};
use crate::memory::{PAGE, Span};

/// UFFDIO_MOVE and UFFDIO_COPY alike.
#[repr(C)]
pub(super) struct Transfer {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) bytes: u64,
    pub(super) mode: u64,
    pub(super) done: i64,
}

/// EAGAIN is given up after that many times: the caller may have an event to read first.
const PATIENCE: usize = 8;

/// The side of a move that is an area of ours, whose pages nobody else touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// Pages come into it, where none was before.
    Takes,
    /// Pages leave it, all of which were there before.
    Gives,
}

impl Faults {
    /// Moves pages with their frames.
    ///
    /// Pre: before the call the pages of the area's side are absent ([`Ours::Takes`]) or there ([`Ours::Gives`]).
    pub(super) fn move_pages(&self, to: Span, from: usize, ours: Ours) -> Progress {
        let request = opcode::read_write::<Transfer>(GROUP, 0x05);
        // SAFETY: the structure is what UFFDIO_MOVE wants; the kernel checks the addresses and fills absent pages
        // only. The callers were promised what the owners expect.
        self.move_by(to, from, ours, |transfer| unsafe { self.ask(request, transfer) })
    }

    /// As [`move_pages`](Faults::move_pages); `ask` makes the request.
    ///
    /// Linux 6.18 forgets to clear an old EAGAIN: it tries a page again that it has moved, finds the place filled, and
    /// reports EEXIST. It has moved up to all pages of the request then, has counted none, and has woken nobody.
    pub(super) fn move_by(
        &self,
        to: Span,
        from: usize,
        ours: Ours,
        ask: impl FnMut(&mut Transfer) -> io::Result<()>,
    ) -> Progress {
        transfer(to, from, ask, |done| {
            let area = match ours {
                Ours::Takes => to.start,
                Ours::Gives => from,
            };
            let bytes = moved(Span::new(area + done, to.bytes - done), ours);
            if bytes > 0 {
                // If this is refused, no thread can wait there any more.
                let _ = self.wake(Span::new(to.start + done, bytes));
            }
            bytes
        })
    }
}

/// Makes requests until all of `to` is done. `uncounted` says, where the kernel finds a place filled, how many of the
/// bytes behind those that were counted (which it is given) the kernel has done all the same.
pub(super) fn transfer(
    to: Span,
    from: usize,
    mut ask: impl FnMut(&mut Transfer) -> io::Result<()>,
    uncounted: impl Fn(usize) -> usize,
) -> Progress {
    let mut bytes = 0;
    let mut patience = PATIENCE;
    while bytes < to.bytes {
        let mut transfer = Transfer {
            to: (to.start + bytes) as u64,
            from: (from + bytes) as u64,
            bytes: (to.bytes - bytes) as u64,
            mode: 0,
            done: 0,
        };
        let asked = ask(&mut transfer);
        bytes += usize::try_from(transfer.done).unwrap_or(0);
        let Err(error) = asked else { break };
        match stop(&error) {
            // Part of it done, or not at all for now.
            Stop::Again if transfer.done > 0 => {}
            Stop::Again if patience > 0 => {
                patience -= 1;
                std::thread::yield_now();
            }
            other => {
                let more = if other == Stop::Occupied { uncounted(bytes) } else { 0 };
                if more == 0 {
                    return Progress {
                        bytes,
                        stop: Some(other),
                    };
                }
                bytes += more;
            }
        }
    }
    Progress { bytes, stop: None }
}

/// The number of bytes at the start of an area's part that have come, or have gone; 0 if the kernel does not show
/// it.
fn moved(part: Span, ours: Ours) -> usize {
    const TOGETHER: usize = 64;
    const ENTRY: usize = 8;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(map) = rustix::fs::open(c"/proc/self/pagemap", flags, Mode::empty()) else {
        return 0;
    };
    let mut bytes = 0;
    while bytes < part.bytes {
        let mut entries = [[0u8; ENTRY]; TOGETHER];
        let count = ((part.bytes - bytes) / PAGE).min(TOGETHER);
        let at = (part.start + bytes) / PAGE * ENTRY;
        let read = rustix::io::pread(&map, entries[..count].as_flattened_mut(), at as u64).unwrap_or(0);
        let entries = &entries[..read / ENTRY];
        // In memory, or swapped out.
        let there = |entry: &&[u8; ENTRY]| entry[7] >> 6 != 0;
        let like = entries
            .iter()
            .take_while(|entry| there(entry) == (ours == Ours::Takes))
            .count();
        bytes += like * PAGE;
        if like < count {
            break;
        }
    }
    bytes
}
