//! Page colors that timing has validated.

use serde::{Deserialize, Serialize};

use super::Effort;

/// Colors that are real on this machine, as far as timing can tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validated {
    /// The cache, as `L2`.
    pub cache: String,
    pub level: u8,
    /// Whether several cpus share an instance of it.
    pub shared: bool,
    /// Lowest bit of the physical address that belongs to the color; at least 12.
    pub first_bit: u32,
    /// `1 << bits` colors.
    pub bits: u32,
    /// Bytes of cache that one color stands for, as measured.
    pub color_bytes: u64,
    /// What this process got of the whole cache: `color_bytes << bits`.
    pub capacity_bytes: u64,
    /// How sure this is, from 0 to 1.
    pub confidence: f64,
    /// How the frames' bits were known, and what was seen.
    pub evidence: String,
}

/// Why there are no colors to use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct NotValidated {
    pub reason: String,
}

/// The colors of this machine: what is kept since its last boot, else measured now and kept.
pub fn colors(_effort: Effort) -> Result<Validated, NotValidated> {
    Err(NotValidated {
        reason: "colors have not been measured".into(),
    })
}

/// What is kept since the last boot and was measured with at least that effort; measures nothing.
pub fn kept_colors(_effort: Effort) -> Option<Result<Validated, NotValidated>> {
    None
}
