//! Simulated runs side by side, for terminals.

use crate::number::{bytes, count, nanoseconds, percent};
use crate::outcome::{CLASSES, Cache, Outcome};
use crate::table::{Cell, Column, FAINT, HEADING, NAME, Table};

/// Runs of one trace on one machine, in the order given.
pub fn outcomes(outcomes: &[Outcome], width: usize) -> String {
    let Some(first) = outcomes.first() else {
        return "There are no results to show.\n".to_string();
    };
    let mut text = format!(
        "{HEADING}{}{HEADING:#}  {} references",
        first.machine,
        count(first.references)
    );
    if let Some(instructions) = first.instructions {
        text += &format!(", {} instructions", count(instructions));
    }
    text += &format!(", {} pages\n", count(first.memory.pages));
    text += &format!("\n{HEADING}Time{HEADING:#}\n{}", times(outcomes, width));
    text += &format!("\n{HEADING}Misses{HEADING:#}\n{}", misses(outcomes, width));
    for outcome in outcomes.iter().filter(|outcome| !outcome.structures.is_empty()) {
        text += &format!("\n{HEADING}Data structures under {}{HEADING:#}\n", outcome.policy);
        text += &crate::advice_text::structures(&outcome.structures, stall(outcome), width);
    }
    text
}

/// Nanoseconds that an outcome spends waiting for caches and memory.
pub fn stall(outcome: &Outcome) -> f64 {
    let time = &outcome.time_ns;
    time.cache_stall + time.local_stall + time.remote_stall + time.tlb_stall
}

fn times(outcomes: &[Outcome], width: usize) -> String {
    let several = outcomes.iter().any(|outcome| outcome.memory.remote > 0);
    let mut columns = vec![
        (Column::Left, "policy"),
        (Column::Right, "wall"),
        (Column::Right, "cpu total"),
        (Column::Right, "busy"),
        (Column::Right, "caches"),
        (Column::Right, "local"),
        (Column::Right, "remote"),
        (Column::Right, "TLB"),
        (Column::Right, "policy"),
        (Column::Right, "imbalance"),
    ];
    if several {
        columns.push((Column::Right, "local misses"));
    }
    let mut table = Table::new(columns);
    for outcome in outcomes {
        let time = &outcome.time_ns;
        let parts = [
            time.wall,
            time.total,
            time.busy,
            time.cache_stall,
            time.local_stall,
            time.remote_stall,
            time.tlb_stall,
            time.policy_overhead,
            time.imbalance,
        ];
        let mut row = vec![Cell::styled(&outcome.policy, NAME)];
        row.extend(parts.into_iter().map(|part| Cell::from(nanoseconds(part))));
        if several {
            row.push(percent(outcome.memory.local_percent / 100.0).into());
        }
        table.row(row);
    }
    table.render(width)
}

fn misses(outcomes: &[Outcome], width: usize) -> String {
    let classed = outcomes.iter().flat_map(|outcome| &outcome.caches).any(Cache::classed);
    let mut columns = vec![
        (Column::Left, "policy"),
        (Column::Left, "cache"),
        (Column::Right, "accesses"),
        (Column::Right, "misses"),
        (Column::Right, "rate"),
    ];
    if classed {
        columns.extend(CLASSES.iter().map(|(class, _)| (Column::Right, *class)));
    }
    columns.push((Column::Right, "writebacks"));
    let mut table = Table::new(columns);
    for outcome in outcomes {
        for (at, cache) in outcome.caches.iter().enumerate() {
            let policy = if at == 0 { outcome.policy.as_str() } else { "" };
            let mut row = vec![
                Cell::styled(policy, NAME),
                cache.name.as_str().into(),
                count(cache.accesses).into(),
                count(cache.misses).into(),
                rate(cache.misses, cache.accesses).into(),
            ];
            if classed {
                row.extend(CLASSES.iter().map(|(_, of)| quiet(of(cache))));
            }
            row.push(count(cache.writebacks).into());
            table.row(row);
        }
        if outcome.tlb.accesses > 0 {
            let mut row = vec![
                Cell::from(""),
                "TLB".into(),
                count(outcome.tlb.accesses).into(),
                count(outcome.tlb.misses).into(),
                rate(outcome.tlb.misses, outcome.tlb.accesses).into(),
            ];
            row.resize(if classed { 11 } else { 6 }, Cell::from(""));
            table.row(row);
        }
    }
    table.render(width)
}

/// A count, faint where it is nothing.
pub fn quiet(value: u64) -> Cell {
    match value {
        0 => Cell::styled("0", FAINT),
        value => count(value).into(),
    }
}

fn rate(part: u64, all: u64) -> String {
    percent(if all > 0 { part as f64 / all as f64 } else { 0.0 })
}

/// The size of a structure and how many blocks it is made of.
pub fn size(structure_bytes: u64, blocks: u64) -> String {
    match (structure_bytes, blocks) {
        (0, _) => String::new(),
        (size, 0 | 1) => bytes(size),
        (size, blocks) => format!("{} in {}", bytes(size), count(blocks)),
    }
}
