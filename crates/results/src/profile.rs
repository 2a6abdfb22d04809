//! Stall by call stack, line of the source and data structure: what profiles for other viewers are made of.

use serde::{Deserialize, Serialize};

use crate::lenient::ns;

/// Where a run waited, and who called it there. Sums by line are exact; a line's sum is divided among its callers as the samples of
/// call stacks say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Profile {
    /// Samples of call stacks that the run passed; 0: the recording has none, and each stack is the line alone.
    pub samples: u64,
    /// The frames of all stacks, each once.
    pub frames: Vec<ProfileFrame>,
    /// The largest stall first.
    pub stacks: Vec<ProfileStack>,
    /// The change or placement whose effect [`ProfileStack::avoided_ns`] is; absent where none was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileFrame {
    /// The function; a place in a file of code (`libx.so+0x12f0`) where it has no name.
    pub function: String,
    /// Absent where the program has no line information.
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// One line that waits for one data structure, reached by one way of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileStack {
    /// Indices into [`Profile::frames`], innermost first: the line that waits, then its callers; functions that the compiler
    /// inlined are frames, too.
    pub frames: Vec<u32>,
    /// The data structure that is waited for.
    pub structure: String,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    /// Misses of the caches nearest to the cpus.
    pub misses: u64,
    /// What the change would avoid of `stall_ns`; below 0 where it adds. Absent where none was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avoided_ns: Option<i64>,
}
