//! Cache slots: which page colors a data set may use (Ding11, sections 3.1 and 3.2).
//!
//! A slot is some colors of the shared caches, private to the data sets given to it or shared with
//! all that has weak locality. Pure: what colors exist and how many frames of each are at
//! hand is told, and what comes back is a set of colors.

mod caches;
mod plan;
mod set;

pub use caches::{Caches, InvalidCaches, Kind, Status};
pub use plan::{Frame, Memory, PLAN_LIMIT, Place, Plan, PlanError, PlannedData, PlannedSlot, Site, Symbol, What};
pub use set::ColorSet;
