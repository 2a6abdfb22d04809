//! The result of a search for the best setting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The parameters of a policy with which a run had least of something, of all that were tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Minimum {
    /// `stall`, `time` or `overhead`, as rows have them.
    pub minimised: String,
    /// In nanoseconds.
    pub value_ns: u64,
    /// By parameter (`migrate.trigger`).
    pub set: BTreeMap<String, u64>,
    /// Settings that were tried.
    pub trials: u64,
    pub seed: u64,
}
