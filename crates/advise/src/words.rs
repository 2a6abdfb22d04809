//! What policies were given and what came of it, in a line for people.

use results::{Cdpc, Slots, bytes, count};

/// A number of things: `1 page`, `3 pages`.
pub fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `a, b and c`.
pub fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The part of a time that another saves.
pub fn saved(before: u64, after: u64) -> f64 {
    match before {
        0 => 0.0,
        before => (before as f64 - after as f64) / before as f64,
    }
}

/// Below this, two predicted times are the same for all that the model can tell.
pub const NOTHING: f64 = 0.01;

/// What became of cache slots.
pub fn slots_in_words(slots: &Slots) -> String {
    let mut text = match slots.data_sets {
        0 => "slots: no data set was given colors".to_string(),
        sets => format!(
            "slots: {} given colors ({} in private slots), {} pages placed; a color is {} of {}",
            many(sets, "data set"),
            count(slots.private),
            count(slots.pages),
            bytes(slots.color_bytes),
            bytes(slots.color_bytes.saturating_mul(slots.colors.into())),
        ),
    };
    if slots.refusals > 0 {
        text += &format!("; {} refused: {}", count(slots.refusals), slots.refused.join("; "));
    }
    text
}

/// What the hints for page colors are of, and what became of them.
pub fn cdpc_in_words(cdpc: &Cdpc) -> String {
    let source = match cdpc.from.as_str() {
        "summaries" => format!("what the compiler said of {}", many(cdpc.loops, "parallel loop")),
        _ => "which cpus touch which pages".to_string(),
    };
    let mut text = match cdpc.pages {
        0 => format!("cdpc: no hints: no array of several pages is known from {source}"),
        pages => format!(
            "cdpc: hints for {} of {}, from {source} ({} in {}); {} of {} were honoured",
            many(pages, "page"),
            many(cdpc.arrays, "array"),
            many(cdpc.segments, "uniform access segment"),
            many(cdpc.sets, "set"),
            count(cdpc.honoured),
            count(cdpc.asked),
        ),
    };
    if cdpc.malformed_summaries > 0 {
        text += &format!(
            "; {} left out: {}",
            many(cdpc.malformed_summaries, "summary").replace("summarys", "summaries"),
            cdpc.malformed.join("; ")
        );
    }
    text
}
