//! Round robin: the nodes in turn, in the order of page faults (Verghese96, section 6).

use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct RoundRobin {
    next: u64,
}

impl RoundRobin {
    /// `start`: the node of the first page that is touched.
    pub fn from(start: u64) -> RoundRobin {
        RoundRobin { next: start }
    }
}

/// `start`: the node of the first page that is touched.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(RoundRobin::from(settings.integer("start"))))
}

impl Policy for RoundRobin {
    fn place(&mut self, _touch: &Touch, world: &World) -> Placement {
        let node = self.next % u64::from(world.nodes);
        self.next = self.next.wrapping_add(1);
        Placement {
            color: None,
            node: Some(node as u32),
        }
    }
}
