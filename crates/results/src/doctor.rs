//! What of Linux works for a user.

use serde::{Deserialize, Serialize};

/// What `doctor --json` prints: every facility, tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Doctor {
    /// The kernel's release; null where it does not say.
    pub kernel: Option<String>,
    pub facilities: Vec<Facility>,
}

/// One facility, tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Facility {
    pub facility: String,
    pub works: Works,
    /// What happened.
    pub found: String,
    /// What it is good for.
    #[serde(rename = "for")]
    pub purpose: String,
    /// What to change where it does not work in full; null where nothing is to be changed.
    pub change: Option<String>,
}

/// How far a facility works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Works {
    Yes,
    Partly,
    #[default]
    No,
}
