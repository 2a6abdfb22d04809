//! Locality threads (Philbin96): work is given as small run-to-completion threads, each with hints about the memory
//! that it uses; threads that use the same memory run one after another.
//!
//! [`Scheduler`] keeps pending threads in bins, one for each block of the hints' space ([`Shape`]), and runs bin
//! after bin along a [`Tour`], on one worker or several. Threads can wait for earlier ones, fork further ones while
//! they run ([`Inside`]), and be kept to run again ([`Keep`]). [`Closures`] is a scheduler of closures.
//!
//! On a machine with several caches that each serve some cpus, [`Scheduler::run_at`] runs a bin in each run at the cache that has its
//! block from the run before ([`Caches`]).
//!
//! `policy::order` decides how hints determine the order; the simulator uses it as well.
#![forbid(unsafe_code)]

mod caches;
mod closures;
mod dependencies;
mod error;
mod groups;
mod id;
mod inside;
#[cfg(all(test, feature = "loom"))]
mod model;
mod queue;
mod run;
mod scheduler;
mod store;
mod sync;
mod turns;
mod waits;
mod worker;

pub use caches::Caches;
pub use closures::{Closure, Closures};
pub use error::Error;
pub use id::ThreadId;
pub use inside::Inside;
pub use policy::order::{DefaultBlock, HINTS_MAX, Limit, Shape, ShapeError, Tour, default_block};
pub use run::{Keep, Report};
pub use scheduler::Scheduler;
pub use sys::cache_domains::{CacheDomain, DomainsError};
