//! Bin hopping: the colors in turn, in the order of page faults (Bugnion96, section 2.1; Digital UNIX).
//!
//! Pages that are first touched close in time never conflict. One turn is shared by all cpus and
//! address spaces, so cpus that fault together race for colors, as the paper describes.

use crate::registry::Settings;
use crate::{Placement, Policy, PolicyError, Touch, World};

pub struct BinHopping {
    next: u64,
}

/// `start`: the color of the first page that is touched.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(BinHopping {
        next: settings.integer("start"),
    }))
}

impl Policy for BinHopping {
    fn place(&mut self, _touch: &Touch, world: &World) -> Placement {
        let color = self.next % u64::from(world.colors);
        self.next = self.next.wrapping_add(1);
        Placement {
            color: Some(color as u32),
            node: None,
        }
    }
}
