//! A comparison of two versions of a program, for terminals.

use results::{ComparedSide, Comparison, SideKind, Verdict, count, percent, time};

use crate::table::{FAINT, HEADING, PLAIN, cut, paragraph};
use crate::tables::{COMPARED_ROWS, Top, of_comparison, unchanged};

/// Lines that a terminal shows at once.
const SCREEN: usize = 30;

/// The whole comparison in at most `width` columns. By default it has as many rows as fit on one screen.
pub fn comparison(comparison: &Comparison, width: usize, top: Top) -> String {
    if top != Top::Usual {
        return drawn(comparison, width, top);
    }
    let mut text = String::new();
    for rows in (1..=COMPARED_ROWS).rev() {
        text = drawn(comparison, width, Top::Rows(rows));
        if text.lines().count() <= SCREEN {
            break;
        }
    }
    text
}

fn drawn(comparison: &Comparison, width: usize, top: Top) -> String {
    let mut text = format!("{HEADING}{}{HEADING:#}\n", verdict(comparison));
    for (which, side) in [("before: ", &comparison.before), ("after:  ", &comparison.after)] {
        let name = format!("{}{}", side.name, recorded(side));
        text += &paragraph(which, &cut(&name, width.saturating_sub(10)), width, PLAIN);
    }
    text += &paragraph("", &subject(comparison), width, PLAIN);
    for condition in &comparison.conditions {
        let met = if condition.met { "met" } else { "not met" };
        let line = format!("{} is {met}: {}", condition.condition, condition.why);
        text += &paragraph("", &line, width, PLAIN);
    }
    for table in of_comparison(comparison, top) {
        text += &table.section(width);
    }
    text.push('\n');
    let unchanged = unchanged(comparison);
    if !unchanged.is_empty() {
        text += &paragraph("Unchanged: ", &unchanged, width, PLAIN);
    }
    for note in &comparison.notes {
        text += &paragraph("note: ", note, width, FAINT);
    }
    text
}

/// How many recordings the figures of a side come from, if there are several.
fn recorded(side: &ComparedSide) -> String {
    match (side.kind, side.recordings) {
        (SideKind::Command, recordings @ 2..) => format!(" (recorded {recordings} times)"),
        (_, recordings @ 2..) => format!(" ({recordings} recordings)"),
        _ => String::new(),
    }
}

/// The common subject of both.
fn subject(comparison: &Comparison) -> String {
    let references = comparison.references;
    let counted = match references.before == references.after {
        true => format!("{} references", count(references.before)),
        false => format!("{} -> {} references", count(references.before), count(references.after)),
    };
    format!("on {} under {}: {counted}", comparison.machine, comparison.policy)
}

/// The result, in one line: `AFTER takes 23.4% less time (1.20 ms -> 919 us; noise 0.3%)`.
pub fn verdict(comparison: &Comparison) -> String {
    let took = &comparison.time;
    let change = took.change.unwrap_or(0.0);
    let figures = format!("{} -> {}", time(took.before), time(took.after));
    let differ = match comparison.is_alone() {
        true => String::new(),
        false => format!("; noise {}", took.noise_in_words()),
    };
    match took.verdict {
        Verdict::Better => format!("AFTER takes {} less time ({figures}{differ})", percent(-change)),
        Verdict::Worse => format!("AFTER takes {} more time ({figures}{differ})", percent(change)),
        Verdict::Same => format!(
            "AFTER takes as long as BEFORE ({figures}, {:+.1}%{differ})",
            change * 100.0
        ),
    }
}
