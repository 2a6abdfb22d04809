//! Which sites wait for which: where addresses come from.

use serde::{Deserialize, Serialize};

/// A site whose addresses mostly come from what loads brought: it cannot begin before they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependence {
    pub site: u32,
    /// The sites of those loads, in ascending order.
    pub on: Vec<u32>,
    /// Each address comes from one of them: from the one that the thread carried out last. A list's first node is found by its head, the
    /// others by the node before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub either: bool,
}
