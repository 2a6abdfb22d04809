//! Frames of known color that the process collects for itself.
//!
//! Memory is populated until there are enough frames of each color wanted (Ding11, section 3.3).
//! Unwanted frames are held until the collecting ends: the kernel hands out first the frames freed
//! last, so frames freed too early would come back. Afterwards a reserve is kept and the rest
//! freed.

mod collect;
mod placing;
mod renew;

pub(crate) use placing::runs;

use std::ops::Range;
use std::time::Instant;

use sys::faults::Faults;
use sys::frames::{Entry, Pagemap};
use sys::handover::Discard;
use sys::memory::{Area, Size};

use crate::means::{Knowledge, Placing};
use crate::{Colors, Error, PAGE_BYTES, Pages, Supply};

/// How many areas the reserve may be spread over.
const CHUNKS: usize = 6;
/// Pages of zeros.
const BLANK: usize = 256;

/// See the module's documentation.
pub struct Pool {
    colors: Colors,
    knowledge: Knowledge,
    placing: Placing,
    pagemap: Pagemap,
    /// For [`Placing::Move`].
    faults: Option<Faults>,
    /// Zeros, never written, that pages are [populated](Pool::populate) with.
    blank: Option<Area>,
    /// The areas that hold the pages. A place whose area is gone is used again.
    chunks: Vec<Option<Area>>,
    /// Free frames by color; the last one found is used first.
    free: Vec<Vec<Frame>>,
    /// Frames by color that a program's pages had. The kernel may still read them, so they must be
    /// [renewed](Pool::renew) before they are written.
    used: Vec<Vec<Frame>>,
    reserve_bytes: u64,
    collect_bytes: u64,
    /// The amount of free memory last seen, and the time of that.
    seen_free: Option<(Instant, u64)>,
}

/// A page of a chunk, with its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub chunk: u32,
    pub page: u32,
    pub contents: Contents,
}

/// The content of a frame of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contents {
    Zeros,
    /// Zeros but for the first word.
    FirstWord,
    Anything,
}

/// The content that the pages which get the frames must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Zeros,
    /// The caller writes them over as a whole.
    Any,
}

impl Pool {
    /// An empty one.
    ///
    /// Errors: where the page map or, for [`Placing::Move`], userfaultfd cannot be opened.
    pub(crate) fn open(
        colors: Colors,
        knowledge: Knowledge,
        placing: Placing,
        reserve_bytes: u64,
        collect_bytes: u64,
    ) -> Result<Pool, Error> {
        let faults = match placing {
            Placing::Move => Some(Faults::open(false).map_err(Error::system("opening a userfaultfd"))?),
            Placing::Refill | Placing::Remap => None,
        };
        Ok(Pool {
            free: vec![Vec::new(); colors.count() as usize],
            used: vec![Vec::new(); colors.count() as usize],
            colors,
            knowledge,
            placing,
            pagemap: Pagemap::own().map_err(Error::system("opening /proc/self/pagemap"))?,
            // Without it pages are populated in the other way.
            blank: faults
                .as_ref()
                .and_then(|_| Area::map(BLANK * PAGE_BYTES, Size::Small).ok()),
            faults,
            chunks: Vec::new(),
            reserve_bytes,
            collect_bytes,
            seen_free: None,
        })
    }

    /// Reopens descriptors that the program has closed unknowingly.
    pub(crate) fn reopen(&mut self) -> Result<(), Error> {
        if !self.pagemap.is_ours() {
            self.pagemap = Pagemap::own().map_err(Error::system("opening /proc/self/pagemap"))?;
        }
        if self.faults.as_ref().is_some_and(|faults| !faults.is_ours()) {
            self.faults = Some(Faults::open(false).map_err(Error::system("opening a userfaultfd"))?);
        }
        Ok(())
    }

    /// Takes frames of these colors out of the pool, collecting missing ones. They belong to the
    /// caller, who brings them into place or gives them [back](Pool::put_back).
    pub(crate) fn take(&mut self, want: &[u16]) -> Result<Vec<Frame>, Error> {
        let mut need = vec![0u64; self.free.len()];
        for &color in want {
            let Some(need) = need.get_mut(usize::from(color)) else {
                return Err(Error::Wish(format!(
                    "color {color} does not exist: there are {}",
                    self.colors.count()
                )));
            };
            *need += 1;
        }
        self.collect(&need)?;
        let mut pop = |&color: &u16| self.free[usize::from(color)].pop();
        let frames: Vec<Frame> = want.iter().filter_map(&mut pop).collect();
        debug_assert_eq!(frames.len(), want.len());
        Ok(frames)
    }

    /// Puts back frames that [`take`](Pool::take) gave and nobody used.
    pub(crate) fn put_back(&mut self, want: &[u16], frames: &[Frame]) {
        for (&color, &frame) in want.iter().zip(frames) {
            self.free[usize::from(color)].push(frame);
        }
    }

    /// Takes over the frames of known color of an area that was never a program's; their content does not
    /// matter.
    pub(crate) fn adopt(&mut self, area: Area) {
        for (color, frame) in self.sorted(area) {
            self.free[color].push(frame);
        }
    }

