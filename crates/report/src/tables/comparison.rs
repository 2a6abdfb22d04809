//! Two versions of a program side by side: misses, gains and losses.

use results::{ComparedMisses, ComparedRow, Comparison, Difference, Verdict, short};

use super::Top;
use crate::table::{Cell, Column, Role, Table, Tone};

/// The default number of rows of each list.
pub const ROWS: usize = 5;

/// A list of a comparison.
struct List<'a> {
    /// The title in a table, where there is little room.
    title: &'static str,
    one: &'static str,
    several: &'static str,
    rows: &'a [ComparedRow],
}

fn lists(comparison: &Comparison) -> [List<'_>; 4] {
    let list = |title, one, several, rows| List {
        title,
        one,
        several,
        rows,
    };
    let lines = comparison.source_lines.as_deref().unwrap_or_default();
    let structures = comparison.structures.as_deref().unwrap_or_default();
    let causes = comparison.causes.as_deref().unwrap_or_default();
    [
        list("line", "line", "lines", lines),
        list("data", "data structure", "data structures", structures),
        list("cause", "cause", "causes", causes),
        list("time", "part of the time", "parts of the time", &comparison.parts),
    ]
}

/// Misses, gains, and losses. An empty list is no table.
pub fn of_comparison(comparison: &Comparison, top: Top) -> Vec<Table> {
    let mut tables = vec![misses(comparison)];
    tables.extend(changed(comparison, "Better", Verdict::Better, top));
    tables.extend(changed(comparison, "Worse", Verdict::Worse, top));
    tables
}

fn misses(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "Misses",
        [
            Column::new(Role::Label, "cache"),
            Column::new(Role::Count, "before"),
            Column::new(Role::Count, "after"),
            Column::new(Role::Change, "change"),
        ],
    );
    // A cache without misses needs no row.
    let missed = |cache: &&ComparedMisses| cache.misses.before > 0 || cache.misses.after > 0;
    for cache in comparison.misses.iter().filter(missed) {
        table.row([
            Cell::name(&cache.name),
            Cell::quiet(cache.misses.before),
            Cell::quiet(cache.misses.after),
            change(&cache.misses),
        ]);
    }
    table
}

/// The change of a figure; faint if it may be chance.
fn change(difference: &Difference) -> Cell {
    let change = Cell::change(difference.after as f64, difference.before as f64);
    let change = match (difference.before, difference.after) {
        (before, after) if before == after => change.in_words("same"),
        (0, _) => change.in_words("new"),
        (_, 0) => change.in_words("gone"),
        _ => change,
    };
    match difference.verdict {
        Verdict::Better => change.toned(Tone::Good),
        Verdict::Worse => change.toned(Tone::Bad),
        Verdict::Same => change.toned(Tone::Faint),
    }
}

/// The rows that changed in one direction, those with the largest difference in each list.
fn changed(comparison: &Comparison, title: &str, verdict: Verdict, top: Top) -> Option<Table> {
    let mut table = Table::new(
        title,
        [
            Column::new(Role::Text, "").named("list"),
            Column::new(Role::Time, "before"),
            Column::new(Role::Time, "after"),
            Column::new(Role::Change, "change"),
            Column::new(Role::Label, "").named("what").cut(),
        ],
    );
    let most = match top {
        Top::Usual => ROWS,
        Top::Rows(most) => most,
        Top::All => usize::MAX,
    };
    let mut left_out = Vec::new();
    for list in lists(comparison) {
        let rows: Vec<_> = list.rows.iter().filter(|row| row.time_ns.verdict == verdict).collect();
        for (at, row) in rows.iter().take(most).enumerate() {
            table.row([
                Cell::from(list.title).again(at > 0),
                Cell::time(row.time_ns.before),
                Cell::time(row.time_ns.after),
                change(&row.time_ns),
                named(row).into(),
            ]);
        }
        match rows.len().saturating_sub(most) {
            0 => {}
            1 => left_out.push(format!("1 more {}", list.one)),
            more => left_out.push(format!("{more} more {}", list.several)),
        }
    }
    if !left_out.is_empty() {
        table.note(format!("and {}", left_out.join(", ")));
    }
    (!table.is_empty()).then_some(table)
}

/// A row's name, with its function and its data: `a.c:12 in f`, `a.c in f: table`, `walks-across of table`.
fn named(row: &ComparedRow) -> String {
    let name = short(&row.name);
    match (&row.function, &row.structure) {
        (Some(function), Some(structure)) => format!("{name} in {}: {}", short(function), short(structure)),
        (Some(function), None) if *function != row.name => format!("{name} in {}", short(function)),
        (None, Some(structure)) => format!("{name} of {}", short(structure)),
        _ => name,
    }
}

/// The entries that are the same on both sides, counted: `12 lines, 1 data structure`; empty if all have changed.
pub fn unchanged(comparison: &Comparison) -> String {
    let counted = lists(comparison).into_iter().filter_map(|list| {
        let same = |row: &&ComparedRow| row.time_ns.verdict == Verdict::Same;
        match list.rows.iter().filter(same).count() {
            0 => None,
            1 => Some(format!("1 {}", list.one)),
            count => Some(format!("{count} {}", list.several)),
        }
    });
    counted.collect::<Vec<_>>().join(", ")
}
