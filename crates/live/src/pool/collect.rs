//! Populating memory until there are enough frames of each color.

use std::time::{Duration, Instant};

use sys::frames::Entry;
use sys::headroom::Headroom;
use sys::memory::{self, Area, HUGE, PAGE, Size, Span};

use super::{Contents, Frame, Pool};
use crate::Error;
use crate::means::{Knowledge, Placing};

/// Bytes that are populated at a time.
const STEP_MIN: u64 = 2 << 20;
const STEP_MAX: u64 = 64 << 20;
/// The time for which a reading of free memory is believed.
const MOMENT: Duration = Duration::from_millis(50);
/// Pages of a transparent huge page.
const BLOCK: usize = HUGE / PAGE;

impl Pool {
    /// Collects until there are `need` frames free of each color.
    ///
    /// Errors: [`Error::NoFrames`] at the limit of held memory; frames found so far stay here.
    pub(super) fn collect(&mut self, need: &[u64]) -> Result<(), Error> {
        let mut limit = None;
        let mut looked = 0;
        loop {
            let short = |(color, &need): (usize, &u64)| (need.saturating_sub(self.free[color].len() as u64), color);
            let Some((short, color)) = need.iter().enumerate().map(short).max() else {
                return Ok(());
            };
            if short == 0 {
                return Ok(());
            }
            if self.renew(need)? {
                continue;
            }
            let expected = short.saturating_mul(u64::from(self.colors.count()) * PAGE as u64);
            // The frames held meanwhile may be a multiple of those kept.
            let limit = *limit.get_or_insert_with(|| self.collect_bytes.min(free(&mut self.seen_free) / 2));
            let room = limit.saturating_sub(looked);
            if room < STEP_MIN {
                return Err(Error::NoFrames {
                    color: color as u32,
                    wanted: need[color],
                    found: self.free[color].len() as u64,
                    looked: looked / PAGE as u64,
                    advice: format!(
                        "no more than {} MiB may be held at a time: free memory, allow more, wish for more colors, or run the daemon",
                        limit >> 20
                    ),
                });
            }
            // In whole huge pages; the memory found is held, so that it is not found again.
            let bytes = expected.clamp(STEP_MIN, STEP_MAX).min(room) / STEP_MIN * STEP_MIN;
            match self.knowledge {
                Knowledge::Pagemap => self.gather_small(bytes as usize)?,
                Knowledge::HugePages => self.gather_huge(bytes as usize)?,
            }
            looked += bytes;
        }
    }

    /// Gives absent small pages frames, full of zeros.
    ///
    /// A copy of zeros by a userfaultfd (UFFDIO_COPY) takes two thirds of the time that populating does.
    ///
    /// # Safety
    /// Nobody else touches the pages, and their owner expects zeros there.
    pub(super) unsafe fn populate(&mut self, pages: Span) -> Result<(), Error> {
        let mut filled = 0;
        if let (Some(faults), Some(blank)) = (self.faults.as_ref(), self.blank.as_ref())
            && faults.register(pages).is_ok()
        {
            while filled < pages.bytes {
                let part = Span::new(pages.start + filled, blank.bytes().min(pages.bytes - filled));
                // SAFETY: the caller's promise.
                let progress = unsafe { faults.copy(blank, 0, part) };
                filled += progress.bytes;
                if progress.stop.is_some() {
                    break;
                }
            }
            let released = faults.unregister(pages);
            released.map_err(Error::system("releasing memory from a userfaultfd"))?;
        }
        if filled == pages.bytes {
            return Ok(());
        }
        // This call returns the error.
        let rest = Span::new(pages.start + filled, pages.bytes - filled);
        memory::populate(rest).map_err(Error::system("populating memory to collect frames"))
    }

    /// All pages of a chunk, small ones full of zeros.
    pub(super) fn sort_in(&mut self, chunk: u32, entries: &[Entry]) {
        for (page, entry) in (0..).zip(entries) {
            if let Some(frame) = entry.frame() {
                let contents = Contents::Zeros;
                self.free[self.colors.of(frame) as usize].push(Frame { chunk, page, contents });
            }
        }
    }

    /// Small pages whose frames the page map shows.
    fn gather_small(&mut self, bytes: usize) -> Result<(), Error> {
        let area = Area::map(bytes, Size::Small).map_err(Error::system("mapping memory to collect frames"))?;
        // SAFETY: absent pages of an area that nobody else knows.
        unsafe { self.populate(area.span()) }?;
        let entries = self.pagemap.entries(area.span());
        let entries = entries.map_err(Error::system("reading /proc/self/pagemap"))?;
        let chunk = self.place(area);
        self.sort_in(chunk, &entries);
        Ok(())
    }

