//! Hints for page colors, in a line for people.

use results::{CdpcAdvice, count};

fn many(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// The size of what the hints cover, in a line.
pub fn facts(advice: &CdpcAdvice) -> String {
    let hints = &advice.hints;
    let part = match hints.pages_of_one_cpu {
        0 => String::new(),
        pages => format!("; one cpu touches up to {} of them", many(pages, "page")),
    };
    format!(
        "{}{part}, and there are {}",
        advise::cdpc_in_words(hints),
        many(hints.colors.into(), "color")
    )
}
