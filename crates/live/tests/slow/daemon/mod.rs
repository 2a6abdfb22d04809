//! The daemon and its clients as processes: what is handed over, what hostile and dying ones can do.
//!
//! These need root, as the daemon does; elsewhere they assert its refusal.

mod children;
mod deaths;
mod handing;
mod hostile;
pub mod house;
mod inherited;
mod limits;
mod looks;
pub mod machines;
mod metrics;
mod room;
