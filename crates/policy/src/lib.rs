//! Decisions: where pages and work should be.
//!
//! Pure code. A policy is given observations and a [`World`] and returns placements; it never
//! knows whether the world is simulated or live, reads no clock, does no I/O and holds no
//! global state. The same inputs and seed give the same decisions.
//!
//! A policy is one file in one of the folders `color/` and `homes/`, and one line in
//! [`registry`]. The seam is [`Policy`]; its README tells the whole contract.
//!
//! [`order`] decides in which order work runs, rather than where pages are.
#![forbid(unsafe_code)]

mod color;
mod combine;
mod homes;
pub mod order;
mod random;
mod registry;
mod seam;
pub mod slots;
mod work;

pub use color::cdpc;
pub use combine::Combined;
pub use random::Random;
pub use registry::{Entry, Kind, Param, PolicyError, Range, Settings, build, entry, registry, work_order};
pub use seam::{
    Action, Cost, Interest, Miss, MissLevel, Observation, Page, Placement, Policy, Pressure, SlotWord, SlotsTold, Tick,
    Touch, Touched, World,
};
pub use work::WorkOrder;
