//! A color policy and a home policy at work together: `first-touch+page-coloring`.

use std::sync::Arc;

use crate::best_homes::{BestHomes, HomesFrom};
use crate::cdpc::{PageColors, Wanted};
use crate::page::Page;
use crate::seam::{
    Accessed, Action, Interest, MissAt, Observation, Placement, Policy, Prices, Touch, World, one_by_one,
};

/// Each part decides where it has an opinion, and the first part that has one prevails; a part that
/// asked for observations sees every one that any part asked for.
pub struct Combined {
    parts: Vec<Box<dyn Policy>>,
    /// Places of the parts that observe.
    observing: Vec<usize>,
}

impl Combined {
    pub fn new(parts: Vec<Box<dyn Policy>>) -> Self {
        let observes = |part: &&usize| parts[**part].interest() != Interest::NONE;
        let places: Vec<usize> = (0..parts.len()).collect();
        Combined {
            observing: places.iter().filter(observes).copied().collect(),
            parts,
        }
    }
}

impl Policy for Combined {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let mut placement = Placement::default();
        for part in &mut self.parts {
            let opinion = part.place(touch, world);
            placement.color = placement.color.or(opinion.color);
            placement.node = placement.node.or(opinion.node);
        }
        placement
    }

    fn interest(&self) -> Interest {
        self.parts
            .iter()
            .fold(Interest::NONE, |all, part| all.union(part.interest()))
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        for &part in &self.observing {
            self.parts[part].observe(observation, world, actions);
        }
    }

    fn observe_misses(&mut self, misses: &[MissAt], world: &mut World, actions: &mut Vec<Action>) -> usize {
        match self.observing[..] {
            [only] => self.parts[only].observe_misses(misses, world, actions),
            _ => one_by_one(misses, world, actions, |miss, world, actions| {
                self.observe(miss, world, actions);
            }),
        }
    }

    fn observe_accessed(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        for &part in &self.observing {
            self.parts[part].observe_accessed(accessed, world, actions);
        }
    }

    fn hints_wanted(&self) -> Option<Wanted> {
        self.parts.iter().find_map(|part| part.hints_wanted())
    }

    fn take_hints(&mut self, hints: &Arc<PageColors>) {
        for part in &mut self.parts {
            part.take_hints(hints);
        }
    }

    fn wants_best_homes(&self) -> Option<HomesFrom> {
        self.parts.iter().find_map(|part| part.wants_best_homes())
    }

    fn take_best_homes(&mut self, homes: &Arc<BestHomes>) {
        for part in &mut self.parts {
            part.take_best_homes(homes);
        }
    }

    fn wants_prices(&self) -> bool {
        self.parts.iter().any(|part| part.wants_prices())
    }

    fn take_prices(&mut self, prices: &Arc<Prices>) {
        for part in &mut self.parts {
            part.take_prices(prices);
        }
    }

    fn wants_bounds(&self) -> bool {
        self.parts.iter().any(|part| part.wants_bounds())
    }

    fn colors(&self, page: Page) -> bool {
        self.parts.iter().any(|part| part.colors(page))
    }

    fn slots(&self) -> Option<results::Slots> {
        self.parts.iter().find_map(|part| part.slots())
    }

    fn pairing(&self) -> Option<results::Pairing> {
        self.parts.iter().find_map(|part| part.pairing())
    }

    fn regions(&self) -> Option<results::Regions> {
        self.parts.iter().find_map(|part| part.regions())
    }
}
