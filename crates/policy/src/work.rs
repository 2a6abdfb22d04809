//! Policy `order`: which of a program's work items run one after another.
//!
//! It says nothing of pages. Worlds ask [`crate::work_order`] for its parameters and put work into the order that
//! [`crate::order`] decides, by the same code as the library of threads.

use crate::order::Tour;
use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

/// The parameters of policy `order`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkOrder {
    /// Side of a block along every dimension, in the units of the hints; 0: [`crate::order::default_block`].
    pub block: u64,
    /// The number of hints looked at, from the first on; 0: all, up to [`crate::order::HINTS_MAX`].
    pub hints: usize,
    /// True if hints in another order are the same hints.
    pub fold: bool,
    pub tour: Tour,
    /// Workers that share the bins; 0: one for each cpu.
    pub workers: u32,
    /// References between two items beyond which the second begins a new run; 0: the references that a loop needs.
    pub gap: u64,
}

/// The names of the tours, as `order.tour` takes them.
pub const TOURS: &[&str] = &["first-fork", "nearest", "hilbert"];

impl WorkOrder {
    pub(crate) fn new(settings: &Settings) -> WorkOrder {
        WorkOrder {
            block: settings.integer("block"),
            // All within the ranges that the entry declares.
            hints: settings.integer("hints") as usize,
            fold: settings.integer("fold") > 0,
            tour: match settings.integer("tour") {
                1 => Tour::Nearest,
                2 => Tour::Hilbert,
                _ => Tour::FirstFork,
            },
            workers: settings.integer("workers") as u32,
            gap: settings.integer("gap"),
        }
    }
}

/// The opinion of policy `order` on pages: none.
struct NoOpinion;

impl Policy for NoOpinion {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement::default()
    }
}

pub(crate) fn build(_settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(NoOpinion))
}
