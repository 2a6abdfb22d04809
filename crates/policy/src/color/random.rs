//! Random colors: those of a kernel without any coloring, on average.

use crate::random::Random;
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct RandomColors {
    random: Random,
}

/// `seed`: the same seed gives the same colors.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(RandomColors {
        random: Random::new(settings.integer("seed")),
    }))
}

impl Policy for RandomColors {
    fn place(&mut self, _touch: &Touch, world: &World) -> Placement {
        Placement {
            color: Some(self.random.below(world.colors)),
            node: None,
        }
    }
}
