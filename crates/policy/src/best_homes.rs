//! Where the misses of each page come from, as known from another run.

use std::collections::HashMap;

use crate::page::Page;

/// The node whose cpus miss most, of each page that is missed on.
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
