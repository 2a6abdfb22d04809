//! The pages that are closed to each cpu, and the actions that close them.

use crate::page::Page;
use crate::seam::Action;

/// A page: bit c is cpu c.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Closed {
    now: u128,
    /// Outside of phases: the content of the caches' tables.
    kept: u128,
}

#[derive(Default)]
pub struct Closing {
    cpus: u32,
    /// By the world's number of the page.
    pages: Vec<Closed>,
    /// Entries of the caches' tables that were changed.
    changed: u64,
}

impl Closing {
    pub fn meet(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// All cpus.
    pub fn all(&self) -> u128 {
        u128::MAX >> (128 - self.cpus.clamp(1, 128))
    }

    /// Closes a page to the cpus `now`, and opens it to all others. Outside of phases it is closed to `kept`.
    #[inline]
    pub fn set(&mut self, page: Page, index: u32, now: u128, kept: u128, actions: &mut Vec<Action>) {
        let closed = Closed { now, kept };
        let at = self.at(index);
        if *at == closed {
            return;
        }
        let before = std::mem::replace(at, closed);
        self.changed += u64::from(before.kept != kept);
        let (open, close) = (before.now & !now, now & !before.now);
        if open != 0 {
            actions.push(Action::Open { page, cpus: open });
        }
        if close != 0 {
            actions.push(Action::Close { page, cpus: close });
        }
    }

    /// The number of entries of the caches' tables changed since the last call.
    pub fn take_changed(&mut self) -> u64 {
        std::mem::take(&mut self.changed)
    }

    /// Opens a page to one cpu more.
    pub fn open_at(&mut self, page: Page, index: u32, cpu: u32, actions: &mut Vec<Action>) {
        let Closed { now, kept } = *self.at(index);
        self.set(page, index, now & !(1 << cpu), kept, actions);
    }

    fn at(&mut self, index: u32) -> &mut Closed {
        if self.pages.len() <= index as usize {
            self.pages.resize(index as usize + 1, Closed::default());
        }
        &mut self.pages[index as usize]
    }
}
