//! The outcome of a recording, and of an import.

use serde::{Deserialize, Serialize};

/// The output of `record --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Recorded {
    /// The trace.
    pub output: String,
    /// The program's.
    pub exit_code: i32,
    pub references: u64,
    /// References of the whole run, including those that should not be recorded.
    pub references_seen: u64,
    /// 0 where they were not counted.
    pub instructions: u64,
    /// Of the trace.
    pub bytes: u64,
    pub notes: Vec<String>,
    /// Why the trace does not cover the whole run; null if it does.
    pub failure: Option<String>,
    /// How the program broke off (a signal killed it, its status is not 0 ...); absent if it ended normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broke: Option<String>,
}

/// The output of `import --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Imported {
    /// The trace.
    pub output: String,
    /// The format it was made from: `text`, `lackey`, `din`, `champsim` or `drmemtrace`.
    pub format: String,
    pub references: u64,
    /// Of the trace.
    pub bytes: u64,
    /// The parts of the run that the trace does not hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
