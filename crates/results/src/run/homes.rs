//! The outcome for the homes of the arrays of parallel loops.

use serde::{Deserialize, Serialize};

use super::LeftOut;

/// The nodes of a run whose pages should get homes, and the assumed places of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OnNodes {
    pub policy: String,
    /// The cpus that the program may have: thread t of a team is assumed to be on the t-th, cyclically.
    pub seats: Vec<Seat>,
    pub kept: Kept,
    /// Why the program ran unchanged, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<String>,
}

/// A cpu and its node, as Linux numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seat {
    pub cpu: u32,
    pub node: u32,
}

/// The means that keeps the threads of OpenMP on their cpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Nothing was to be done.
    #[default]
    Not,
    /// OMP_PLACES and OMP_PROC_BIND, which the program was started with.
    Set,
    /// The user's own variables, which were kept: threads may be elsewhere.
    Given,
}

/// Of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HomesReport {
    pub policy: String,
    /// Loops that the program described, how often it described known ones again, and how many could not be used.
    pub loops: u64,
    pub again: u64,
    pub refused: u64,
    pub arrays: u64,
    /// The most threads that share a loop.
    pub threads: u64,
    /// True if the program has OpenMP, which keeps threads on the given cpus.
    pub openmp: bool,
    /// Pages with a home. The five numbers that follow add up to it, once the pages were examined.
    pub pages: u64,
    /// Pages on their node.
    pub at_home: u64,
    /// Pages on another one.
    pub elsewhere: u64,
    /// Pages without a frame: never touched, or given back.
    pub absent: u64,
    /// Pages where nothing is mapped any more, or that were only read as zeros.
    pub out_of_sight: u64,
    /// Pages that the kernel does not show.
    pub unknown: u64,
    /// The nodes that have pages.
    pub nodes: Vec<NodeHomes>,
    /// Why pages did not get the home intended for them, or did not move there.
    pub left_out: Vec<LeftOut>,
    /// Before `main`, and at loops that came later.
    pub start: HomesWhen,
    pub later: HomesWhen,
}

/// The pages of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeHomes {
    /// As Linux numbers it.
    pub node: u32,
    /// Pages whose home it is, and those of them that were there in the end.
    pub pages: u64,
    pub at_home: u64,
}

/// The actions at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Homings"))]
pub struct HomesWhen {
    /// How often pages were given homes.
    pub times: u64,
    /// Pages that were given one; those of them that were elsewhere already, and moved.
    pub pages: u64,
    pub moved: u64,
    /// Microseconds.
    pub us: u64,
}
