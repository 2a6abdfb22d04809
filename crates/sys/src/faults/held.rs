//! Asking whether a span is registered, without touching it.

use std::io;

use rustix::ioctl::opcode;

use super::{Faults, GROUP, Stop, Transfer, stop};
use crate::memory::{self, Area, PAGE, Size, Span};

/// Pages that are absent and stay so: nobody can touch them.
#[derive(Debug)]
pub struct Void(Area);

impl Void {
    pub fn map(pages: usize) -> io::Result<Void> {
        let mut area = Area::map(pages * PAGE, Size::Small)?;
        // Populated and locked at once, if the program asked for that (`mlockall`).
        memory::unlock(area.span())?;
        area.discard(0, pages)?;
        Ok(Void(area))
    }

    pub fn span(&self) -> Span {
        self.0.span()
    }
}

impl Faults {
    /// Returns whether the whole span lies in one mapping registered here and no change of the registered spans is
    /// unread, both at one moment. No page moves: absent pages of `void` are "moved" there, and the first present page
    /// of the span ends it.
    ///
    /// Pre: `void` is as large as the span (else this panics). A mapping whose lock or protection differs from that of
    /// `void` is not held either.
    pub fn holds(&self, span: Span, void: &Void) -> Result<bool, Stop> {
        Ok(self.first(span, void)?.is_some())
    }

    /// Returns whether a page is absent, in a mapping that is registered here, and no change is
    /// unread.
    pub fn lacks(&self, page: Span, void: &Void) -> bool {
        self.first(page, void) == Ok(Some(First::Absent))
    }

    fn first(&self, span: Span, void: &Void) -> Result<Option<First>, Stop> {
        const ALLOW_SRC_HOLES: u64 = 2;
        let mut transfer = Transfer {
            to: span.start as u64,
            from: void.0.part(0, span.bytes / PAGE).start as u64,
            bytes: span.bytes as u64,
            mode: ALLOW_SRC_HOLES,
            done: 0,
        };
        // SAFETY: the structure is what UFFDIO_MOVE wants; there is nothing at its source that could be moved, ever.
        match unsafe { self.ask(opcode::read_write::<Transfer>(GROUP, 0x05), &mut transfer) } {
            Ok(()) => Ok(Some(First::Absent)),
            Err(_) if transfer.done > 0 => Ok(Some(First::Absent)),
            Err(error) => match stop(&error) {
                Stop::Occupied => Ok(Some(First::Present)),
                Stop::Hole | Stop::Unfit => Ok(None),
                other => Err(other),
            },
        }
    }
}

/// The first page of a span that is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Absent,
    Present,
}
