//! The order of work: locality threads (Philbin96).
//!
//! A thread comes with up to [`HINTS_MAX`] hints, addresses or coordinates of its most used data. They are a point in a
//! space of as many dimensions (section 2.2). A [`Shape`] cuts that space into blocks whose sides add up to no more
//! than the cache ([`default_block`]), so that the threads of one block find their data there (section 2.3); [`Bins`]
//! gives every block that is used a number, its bin; and a [`Tour`] says in which order bins run.
//!
//! | what | where it comes from |
//! | --- | --- |
//! | [`Shape`]: blocks, folding of (h1, h2) and (h2, h1) | section 2.3 |
//! | [`Bins`]: hints to block to bin, in order of first fork | section 3.2: hash table and ready list |
//! | [`default_block`]: the sum of the sides is the last cache | section 3.2; reach of the TLB is ours |
//! | [`Tour::FirstFork`] | section 3.2: the ready list is traversed in order of allocation |
//! | [`Tour::Nearest`], [`Tour::Hilbert`] | section 2.3: "preferably the shortest" path; ours |
//! | [`caches_of`]: the cache that each bin runs at, run after run | with regions (Lee12); ours |
//! | bins of bins, [`Shape::within`] | section 6: one cache level only; ours |
//!
//! Nothing here knows the nature of a thread: the library of threads and the simulator both decide by this code.

mod bins;
mod caches;
mod default_block;
mod first_fork;
mod hilbert;
mod nearest;
mod shape;
mod tour;

pub use bins::{BinId, Bins, BinsError};
pub use caches::{caches_of, cut};
pub use default_block::{DefaultBlock, Limit, default_block};
pub use shape::{Block, Shape, ShapeError};
pub use tour::Tour;

/// The most hints that a thread can have, and so the most dimensions of a block.
pub const HINTS_MAX: usize = 8;
