//! Cache slots: which page colors a data set may use (Ding11, sections 3.1 and 3.2).
//!
//! A slot is some colors of the shared caches, private to the data sets given to it or shared with
//! all that has weak locality. Pure: its input is the existing colors and the number of frames at
//! hand of each, its output a set of colors.

mod allocator;
mod caches;
mod choose;
mod claim;
mod decide;
mod huge;
mod ids;
mod plan;
mod propose;
mod refused;
mod set;
mod used;

pub use allocator::{Allocator, DataSet, Grant, OWNER_LIMIT, Owner, SetId, SlotId, Space};
pub use caches::{Caches, InvalidCaches, Kind, Status};
pub use huge::{Pair, Times, Weighed, on_huge_pages};
pub use plan::{PLAN_LIMIT, Plan, PlanError, PlannedData, PlannedSlot, What};
pub use propose::{Measured, Nothing, Part, Proposal, Role, propose};
pub use refused::{Free, Refused};
pub use set::ColorSet;
