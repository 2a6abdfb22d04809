//! Frames that a program's pages had, made fit for use again.
//!
//! Only the kernel knows if it still reads such a frame: `vmsplice` and `send(MSG_ZEROCOPY)` hold frames without a pin,
//! and UFFDIO_MOVE checks only for pins. If the frame were written again here, it would leak other data of the process
//! to the receiver. So each frame goes back to the kernel, which counts its users, and is allocated again at once. A
//! frame without users is the first to be handed out again, on the same cpu. One in use stays with its user, and
//! another comes in its place.

use sys::faults::Faults;
use sys::handover::Discard;
use sys::memory::{self, Area, PAGE, Size, Span};

use super::placing::runs_by;
use super::{Frame, Pool};
use crate::{Error, Pages};

/// Pages that go back to the kernel and come again at a time: few, so that it is rare for another thread to take frames of
/// the same cpu in between.
const RENEWED: usize = 256;

/// A used frame, and the number of the page that is to have it.
pub(super) type Meant = (usize, Frame);

impl Pool {
    /// Makes free frames of used ones of the colors that are short; whether there were any.
    pub(super) fn renew(&mut self, need: &[u64]) -> Result<bool, Error> {
        let mut frames = Vec::new();
        for ((used, free), &need) in self.used.iter_mut().zip(&self.free).zip(need) {
            let short = usize::try_from(need).unwrap_or(usize::MAX).saturating_sub(free.len());
            frames.extend(used.drain(used.len().saturating_sub(short)..));
        }
        if frames.is_empty() {
            return Ok(false);
        }
        frames.sort_unstable();
        // If this is refused, other frames come, which the check notices.
        let _pinned = sys::affinity::pin_here();
        let area = Area::map(frames.len() * PAGE, Size::Small);
        let area = area.map_err(Error::system("mapping memory to collect frames"))?;
        let mut discard = Discard::new();
        for (step, frames) in frames.chunks(RENEWED).enumerate() {
            self.let_go(&mut discard, frames.iter().copied())?;
            // SAFETY: absent pages of an area that nobody else knows.
            unsafe { self.populate(area.part(step * RENEWED, frames.len())) }?;
        }
        let entries = self.pagemap.entries(area.span());
        let entries = entries.map_err(Error::system("reading /proc/self/pagemap"))?;
        let chunk = self.place(area);
        self.sort_in(chunk, &entries);
        Ok(true)
    }

    /// Used frames for those pages whose color has too few free ones.
    pub(super) fn used_for(&mut self, want: &[u16]) -> Vec<Meant> {
        let mut left: Vec<usize> = self.free.iter().map(Vec::len).collect();
        let mut meant = Vec::new();
        for (place, &color) in want.iter().enumerate() {
            let color = usize::from(color);
            match left.get_mut(color) {
                Some(left) if *left > 0 => *left -= 1,
                Some(_) => meant.extend(self.used[color].pop().map(|frame| (place, frame))),
                None => {}
            }
        }
        meant
    }

    /// Takes back the frames of [`used_for`](Pool::used_for) that were not renewed.
    pub(super) fn not_renewed(&mut self, want: &[u16], meant: &[Meant]) {
        for &(place, frame) in meant {
            self.used[usize::from(want[place])].push(frame);
        }
    }

    /// Renews frames where they are wanted, which saves moving them there: the kernel hands out first the frame freed
    /// last. Returns the pages, in order, that are still absent: another frame had come there, which is free now.
    ///
    /// Errors: some of the pages may have frames then, full of zeros.
    ///
    /// # Safety
    /// The pages are absent and of a mapping without huge pages, and nobody else touches them.
    pub(super) unsafe fn renew_into(
        &mut self,
        into: Pages,
        want: &[u16],
        meant: &[Meant],
    ) -> Result<Vec<usize>, Error> {
        if meant.is_empty() {
            return Ok(Vec::new());
        }
        let page = |place: usize| Span::new(into.start + place * PAGE, PAGE);
        {
            // If this is refused, other frames come, which the check notices.
            let _pinned = sys::affinity::pin_here();
            let mut discard = Discard::new();
            for step in meant.chunks(RENEWED) {
                self.let_go(&mut discard, step.iter().rev().map(|&(_, frame)| frame))?;
                for run in step.chunk_by(|one, next| one.0 + 1 == next.0) {
                    // SAFETY: the caller's promise.
                    unsafe { self.populate(Span::new(page(run[0].0).start, run.len() * PAGE)) }?;
                }
            }
        }
        let entries = self.pagemap.entries(into.span());
        let entries = entries.map_err(Error::system("reading /proc/self/pagemap"))?;
        let color = |place: usize| entries[place].frame().map(|frame| self.colors.of(frame) as u16);
        let places = meant.iter().map(|&(place, _)| place);
        let wrong: Vec<usize> = places.filter(|&place| color(place) != Some(want[place])).collect();
        if wrong.is_empty() {
            return Ok(wrong);
        }
        let area = Area::map(wrong.len() * PAGE, Size::Small);
        let mut area = area.map_err(Error::system("mapping memory to collect frames"))?;
        if let Some(faults) = self.faults.as_ref() {
            // SAFETY: the caller's promise; what is taken out are zeros.
            unsafe { take_out(faults, &wrong, page, &mut area) }?;
        }
        let entries = self.pagemap.entries(area.span());
        let entries = entries.map_err(Error::system("reading /proc/self/pagemap"))?;
        let chunk = self.place(area);
        self.sort_in(chunk, &entries);
        Ok(wrong)
    }

