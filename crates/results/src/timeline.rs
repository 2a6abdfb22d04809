//! Waiting over time: the page-access map, and the waits of each thread.

use serde::{Deserialize, Serialize};

/// Intervals of equal length, from the first piece that waited or missed, with the waits in each. A wait counts in the
/// interval in which it ends, on the clock of its cpu.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Timeline {
    /// Nanoseconds of an interval: 1024, doubled until at most 128 intervals cover the run.
    pub interval_ns: u64,
    /// By data structure, the longest waits first; the last may be all others together.
    pub structures: Vec<TimelineRow>,
    /// By thread, in the order of their indices: the 63 that waited longest; the last may be all others together.
    pub threads: Vec<TimelineRow>,
    /// By place, in the order of processes and addresses. Places that were not touched beyond the first cache are left out.
    pub blocks: Vec<TimelineBlock>,
    /// By page color; with more than 64 colors, neighboring ones are summed. Absent if a page's frame has no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub colors: Vec<TimelineRow>,
    /// Pages that were moved to another node or copied to it, in each interval. Absent where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved_pages: Vec<u64>,
    /// The first 256 phases that the program named, in the order in which threads entered them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<TimelinePhase>,
}

/// A phase that the program named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimelinePhase {
    pub name: String,
    /// Nanoseconds since the timeline's begin. It lasts until the next phase.
    pub begin_ns: u64,
}

/// One structure or thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimelineRow {
    pub name: String,
    /// Nanoseconds that cpus waited for it in each interval, translation left out.
    pub stall_ns: Vec<u64>,
}

/// Adjacent pages: one, doubled until at most 192 blocks hold all touched pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TimelineBlock {
    /// Index of its process; 4294967295: of all processes beyond the first 192.
    pub process: u32,
    pub address: u64,
    pub bytes: u64,
    /// A data structure in it: the one with the longest waits, if those are more than half of all.
    pub structure: String,
    /// Nanoseconds that cpus waited for it in each interval.
    pub stall_ns: Vec<u64>,
    /// How often its data missed the first cache, in each interval.
    pub misses: Vec<u64>,
    /// Nanoseconds that threads waited for it, in the order of `threads` of the timeline.
    pub threads_stall_ns: Vec<u64>,
}
