//! First touch: a page lives on the node of the cpu that touches it first (Verghese96, section 6).

use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct FirstTouch;

pub fn build(_settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(FirstTouch))
}

impl Policy for FirstTouch {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        Placement {
            color: None,
            node: Some(world.node_of(touch.cpu)),
        }
    }
}
