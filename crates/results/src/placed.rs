//! The plans that policies were given, and their outcome: cache slots, and hints for page colors.

use serde::{Deserialize, Serialize};

/// The outcome of the cache slots of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Slots {
    /// Colors of each outermost cache, and the bytes of one color.
    pub colors: u32,
    pub color_bytes: u64,
    /// Data sets that were given colors, and those of them in private slots.
    pub data_sets: u64,
    pub private: u64,
    /// Pages that were touched first in a data set with colors.
    pub pages: u64,
    /// Refused requests: the first of them in words, and how many.
    pub refused: Vec<String>,
    pub refusals: u64,
}

/// The hints of policy `cdpc`, and their results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cdpc {
    /// The source of the hints: `summaries` of the program's compiler, or its `trace` (which cpus touch which pages).
    pub from: String,
    /// Parallel loops that were described.
    pub loops: u64,
    /// Arrays, uniform access segments and sets, and pages with a hint, of all processes.
    pub arrays: u64,
    pub segments: u64,
    pub sets: u64,
    pub pages: u64,
    /// Of those pages, the ones that the cpu with most of them touches.
    pub pages_of_one_cpu: u64,
    /// Colors among which the hints choose.
    pub colors: u32,
    /// Pages that were touched and had a hint, and those that got a frame of that color.
    pub asked: u64,
    pub honoured: u64,
    /// Impossible summaries: the first of them in words, and how many.
    pub malformed: Vec<String>,
    pub malformed_summaries: u64,
}
