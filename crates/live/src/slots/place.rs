//! The engine as slots need it: puts pages into frames of given colors, and lets them go.

use policy::slots::ColorSet;

use crate::engine::{Census, Done, Engine, Wish};
use crate::{Error, Pages};

pub use crate::engine::Others;

/// What moves pages.
pub trait Place: Send {
    /// Gives the pages of all runs frames of these colors, in turn from run to run. What they hold stays as it is,
    /// after an error too; some pages may then have moved.
    fn color(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<Done, Error>;

    /// What colors the pages of all runs have now.
    fn census(&self, runs: &[Pages], colors: &ColorSet) -> Result<Census, Error>;

    /// The pages are nobody's data set any more: frees what was kept for them. What they hold stays.
    fn release(&mut self, run: Pages) -> Result<(), Error>;
}

impl Place for Engine {
    fn color(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<Done, Error> {
        let wish = Wish::Set(colors.clone());
        let mut sum = Done {
            locked: true,
            ..Done::default()
        };
        for &run in runs {
            let done = Engine::color(self, run, &wish, others)?;
            sum.pages += done.pages;
            sum.kept += done.kept;
            sum.filled += done.filled;
            sum.exchanged += done.exchanged;
            sum.supplied += done.supplied;
            sum.left.extend(done.left);
            sum.locked &= done.locked;
        }
        Ok(sum)
    }

    fn census(&self, runs: &[Pages], colors: &ColorSet) -> Result<Census, Error> {
        let mut sum = Census::default();
        for &run in runs {
            let census = Engine::census(self, run, colors)?;
            sum.pages += census.pages;
            sum.right += census.right;
            sum.wrong += census.wrong;
            sum.absent += census.absent;
            sum.unknown += census.unknown;
            sum.by_color.resize(sum.by_color.len().max(census.by_color.len()), 0);
            for (sum, pages) in sum.by_color.iter_mut().zip(census.by_color) {
                *sum += pages;
            }
        }
        Ok(sum)
    }

    fn release(&mut self, run: Pages) -> Result<(), Error> {
        Engine::release(self, run)
    }
}

/// Moves nothing: under `domicile record`, where the trace is told instead.
pub(super) struct Nothing;

impl Place for Nothing {
    fn color(&mut self, runs: &[Pages], _: &ColorSet, _: Others) -> Result<Done, Error> {
        let pages = runs.iter().map(|run| run.count).sum();
        Ok(Done {
            pages,
            kept: pages,
            ..Done::default()
        })
    }

    fn census(&self, runs: &[Pages], _: &ColorSet) -> Result<Census, Error> {
        let pages = runs.iter().map(|run| run.count).sum();
        Ok(Census {
            pages,
            unknown: pages,
            ..Census::default()
        })
    }

    fn release(&mut self, _: Pages) -> Result<(), Error> {
        Ok(())
    }
}
