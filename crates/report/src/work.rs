//! Marked work in another order, in a line for people.

use results::{Work, count};

/// What the block is, and how it came to be chosen.
pub fn facts(work: &Work) -> String {
    let plural = |number: u64, what: &str| format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" });
    format!(
        "{} ({} moved) in {} and {}, {} looked at, tour {}; {}",
        plural(work.items, "item"),
        count(work.moved),
        plural(work.runs, "run"),
        plural(work.bins, "bin"),
        plural(u64::from(work.hints), "hint"),
        work.tour,
        work.reason,
    )
}
