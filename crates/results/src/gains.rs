//! Gains of simulated changes: work in another order, cache slots, hints for page colors.

use serde::{Deserialize, Serialize};

use crate::lenient::ns;
use crate::outcome::Work;
use crate::placed::Cdpc;

/// A count as things are, and with the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    pub before: u64,
    pub after: u64,
}

/// One order of work against the work as it was, on the same placement of pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WorkAdvice {
    /// The policy with `order`, and the same without it.
    pub policy: String,
    pub against: String,
    pub work: Work,
    /// Predicted time of the whole run in the new order and in the old one.
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    #[serde(deserialize_with = "ns")]
    pub against_ns: u64,
    /// The part of the old time that is saved; negative where the new order is slower.
    pub gain: f64,
    /// The time saved for each item: forking an item may cost as much. Forking is not simulated.
    pub gain_ns_per_item: f64,
    pub caches: Vec<CacheChange>,
    /// The same in words.
    pub verdict: String,
}

/// Misses of one kind of cache in the old order and in the new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CacheChange {
    pub name: String,
    pub level: u8,
    pub misses: Change,
    /// By class of misses, those that there are in either order.
    pub classes: Vec<(String, Change)>,
}

/// A partition that is proposed, and what it was predicted to gain. Without data: nothing is proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SlotAdvice {
    /// The policy with the proposed plan, by its name among the policies, and the baseline.
    pub policy: String,
    pub against: String,
    /// The partitioned cache, its size, and the bytes of one color.
    pub cache: String,
    pub bytes: u64,
    pub color_bytes: u64,
    /// Predicted time of the whole run with the plan, and without.
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    #[serde(deserialize_with = "ns")]
    pub against_ns: u64,
    /// The part of the time that is saved; negative where the plan costs time.
    pub gain: f64,
    /// Misses of that cache, of all data.
    pub misses: Change,
    pub data: Vec<SlotData>,
    /// Why nothing is proposed.
    pub why_not: String,
    /// The plan, as a file of `domicile run --slots` and `domicile simulate --slots`; where it was written.
    pub plan: String,
    pub written: Option<String>,
    /// The loss of huge pages, if data would be on them; the times above are then those with huge pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<HugePagesLost>,
    /// All this in words.
    pub verdict: String,
}

/// The loss by colored pages if the system puts data on huge pages: colored pages are small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HugePagesLost {
    /// Bytes of the colored data that would be on huge pages.
    pub bytes: u64,
    /// Predicted time of the whole run on huge pages without colors, and with the colors, whose data is on small pages.
    #[serde(deserialize_with = "ns")]
    pub against_ns: u64,
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    /// The time that fewer misses save, and the time lost to TLB walks and page faults; the first less the second is
    /// `against_ns` less `wall_ns`.
    pub gain_ns: i64,
    pub loss_ns: i64,
    /// True if more is lost than saved.
    pub refused: bool,
}

/// One data structure of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SlotData {
    pub name: String,
    /// `protect`: a private slot; `confine`: a shared one.
    pub role: String,
    /// Bytes of its slot in each cache.
    pub slot_bytes: u64,
    /// Its misses in that cache without the plan, and with it.
    pub misses: Change,
    /// Those that are first uses of a line.
    pub cold: u64,
    pub why: String,
}

/// The gain of hints for page colors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CdpcAdvice {
    /// The policy with the hints, and its predicted time.
    pub policy: String,
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    /// The hints: their source, and how many arrays and pages they cover.
    #[serde(rename = "told")]
    pub hints: Cdpc,
    /// The outermost cache.
    pub cache: String,
    /// The others: page coloring, bin hopping, and what a usual kernel does.
    pub against: Vec<CdpcRival>,
    /// The arrays with the most conflicts in that cache under the baseline.
    pub arrays: Vec<CdpcArray>,
    /// The change to make for it; empty where nothing is gained.
    pub next: String,
    /// The loss of huge pages, where data would be on them; the times above are those on small pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<HugePagesLost>,
    /// All this in words.
    pub verdict: String,
}

/// Another policy, and its result with hints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CdpcRival {
    pub policy: String,
    #[serde(deserialize_with = "ns")]
    pub wall_ns: u64,
    /// The part of its time that is saved; negative where the hints cost time.
    pub gain: f64,
    /// Misses of the outermost cache.
    pub misses: Change,
    /// The conflicts among them, if both runs classed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Change>,
}

/// An array and its misses in the outermost cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CdpcArray {
    pub name: String,
    pub bytes: u64,
    pub misses: u64,
    pub conflicts: u64,
}