    /// Frees frames in this order.
    fn let_go(&mut self, discard: &mut Discard, frames: impl Iterator<Item = Frame>) -> Result<(), Error> {
        let frames: Vec<Frame> = frames.collect();
        for frames in frames.chunk_by(|one, next| one.chunk == next.chunk) {
            let pages: Vec<u32> = frames.iter().map(|frame| frame.page).collect();
            let freed = discard.each(self.area(frames[0]), &pages);
            freed.map_err(Error::system("freeing frames"))?;
        }
        Ok(())
    }
}

/// Takes pages out into an area, in order; pages that cannot be taken are freed. All are absent
/// afterwards.
///
/// # Safety
/// Nobody else touches the pages, nor needs their content.
unsafe fn take_out(
    faults: &Faults,
    places: &[usize],
    page: impl Fn(usize) -> Span,
    area: &mut Area,
) -> Result<(), Error> {
    let registered = faults.register(area.span());
    registered.map_err(Error::system("registering memory with a userfaultfd"))?;
    let mut stuck = Ok(());
    for (first, count) in runs_by(places.len(), |one, next| places[one] + (next - one) == places[next]) {
        let span = Span::new(page(places[first]).start, count * PAGE);
        // SAFETY: the caller's promise.
        let progress = unsafe { faults.take(span, area, first) };
        if progress.bytes < span.bytes {
            let rest = Span::new(span.start + progress.bytes, span.bytes - progress.bytes);
            // SAFETY: the caller's promise.
            stuck = stuck.and(unsafe { memory::discard(rest) });
        }
    }
    let released = faults.unregister(area.span());
    released.map_err(Error::system("releasing memory from a userfaultfd"))?;
    stuck.map_err(Error::system("freeing frames"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::means::{Knowledge, Placing};
    use crate::pool::Expected;
    use crate::{Colors, Source};

    fn pool() -> Option<Pool> {
        let colors = Colors {
            first_bit: 12,
            bits: 3,
            color_bytes: 64 << 10,
            cache: "forced".into(),
            source: Source::Forced,
        };
        if !sys::frames::Pagemap::own_numbers_visible() {
            harness::not_allowed("seeing frame numbers");
            return None;
        }
        let pool = match Pool::open(colors, Knowledge::Pagemap, Placing::Move, 32 << 20, 1 << 30) {
            Ok(pool) => pool,
            Err(error) => {
                harness::not_allowed(error);
                return None;
            }
        };
        if !pool.faults.as_ref().is_some_and(|faults| faults.features().moves()) {
            harness::not_in_this_kernel((6, 8), "this kernel has no UFFDIO_MOVE");
            return None;
        }
        Some(pool)
    }

    fn used(pool: &mut Pool) -> usize {
        let area = Area::map(512 * PAGE, Size::Small).unwrap();
        memory::populate(area.span()).unwrap();
        (0..512).for_each(|page| area.set_word(page, 3, 7));
        pool.adopt_used(area);
        pool.used.iter().map(Vec::len).sum()
    }

    #[test]
    fn used_frames_come_full_of_zeros_to_where_they_are_wanted() {
        let Some(mut pool) = pool() else { return };
        let there = used(&mut pool);
        let want: Vec<u16> = (0..300).map(|page| page % 8).collect();
        let area = Area::map(want.len() * PAGE, Size::Small).unwrap();
        let (start, count) = (area.start(), want.len());
        // SAFETY: absent pages of an area of the test's own.
        let reported = unsafe { pool.fill_with(Pages { start, count }, &want, Expected::Any, Placing::Move) }.unwrap();
        assert_eq!(reported, want.iter().copied().map(Some).collect::<Vec<_>>());
        let entries = pool.pagemap.entries(area.span()).unwrap();
        for (page, &want) in want.iter().enumerate() {
            assert_eq!(
                entries[page].frame().map(|frame| pool.colors.of(frame) as u16),
                Some(want)
            );
            assert_eq!(area.word(page, 3), 0, "page {page} holds what a program's page held");
        }
        assert!(pool.used.iter().map(Vec::len).sum::<usize>() < there);
    }

    #[test]
    fn frames_that_came_to_the_wrong_place_are_free_and_the_place_is_absent() {
        let Some(mut pool) = pool() else { return };
        used(&mut pool);
        // Each is of another color than is asked for, whichever color the kernel's frames happen to have.
        let color = (0..pool.used.len())
            .max_by_key(|&color| pool.used[color].len())
            .unwrap();
        let want: Vec<u16> = vec![u16::from(color == 0); 64];
        let meant: Vec<Meant> = (0..64)
            .filter_map(|place| Some((place, pool.used[color].pop()?)))
            .collect();
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        let into = Pages {
            start: area.start(),
            count: 64,
        };
        // SAFETY: absent pages of an area of the test's own.
        let wrong = unsafe { pool.renew_into(into, &want, &meant) }.unwrap();
        let entries = pool.pagemap.entries(area.span()).unwrap();
        assert!(!meant.is_empty());
        for (place, _) in meant.iter() {
            assert_eq!(wrong.contains(place), !entries[*place].present(), "page {place}");
        }
        assert_eq!(pool.free.iter().map(Vec::len).sum::<usize>(), wrong.len());
        for frames in &pool.free {
            for frame in frames {
                let area = pool.chunks[frame.chunk as usize].as_ref().unwrap();
                assert_eq!(area.word(frame.page as usize, 3), 0);
            }
        }
    }
}
