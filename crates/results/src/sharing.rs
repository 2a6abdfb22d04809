//! The data that threads share, and the gain of placing the threads under the machine's caches by
//! that.

use serde::{Deserialize, Serialize};

use crate::detail::StructureKind;
use crate::lenient::ns;

/// The graph of the threads that share data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharingGraph {
    /// Data is counted in lines of this many bytes.
    pub line_bytes: u64,
    /// In the order of the trace.
    pub threads: Vec<SharingThread>,
    /// Pairs that share something, those with most misses first.
    pub edges: Vec<SharingEdge>,
    /// Further threads, which are neither distinguished nor examined.
    pub left_out: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharingThread {
    /// Its index in the trace.
    pub thread: u32,
    /// The system's name for it when it was recorded.
    pub number: u64,
    pub name: String,
    pub process: u32,
    /// The program that its process ran.
    pub program: String,
    /// Bytes of the lines that it touched.
    pub bytes: u64,
    /// Of these, those that another thread touched, too.
    pub shared: u64,
}

/// The data that two threads share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharingEdge {
    /// Their indexes in the trace, the lower one first.
    pub a: u32,
    pub b: u32,
    /// Bytes of the lines that both touched.
    pub bytes: u64,
    /// Of these, those that one of the two wrote.
    pub written: u64,
    /// How often one of them needed a line that the other one was the last to get, but did not have it yet, or only an
    /// older version. Sharing causes this many misses if each thread has its own cache that holds all its data, and
    /// none if both use one cache.
    pub misses: u64,
    /// The data, that with most misses first.
    pub structures: Vec<SharedStructure>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharedStructure {
    pub name: String,
    pub kind: StructureKind,
    pub bytes: u64,
    pub misses: u64,
}

/// Threads that belong under one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharingGroup {
    /// Indexes of the trace, in their order.
    pub threads: Vec<u32>,
    /// Bytes of the lines that any of them touched.
    pub bytes: u64,
    /// The sum of the edges between them.
    pub misses: u64,
    /// The instance of the cache that it is placed under, and its cpus there: one for each thread.
    pub cache: u32,
    pub cpus: Vec<u32>,
}

/// A way to place threads, simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ThreadPlacement {
    /// `in order`, `grouped` or `spread`.
    pub name: String,
    /// The first cpu of each thread.
    pub cpus: Vec<u32>,
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    /// The part of the run time of `in order` that it saves; negative where it costs time.
    pub gain: f64,
}

/// The threads that share data, and which threads belong under which cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SharingAdvice {
    /// The outermost cache of which the machine has several.
    pub cache: String,
    pub cache_bytes: u64,
    pub cpus_per_cache: u32,
    pub graph: SharingGraph,
    /// Those with most misses first; threads that belong with no other are groups of one.
    pub groups: Vec<SharingGroup>,
    /// The fastest first.
    pub placements: Vec<ThreadPlacement>,
    /// The same in words.
    pub verdict: String,
    /// The file to which the placement was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

impl SharingAdvice {
    /// A placement by its name.
    pub fn placement(&self, name: &str) -> Option<&ThreadPlacement> {
        self.placements.iter().find(|placement| placement.name == name)
    }
}
