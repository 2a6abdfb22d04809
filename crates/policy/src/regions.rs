//! Regions: pages that a program uses together get a cache, and threads run where the cache of their region is
//! (Lee12: Lee and Schwan, "Region Scheduling", ASPLOS 2012).
//!
//! From the lowest up: [`partition`] has the region of each page, and the kind of each region; [`phase`] finds regions by the
//! touches of a short while; [`working_set`] estimates the part of a region that is in use; [`balance`] gives regions caches;
//! [`conditions`] decide if that pays; [`scheduler`] is the policy, which does all of it in turn; [`rest`] decides when. [`pairing`] gives whole
//! processes caches, by the same balancer.

pub mod balance;
mod closing;
pub mod conditions;
mod deciding;
pub mod pairing;
pub(crate) mod params;
pub mod partition;
pub mod phase;
mod report;
mod rest;
pub(crate) mod scheduler;
mod space;
mod switches;
pub mod working_set;
