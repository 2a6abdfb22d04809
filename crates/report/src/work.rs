//! Marked work in another order, in a line for people.

use results::{Work, count};

/// The block, and the reason for its choice.
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
