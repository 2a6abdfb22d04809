//! The block that fits the machine (Philbin96, sections 2.3 and 3.2).

use super::HINTS_MAX;

/// The limit of the size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The last cache before memory.
    Cache,
    /// The reach of the TLB: a block whose pages the TLB cannot hold misses there, although the cache holds its lines.
    TlbReach,
}

/// A side length for every dimension of a block, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultBlock {
    /// The side along each dimension, in bytes.
    pub bytes: u64,
    pub limit: Limit,
    /// One sentence for people: which limit was chosen, and with which figures.
    pub reason: String,
}

/// The block whose sides, one for each hint, add up to the last cache, or to the reach of the TLB where that is less.
///
/// `cache_bytes` is this process's share of the last cache, as measured; `tlb_reach_bytes` is entries times page size,
/// if known. `hints` counts from 1 to [`HINTS_MAX`]; figures outside are taken as the nearest inside.
pub fn default_block(cache_bytes: u64, tlb_reach_bytes: Option<u64>, hints: usize) -> DefaultBlock {
    let hints = hints.clamp(1, HINTS_MAX) as u64;
    let (limit, sum) = match tlb_reach_bytes {
        Some(reach) if reach < cache_bytes => (Limit::TlbReach, reach),
        _ => (Limit::Cache, cache_bytes),
    };
    let bytes = (sum / hints).max(1);
    let share = if hints == 1 {
        format!("the block's one side has {bytes} bytes")
    } else {
        format!("each of the block's {hints} sides has {bytes} bytes")
    };
    let reason = match (limit, tlb_reach_bytes) {
        (Limit::TlbReach, _) => {
            format!(
                "{share}: together the TLB's reach of {sum} bytes, which is less than the last cache's {cache_bytes}"
            )
        }
        (Limit::Cache, Some(reach)) => {
            format!("{share}: together the last cache's {sum} bytes, which the TLB's reach of {reach} covers")
        }
        (Limit::Cache, None) => {
            format!("{share}: together the last cache's {sum} bytes; the reach of the TLB is not known")
        }
    };
    DefaultBlock { bytes, limit, reason }
}
