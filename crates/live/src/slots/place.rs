//! The engine as slots need it: puts pages into frames of given colors, and lets them go.

use policy::slots::ColorSet;

use crate::{Error, Pages};

/// Who may touch a range while its pages move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Others {
    /// Nobody: the caller promises it. The quick way.
    Absent,
    /// Threads of the program, and the kernel for them.
    Running,
}

/// What moves pages.
pub trait Place: Send {
    /// Gives the pages of all runs frames of these colors, in turn from run to run. What they hold stays as it is,
    /// after an error too; some pages may then have moved.
    fn color(&mut self, runs: &[Pages], colors: &ColorSet, others: Others) -> Result<(), Error>;

    /// The pages are nobody's data set any more: frees what was kept for them. What they hold stays.
    fn release(&mut self, run: Pages) -> Result<(), Error>;
}

/// Moves nothing: under `domicile record`, where the trace is told instead.
pub(super) struct Nothing;

impl Place for Nothing {
    fn color(&mut self, _: &[Pages], _: &ColorSet, _: Others) -> Result<(), Error> {
        Ok(())
    }

    fn release(&mut self, _: Pages) -> Result<(), Error> {
        Ok(())
    }
}
