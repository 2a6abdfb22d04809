//! The daemon and its clients as processes: the handing over of frames, and the effects of hostile
//! and dying ones.
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
