//! Which pages are closed to which cpus, and the actions that make it so.

use crate::page::Page;
use crate::seam::Action;

#[derive(Default)]
pub struct Closing {
    cpus: u32,
    /// By the world's number of the page: bit c is cpu c.
    closed: Vec<u128>,
    /// The same outside of phases: what the tables of the caches say.
    tables: Vec<u128>,
    /// Entries of these that were changed.
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

    /// Closes a page to these cpus, and opens it to all others.
    pub fn set(&mut self, page: Page, index: u32, closed: u128, actions: &mut Vec<Action>) {
        if self.closed.len() <= index as usize {
            self.closed.resize(index as usize + 1, 0);
        }
        let before = std::mem::replace(&mut self.closed[index as usize], closed);
        let (open, close) = (before & !closed, closed & !before);
        if open != 0 {
            actions.push(Action::Open { page, cpus: open });
        }
        if close != 0 {
            actions.push(Action::Close { page, cpus: close });
        }
    }

    /// Outside of phases a page is closed to these cpus.
    pub fn keep(&mut self, index: u32, closed: u128) {
        if self.tables.len() <= index as usize {
            self.tables.resize(index as usize + 1, 0);
        }
        self.changed += u64::from(std::mem::replace(&mut self.tables[index as usize], closed) != closed);
    }

    /// How many entries of the caches' tables were changed since this was asked last.
    pub fn take_changed(&mut self) -> u64 {
        std::mem::take(&mut self.changed)
    }

    /// Opens a page to one cpu more.
    pub fn open_at(&mut self, page: Page, index: u32, cpu: u32, actions: &mut Vec<Action>) {
        let closed = self.closed.get(index as usize).copied().unwrap_or(0);
        self.set(page, index, closed & !(1 << cpu), actions);
    }
}
