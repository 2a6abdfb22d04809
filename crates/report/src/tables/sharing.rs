//! The threads that share data, and the gain of placing them accordingly under the machine's caches.

use results::{SharingAdvice, SharingGroup, bytes, count};

use super::Top;
use crate::table::{Cell, Column, Role, Table, Tone};

pub use advise::placement_matters as matters;

/// A pair with a smaller part of the misses is counted, not shown.
const SEEN: f64 = 0.01;
/// The default number of pairs shown.
const PAIRS: usize = 10;
/// How many data structures are named for a pair.
const DATA: usize = 3;

/// The pairs of threads that share most.
pub fn edges(advice: &SharingAdvice, top: Top) -> Table {
    let columns = [
        Column::new(Role::Label, "threads"),
        Column::new(Role::Count, "misses"),
        Column::new(Role::Label, "both touch"),
        Column::new(Role::Label, "written"),
        Column::new(Role::Label, "data").wrap(),
    ];
    let mut table = Table::new(
        "Data that threads share (misses: if each thread had a cache of its own)",
        columns,
    );
    let all: u64 = advice.graph.edges.iter().map(|edge| edge.misses).sum();
    let shown = top.of(&advice.graph.edges, |place, edge| {
        place < PAIRS && edge.misses as f64 >= SEEN * all as f64
    });
    for edge in &shown {
        let data: Vec<&str> = edge
            .structures
            .iter()
            .take(DATA)
            .map(|data| data.name.as_str())
            .collect();
        table.row([
            Cell::name(format!("{} and {}", edge.a, edge.b)),
            Cell::count(edge.misses),
            Cell::name(bytes(edge.bytes)),
            Cell::name(bytes(edge.written)),
            Cell::name(data.join(", ")),
        ]);
    }
    let left_out = advice.graph.edges.len() - shown.len();
    top.note(&mut table, left_out, "pair", " with fewer misses");
    table
}

/// Threads that belong together, and where they are placed.
pub fn groups(advice: &SharingAdvice, top: Top) -> Table {
    let columns = [
        Column::new(Role::Label, "threads").wrap(),
        Column::new(Role::Count, "misses among them"),
        Column::new(Role::Label, "touch"),
        Column::new(Role::Label, "cpus").wrap(),
    ];
    let mut table = Table::new(format!("Threads that belong under one {}", advice.cache), columns);
    let shown = top.of(&advice.groups, |_, group| group.threads.len() > 1);
    for group in &shown {
        table.row([
            Cell::name(named(advice, group)),
            Cell::count(group.misses),
            Cell::name(bytes(group.bytes)),
            Cell::name(numbers(&group.cpus)),
        ]);
    }
    let left_out = advice.groups.len() - shown.len();
    top.note(&mut table, left_out, "thread", " without a group");
    table
}

/// The ways to place threads that were simulated, the fastest first.
pub fn placements(advice: &SharingAdvice) -> Table {
    let columns = [
        Column::new(Role::Share, "gain"),
        Column::new(Role::Time, "time"),
        Column::new(Role::Label, "threads are").wrap(),
    ];
    let mut table = Table::new(format!("Placements of threads under each {}", advice.cache), columns);
    for placement in &advice.placements {
        let words = match placement.name.as_str() {
            "in order" => "on the cpus in their order, as the other predictions have them".to_string(),
            "grouped" => format!(
                "together where they share data, each group under an {} of its own",
                advice.cache
            ),
            _ => format!("spread over all {} caches", advice.cache),
        };
        let tone = if placement.gain > 0.0 { Tone::Good } else { Tone::Plain };
        table.row([
            Cell::share(placement.gain).toned(tone),
            Cell::time(placement.wall_ns),
            Cell::name(words),
        ]);
    }
    if let Some(file) = &advice.written {
        table.row([
            Cell::empty(),
            Cell::empty(),
            Cell::faint(format!("the fastest is in {file}")),
        ]);
    }
    table
}

/// `0-3 (worker)`: with the name if all have the same.
fn named(advice: &SharingAdvice, group: &SharingGroup) -> String {
    let name = |thread: u32| {
        advice
            .graph
            .threads
            .get(thread as usize)
            .map_or("", |of| of.name.as_str())
    };
    let mut names = group.threads.iter().map(|thread| name(*thread));
    let first = names.next().unwrap_or_default();
    match !first.is_empty() && names.all(|name| name == first) {
        true => format!("{} ({first})", numbers(&group.threads)),
        false => numbers(&group.threads),
    }
}

/// `0-3,8`.
fn numbers(of: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in of {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => count(u64::from(*first)),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}
