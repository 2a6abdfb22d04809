//! What region scheduling found and did.

use serde::{Deserialize, Serialize};

/// Whether it pays to spread a program's regions over several caches, or why not (Lee12, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RegionsVerdict {
    Pays,
    /// No regioning phase was finished: the run was too short.
    #[default]
    NotYet,
    /// Fewer than two regions were found, or none was ever left.
    NoRegions,
    /// Condition 1: regions change so often that moving the thread costs more than it saves.
    StaysTooShort,
    /// Condition 1: regions change so seldom that there is little to save.
    StaysTooLong,
    /// Condition 2: all of it fits into one cache.
    FitsOneCache,
    /// Condition 3: all caches together are too small for it.
    FitsNoCaches,
}

/// What became of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsProcess {
    pub process: u32,
    /// As last judged. Unless it is `pays`, ordinary scheduling ran.
    pub verdict: RegionsVerdict,
    /// Bytes in use, as access bits say.
    pub working_set_bytes: u64,
    /// The mean time from one change of region to the next; `null`: none was seen.
    pub stay_ns: Option<u64>,
    /// The cache that all of it was given, where it was not spread.
    pub cache: Option<u32>,
}

/// A region when the last phase ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Region {
    pub process: u32,
    /// `regular`, `local` or `global`; seed regions are counted in [`Regions::seeds`].
    pub kind: String,
    pub cache: Option<u32>,
    pub pages: u64,
    pub working_set_bytes: u64,
    /// Addresses of its first pages, in order.
    pub addresses: Vec<u64>,
}

/// A moment of the run, after a regioning phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsMoment {
    pub at_ns: u64,
    /// By cache: regions that have it, and the sum of their working sets.
    pub regions: Vec<u64>,
    pub load_bytes: Vec<u64>,
    /// Regions without a cache, and pages by themselves.
    pub regular: u64,
    pub seeds: u64,
    /// So far.
    pub switches: u64,
    pub merges: u64,
    pub global_pages: u64,
}

/// What region scheduling found and did in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Regions {
    /// The caches that regions were given, how many, and the bytes of each.
    pub cache: String,
    pub caches: u32,
    pub cache_bytes: u64,
    pub phases: u64,
    /// Touches of closed pages in regioning phases, and regions merged.
    pub touches: u64,
    pub merges: u64,
    pub torn_down: u64,
    /// Pages that left their region because they alone caused its switches.
    pub excluded: u64,
    /// Times that a thread was moved to the cache of the region that it touched.
    pub switches: u64,
    /// Times that the region was opened instead, since a cpu would have had nothing to run.
    pub opened: u64,
    /// Times that ordinary scheduling took over again.
    pub given_up: u64,
    pub seeds: u64,
    pub global_pages: u64,
    pub processes: Vec<RegionsProcess>,
    pub regions: Vec<Region>,
    pub moments: Vec<RegionsMoment>,
}
