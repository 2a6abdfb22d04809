//! Simulated runs side by side: time and misses.

use results::Outcome;

use super::{Top, classes, split};
use crate::table::{Cell, Column, Role, Table};

/// The tables of one run alone.
pub fn own(outcome: &Outcome, top: Top) -> Vec<Table> {
    let mut tables = Vec::new();
    if let Some(threads) = outcome.threads.as_deref().filter(|threads| !threads.is_empty()) {
        tables.push(split::threads(outcome, threads));
    }
    let structures = outcome.structures.as_deref();
    if let Some(structures) = structures.filter(|structures| !structures.is_empty()) {
        let title = format!("Data structures under {}", outcome.name());
        tables.push(split::structures(title, structures, outcome.stall_ns(), top));
    }
    if let Some(lines) = outcome.source_lines.as_deref().filter(|lines| !lines.is_empty()) {
        let title = format!("Lines of the source under {}", outcome.name());
        tables.push(split::source_lines(title, lines, outcome.stall_ns(), top));
    }
    if let Some(pages) = outcome.pages.as_deref().filter(|pages| !pages.is_empty()) {
        tables.push(split::pages(outcome, pages, top));
    }
    tables
}

pub fn times(outcomes: &[Outcome]) -> Table {
    type Of = fn(&Outcome) -> u64;
    // Only a whole simulation determines how long threads wait for each other.
    let replayed = outcomes.iter().any(|outcome| outcome.replayed_misses.is_some());
    let whole = |name: &str| ["wall", "cpu total", "imbalance", "sequential", "synchronization"].contains(&name);
    let parts: [(&str, Of); 14] = [
        ("wall", |outcome| outcome.time_ns.wall),
        ("cpu total", |outcome| outcome.time_ns.total),
        ("cpus work", |outcome| outcome.time_ns.worked()),
        ("busy", |outcome| outcome.time_ns.busy),
        ("caches", |outcome| outcome.time_ns.cache_stall),
        ("local", |outcome| outcome.time_ns.local_stall),
        ("remote", |outcome| outcome.time_ns.remote_stall),
        ("TLB", |outcome| outcome.time_ns.tlb_stall),
        ("policy", |outcome| outcome.time_ns.policy_overhead),
        ("page faults", |outcome| outcome.time_ns.page_faults),
        ("prefetches", |outcome| outcome.time_ns.prefetch_stall),
        ("imbalance", |outcome| outcome.time_ns.imbalance),
        ("sequential", |outcome| outcome.time_ns.sequential),
        ("synchronization", |outcome| outcome.time_ns.synchronization),
    ];
    // A part that no run spends time on needs no column.
    let parts = parts
        .iter()
        .filter(|(name, _)| if replayed { !whole(name) } else { *name != "cpus work" })
        .filter(|(_, of)| outcomes.iter().any(|outcome| of(outcome) > 0));
    let parts: Vec<_> = parts.collect();
    let nodes = outcomes.iter().any(|outcome| outcome.memory.remote > 0);
    let mut columns = vec![Column::new(Role::Label, "policy")];
    columns.extend(parts.iter().map(|(name, _)| Column::new(Role::Time, *name)));
    if nodes {
        columns.push(Column::new(Role::Share, "local misses"));
    }
    let mut table = Table::new("Time", columns);
    for outcome in outcomes {
        let mut row = vec![Cell::name(outcome.name())];
        row.extend(parts.iter().map(|(_, of)| Cell::time(of(outcome))));
        if nodes {
            row.push(Cell::share(outcome.memory.local_percent / 100.0));
        }
        table.row(row);
    }
    table
}

pub fn misses(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(
        "Misses",
        [
            Column::new(Role::Label, "policy"),
            Column::new(Role::Text, "cache"),
            Column::new(Role::Count, "accesses"),
            Column::new(Role::Count, "misses"),
            Column::new(Role::Share, "rate"),
            Column::new(Role::Count, "writebacks"),
            Column::new(Role::Text, "misses by class").wrap(),
        ],
    );
    let rate = |part: u64, all: u64| Cell::share(if all > 0 { part as f64 / all as f64 } else { 0.0 });
    for outcome in outcomes {
        let caches = outcome.caches.iter().filter(|cache| cache.accesses > 0);
        for (at, cache) in caches.enumerate() {
            table.row([
                Cell::name(outcome.name()).again(at > 0),
                cache.name.as_str().into(),
                Cell::count(cache.accesses),
                Cell::count(cache.misses),
                rate(cache.misses, cache.accesses),
                Cell::count(cache.writebacks),
                classes(&cache.totals()).into(),
            ]);
        }
        if let (Some(accesses @ 1..), Some(misses)) = (outcome.tlb.accesses, outcome.tlb.misses) {
            table.row([
                Cell::name(outcome.name()).again(true),
                "TLB".into(),
                Cell::count(accesses),
                Cell::count(misses),
                rate(misses, accesses),
                Cell::empty(),
                Cell::empty(),
            ]);
        }
    }
    table
}
