//! Policy `cdpc`: pages get the colors that hints ask for (Bugnion96, section 5.3).
//!
//! The policy is handed its hints before the run, by a world that knows their source: the compiler's summaries
//! of loops, or a trace. It is the table that the paper adds to the virtual memory subsystem; as
//! there, a page without a hint falls to the kernel's own way.

use std::sync::Arc;

use crate::cdpc::{PageColors, Source, Wanted};
use crate::page::Page;
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

/// The names of `cdpc.from`.
pub const FROM: &[&str] = &["auto", "summaries", "trace"];
/// The names of `cdpc.weigh` and `cdpc.fit`.
pub const NO_YES: &[&str] = &["no", "yes"];
/// The names of `cdpc.rest`.
pub const REST: &[&str] = &["page-coloring", "bin-hopping", "auto"];

pub struct Hinted {
    wanted: Wanted,
    hints: Arc<PageColors>,
    rest: Rest,
}

/// The colors of pages without hints.
struct Rest {
    way: Way,
    /// Pages placed by bin hopping so far.
    hopped: u64,
}

/// Pages that are consecutive, or touched one after the other, get consecutive colors.
#[derive(Clone, Copy)]
enum Way {
    PageColoring,
    BinHopping,
    /// Bin hopping if there are fewer hints than colors: nearly all data has none, and its arrays would collide if they
    /// begin at the same color. Else page coloring, which keeps neighbouring data apart, as most hints do.
    Auto,
}

/// `from`: the source of hints; `weigh`: allows choosing static policies; `fit`: lets pages exchange colors after the
/// paper's steps; `rest`: for pages without a hint.
pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Hinted {
        wanted: Wanted {
            from: match settings.integer("from") {
                0 => Source::Auto,
                1 => Source::Summaries,
                _ => Source::Trace,
            },
            weigh: settings.integer("weigh") == 1,
            fit: settings.integer("fit") == 1,
        },
        hints: Arc::default(),
        rest: Rest {
            way: match settings.integer("rest") {
                0 => Way::PageColoring,
                1 => Way::BinHopping,
                _ => Way::Auto,
            },
            hopped: 0,
        },
    }))
}

impl Rest {
    fn color(&mut self, page: u64, colors: u32, hints: usize) -> u32 {
        let hops = match self.way {
            Way::PageColoring => false,
            Way::BinHopping => true,
            Way::Auto => hints < colors as usize,
        };
        let number = if hops { self.hopped } else { page };
        self.hopped = self.hopped.wrapping_add(u64::from(hops));
        (number % u64::from(colors)) as u32
    }
}

impl Policy for Hinted {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let color = match self.hints.of(touch.page) {
            Some(color) => color % world.colors,
            None => self.rest.color(touch.page.number, world.colors, self.hints.len()),
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

    fn colors(&self, page: Page) -> bool {
        self.hints.of(page).is_some()
    }
}
