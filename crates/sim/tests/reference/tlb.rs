//! A cpu's TLB: sets of pages, the one to evict first in front.

use std::collections::HashMap;

use policy::Page;

pub struct Tlb {
    sets: u64,
    ways: usize,
    held: HashMap<u64, Vec<Page>>,
    /// Lines of page tables in the order in which they were walked to, the last one at the end; and tiers of far ones.
    walked: Vec<Page>,
    far: Vec<machine::FarPages>,
    pub accesses: u64,
    pub misses: u64,
}

impl Tlb {
    pub fn new(tlb: &machine::Tlb) -> Tlb {
        let sets = tlb.entries / tlb.ways;
        Tlb {
            sets: u64::from(sets),
            ways: ((tlb.entries - tlb.wired) / sets).max(1) as usize,
            held: HashMap::new(),
            walked: Vec::new(),
            far: tlb.far.clone(),
            accesses: 0,
            misses: 0,
        }
    }

    /// Returns whether the page is there; it is afterwards.
    pub fn look_up(&mut self, page: Page) -> bool {
        let set = self.held.entry(page.number % self.sets).or_default();
        let hit = set.contains(&page);
        set.retain(|held| *held != page);
        set.push(page);
        if set.len() > self.ways {
            set.remove(0);
        }
        self.accesses += 1;
        self.misses += u64::from(!hit);
        hit
    }

    /// Walks to a page that was not there. Returns the time of that if it is far.
    pub fn walk(&mut self, page: Page) -> Option<f64> {
        let line = Page {
            number: page.number / 8,
            ..page
        };
        let before = self.walked.iter().rev().position(|walked| *walked == line);
        self.walked.retain(|walked| *walked != line);
        self.walked.push(line);
        let missed = |far: &&machine::FarPages| before.is_none_or(|before| before as u32 >= (far.pages / 8).max(1));
        self.far.iter().rfind(missed).map(|far| far.refill_ns)
    }

    pub fn holds(&self, page: Page) -> bool {
        self.held
            .get(&(page.number % self.sets))
            .is_some_and(|set| set.contains(&page))
    }

    pub fn remove(&mut self, page: Page) {
        self.held.values_mut().for_each(|set| set.retain(|held| *held != page));
    }
}
