//! The check that there is memory for pages that the program has not touched so far.
//!
//! Giving a page a color gives it a frame. A program may have asked for much more memory than it will ever touch, and
//! more than there is: if all of it were filled, the kernel would kill the program.

use sys::frames::Entry;
use sys::headroom::Headroom;
use sys::memory::Span;

use super::Engine;
use crate::{Error, PAGE_BYTES, Pages};

/// Free memory is checked again after so many bytes at the latest: others take memory too.
const MOST: u64 = 64 << 20;
/// Pages that are looked at in one go.
const STEP: usize = 1 << 16;

impl Engine {
    /// Errors: [`Error::Memory`] if the range has more absent pages than may be filled now.
    pub(super) fn afford(&mut self, range: Pages) -> Result<(), Error> {
        let bytes = range.bytes() as u64;
        // This counts all of the range as absent.
        if bytes <= self.allowance {
            self.allowance -= bytes;
            return Ok(());
        }
        let room = Headroom::read(&sys::Root::default()).to_fill();
        let wanted = match bytes <= room {
            true => bytes,
            false => self.absent(range, room)?,
        };
        if wanted > room {
            return Err(Error::Memory { wanted, room });
        }
        self.allowance = ((room - wanted) / 8).min(MOST);
        Ok(())
    }

    /// Bytes of absent pages; where they are more than `enough`, how many there are is no matter.
    fn absent(&self, range: Pages, enough: u64) -> Result<u64, Error> {
        let mut sum = 0;
        let mut entries = vec![Entry::default(); STEP.min(range.count)];
        let span: Span = range.span();
        for first in (0..range.count).step_by(STEP) {
            let count = STEP.min(range.count - first);
            let read = self
                .pagemap
                .read(span.start + first * PAGE_BYTES, &mut entries[..count]);
            read.map_err(Error::system("reading /proc/self/pagemap"))?;
            let absent = entries[..count]
                .iter()
                .filter(|entry| !entry.present() && !entry.swapped());
            sum += (absent.count() * PAGE_BYTES) as u64;
            if sum > enough {
                // For people: the most pages that can be absent.
                return Ok(sum + ((range.count - first - count) * PAGE_BYTES) as u64);
            }
        }
        Ok(sum)
    }
}
