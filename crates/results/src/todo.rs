//! Things to do about a program, the largest gain first: the essence of an advice.

use serde::{Deserialize, Serialize};

use crate::outcome::is_none;
use crate::short;

/// One thing to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Todo {
    /// The source line that waits, as `file:line`; absent if the program does not say, or no line is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How many other lines wait for the data for the same reason.
    #[serde(skip_serializing_if = "is_none")]
    pub other_lines: u64,
    /// The file with its folders, as in debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// That line's text, where the file could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The full name of the data; absent if the whole program is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The kind of its cause (`walks-across`), or of the change: `pages-remote`, `threads-apart`, `order-of-work`,
    /// `page-colors`, `cache-slots`.
    pub kind: String,
    /// The cause, in a sentence with its number.
    pub because: String,
    /// The change to make: code, or a command.
    pub action: String,
    /// The assumptions of its simulation; absent if there are none to know.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conditions: String,
    /// Other things that can be done instead, each with the part of the run time that it saves by simulation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Instead>,
    /// The part of the run time spent waiting for this reason.
    pub share: f64,
    /// The part of the run time that the change saves, by simulation; absent where it was not simulated: then it saves at most
    /// `share`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The least and the most that it saves, as parts of the run time, by how far predictions were off on pairs of programs that
    /// were measured; absent where `gain` is, and on machines without a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

impl Todo {
    /// The line, and how many others there are: `cg.c:12 +3`.
    pub fn place(&self) -> Option<String> {
        Some(place(self.source.as_ref()?, self.other_lines))
    }
}

/// A line or function, and how many others there are.
pub fn place(name: &str, others: u64) -> String {
    match others {
        0 => short(name),
        others => format!("{} +{others}", short(name)),
    }
}

/// Something that can be done instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Instead {
    pub action: String,
    /// As of [`Todo`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conditions: String,
    pub gain: f64,
    /// As of [`Todo`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}
