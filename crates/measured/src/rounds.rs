//! How often each thing is timed, and which of the times counts.

use super::Effort;

/// Rounds of each trial, of which the median counts, or the least if other work can only slow them
/// down.
pub fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 3,
        Effort::Careful => 7,
    }
}

/// The middle one, which a busy moment does not move.
pub fn median(mut seen: Vec<f64>) -> f64 {
    seen.sort_by(f64::total_cmp);
    seen.get(seen.len() / 2).copied().unwrap_or(0.0)
}
