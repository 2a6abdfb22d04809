//! Two versions of a program held against each other, as a page.

use maud::{Markup, html};
use results::Comparison;

use super::pictures::Picture;
use super::sections::Sections;
use super::text::{Text, prose};
use crate::comparison_text::verdict;
use crate::tables::{Top, of_comparison, unchanged};

pub fn body(comparison: &Comparison) -> (Markup, Vec<Picture>) {
    let mut sections = Sections::default();
    let header = html! {
        header {
            p.product { "Domicile: comparison" }
            h1 { (Text(&verdict(comparison))) }
            @for (which, side) in [("before", &comparison.before), ("after", &comparison.after)] {
                p.facts { (which) ": " (Text(&side.name)) }
            }
            p.facts { "on " (Text(&comparison.machine)) " under " (Text(&comparison.policy)) }
        }
    };
    sections.tables(&of_comparison(comparison, Top::All));
    let unchanged = unchanged(comparison);
    if !(comparison.conditions.is_empty() && unchanged.is_empty() && comparison.notes.is_empty()) {
        let more = html! {
            @for condition in &comparison.conditions {
                p { (Text(&condition.condition)) " is " (if condition.met { "met" } else { "not met" }) ": " (Text(&condition.why)) }
            }
            @if !unchanged.is_empty() { p { "Unchanged: " (Text(&unchanged)) } }
            @for note in &comparison.notes { p.faint { (prose(note)) } }
        };
        sections.add("Conditions and notes", more);
    }
    sections.page(&header)
}
