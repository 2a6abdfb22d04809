//! Many simulations: traces × machines × cpus × changes × seeds × policies × parameters.
//!
//! A [`Spec`] says which (TOML). Its [`Point`]s have one order, and each has a key that says all of it. [`run`]
//! simulates those that a file of results does not have yet, as many side by side as there are cpus, and hands each on
//! as a [`Row`]. [`Rows`] is that file (Parquet): it can be read at any time, and a sweep that was broken off goes on
//! after its last row.
#![forbid(unsafe_code)]

mod error;
mod file;
mod minimum;
mod points;
mod row;
mod run;
mod settings;
mod spec;

pub use error::SweepError;
pub use file::Rows;
pub use minimum::Minimum;
pub use points::{Group, Point};
pub use row::Row;
pub use run::{Limits, batches, check, failed, run, simulate, traces};
pub use settings::{NotSettings, Setting, settings};
pub use spec::Spec;
