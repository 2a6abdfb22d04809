//! The questions asked of a cache, and the findings.

use serde::{Deserialize, Serialize};

use super::sets::FIRST_BIT;
use super::verdict::{Effect, Times};

/// A cache that may have colors, as far as it is known where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub name: String,
    pub level: u8,
    pub shared: bool,
    pub bytes: u64,
    pub ways: u32,
    /// Bytes of the cache before it.
    pub before: u64,
}

impl Suspect {
    /// The bits of an address above the page that choose the set according to the description.
    pub(super) fn bits(&self) -> u32 {
        let way = self.bytes / u64::from(self.ways.max(1));
        way.trailing_zeros().saturating_sub(FIRST_BIT)
    }
}

/// The findings for one bit, or for several that change together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bits {
    /// The bits of the physical address.
    pub bits: Vec<u32>,
    /// Nanoseconds a load of pages that agree in all candidate bits, the median.
    pub same_ns: f64,
    /// The same where one half of the pages has these bits flipped.
    pub flipped_ns: f64,
    pub effect: Effect,
}

/// One step of growing sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub pages: usize,
    /// Nanoseconds a load of pages that agree in all candidate bits, without translation.
    pub same_ns: f64,
    /// The same of pages that take all values of these bits in turn.
    pub mixed_ns: f64,
}

/// The findings for one cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub cache: String,
    pub level: u8,
    pub shared: bool,
    /// The candidate bits: from this one ...
    pub first_bit: u32,
    /// ... this many.
    pub bits: u32,
    pub times: Option<Times>,
    pub steps: Vec<Step>,
    pub tests: Vec<Bits>,
    pub verdict: ColorVerdict,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum ColorVerdict {
    /// Pages that agree in these bits compete, pages that differ in any do not.
    Colors {
        first_bit: u32,
        bits: u32,
        /// So many pages of one color stay in the cache.
        pages: usize,
        confidence: f64,
    },
    /// Pages that agree compete no more than others.
    Nothing { reason: String, confidence: f64 },
    /// Nothing can be claimed.
    Unclear { reason: String },
}