    /// Huge pages, within which the order of frames is known. Each of their 4 KiB gets a word that
    /// is not zero: when the kernel divides a huge page it replaces parts full of zeros by its shared
    /// page of zeros, and their frames would be lost.
    fn gather_huge(&mut self, bytes: usize) -> Result<(), Error> {
        let area = Area::map(bytes, Size::Huge).map_err(Error::system("mapping memory to collect frames"))?;
        for page in 0..area.pages() {
            area.set_word(page, 0, 1);
        }
        let mut huge = self.huge_blocks(&area);
        if huge.contains(&false) {
            for block in (0..huge.len()).filter(|&block| !huge[block]) {
                // Refused where no huge page is to be had, which is seen next.
                let _ = memory::collapse(area.part(block * BLOCK, BLOCK));
            }
            huge = self.huge_blocks(&area);
        }
        let blocks: Vec<usize> = (0..huge.len()).filter(|&block| huge[block]).collect();
        if blocks.is_empty() {
            return Err(Error::Unavailable {
                what: "frames of known color".into(),
                why: "the kernel made no huge page: /sys/kernel/mm/transparent_hugepage/enabled must be `madvise` or \
                      `always` and memory not be fragmented; or give the process CAP_SYS_ADMIN, or run the daemon"
                    .into(),
            });
        }
        let mut frames = Vec::with_capacity(blocks.len() * BLOCK);
        let chunk = self.place(area);
        let contents = Contents::FirstWord;
        let all = |block: usize, from: usize| {
            (block * BLOCK + from..(block + 1) * BLOCK).map(move |page| Frame {
                chunk,
                page: page as u32,
                contents,
            })
        };
        match self.placing {
            Placing::Move => {
                let (heads, divided) = self.divide(chunk, &blocks)?;
                frames.extend(heads.map(|frame| (0, frame)));
                for block in divided {
                    frames.extend(all(block, 1).map(|frame| (frame.page as usize % BLOCK, frame)));
                }
            }
            Placing::Refill | Placing::Remap => {
                for block in blocks {
                    frames.extend(all(block, 0).map(|frame| (frame.page as usize % BLOCK, frame)));
                }
            }
        }
        for (page, frame) in frames {
            self.free[self.colors.of(page as u64) as usize].push(frame);
        }
        Ok(())
    }

    /// Makes small pages of huge ones, by taking the first small page out of each; returns these,
    /// now in an area of their own, and the blocks that were divided.
    fn divide(&mut self, chunk: u32, blocks: &[usize]) -> Result<(impl Iterator<Item = Frame>, Vec<usize>), Error> {
        let Some(faults) = self.faults.as_ref() else {
            return Err(Error::Unavailable {
                what: "dividing huge pages".into(),
                why: "it needs UFFDIO_MOVE".into(),
            });
        };
        let heads = Area::map(blocks.len() * PAGE, Size::Small);
        let mut heads = heads.map_err(Error::system("mapping memory to collect frames"))?;
        let registered = faults.register(heads.span());
        registered.map_err(Error::system("registering memory with a userfaultfd"))?;
        let mut divided = Vec::new();
        if let Some(area) = self.chunks[chunk as usize].as_mut() {
            for &block in blocks {
                let moved = faults.shift(area, block * BLOCK, &mut heads, divided.len(), 1);
                if moved.stop.is_none() {
                    divided.push(block);
                }
            }
        }
        let released = faults.unregister(heads.span());
        released.map_err(Error::system("releasing memory from a userfaultfd"))?;
        let heads = self.place(heads);
        let frames = (0..divided.len() as u32).map(move |page| Frame {
            chunk: heads,
            page,
            contents: Contents::FirstWord,
        });
        Ok((frames, divided))
    }

    /// The blocks of an area that are huge pages.
    fn huge_blocks(&self, area: &Area) -> Vec<bool> {
        if let Ok(huge) = self.pagemap.huge(area.span()) {
            return huge.chunks(BLOCK).map(|block| !block.contains(&false)).collect();
        }
        // Before Linux 6.7 the kernel reports only the sum over a mapping.
        let details = sys::mappings::details(area.span()).unwrap_or_default();
        let whole = !details.is_empty()
            && details
                .iter()
                .all(|details| details.huge_bytes == details.mapping.span.bytes as u64);
        vec![whole; area.pages() / BLOCK]
    }
}

/// Memory that is free, looked at now or a moment ago: to look costs as much as some frames.
fn free(seen: &mut Option<(Instant, u64)>) -> u64 {
    match *seen {
        Some((at, free)) if at.elapsed() < MOMENT => free,
        _ => {
            let free = Headroom::read(&sys::Root::default()).free;
            *seen = Some((Instant::now(), free));
            free
        }
    }
}
