//! Waiting time of references by class, the bus, and the program's prefetches; each only if it has content.

use results::{Outcome, StallByClass};

use crate::table::{Cell, Column, Role, Table};

/// Waiting for caches and memory, by reason.
pub fn waiting(outcomes: &[Outcome]) -> Option<Table> {
    let parts = |outcome: &Outcome| outcome.time_ns.stall_by_class.as_ref().map(StallByClass::parts);
    let known: Vec<_> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, parts(outcome)?)))
        .collect();
    let (_, names) = known.first()?;
    let shown: Vec<usize> = (0..names.len())
        .filter(|&part| known.iter().any(|(_, parts)| parts[part].1 > Some(0)))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let mut columns = vec![Column::new(Role::Label, "policy")];
    columns.extend(shown.iter().map(|&part| Column::new(Role::Time, names[part].0)));
    let mut table = Table::new("Waiting, by kind of miss", columns);
    for (outcome, parts) in &known {
        let mut row = vec![Cell::name(outcome.name())];
        row.extend(
            shown
                .iter()
                .map(|&part| parts[part].1.map_or_else(Cell::unknown, Cell::time)),
        );
        table.row(row);
    }
    Some(table)
}

/// How busy the bus was.
pub fn bus(outcomes: &[Outcome]) -> Option<Table> {
    let mut table = Table::new(
        "Memory bus",
        [
            Column::new(Role::Label, "policy"),
            Column::new(Role::Share, "busy"),
            Column::new(Role::Time, "data"),
            Column::new(Role::Time, "writebacks"),
            Column::new(Role::Time, "upgrades"),
        ],
    );
    let known = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.bus.as_ref()?)));
    for (outcome, bus) in known.filter(|(_, bus)| bus.occupancy_percent > 0.0) {
        table.row([
            Cell::name(outcome.name()),
            Cell::share(bus.occupancy_percent / 100.0),
            Cell::time(bus.data),
            Cell::time(bus.writebacks),
            Cell::time(bus.upgrades),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// The outcome of prefetches.
pub fn prefetches(outcomes: &[Outcome]) -> Option<Table> {
    let mut table = Table::new(
        "Prefetches of the program",
        [
            Column::new(Role::Label, "policy"),
            Column::new(Role::Count, "issued"),
            Column::new(Role::Count, "not in TLB"),
            Column::new(Role::Count, "present"),
            Column::new(Role::Count, "brought"),
            Column::new(Role::Count, "used"),
            Column::new(Role::Count, "late"),
        ],
    );
    let known = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome, outcome.prefetch.as_ref()?)));
    for (outcome, prefetch) in known.filter(|(_, prefetch)| prefetch.issued > 0) {
        table.row([
            Cell::name(outcome.name()),
            Cell::count(prefetch.issued),
            Cell::count(prefetch.dropped_tlb + prefetch.dropped_unmapped),
            Cell::count(prefetch.already_present),
            Cell::count(prefetch.brought),
            Cell::count(prefetch.useful),
            Cell::count(prefetch.late),
        ]);
    }
    (!table.is_empty()).then_some(table)
}
