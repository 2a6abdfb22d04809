//! Simulated runs side by side, for terminals.

use results::{CLASSES, ClassTotals, Outcome, bytes, count, percent, time};

use crate::split_text;
use crate::table::{Cell, Column, HEADING, NAME, Table, unbroken};
use crate::traffic_text;

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
    text += &traffic_text::waiting(outcomes, width);
    text += &format!("\n{HEADING}Misses{HEADING:#}\n{}", misses(outcomes, width));
    text += &traffic_text::bus(outcomes, width);
    text += &traffic_text::prefetches(outcomes, width);
    for outcome in outcomes {
        let slots = outcome.slots.as_ref().map(advise::slots_in_words);
        let cdpc = outcome.cdpc.as_ref().map(advise::cdpc_in_words);
        for words in slots.into_iter().chain(cdpc) {
            text += &format!("\n{HEADING}Under {}{HEADING:#}\n", outcome.policy);
            for line in crate::table::wrap(&words, width.saturating_sub(2).max(20)) {
                text += &format!("  {line}\n");
            }
        }
        let heading = |what: &str| format!("\n{HEADING}{what} under {}{HEADING:#}\n", outcome.policy);
        if let Some(threads) = outcome.threads.as_deref().filter(|threads| !threads.is_empty()) {
            text += &heading("Threads");
            text += &split_text::threads(outcome, threads, width);
        }
        if let Some(structures) = outcome
            .structures
            .as_deref()
            .filter(|structures| !structures.is_empty())
        {
            text += &heading("Data structures");
            text += &crate::advice_text::structures(structures, outcome.stall_ns(), width);
        }
        if let Some(pages) = outcome.pages.as_deref().filter(|pages| !pages.is_empty()) {
            text += &heading("Pages with the most waiting");
            text += &split_text::pages(outcome, pages, width);
        }
    }
    text
}

fn times(outcomes: &[Outcome], width: usize) -> String {
    type Of = fn(&Outcome) -> u64;
    let parts: [(&str, Of); 12] = [
        ("wall", |outcome| outcome.time_ns.wall),
        ("cpu total", |outcome| outcome.time_ns.total),
        ("busy", |outcome| outcome.time_ns.busy),
        ("caches", |outcome| outcome.time_ns.cache_stall),
        ("local", |outcome| outcome.time_ns.local_stall),
        ("remote", |outcome| outcome.time_ns.remote_stall),
        ("TLB", |outcome| outcome.time_ns.tlb_stall),
        ("policy", |outcome| outcome.time_ns.policy_overhead),
        ("prefetches", |outcome| outcome.time_ns.prefetch_stall),
        ("imbalance", |outcome| outcome.time_ns.imbalance),
        ("sequential", |outcome| outcome.time_ns.sequential),
        ("synchronization", |outcome| outcome.time_ns.synchronization),
    ];
    // What no run spends time on needs no column.
    let parts = parts
        .iter()
        .filter(|(_, of)| outcomes.iter().any(|outcome| of(outcome) > 0));
    let parts: Vec<_> = parts.collect();
    let nodes = outcomes.iter().any(|outcome| outcome.memory.remote > 0);
    let mut columns = vec![(Column::Left, "policy")];
    columns.extend(parts.iter().map(|(name, _)| (Column::Right, *name)));
    if nodes {
        columns.push((Column::Right, "local misses"));
    }
    let mut table = Table::new(columns);
    for outcome in outcomes {
        let mut row = vec![Cell::styled(&outcome.policy, NAME)];
        row.extend(parts.iter().map(|(_, of)| Cell::from(time(of(outcome)))));
        if nodes {
            row.push(percent(outcome.memory.local_percent / 100.0).into());
        }
        table.row(row);
    }
    table.render(width)
}

fn misses(outcomes: &[Outcome], width: usize) -> String {
    let mut table = Table::new([
        (Column::Left, "policy"),
        (Column::Left, "cache"),
        (Column::Right, "accesses"),
        (Column::Right, "misses"),
        (Column::Right, "rate"),
        (Column::Right, "writebacks"),
        (Column::Wrap, "misses by class"),
    ]);
    for outcome in outcomes {
        for (at, cache) in outcome.caches.iter().filter(|cache| cache.accesses > 0).enumerate() {
            let policy = if at == 0 { outcome.policy.as_str() } else { "" };
            table.row([
                Cell::styled(policy, NAME),
                cache.name.as_str().into(),
                count(cache.accesses).into(),
                count(cache.misses).into(),
                rate(cache.misses, cache.accesses).into(),
                count(cache.writebacks).into(),
                classes(&cache.totals()).into(),
            ]);
        }
        if let (Some(accesses @ 1..), Some(misses)) = (outcome.tlb.accesses, outcome.tlb.misses) {
            table.row([
                "".into(),
                "TLB".into(),
                count(accesses).into(),
                count(misses).into(),
                rate(misses, accesses).into(),
                "".into(),
                "".into(),
            ]);
        }
    }
    table.render(width)
}

/// The classes that a cache's misses are of, the most frequent first; empty where they were not classed.
pub fn classes(misses: &ClassTotals) -> String {
    let mut classes: Vec<_> = CLASSES
        .iter()
        .zip(misses.classes)
        .filter_map(|(class, misses)| Some((misses.filter(|misses| *misses > 0)?, *class)))
        .collect();
    classes.sort_by_key(|(misses, _)| std::cmp::Reverse(*misses));
    let classes = classes
        .iter()
        .map(|(misses, class)| unbroken(&format!("{} {class}", count(*misses))));
    classes.collect::<Vec<_>>().join(", ")
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
