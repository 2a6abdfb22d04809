//! A page lives from the first where it is known beforehand that it should; the others on first touch.

use std::sync::Arc;

use crate::best_homes::{BestHomes, HomesFrom};
use crate::homes::first_touch::FirstTouch;
use crate::seam::{Placement, Policy, Touch, World};

pub struct Foretold {
    from: HomesFrom,
    best: Arc<BestHomes>,
}

impl Foretold {
    pub fn new(from: HomesFrom) -> Foretold {
        Foretold {
            from,
            best: Arc::default(),
        }
    }
}

impl Policy for Foretold {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        match self.best.of(touch.page) {
            Some(node) => Placement {
                color: None,
                node: Some(node),
            },
            None => FirstTouch.place(touch, world),
        }
    }

    fn wants_best_homes(&self) -> Option<HomesFrom> {
        Some(self.from)
    }

    fn take_best_homes(&mut self, homes: &Arc<BestHomes>) {
        self.best = Arc::clone(homes);
    }
}
