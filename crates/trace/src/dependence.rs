//! The dependences between sites: the sources of addresses.

use serde::{Deserialize, Serialize};

/// A site whose addresses mostly come from loads: it cannot begin before those have completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependence {
    pub site: u32,
    /// The sites of those loads, in ascending order.
    pub on: Vec<u32>,
    /// Each address comes from one of them: the one that the thread executed last. The head of a list leads to its
    /// first node, and each node to the next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub either: bool,
}
