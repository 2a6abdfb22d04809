//! The outcome for the arrays of parallel loops.

use serde::{Deserialize, Serialize};

/// The end of a run with `--policy`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CdpcReport {
    pub policy: String,
    /// Loops that the program described, how often it described known ones again, and how many could not be used.
    pub loops: u64,
    pub again: u64,
    pub refused: u64,
    pub arrays: u64,
    /// The most threads that share a loop.
    pub threads: u64,
    /// Pages with a preferred color. The five numbers that follow add up to it, once the pages were examined.
    pub pages: u64,
    /// Pages in frames of their color.
    pub honoured: u64,
    /// Pages in frames of other colors.
    pub elsewhere: u64,
    /// Pages without a frame.
    pub absent: u64,
    /// Pages whose frames are unknown.
    pub unknown: u64,
    /// Pages where nothing is mapped any more.
    pub out_of_sight: u64,
    /// Pages that prefer the least frequent color, and those that prefer the most frequent one.
    pub fewest: u64,
    pub most: u64,
    /// Why pages did not get the color intended for them.
    pub left_out: Vec<LeftOut>,
    /// The choice for arrays that loops use together, and its reason; empty if nothing was compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weighed: Vec<Chosen>,
    /// Before `main`, and at loops that came later.
    pub start: When,
    pub later: When,
    /// Large blocks of the heap, where these are aligned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padded: Option<Padded>,
}

/// How the pages of arrays that loops use together are colored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chosen {
    /// The first of their names, and how many they are.
    pub arrays: Vec<String>,
    pub arrays_in_all: u64,
    pub pages: u64,
    /// The policy whose colors they have.
    pub policy: String,
    /// Blocks that caches are predicted to fetch in the loops of these arrays, under each policy.
    pub brought: Vec<Brought>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Brought {
    pub policy: String,
    pub blocks: u64,
}

/// Pages that have no color of our choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    pub why: String,
    pub pages: u64,
}

/// The actions at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Colorings"))]
pub struct When {
    /// How often pages were colored.
    pub times: u64,
    /// Pages that should get a color; those that had it, those that got it, and how many of these frames came from the
    /// daemon.
    pub pages: u64,
    pub kept: u64,
    pub colored: u64,
    pub supplied: u64,
    /// Microseconds; and of these, finding frames and placing them.
    pub us: u64,
    pub placing_us: u64,
}

/// Blocks of the heap that begin on a line of their own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Padded {
    /// Bytes of a line, and of a way of the on-chip cache.
    pub line: u64,
    pub way: u64,
    /// Blocks of at least this many bytes.
    pub at_least: u64,
    pub blocks: u64,
    /// Blocks that did not fit into the list: they begin where the C library put them.
    pub refused: u64,
    /// Why it was not done, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
}
