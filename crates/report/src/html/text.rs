//! Text of a result in a page: it cannot become markup, and has no characters that are invalid in a page.

use maud::{Markup, html};
use results::short;

pub use crate::escape::Text;

/// A shortened name of data or code.
pub fn name(text: &str) -> Markup {
    html! { span.name { (Text(&short(text))) } }
}

/// A sentence; words between backticks are code.
pub fn prose(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (Text(part)) } } @else { (Text(part)) }
        }
    }
}

/// A heading's anchor in the page: `Where the time goes` is `where-the-time-goes`.
pub fn slug(title: &str) -> String {
    let words = title.split(|of: char| !of.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-")
        .to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_markup() {
        let evil = "<img src=x onerror=alert(1)>\u{0}";
        assert_eq!(
            html! { p title=(Text(evil)) { (Text(evil)) } }.into_string(),
            "<p title=\"&lt;img src=x onerror=alert(1)&gt;\u{fffd}\">&lt;img src=x onerror=alert(1)&gt;\u{fffd}</p>"
        );
        assert_eq!(prose("a `<b>` c").into_string(), "a <code>&lt;b&gt;</code> c");
    }

    #[test]
    fn headings_have_addresses() {
        assert_eq!(
            slug("False sharing: different data in one line"),
            "false-sharing-different-data-in-one-line"
        );
        assert_eq!(slug("L2 <misses>"), "l2-misses");
    }
}
