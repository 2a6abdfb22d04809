//! What a machine is: caches, colors, TLBs, nodes and latencies.
//!
//! A [`Machine`] is read from a TOML description or from Linux; it is plain data.
#![forbid(unsafe_code)]

mod model;

pub use model::{Cache, Index, IndexHash, Kind, Machine, Memory, Replacement, Tlb, Write};
