//! What references waited for by class, the bus, and the program's prefetches, for terminals; each only where there is
//! something to tell.

use results::{Outcome, StallByClass, count, percent, time};

use crate::table::{Cell, Column, HEADING, NAME, Table};

/// Waiting for caches and memory, by why.
pub fn waiting(outcomes: &[Outcome], width: usize) -> String {
    let parts = |outcome: &Outcome| outcome.time_ns.stall_by_class.as_ref().map(StallByClass::parts);
    let known: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, parts(outcome)?)))
        .collect();
    let Some((_, names)) = known.first() else {
        return String::new();
    };
    let shown: Vec<usize> = (0..names.len())
        .filter(|&part| known.iter().any(|(_, parts)| parts[part].1 > Some(0)))
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut columns = vec![(Column::Left, "policy")];
    columns.extend(shown.iter().map(|&part| (Column::Right, names[part].0)));
    let mut table = Table::new(columns);
    for (outcome, parts) in &known {
        let mut row = vec![Cell::styled(&outcome.policy, NAME)];
        row.extend(
            shown
                .iter()
                .map(|&part| Cell::from(parts[part].1.map_or("–".to_string(), time))),
        );
        table.row(row);
    }
    format!(
        "\n{HEADING}Waiting, by kind of miss{HEADING:#}\n{}",
        table.render(width)
    )
}

/// How busy the bus was.
pub fn bus(outcomes: &[Outcome], width: usize) -> String {
    let known: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.bus.as_ref()?)))
        .filter(|(_, bus)| bus.occupancy_percent > 0.0)
        .collect();
    if known.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        (Column::Left, "policy"),
        (Column::Right, "busy"),
        (Column::Right, "data"),
        (Column::Right, "writebacks"),
        (Column::Right, "upgrades"),
    ]);
    for (outcome, bus) in known {
        table.row([
            Cell::styled(&outcome.policy, NAME),
            percent(bus.occupancy_percent / 100.0).into(),
            time(bus.data).into(),
            time(bus.writebacks).into(),
            time(bus.upgrades).into(),
        ]);
    }
    format!("\n{HEADING}Memory bus{HEADING:#}\n{}", table.render(width))
}

/// What became of prefetches.
pub fn prefetches(outcomes: &[Outcome], width: usize) -> String {
    let known: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.prefetch.as_ref()?)))
        .filter(|(_, prefetch)| prefetch.issued > 0)
        .collect();
    if known.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        (Column::Left, "policy"),
        (Column::Right, "issued"),
        (Column::Right, "not in TLB"),
        (Column::Right, "present"),
        (Column::Right, "brought"),
        (Column::Right, "used"),
        (Column::Right, "late"),
    ]);
    for (outcome, prefetch) in known {
        table.row([
            Cell::styled(&outcome.policy, NAME),
            count(prefetch.issued).into(),
            count(prefetch.dropped_tlb + prefetch.dropped_unmapped).into(),
            count(prefetch.already_present).into(),
            count(prefetch.brought).into(),
            count(prefetch.useful).into(),
            count(prefetch.late).into(),
        ]);
    }
    format!(
        "\n{HEADING}Prefetches of the program{HEADING:#}\n{}",
        table.render(width)
    )
}
