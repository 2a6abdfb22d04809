//! The simulated world: caches, TLBs, coherence, memory, clocks and classes of misses.
#![forbid(unsafe_code)]

pub mod structures;
