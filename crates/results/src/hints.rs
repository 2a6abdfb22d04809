//! Hints for page colors, their origin, and the pages that they are for.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The output of `simulate --explain-hints`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplainedHints {
    pub program: String,
    pub machine: String,
    /// One for each policy with hints.
    pub policies: Vec<ExplainedPolicy>,
}

/// The hints of one policy, and what led to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplainedPolicy {
    pub policy: String,
    /// `summaries` or `trace`.
    pub from: String,
    pub loops: u64,
    /// Impossible summaries: the first of them in words, and how many.
    pub malformed: Vec<String>,
    pub malformed_summaries: u64,
    pub processes: Vec<ExplainedProcess>,
}

/// The same of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ExplainedProcess {
    /// Its index in the trace.
    pub process: u32,
    pub machine: HintedMachine,
    /// The arrays of the segments, by number; empty where only segments were given.
    pub arrays: Vec<HintedArray>,
    /// Uniform access sets, in the order of their path.
    pub sets: Vec<HintedSet>,
    /// Uniform access segments, in coloring order.
    pub segments: Vec<HintedSegment>,
    /// Some cpu touches each of the first this many pages of `order`.
    pub used: u64,
    /// Pages that were exchanged with others, so that cpus with few enough pages have no color twice.
    pub exchanged: u64,
    /// Cpus that have no more pages than there are colors, but still have a color twice: no useful exchange was found.
    pub crowded: Vec<u32>,
    /// The choice for each set of arrays, if the ways of coloring were compared: pages that were not left to the five
    /// steps have the colors of a static policy, wherever they are in the order.
    pub weighed: Vec<WeighedArrays>,
    /// Pages (addresses divided by the bytes of a page) in coloring order; the color is the position modulo the colors.
    pub order: Vec<u64>,
}

/// The properties of a machine on which the hints depend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HintedMachine {
    pub page_bytes: u64,
    /// Of the external cache: its bytes over those of a page, divided by its ways.
    pub colors: u32,
    pub cpus: u32,
}

/// A stretch of memory that summaries describe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HintedArray {
    /// For people.
    pub name: String,
    pub start: u64,
    pub bytes: u64,
    /// True if its size was given; else it is the extent of the accesses.
    pub known: bool,
}

/// A uniform access set: the segments that the same cpus touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HintedSet {
    pub cpus: Vec<u32>,
    /// The segments in it, in coloring order.
    pub segments: Range<u64>,
    /// How many pages these have.
    pub pages: u64,
}

/// A uniform access segment in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HintedSegment {
    pub array: u32,
    pub cpus: Vec<u32>,
    pub pages: Range<u64>,
    /// Position of the segment in the coloring order: of the page that is laid out first, before pages changed places.
    pub position: u64,
    /// The page that is laid out first. The pages after it follow, and then those before it.
    pub begin: u64,
    /// How many earlier segments its own start was kept away from.
    pub conflicts: u32,
}

/// The choice for arrays that loops use together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WeighedArrays {
    pub arrays: Vec<u32>,
    pub pages: u64,
    /// `page-coloring`, `bin-hopping` or `cdpc`.
    pub choice: String,
    /// The reason: how many blocks caches are predicted to fetch in the loops of these arrays, for each way of coloring
    /// all arrays.
    pub brought: Vec<BroughtBlocks>,
}

/// Blocks that caches are predicted to fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BroughtBlocks {
    pub by: String,
    /// The blocks of all cpus together, plus, for each cpu, as many as the slowest one fetches.
    pub blocks: u64,
}

/// The output of `simulate --page-map`: all pages of a program that are touched in what is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PageMap {
    pub machine: String,
    pub page_bytes: u64,
    pub cpus: u32,
    pub colors: u32,
    /// The policies that colors and positions are of, in their order.
    pub policies: Vec<String>,
    pub arrays: Vec<MappedArray>,
    /// By process and address.
    pub pages: Vec<MappedPage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MappedArray {
    pub process: u32,
    pub name: String,
    pub start: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MappedPage {
    pub process: u32,
    /// Its address divided by the bytes of a page.
    pub page: u64,
    /// The array that it belongs to; null: a stack, small things, or memory without a name.
    pub array: Option<u32>,
    /// Cpus that touch it.
    pub cpus: Vec<u32>,
    /// Of those, the ones that do so while several threads of the program are at work.
    pub parallel: Vec<u32>,
    /// Its color when it was first placed, under each policy; null where the policy's run did not touch it.
    pub colors: Vec<Option<u32>>,
    /// Its place in the coloring order, under each policy that gave it a hint.
    pub positions: Vec<Option<u64>>,
}
