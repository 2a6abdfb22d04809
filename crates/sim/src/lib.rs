//! The simulated world: caches, TLBs, coherence, memory, clocks and classes of misses.
//!
//! `README.md` specifies exactly what is simulated. The way in is [`simulate`] for a trace and [`simulate_refs`] for
//! references in memory; a machine, some policies and what to report make a [`Config`].
#![forbid(unsafe_code)]

mod back;
mod cache;
pub mod calibrate;
mod candidate;
mod causes;
mod cdpc;
mod changes;
mod clock;
mod coherence;
mod config;
mod counted;
mod counts;
mod curves;
mod detail;
mod directory;
mod distance;
mod domains;
mod dynamic;
mod engine;
mod error;
mod faults;
mod filter;
mod frames;
mod front;
mod held;
mod homes;
mod input;
mod layout;
mod loads;
mod lookup;
mod meeting;
mod memory;
mod miss_path;
pub mod misses;
mod others;
mod outcome;
mod overlap;
mod pages;
mod pieces;
mod prefetch;
mod recency;
mod run;
mod schedule;
mod scheduler;
mod scheduling;
mod sharing;
mod sharing_class;
mod simulate;
mod slots;
mod software_prefetch;
mod split;
mod steps;
mod stride_prefetch;
pub mod structures;
mod synchronization;
mod tlb;
mod tracing;
mod waits;
mod warm;
mod window;
mod work;

pub use candidate::{Named, Progress};
pub use causes::{Addresses, ElementField, Evidence, Place, Sampled, Step, StructureEvidence};
pub use cdpc::RunHints;
pub use config::{Config, Costs, Detail, LINUX, Order, PolicySpec, VERGHESE96, Window};
pub use curves::{CURVE_PAGES, CurveOutcome, CurvesOutcome};
pub use detail::UNKNOWN_CODE;
pub use engine::Traits;
pub use error::SimError;
pub use input::{Item, Run, Streams};
pub use outcome::{OtherNodes, Sharing, Simulated, ThreadSet};
pub use scheduling::{Scheduling, Times};
pub use simulate::{page_map, page_map_of_refs, simulate, simulate_refs, simulate_trace_with, simulate_with};
pub use slots::caches as slot_caches;

/// Bytes of a huge page on a machine with such pages.
pub fn huge_page_bytes(page_bytes: u64) -> u64 {
    changes::HugePages::bytes(page_bytes)
}
