//! The papers' tables and figures, and the same numbers from here.
//!
//! The numbers in a paper are data, in `papers/`; the way to get each number here is data too: the program, its
//! version, its size. Counts come from the simulator, fed with references of real programs; times come from running the
//! programs. The entry point is [`Reproduction`].
#![forbid(unsafe_code)]

mod claims;
mod counts;
mod error;
mod grid;
mod line;
mod overhead;
pub mod page;
mod pairs;
mod paper;
mod papers;
mod plot;
mod programs;
mod record;
mod region_items;
mod regions;
mod reproduce;
mod saved;
mod several;
mod slot_cost;
mod text;
mod times;
mod traces;
mod watch;

pub use error::ReproduceError;
pub use line::Line;
pub use paper::{Item, Kind, Malformed, Paper};
pub use papers::{About, Choice, PAPERS, Source};
pub use plot::plot;
pub use record::Keeping;
pub use reproduce::{Options, Reproduction, Section};
pub use slot_cost::{SlotCost, Way, measure as measure_slot_cost};
pub use text::{table, text};
pub use watch::{Step, Watch};
