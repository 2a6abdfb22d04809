//! The hints that a policy wants, and the form in which it gets them: the colors of pages.

use std::collections::HashMap;

use crate::page::Page;

/// The source of the hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// From summaries if there are any, else from the trace.
    Auto,
    /// The compiler's summaries of parallel loops.
    Summaries,
    /// The cpus that touch each page, as a trace shows.
    Trace,
}

/// The hints that a policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wanted {
    pub from: Source,
    /// True if the ways of coloring are weighed against each other ([`weighed`](super::weighed)); false: the five steps as they are.
    pub weigh: bool,
    /// [`Machine::fit`](super::Machine::fit).
    pub fit: bool,
}

/// The preferred colors of pages, of all address spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageColors {
    colors: HashMap<Page, u32>,
}

impl PageColors {
    /// The color that is asked for.
    pub fn of(&self, page: Page) -> Option<u32> {
        self.colors.get(&page).copied()
    }

    /// Pages with a hint.
    pub fn len(&self) -> usize {
        self.colors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.colors.is_empty()
    }
}

impl FromIterator<(Page, u32)> for PageColors {
    fn from_iter<I: IntoIterator<Item = (Page, u32)>>(colors: I) -> Self {
        PageColors {
            colors: colors.into_iter().collect(),
        }
    }
}