    /// Takes over the frames of known color that a program's pages had: see [`renew`](Pool::renew).
    pub(crate) fn adopt_used(&mut self, area: Area) {
        for (color, frame) in self.sorted(area) {
            self.used[color].push(frame);
        }
    }

    /// The frames of an area by color, where colors can be seen; else the area goes.
    fn sorted(&mut self, area: Area) -> Vec<(usize, Frame)> {
        let known = self.knowledge == Knowledge::Pagemap;
        let Some(entries) = known.then(|| self.pagemap.entries(area.span()).ok()).flatten() else {
            return Vec::new();
        };
        let chunk = self.place(area);
        // The shared page of zeros is not exclusive.
        let frame = |entry: &Entry| entry.frame().filter(|_| entry.exclusive());
        let sorted = (0..).zip(&entries).filter_map(|(page, entry)| {
            let contents = Contents::Anything;
            Some((self.colors.of(frame(entry)?) as usize, Frame { chunk, page, contents }))
        });
        sorted.collect()
    }

    /// Frees what goes beyond the reserve: the same number of frames of each color stays.
    pub(crate) fn settle(&mut self) {
        let reserve = usize::try_from(self.reserve_bytes).unwrap_or(usize::MAX) / PAGE_BYTES;
        let total: usize = self.free.iter().chain(&self.used).map(Vec::len).sum();
        if total > reserve {
            let each = reserve / self.free.len();
            for (free, used) in self.free.iter_mut().zip(&mut self.used) {
                free.drain(..free.len().saturating_sub(each));
                used.drain(..used.len().saturating_sub(each - free.len()));
            }
        }
        let mut kept = self.pages_of_chunks();
        let mut fullest: Vec<usize> = (0..kept.len()).filter(|&chunk| !kept[chunk].is_empty()).collect();
        if fullest.len() > CHUNKS {
            // Each is a mapping.
            fullest.sort_by_key(|&chunk| std::cmp::Reverse(kept[chunk].len()));
            fullest.truncate(CHUNKS);
            for frames in self.free.iter_mut().chain(&mut self.used) {
                frames.retain(|frame| fullest.contains(&(frame.chunk as usize)));
            }
            kept = self.pages_of_chunks();
        }
        let mut discard = Discard::new();
        for (chunk, mut kept) in self.chunks.iter_mut().zip(kept) {
            let Some(area) = chunk.as_mut() else { continue };
            if kept.is_empty() {
                *chunk = None;
                continue;
            }
            kept.sort_unstable();
            // Pages that cannot be freed now are freed with the area.
            let _ = discard.ranges(area, &gaps(&kept, area.pages()));
        }
    }

    /// The pages of the frames that are free, by chunk.
    fn pages_of_chunks(&self) -> Vec<Vec<u32>> {
        let mut pages: Vec<Vec<u32>> = vec![Vec::new(); self.chunks.len()];
        for frame in self.free.iter().chain(&self.used).flatten() {
            pages[frame.chunk as usize].push(frame.page);
        }
        pages
    }

    fn place(&mut self, area: Area) -> u32 {
        let free = self.chunks.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.chunks.push(None);
            self.chunks.len() - 1
        });
        self.chunks[at] = Some(area);
        at as u32
    }

    /// The area of a frame that came from this pool.
    pub(crate) fn area(&mut self, frame: Frame) -> &mut Area {
        let area = self.chunks[frame.chunk as usize].as_mut();
        area.expect("a chunk lives as long as a frame of it is out")
    }

    /// Returns whether the pool's own pages lie in a range.
    pub(crate) fn meets(&self, span: sys::memory::Span) -> bool {
        self.chunks
            .iter()
            .flatten()
            .chain(&self.blank)
            .any(|area| area.span().meets(span))
    }

    /// How many bytes of frames the pool holds.
    pub fn bytes(&self) -> u64 {
        self.free.iter().chain(&self.used).map(Vec::len).sum::<usize>() as u64 * PAGE_BYTES as u64
    }
}

/// The gaps between these pages of an area, ascending.
fn gaps(kept: &[u32], pages: usize) -> Vec<Range<usize>> {
    let kept = kept.iter().map(|&page| page as usize);
    let starts = std::iter::once(0).chain(kept.clone().map(|page| page + 1));
    let gaps = starts.zip(kept.chain([pages])).map(|(start, end)| start..end);
    gaps.filter(|gap| !gap.is_empty()).collect()
}

impl Supply for Pool {
    unsafe fn fill(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.fill_with(into, want, Expected::Zeros, self.placing) }
    }

    /// The frames go back to the kernel.
    unsafe fn give_back(&mut self, pages: Pages) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { sys::memory::discard(pages.span()) }.map_err(Error::system("giving back frames"))
    }

    fn by_color(&mut self) -> Result<Vec<u64>, Error> {
        let both = self.free.iter().zip(&self.used);
        Ok(both.map(|(free, used)| (free.len() + used.len()) as u64).collect())
    }
}
