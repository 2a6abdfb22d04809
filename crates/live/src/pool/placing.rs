//! Bringing the pool's frames to absent pages.

use sys::faults::Stop;
use sys::memory::{self, PAGE, Span};

use super::{Contents, Expected, Frame, Pool};
use crate::means::Placing;
use crate::{Error, Pages};

/// Pages that are refilled at a time: few, so that it is rare for another thread to take frames of
/// the same cpu in between.
const REFILL: usize = 64;

impl Pool {
    /// As [`Supply::fill`](crate::Supply::fill); the caller chooses the content of the frames.
    ///
    /// # Safety
    /// As for [`Supply::fill`](crate::Supply::fill); with [`Expected::Any`] the caller writes the pages over as a whole
    /// before anybody else sees them.
    pub(crate) unsafe fn fill_with(
        &mut self,
        into: Pages,
        want: &[u16],
        expected: Expected,
        way: Placing,
    ) -> Result<Vec<Option<u16>>, Error> {
        if want.len() != into.count {
            return Err(Error::Wish(format!(
                "{} colors were given for {} pages",
                want.len(),
                into.count
            )));
        }
        match way {
            // SAFETY: the caller's promise.
            Placing::Move => unsafe { self.fill_moving(into, want, expected) },
            Placing::Refill => {
                let frames = self.take(want)?;
                self.refill(into, want, &frames)
            }
            Placing::Remap => Err(Error::Unavailable {
                what: "filling absent pages".into(),
                why: "pages of the pool can only be remapped here".into(),
            }),
        }
    }

    /// Zeroes a frame.
    pub(crate) fn clean(&mut self, frame: Frame) {
        let page = frame.page as usize;
        match frame.contents {
            Contents::Zeros => {}
            Contents::FirstWord => self.area(frame).set_word(page, 0, 0),
            Contents::Anything => self.area(frame).clear(page, 1),
        }
    }

