//! The outcome of `domicile run`: in each of its processes, of each data set of the plan, or of the arrays of
//! parallel loops.

mod cdpc;
mod homes;

use serde::{Deserialize, Serialize};

pub use cdpc::{Brought, CdpcReport, Chosen, LeftOut, Padded, When};
pub use homes::{HomesReport, HomesWhen, Kept, NodeHomes, OnNodes, Seat};

/// The output of `run --json` when the program has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    pub exit_code: i32,
    /// The number of colors found beforehand; 0 if there were none.
    pub colors: u32,
    pub color_bytes: u64,
    pub colors_forced: bool,
    /// The ways that the program had for its private slots together, on machines without colors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<InWays>,
    /// The nodes, if pages get homes and no colors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homes: Option<OnNodes>,
    /// One for each process that runs the program; only one without `--children`.
    pub processes: Vec<Report>,
}

/// A program with ways of a cache for itself (resctrl). Its data is not kept apart from other data of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InWays {
    /// Of the caches.
    pub level: u32,
    /// The choice, and its reason.
    pub why: String,
    /// The sum of the plan's private slots, in each cache.
    pub asked_bytes: u64,
    /// Bytes of the ways, in the cache with the least; 0 without private slots.
    pub bytes: u64,
    pub caches: Vec<CacheWays>,
}

/// Ways of one cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheWays {
    /// The kernel's number of the cache.
    pub cache: u32,
    /// The ways as resctrl writes them: a mask in hexadecimal digits.
    pub mask: String,
}

/// The run-time's report on one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ProcessReport"))]
pub struct Report {
    pub state: State,
    /// How pages get frames of a color here: the facilities in use.
    pub means: String,
    /// The colors: bits, number, bytes of cache each, source.
    pub colors: String,
    /// True if the colors were forced, whatever the probe found.
    pub forced: bool,
    pub data_sets: Vec<DataReport>,
    /// Microseconds before `main`, and in allocations.
    pub start_us: u64,
    pub allocation_us: u64,
    /// The outcome for the arrays of parallel loops, where they were to be placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdpc: Option<CdpcReport>,
    /// The same, where their pages were to get homes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homes: Option<HomesReport>,
    pub notes: Vec<String>,
}

/// How far the run-time got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ProcessState"))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The run-time was loaded into a program other than the intended one.
    #[default]
    Passive,
    /// The program ran, or runs, with its slots.
    Running,
    /// It ended by itself, and its pages were then examined.
    Ended,
    /// Nothing could be colored; the program ran as without a plan.
    Failed,
}

/// The outcome for one data set of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataReport {
    pub name: String,
    /// The slot's name in the plan.
    pub slot: String,
    /// The colors that it was granted.
    pub granted: Vec<u32>,
    /// The names that were searched, and the data found for each.
    pub names: Vec<Share>,
    /// Pages that got a frame of its colors so far, and how many of these frames came from the daemon.
    pub placed: u64,
    pub supplied: u64,
    /// Pages that have memory now, and how many of them lie in frames of the granted colors.
    pub pages: u64,
    pub allowed: u64,
    /// Pages whose frames are unknown.
    pub unknown: u64,
    /// Bytes on pages that also hold other data, which stay in place.
    pub left_out: u64,
    /// Why not everything is as the plan requires.
    pub notes: Vec<String>,
}

/// The memory that one name of a data set stands for in this run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "NameShare"))]
pub struct Share {
    pub name: String,
    /// Blocks so far: static arrays, or allocations.
    pub blocks: u64,
    /// Bytes so far, and the most at once.
    pub bytes: u64,
    pub peak_bytes: u64,
    /// Blocks that could not be given their own pages.
    pub refused: u64,
}
