//! Decisions: where pages and work should be.
//!
//! Pure code. A policy is given observations and a [`World`] and returns placements; it never
//! knows whether the world is simulated or live, reads no clock, does no I/O and holds no
//! global state. The same inputs and seed give the same decisions.
//!
//! A policy that only places pages is one file in `color/` or `homes/` and one entry in [`registry`]. CONTRIBUTING.md
//! lists the other places for a policy that observes. The seam is [`Policy`]; ARCHITECTURE.md groups its functions.
//!
//! [`order`] decides in which order work runs, rather than where pages are. [`Name`] is a policy's name, read once.
#![forbid(unsafe_code)]

mod best_homes;
pub mod cdpc;
mod color;
mod combine;
mod domains;
mod homes;
mod name;
pub mod order;
mod page;
mod random;
pub mod regions;
mod registry;
mod seam;
mod settings;
pub mod slots;
mod work;

pub use best_homes::{BestHomes, HomesFrom};
pub use combine::Combined;
pub use domains::{Bounds, Domains, Following};
pub use name::{Name, build, work_order};
pub use page::Page;
pub use random::Random;
pub use registry::{entry, registry};
pub use seam::{
    Accessed, Action, Cost, Interest, Miss, MissAt, MissLevel, Nature, Observation, Placement, Policy, Pressure,
    Prices, Ran, SlotWord, Tick, Touch, Touched, World,
};
pub use settings::{Entry, Kind, Later, Param, PolicyError, Range, Settings, Traits};
pub use work::WorkOrder;