    /// # Safety
    /// As for [`fill_with`](Pool::fill_with).
    unsafe fn fill_moving(&mut self, into: Pages, want: &[u16], expected: Expected) -> Result<Vec<Option<u16>>, Error> {
        // An area of ours has no huge pages, which might come in a program's.
        let meant = match expected {
            Expected::Any => self.used_for(want),
            Expected::Zeros => Vec::new(),
        };
        let mut meant_for = meant.iter().map(|&(place, _)| place).peekable();
        let others = (0..want.len()).filter(|place| meant_for.next_if_eq(place).is_none());
        let others: Vec<usize> = others.collect();
        // Missing frames are collected before anything is done.
        let frames = match self.take(&at(want, &others)) {
            Ok(frames) => frames,
            Err(error) => {
                self.not_renewed(want, &meant);
                return Err(error);
            }
        };
        // SAFETY: with `Expected::Any` the pages are the caller's own, small and absent.
        let wrong = unsafe { self.renew_into(into, want, &meant) };
        let wrong = match wrong {
            Ok(wrong) => wrong,
            Err(error) => {
                self.put_back(&at(want, &others), &frames);
                return Err(error);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { self.move_in(into, want, &others, &frames, expected) }?;
        if !wrong.is_empty() {
            let frames = self.take(&at(want, &wrong))?;
            // SAFETY: the caller's promise.
            unsafe { self.move_in(into, want, &wrong, &frames, expected) }?;
        }
        Ok(want.iter().copied().map(Some).collect())
    }

    /// Moves frames to these pages of `into`.
    ///
    /// # Safety
    /// As for [`fill_with`](Pool::fill_with).
    unsafe fn move_in(
        &mut self,
        into: Pages,
        want: &[u16],
        places: &[usize],
        frames: &[Frame],
        expected: Expected,
    ) -> Result<(), Error> {
        if places.is_empty() {
            return Ok(());
        }
        if expected == Expected::Zeros {
            for &frame in frames {
                self.clean(frame);
            }
        }
        let want = at(want, places);
        let beside = |one: usize, next: usize| {
            places[one] + (next - one) == places[next] && follows(frames[one], next - one, frames[next])
        };
        let runs = runs_by(frames.len(), beside);
        let (Some(faults), chunks) = (self.faults.as_ref(), &mut self.chunks) else {
            return Err(Error::Unavailable {
                what: "moving pages".into(),
                why: "userfaultfd is not open".into(),
            });
        };
        let registered = faults.register(into.span());
        registered.map_err(Error::system("registering memory with a userfaultfd"))?;
        // No allocation from here to the release: it might lie in the pages concerned.
        let (mut done, mut stop) = (0, None);
        for &(first, count) in &runs {
            let from = frames[first];
            let to = Span::new(into.start + places[first] * PAGE, count * PAGE);
            let Some(area) = chunks[from.chunk as usize].as_mut() else {
                break;
            };
            // SAFETY: the pages are absent, and the caller's; what they get are zeros, or whatever the caller said.
            let progress = unsafe { faults.put(area, from.page as usize, to) };
            done += progress.bytes / PAGE;
            if progress.stop.is_some() {
                stop = progress.stop;
                break;
            }
        }
        let released = faults.unregister(into.span());
        self.put_back(&want[done..], &frames[done..]);
        released.map_err(Error::system("releasing memory from a userfaultfd"))?;
        match stop {
            None => Ok(()),
            Some(stop) => Err(refused(into.start + places[done] * PAGE, stop)),
        }
    }

    /// Frees the frames and populates the pages at once, on the same cpu: the frame freed last is
    /// handed out first. The page map shows the result.
    fn refill(&mut self, into: Pages, want: &[u16], frames: &[Frame]) -> Result<Vec<Option<u16>>, Error> {
        // If this is refused, the page map shows the outcome, and wrong pages are tried again.
        let _pinned = sys::affinity::pin_here();
        for (step, frames) in frames.chunks(REFILL).enumerate() {
            for &frame in frames.iter().rev() {
                let freed = self.area(frame).discard(frame.page as usize, 1);
                freed.map_err(Error::system("freeing a frame"))?;
            }
            let part = Span::new(into.start + step * REFILL * PAGE, frames.len() * PAGE);
            memory::populate(part).map_err(Error::system("populating pages"))?;
        }
        debug_assert_eq!(want.len(), frames.len());
        let entries = self.pagemap.entries(into.span());
        let entries = entries.map_err(Error::system("reading /proc/self/pagemap"))?;
        let color = |frame| self.colors.of(frame) as u16;
        Ok(entries.into_iter().map(|entry| entry.frame().map(color)).collect())
    }
}

/// Frames that lie one behind the other: first and number.
pub(crate) fn runs(frames: &[Frame]) -> Vec<(usize, usize)> {
    runs_by(frames.len(), |one, next| follows(frames[one], next - one, frames[next]))
}

/// Parts of `0..count`, each as long as `beside` holds of its first and its next: first and number.
pub(super) fn runs_by(count: usize, beside: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in 0..count {
        match runs.last_mut() {
            Some((first, count)) if beside(*first, at) => *count += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// The colors of these pages.
fn at(want: &[u16], places: &[usize]) -> Vec<u16> {
    places.iter().map(|&place| want[place]).collect()
}

fn follows(first: Frame, count: usize, frame: Frame) -> bool {
    first.chunk == frame.chunk && first.page as usize + count == frame.page as usize
}

fn refused(address: usize, stop: Stop) -> Error {
    let why = match stop {
        Stop::Occupied => "it has a frame already".to_string(),
        Stop::Unfit => "its mapping cannot take moved pages (locked, read-only, or not anonymous)".to_string(),
        Stop::Hole => "it is not mapped any more".to_string(),
        Stop::Busy | Stop::Again => "the kernel is busy with it".to_string(),
        Stop::Other(number) => std::io::Error::from_raw_os_error(number).to_string(),
    };
    Error::Unfit { address, why }
}
