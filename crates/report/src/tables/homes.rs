//! Machines with several memory nodes: the remote data, the reasons, and the remedies.

use results::{HomesAdvice, RemoteReason, RemoteStructure, count};

use super::Top;
use crate::table::{Cell, Column, Role, Table, Tone};

/// Below this part of the time that cpus work, remote data is not shown.
pub const MATTERS: f64 = 0.01;

/// A structure with a smaller part of the remote misses is counted, not shown.
const SEEN: f64 = 0.01;

/// Data with misses that other nodes' memory served.
pub fn remote(advice: &HomesAdvice, top: Top) -> Table {
    let columns = [
        Column::new(Role::Count, "remote"),
        Column::new(Role::Count, "local"),
        Column::new(Role::Count, "pages"),
        Column::new(Role::Label, "data structure, why, touched first by").wrap(),
    ];
    let mut table = Table::new(format!("Data on other nodes, under {}", advice.against), columns);
    let all: u64 = advice.structures.iter().map(|structure| structure.remote).sum();
    let shown = top.of(&advice.structures, |_, structure| {
        structure.remote as f64 >= SEEN * all as f64
    });
    for structure in &shown {
        table.row([
            Cell::count(structure.remote),
            Cell::count(structure.local),
            Cell::count(structure.pages),
            Cell::name(&structure.name),
        ]);
        let mut below = |words: String| {
            table.row([Cell::empty(), Cell::empty(), Cell::empty(), Cell::faint(words)]);
        };
        below(why(structure));
        if let Some(touches) = touches(structure) {
            below(touches);
        }
    }
    let left_out = advice.structures.len() - shown.len();
    top.note(
        &mut table,
        left_out,
        "structure",
        " with less than 1% of the remote misses",
    );
    table
}

/// `78% first touched by another node's thread, 22% read by several nodes`.
fn why(structure: &RemoteStructure) -> String {
    let reasons = structure.reasons.iter().map(|of| {
        let part = of.remote as f64 / structure.remote.max(1) as f64;
        format!("{:.0}% {}", 100.0 * part, of.reason)
    });
    reasons.collect::<Vec<_>>().join(", ")
}

fn touches(structure: &RemoteStructure) -> Option<String> {
    let misplaced = structure
        .reasons
        .iter()
        .any(|of| of.reason == RemoteReason::FirstTouch && 4 * of.remote >= structure.remote);
    let touches = structure.first_touches.iter().map(|touch| {
        format!(
            "{touch} (thread {} on node {}): {} pages",
            touch.thread,
            touch.node,
            count(touch.pages)
        )
    });
    misplaced.then(|| format!("touched first at {}", touches.collect::<Vec<_>>().join("; ")))
}

/// The simulated remedies that bring data near, the fastest first.
pub fn remedies(advice: &HomesAdvice) -> Table {
    let columns = [
        Column::new(Role::Share, "gain"),
        Column::new(Role::Share, "later"),
        Column::new(Role::Share, "local"),
        Column::new(Role::Count, "moved"),
        Column::new(Role::Count, "copied"),
        Column::new(Role::Time, "time"),
        Column::new(Role::Label, "what, and how").wrap(),
    ];
    let title = "Remedies (later: in the second half of the misses)";
    let mut table = Table::new(title, columns);
    let share = |share: f64| Cell::share(share).toned(if share > 0.0 { Tone::Good } else { Tone::Plain });
    for remedy in &advice.remedies {
        table.row([
            share(remedy.gain),
            remedy.later_gain.map_or_else(Cell::empty, share),
            Cell::share(remedy.local_percent / 100.0),
            Cell::count(remedy.migrations),
            Cell::count(remedy.replications),
            Cell::time(remedy.wall_ns),
            Cell::name(&remedy.name),
        ]);
        let mut row: Vec<Cell> = (0..6).map(|_| Cell::empty()).collect();
        row.push(Cell::faint(match remedy.conditions.is_empty() {
            true => remedy.how.clone(),
            false => format!("{}; {}", remedy.how, remedy.conditions),
        }));
        table.row(row);
    }
    table
}
