//! Policies that choose a page's home: the node whose memory holds it.

mod counters;
mod feedback;
pub mod first_touch;
mod foretold;
pub mod interleave;
pub mod kernel_balancing;
pub mod migrate;
pub mod migrate_replicate;
mod on_misses;
pub mod params;
pub mod post_facto;
pub mod replicate;
pub mod round_robin;
pub mod summary_homes;
mod tree;
mod worth;
