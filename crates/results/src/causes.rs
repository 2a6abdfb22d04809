//! The causes of misses and their remedies: measurements of a program's walks through its data.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

use crate::lenient::ns;
use crate::program_change::ProgramChange;

/// Why a line of the source waits for a data structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// A walk that uses a small part of each line before the line is evicted, and returns for the rest: a matrix that
    /// is stored by rows is walked by columns.
    WalksAcross,
    /// Most of each fetched line is never used: elements are larger than their used part.
    UnusedFields,
    /// Other code uses each part of an element at another time.
    FieldsApart,
    /// Steps of a multiple of a large power of two: all accessed lines compete for a few sets.
    PowerOfTwo,
    /// Arrays that are used together compete for the same sets because of their addresses.
    ArraysCollide,
    /// Pages compete for the same sets because of their frames.
    PagesCollide,
    /// No step is frequent: the code follows pointers or indices.
    Irregular,
    /// Arrays that are used at one index, in random order: each fetches its own line.
    SameIndex,
    /// Each address comes from an earlier load.
    PointerChasing,
    /// Few lines of each page are used before the TLB loses its entry.
    ThinPages,
    /// More pages are in use than the TLB covers.
    TlbReach,
    /// Whole lines are used in order and used again, but too late for the cache.
    LateReuse,
    /// Lines that are used for the first time, whole and in order.
    FirstUse,
    /// Lines that come from memory in order, and are used whole.
    Bandwidth,
    /// Threads that wait for one lock.
    ContendedLock,
    /// Threads that write different data in one line.
    FalseSharing,
    /// Threads that read what others write.
    TrueSharing,
    /// A kind that only a later version knows.
    #[default]
    #[serde(other)]
    Other,
}

impl CauseKind {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CauseKind::WalksAcross => "walks-across",
            CauseKind::UnusedFields => "unused-fields",
            CauseKind::FieldsApart => "fields-apart",
            CauseKind::PowerOfTwo => "power-of-two",
            CauseKind::ArraysCollide => "arrays-collide",
            CauseKind::PagesCollide => "pages-collide",
            CauseKind::Irregular => "irregular",
            CauseKind::SameIndex => "same-index",
            CauseKind::PointerChasing => "pointer-chasing",
            CauseKind::ThinPages => "thin-pages",
            CauseKind::TlbReach => "tlb-reach",
            CauseKind::LateReuse => "late-reuse",
            CauseKind::FirstUse => "first-use",
            CauseKind::Bandwidth => "bandwidth",
            CauseKind::ContendedLock => "contended-lock",
            CauseKind::FalseSharing => "false-sharing",
            CauseKind::TrueSharing => "true-sharing",
            CauseKind::Other => "other",
        }
    }
}

impl Display for CauseKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a line of the source waits for a data structure, and what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cause {
    pub structure: String,
    /// Data that competes with it for the same sets, and waits at the same line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_structures: Vec<String>,
    /// The line that waits most for that reason, as `file:line`, and the file with its folders; absent where the program does
    /// not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its function, or place in a file of code.
    pub function: String,
    /// How many other lines wait for the structure for the same reason.
    pub other_lines: u64,
    pub kind: CauseKind,
    /// The waiting of all of these lines, and its part of the time of all cpus.
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    pub share: f64,
    pub evidence: CauseEvidence,
    /// The same in words.
    pub why: String,
    /// The advised change; absent if neither the data nor its use should change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Further advice: which prefetches help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The change, as `simulate --change` takes it, all at once; empty where it cannot be simulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<ProgramChange>,
    /// The part of the run time that the change saves, by simulation; absent where it was not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The least and the most that it saves with other frames, with half of the last cache and slower memory, and with faster memory, this
    /// gain included; absent where that was not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_varied: Option<[f64; 2]>,
    /// Other causes of the same waiting, with other changes that would end it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// Another explanation of a cause's waiting, and another cure: it adds no waiting to the cause's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Alternative {
    pub kind: CauseKind,
    pub evidence: CauseEvidence,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub simulated: Vec<ProgramChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_varied: Option<[f64; 2]>,
}

/// The measurements behind a cause; those that do not matter for it, or are unknown, are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CauseEvidence {
    /// The most frequent step from access to access in bytes, negative where it goes down, and its share of all steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_share: Option<f64>,
    /// The bytes of a line, and how many of them are used from one fetch to the next; while the same code fetches it;
    /// and ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_by_it_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_ever_bytes: Option<f64>,
    /// An element, and its accessed parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldUse>,
    /// The cache whose misses cost most, and their largest class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_share: Option<f64>,
    /// The source of the addresses, and the line (else function) of the load, if from another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded_at: Option<String>,
    /// The power of two that divides the step, how many of the cache's sets the steps reach, and how many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_of_two: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets_covered: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets: Option<u64>,
    /// The cache in which nine of ten reuses would hit, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough_cache_bytes: Option<u64>,
    /// Misses of the TLB, and the part of a page that is used from one to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb_misses: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_of_page: Option<f64>,
}

/// The source of the addresses of accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AddressSource {
    /// From no load.
    Computed,
    /// From the value of another load: indices, or pointers in an array.
    Loaded,
    /// From the value that the previous access loaded.
    Chased,
    /// A source that only a later version knows.
    #[default]
    #[serde(other)]
    Other,
}

/// A part of an element, and its share of the structure's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FieldUse {
    pub offset: u64,
    pub bytes: u64,
    pub share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_as_they_are_written() {
        for kind in [
            CauseKind::WalksAcross,
            CauseKind::PowerOfTwo,
            CauseKind::FirstUse,
            CauseKind::Bandwidth,
            CauseKind::Other,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        let unknown: CauseKind = serde_json::from_str("\"told-by-a-later-version\"").unwrap();
        assert_eq!(unknown, CauseKind::Other);
    }
}
