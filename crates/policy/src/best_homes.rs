//! The best home of each page, as known before the run.

use std::collections::HashMap;

use crate::page::Page;

/// How the best homes are to be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomesFrom {
    /// From another run: the node whose cpus miss most on a page.
    Misses,
    /// From summaries of parallel loops: the node whose cpus' iterations touch a page most.
    Summaries,
}

/// The best node of each page that anything is known of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BestHomes(HashMap<Page, u32>);

impl BestHomes {
    pub fn new(homes: HashMap<Page, u32>) -> BestHomes {
        BestHomes(homes)
    }

    pub fn of(&self, page: Page) -> Option<u32> {
        self.0.get(&page).copied()
    }
}
