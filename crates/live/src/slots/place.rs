//! The engine as slots need it: puts pages into frames of given colors, checks them, and releases them.

use policy::slots::ColorSet;

use crate::{Census, Done, Engine, Error, Others, PAGE_BYTES, Pages, Wish};

/// An engine that moves pages.
pub trait Place: Send {
    /// Gives the pages of all runs frames of these colors, in turn from run to run. They keep their content, after
    /// an error too; some pages may then have moved.
    ///
    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn color(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<Done, Error>;

    /// Counts the pages that have frames of these colors.
    fn census(&mut self, runs: &[Pages], colors: &ColorSet) -> Result<Census, Error>;

    /// Restores the colors of pages that the kernel has moved. Returns their number, and the work
    /// done.
    ///
    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn repair(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<(usize, Done), Error>;

    /// Frees the resources kept for pages that no longer belong to a data set. The pages keep
    /// their content.
    fn release(&mut self, run: Pages) -> Result<(), Error>;

    /// Returns the pages' frames to their origin: their content is no longer needed.
    ///
    /// # Safety
    /// As for [`Engine::empty`].
    unsafe fn empty(&mut self, run: Pages) -> Result<(), Error>;

    /// The last error of the source of frames, if there was one.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// The frames that the source lacked the last time, though it served.
    fn shortage(&self) -> Option<String> {
        None
    }
}

impl Place for Engine {
    unsafe fn color(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<Done, Error> {
        let in_turn: Vec<u16> = colors.iter().map(|color| color as u16).collect();
        // The turn starts by address, so that neighbouring blocks that come one by one continue each
        // other's.
        let mut turn = runs.first().map_or(0, |run| run.start / PAGE_BYTES);
        let mut sum = Done {
            locked: true,
            ..Done::default()
        };
        for &run in runs {
            // The engine begins each run with the same color: of many short ones the first color would get most.
            let wish = if run.count >= LONG * in_turn.len() || in_turn.is_empty() {
                Wish::Set(colors.clone())
            } else {
                let color = |page: usize| (page, in_turn[(turn + page) % in_turn.len()]);
                Wish::Hints((0..run.count).map(color).collect())
            };
            turn += run.count;
            // SAFETY: the caller's promise.
            add(&mut sum, unsafe { Engine::color(self, run, &wish, others) }?);
        }
        Ok(sum)
    }

    fn census(&mut self, runs: &[Pages], colors: &ColorSet) -> Result<Census, Error> {
        let mut sum = Census::default();
        for &run in runs {
            let one = Engine::census(self, run, colors)?;
            sum.pages += one.pages;
            sum.right += one.right;
            sum.wrong += one.wrong;
            sum.absent += one.absent;
            sum.unknown += one.unknown;
            sum.by_color.resize(sum.by_color.len().max(one.by_color.len()), 0);
            for (sum, pages) in sum.by_color.iter_mut().zip(one.by_color) {
                *sum += pages;
            }
        }
        Ok(sum)
    }

    unsafe fn repair(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<(usize, Done), Error> {
        let mut sum = (
            0,
            Done {
                locked: true,
                ..Done::default()
            },
        );
        for &run in runs {
            // SAFETY: the caller's promise.
            let repaired = unsafe { Engine::repair(self, run, colors, others) }?;
            sum.0 += repaired.wrong;
            add(&mut sum.1, repaired.done);
        }
        Ok(sum)
    }

    fn release(&mut self, run: Pages) -> Result<(), Error> {
        Engine::release(self, run)
    }

    unsafe fn empty(&mut self, run: Pages) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { Engine::empty(self, run) }
    }

    fn trouble(&self) -> Option<String> {
        let why = Engine::trouble(self)?;
        Some(format!("{why}; meanwhile frames are this process's own"))
    }

    fn shortage(&self) -> Option<String> {
        Engine::shortage(self).map(str::to_string)
    }
}

/// Runs of so many pages a color are even enough by themselves; in them pages may keep frames that they have.
const LONG: usize = 8;

fn add(sum: &mut Done, one: Done) {
    sum.pages += one.pages;
    sum.kept += one.kept;
    sum.filled += one.filled;
    sum.exchanged += one.exchanged;
    sum.supplied += one.supplied;
    sum.left.extend(one.left);
    sum.locked &= one.locked;
    sum.longest = sum.longest.max(one.longest);
}

/// Moves nothing: under `domicile record`, where the trace keeps the requests instead.
pub(super) struct Nothing;

impl Place for Nothing {
    unsafe fn color(&mut self, runs: &[Pages], _: &ColorSet, _: Others) -> Result<Done, Error> {
        Ok(Done {
            pages: pages(runs),
            ..Done::default()
        })
    }

    fn census(&mut self, runs: &[Pages], _: &ColorSet) -> Result<Census, Error> {
        Ok(Census {
            pages: pages(runs),
            unknown: pages(runs),
            ..Census::default()
        })
    }

    unsafe fn repair(&mut self, _: &[Pages], _: &ColorSet, _: Others) -> Result<(usize, Done), Error> {
        Ok((0, Done::default()))
    }

    fn release(&mut self, _: Pages) -> Result<(), Error> {
        Ok(())
    }

    unsafe fn empty(&mut self, _: Pages) -> Result<(), Error> {
        Ok(())
    }
}

fn pages(runs: &[Pages]) -> usize {
    runs.iter().map(|run| run.count).sum()
}
