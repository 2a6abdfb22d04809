//! Page coloring: consecutive virtual pages get consecutive colors (Bugnion96, section 2.1; IRIX).
//!
//! Two pages conflict only if their addresses differ by a multiple of the size of one way of the
//! cache. The physically indexed cache then behaves as a virtually indexed one.

use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct PageColoring {
    offset: u64,
}

/// `offset`: the color of page 0.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(PageColoring {
        offset: settings.integer("offset"),
    }))
}

impl Policy for PageColoring {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let color = touch.page.number.wrapping_add(self.offset) % u64::from(world.colors);
        Placement {
            color: Some(color as u32),
            node: None,
        }
    }
}
