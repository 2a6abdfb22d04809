//! A comparison of two versions of a program, as a page.

use maud::{Markup, html};
use results::{ComparedRow, Comparison, short};

use super::pictures::{Drawing, Pair, Picture, View};
use super::sections::Sections;
use super::text::{Text, prose};
use crate::comparison_text::verdict;
use crate::tables::{Top, of_comparison, unchanged};

pub const TITLE: &str = "Time before and after";

/// How many rows of each list are drawn: those with the largest difference.
const ROWS: usize = 15;

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
    picture(&mut sections, comparison);
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

/// Time before and after, by data structure, line and cause. The tables of gains and losses have its numbers.
fn picture(sections: &mut Sections, comparison: &Comparison) {
    let lists = [
        ("Data structures", comparison.structures.as_deref()),
        ("Lines", comparison.source_lines.as_deref()),
        ("Causes", comparison.causes.as_deref()),
        ("Parts of the time", Some(&comparison.parts[..])),
    ];
    let view = |(name, rows): (&str, Option<&[ComparedRow]>)| {
        let rows = rows?.iter().filter(|row| row.time_ns.before + row.time_ns.after > 0);
        let rows: Vec<Pair> = rows.take(ROWS).map(pair).collect();
        (!rows.is_empty()).then(|| View {
            name: name.to_string(),
            drawing: Drawing::Pairs { rows },
        })
    };
    let views: Vec<View> = lists.into_iter().filter_map(view).collect();
    if views.is_empty() {
        return;
    }
    let picture = Picture::new(TITLE, views);
    let caption = "Each upper bar is the time before, the lower one the time after: green where it is less, red where it is more, grey where the \
                   difference may be chance.";
    sections.picture(TITLE, caption, picture, &[]);
}

fn pair(row: &ComparedRow) -> Pair {
    let data = row.structure.as_ref().map(|data| format!(" [{}]", short(data)));
    Pair {
        name: short(&row.name) + &data.unwrap_or_default(),
        before: row.time_ns.before,
        after: row.time_ns.after,
        verdict: row.time_ns.verdict,
    }
}
