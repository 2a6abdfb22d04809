//! Policy `cdpc`: pages get the colors that hints ask for (Bugnion96, section 5.3).
//!
//! The policy is handed its hints before the run, by a world that knows where they come from: what the compiler said
//! of each loop, or what a trace shows. It is the table that the paper adds to the virtual memory subsystem; as
//! there, a page without a hint falls to the kernel's own way.

use std::sync::Arc;

use crate::cdpc::{PageColors, Source, Wanted};
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

/// The names of `cdpc.from`.
pub const FROM: &[&str] = &["auto", "summaries", "trace"];
/// The names of `cdpc.weigh`.
pub const WEIGH: &[&str] = &["no", "yes"];
/// The names of `cdpc.rest`.
pub const REST: &[&str] = &["page-coloring", "bin-hopping"];

pub struct Hinted {
    wanted: Wanted,
    hints: Arc<PageColors>,
    rest: Rest,
}

/// What the others get: pages that are consecutive, or touched one after the other, get consecutive colors.
enum Rest {
    PageColoring,
    BinHopping { next: u64 },
}

/// `from`: where hints come from; `weigh`: whether static policies may be chosen; `rest`: what pages without a hint get.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Hinted {
        wanted: Wanted {
            from: match settings.integer("from") {
                0 => Source::Auto,
                1 => Source::Summaries,
                _ => Source::Trace,
            },
            weigh: settings.integer("weigh") == 1,
        },
        hints: Arc::default(),
        rest: match settings.integer("rest") {
            0 => Rest::PageColoring,
            _ => Rest::BinHopping { next: 0 },
        },
    }))
}

impl Rest {
    fn color(&mut self, page: u64, colors: u64) -> u32 {
        let number = match self {
            Rest::PageColoring => page,
            Rest::BinHopping { next } => {
                let number = *next;
                *next = next.wrapping_add(1);
                number
            }
        };
        (number % colors) as u32
    }
}

impl Policy for Hinted {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let color = match self.hints.of(touch.page) {
            Some(color) => color % world.colors,
            None => self.rest.color(touch.page.number, u64::from(world.colors)),
        };
        Placement {
            color: Some(color),
            node: None,
        }
    }

    fn hints_wanted(&self) -> Option<Wanted> {
        Some(self.wanted)
    }

    fn take_hints(&mut self, hints: &Arc<PageColors>) {
        self.hints = Arc::clone(hints);
    }
}
