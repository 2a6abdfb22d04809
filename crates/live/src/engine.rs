//! The engine: gives the pages of a range frames of chosen colors, and loses nothing on the way.
//!
//! How pages are exchanged while the program runs, and what each error means for them, is told in
//! the README beside this crate.

mod means;
mod outcome;

pub use means::{Config, Knowledge, Lock, Means, Placing};
pub use outcome::{Census, Done, Left, Repaired, Why};

use policy::slots::ColorSet;

use crate::{Error, Pages};

/// Which colors the pages of a range are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Any of the set for each page, about as many pages of each color.
    Set(ColorSet),
    /// Pages, counted from the start of the range, and the color of each; all other pages stay as
    /// they are.
    Hints(Vec<(usize, u16)>),
}

/// Who else may touch the range meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody: the caller promises it.
    Absent,
    /// Threads of the program, and the kernel on their behalf.
    Running,
}

/// See the module's documentation.
pub struct Engine {
    config: Config,
    means: Means,
}

impl Engine {
    /// Finds out what works here. Fails only where no means at all is left, or where a means that
    /// the configuration forces does not work.
    pub fn open(config: Config) -> Result<Engine, Error> {
        let means = Means::default();
        Ok(Engine { config, means })
    }

    /// What is in use, and why.
    pub fn means(&self) -> &Means {
        &self.means
    }

    /// Gives the pages of a range frames of the colors wished for. Their content stays.
    pub fn color(&mut self, range: Pages, wish: &Wish, others: Others) -> Result<Done, Error> {
        let _ = (range, wish, others, &self.config);
        Err(Error::Unavailable {
            what: "coloring".into(),
            why: "not written yet".into(),
        })
    }

    /// Looks which pages have a color of the set.
    pub fn census(&self, range: Pages, set: &ColorSet) -> Result<Census, Error> {
        let _ = (range, set);
        Ok(Census::default())
    }

    /// Finds the pages of a range whose frames have no color of the set (any more), and colors
    /// these alone.
    pub fn repair(&mut self, range: Pages, set: &ColorSet, others: Others) -> Result<Repaired, Error> {
        let done = self.color(range, &Wish::Set(set.clone()), others)?;
        Ok(Repaired { wrong: 0, done })
    }

    /// The range needs its colors no more: what keeps its pages from moving is undone. The pages
    /// keep their frames.
    pub fn release(&mut self, range: Pages) -> Result<(), Error> {
        let _ = range;
        Ok(())
    }
}
