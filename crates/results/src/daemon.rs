//! How the memory manager fares.

use serde::{Deserialize, Serialize};

/// The output of `daemon status --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonStatus {
    pub socket: String,
    /// Its process.
    pub process: u32,
    pub up_seconds: u64,
    /// Connected programs, without the one that asks.
    pub clients: u64,
    pub colors: DaemonColors,
    pub frames: DaemonFrames,
    pub cache_free_bytes: FreeCache,
    /// Memory of handed-out frames that one user may hold.
    pub quota_bytes: u64,
    pub pressure: DaemonPressure,
    pub memory: DaemonMemory,
    /// Abandoned checks of clients' page maps.
    pub looks_given_up: u64,
}

/// The colors that it hands out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonColors {
    pub count: u32,
    /// Lowest bit of a frame's address that belongs to the color.
    pub first_bit: u32,
    /// Bytes of cache that one color stands for.
    pub bytes: u64,
    pub cache: String,
    /// How the colors are known: measured, or given by the user.
    pub source: String,
}

/// Frames, in pages of 4096 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonFrames {
    pub at_hand: u64,
    /// How many it should have available.
    pub target: u64,
    /// Available frames, by color.
    pub by_color: Vec<u64>,
    /// Handed out in all.
    pub released: u64,
    /// Of the checked frames, how many reached the client that had asked, and how many did not.
    pub hits: u64,
    pub misses: u64,
    pub returned: u64,
    /// Frames that were handed out and are still held.
    pub held: u64,
}

/// Cache without a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FreeCache {
    pub private_slots: u64,
    pub one_slot_on_all_cpus: u64,
}

/// Frames that it released when memory was short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonPressure {
    /// How often.
    pub releases: u64,
    pub frames: u64,
}

/// Memory of the daemon itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DaemonMemory {
    pub own_bytes: u64,
    /// The limit of its control group, and how much of it is left; null where there is no limit.
    pub limit_bytes: Option<u64>,
    pub left_bytes: Option<u64>,
}
