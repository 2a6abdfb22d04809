//! The description of a machine: caches, colors, TLBs, nodes and latencies.
//!
//! A [`Machine`] is read from a TOML description ([`load`], [`from_toml`]; the format is described
//! in [`mod@format`]) or from Linux ([`host()`]); it is plain data. [`presets`] are the
//! descriptions that come with Domicile.
#![forbid(unsafe_code)]

mod check;
mod colors;
mod error;
pub mod format;
mod frame_colors;
mod host;
mod keys;
mod model;
mod presets;
mod write;

pub use check::{CACHE_BYTES_MAX, CPUS_MAX, NODES_MAX};
pub use error::{Fault, MachineError};
pub use format::{from_toml, load};
pub use frame_colors::{ColorSource, Colors, NotColors};
pub use host::{HostReport, HugePages, Note, Trust, host};
pub use model::{
    Cache, Core, FarPages, Gains, HugeData, Index, IndexHash, Kind, Machine, Memory, Prefetch, Regions, Replacement,
    SoftwarePrefetch, Stride, Tier, Tlb, Write,
};
pub use presets::{Preset, presets};
