//! The reasons why data misses, and the cures.

use results::{Cause, short};

use super::Top;
use crate::table::{Cell, Column, Role, Table, Tone};

/// Below this part of the run time, a gain counts as none, as far as the model can tell.
const NOTHING: f64 = 0.01;

/// Causes without a remedy are shown from this share of the time on.
const SEEN: f64 = 0.05;

pub const TITLE: &str = "Causes and changes";

/// The causes: share of the time, gain of the change, place, and reason.
pub fn causes(causes: &[Cause], top: Top) -> Table {
    let mut columns = vec![Column::new(Role::Share, "time")];
    let simulated = causes.iter().any(|cause| cause.gain.is_some());
    if simulated {
        columns.push(Column::new(Role::Share, "gain"));
    }
    columns.push(Column::new(Role::Text, "line").cut());
    columns.push(Column::new(Role::Label, "data structure, why, what to do").wrap());
    let mut table = Table::new(TITLE, columns);
    let shown = top.of(causes, |_, cause| cause.change.is_some() || cause.share >= SEEN);
    for cause in &shown {
        let mut row = vec![Cell::share(cause.share)];
        if simulated {
            row.push(cause.gain.map_or_else(Cell::empty, |gain| {
                Cell::share(gain).toned(if gain > 0.0 { Tone::Good } else { Tone::Plain })
            }));
        }
        row.push(place(cause).into());
        let blank = row.len();
        row.push(Cell::name(format!("{}: {}", data(cause), cause.kind)));
        table.row(row);
        let mut below = |cell: Cell| {
            let mut row = vec![Cell::empty(); blank];
            row.push(cell);
            table.row(row);
        };
        below(Cell::faint(&cause.why));
        below(what_to_do(cause).into());
    }
    let left_out = causes.len() - shown.len();
    top.note(
        &mut table,
        left_out,
        "cause",
        " with nothing to change and less than 5% of the time",
    );
    table
}

/// The data of a cause.
fn data(cause: &Cause) -> String {
    match cause.other_structures.as_slice() {
        [] => short(&cause.structure),
        [other] => format!("{} and {}", short(&cause.structure), short(other)),
        others => format!("{} and {} others", short(&cause.structure), others.len()),
    }
}

/// The line of a cause, and the number of others.
pub fn place(cause: &Cause) -> String {
    results::place(cause.source.as_ref().unwrap_or(&cause.function), cause.other_lines)
}

/// The change, and further notes.
pub fn what_to_do(cause: &Cause) -> String {
    let change = match (&cause.change, cause.gain) {
        (None, _) => "nothing about the data's layout".to_string(),
        (Some(change), Some(gain)) if gain < NOTHING => format!("simulated, this gains nothing: {change}"),
        (Some(change), _) => change.clone(),
    };
    match &cause.hint {
        None => change,
        Some(hint) => format!("{change}; {hint}"),
    }
}
