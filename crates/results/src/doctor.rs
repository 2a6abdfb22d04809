//! The facilities of Linux that work for a user.

use serde::{Deserialize, Serialize};

/// The output of `doctor --json`: every facility, tried.
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
    /// The result of the trial.
    pub found: String,
    /// The use that Domicile makes of it.
    #[serde(rename = "for")]
    pub purpose: String,
    /// The change that makes it work in full; null where there is none.
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
