//! Work goes to the cache that holds its data (Lee and Schwan, "Region Scheduling", ASPLOS 2012, section 3.1, by another mechanism).
//!
//! A thread that uses more data than one cache holds, and stays in a part of it for some time, misses less if each part
//! stays in its own cache. [`Caches`] has one worker on each cache. [`Caches::home`] assigns data to a cache, and
//! [`Caches::ship`] runs a closure there while the caller waits:
//!
//! ```no_run
//! # fn main() -> Result<(), ship::StartError> {
//! let caches = ship::Caches::start()?;
//! let (names, prices) = (vec![0u64; 40_000], vec![0u64; 40_000]);
//! let (at_names, at_prices) = (caches.home(320_000), caches.home(320_000));
//! let first: u64 = caches.ship(&at_names, || names.iter().sum());
//! let second: u64 = caches.ship(&at_prices, || prices.iter().sum());
//! # let _ = (first, second);
//! # Ok(())
//! # }
//! ```
//!
//! The closure may borrow the caller's data: the call returns after it has ended. Its value is returned, and its panic
//! propagates. A closure that ships work itself waits for it, and its worker may run other shipped work meanwhile. So
//! no lock may be held over a call, and closures may not wait for one another: there is one worker for each cache. If
//! shipping cannot pay, the closure runs on the caller's thread at once; [`Caches::account`] counts these calls by
//! reason.
#![deny(unsafe_code)]

mod account;
mod caches;
mod cost;
mod home;
mod job;
mod trial;
mod worker;

pub use account::{Account, Inline};
pub use caches::{Caches, StartError};
pub use cost::Cost;
pub use home::Home;
pub use sys::cache_domains::CacheDomain;
