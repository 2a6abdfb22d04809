//! The source of frames of known color: collected by the process itself, or served by the daemon.

use crate::Error;

/// Bytes of a page and of a frame.
pub const PAGE_BYTES: usize = 4096;

/// Whole virtual pages of this process, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pages {
    /// Address of the first; a multiple of [`PAGE_BYTES`].
    pub start: usize,
    pub count: usize,
}

impl Pages {
    pub fn bytes(self) -> usize {
        self.count * PAGE_BYTES
    }

    pub(crate) fn span(self) -> sys::memory::Span {
        sys::memory::Span::new(self.start, self.bytes())
    }

    /// `count` pages from the one at `first` on.
    pub(crate) fn part(self, first: usize, count: usize) -> Pages {
        Pages {
            start: self.start + first * PAGE_BYTES,
            count,
        }
    }

    /// The address behind the last page.
    pub fn end(self) -> usize {
        self.start + self.bytes()
    }
}

/// A source of frames of known color.
pub trait Supply: Send {
    /// Gives each page of `into`, all of them absent, a frame full of zeros whose color is that of
    /// `want` at the same place; returns the colors that came out, `None` if that is unknown.
    ///
    /// A page whose color came out wrong has a frame all the same. After an error some pages may
    /// have frames and others none.
    ///
    /// # Safety
    /// The pages are the caller's, private and anonymous, absent, and nobody else touches them meanwhile:
    /// they may be emptied again on the way.
    unsafe fn fill(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, Error>;

    /// Takes the frames of pages that nobody needs any more; the pages are absent afterwards.
    ///
    /// # Safety
    /// The pages are the caller's; their content is no longer needed, and they may read as zeros.
    unsafe fn give_back(&mut self, pages: Pages) -> Result<(), Error>;

    /// The colors of pages, one for each, `None` if not known: for callers that cannot see frames. A supply
    /// that keeps no books knows of none.
    fn look(&mut self, pages: Pages) -> Result<Vec<Option<u16>>, Error> {
        Ok(vec![None; pages.count])
    }

    /// For how many pages of the last filling it had no frame at all.
    fn lacking(&self) -> usize {
        0
    }

    /// How many frames of each color are at hand without collecting more.
    fn by_color(&mut self) -> Result<Vec<u64>, Error>;
}
