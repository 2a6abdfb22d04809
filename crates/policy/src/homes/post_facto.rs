//! Post facto: each page lives from the first where most of its misses will come from. No system can know that; it is the
//! best that placing a page once can do (Verghese96, section 6.2.1).

use std::sync::Arc;

use crate::best_homes::BestHomes;
use crate::homes::first_touch::FirstTouch;
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

struct PostFacto {
    best: Arc<BestHomes>,
}

pub fn build(_settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(PostFacto { best: Arc::default() }))
}

impl Policy for PostFacto {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        match self.best.of(touch.page) {
            Some(node) => Placement {
                color: None,
                node: Some(node),
            },
            // Nobody misses on it: first touch is as good as anything.
            None => FirstTouch.place(touch, world),
        }
    }

    fn wants_best_homes(&self) -> bool {
        true
    }

    fn take_best_homes(&mut self, homes: &Arc<BestHomes>) {
        self.best = Arc::clone(homes);
    }
}
