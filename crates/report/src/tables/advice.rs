//! An advice: where the time goes, false sharing, the policies.

use results::{Advice, Collision, Outcome, percent, time};

use super::{Top, classes};
use crate::table::{Cell, Column, Role, Table, Tone, unbroken};

/// Lines with a smaller part of the worst line's misses are counted, not shown.
const SEEN: f64 = 0.001;

/// Parts of the time that are smaller are not shown.
const SEEN_SHARE: f64 = 0.0005;

/// The parts of the time under the baseline.
pub fn shares(advice: &Advice) -> Table {
    let mut table = Table::new(
        format!("Where the time goes under {}", advice.baseline),
        [
            Column::new(Role::Label, "").named("part").cut(),
            Column::new(Role::Bar, "").named("of the largest part"),
            Column::new(Role::Share, "").named("share"),
            Column::new(Role::Time, "").named("time"),
            Column::new(Role::Text, "").named("by class of miss").wrap(),
        ],
    );
    let working = || advice.shares.iter().filter(|share| !share.is_waiting());
    let largest = working().map(|share| share.fraction).fold(0.0, f64::max);
    // Shares that are too small to be seen are in the JSON.
    for share in working().filter(|share| share.fraction >= SEEN_SHARE) {
        let tone = if share.part == "busy" { Tone::Good } else { Tone::Bad };
        let mut classes: Vec<_> = share.classes.iter().collect();
        classes.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let classes = classes
            .iter()
            .map(|(class, ns)| unbroken(&format!("{class} {}", percent(*ns as f64 / share.ns as f64))));
        let fraction = if largest > 0.0 { share.fraction / largest } else { 0.0 };
        table.row([
            share.name.as_str().into(),
            Cell::bar(fraction).toned(tone),
            Cell::share(share.fraction),
            Cell::time(share.ns),
            Cell::faint(classes.collect::<Vec<_>>().join(", ")),
        ]);
    }
    let total = advice.base().map_or(0, |base| base.time_ns.worked());
    let all = if advice.machine.cpus > 1 { "all cpus" } else { "all" };
    table.row([
        all.into(),
        Cell::bar(0.0),
        Cell::share(1.0),
        Cell::time(total),
        Cell::empty(),
    ]);
    let waiting = advice
        .shares
        .iter()
        .filter(|share| share.is_waiting() && share.fraction >= SEEN_SHARE);
    let waiting: Vec<_> = waiting
        .map(|share| format!("{} {}", share.name, time(share.ns)))
        .collect();
    if !waiting.is_empty() {
        table.note(format!("Beside that, cpus stood idle: {}.", waiting.join(", ")));
    }
    if !advice.served.is_empty() {
        let served = advice
            .served
            .iter()
            .map(|share| format!("{} {}", share.name, percent(share.fraction)));
        let served = served.collect::<Vec<_>>().join(", ");
        table.note(format!("The waiting ended with data from: {served}."));
    }
    table
}

/// Lines that threads with different data take from each other.
pub fn collisions(collisions: &[Collision], top: Top) -> Table {
    let mut table = Table::new(
        "False sharing: different data in one line",
        [
            Column::new(Role::Count, "misses"),
            Column::new(Role::Label, "thread"),
            Column::new(Role::Text, "").named("access"),
            Column::new(Role::Text, "data").cut(),
            Column::new(Role::Text, "source").cut(),
        ],
    );
    let most = collisions.iter().map(|collision| collision.misses).max().unwrap_or(0);
    let shown = top.of(collisions, |_, collision| collision.misses as f64 >= SEEN * most as f64);
    for collision in &shown {
        for (at, side) in collision.sides.iter().enumerate() {
            table.row([
                Cell::count(collision.misses).again(at > 0),
                side.thread.as_str().into(),
                if side.write { "writes" } else { "reads" }.into(),
                match collision.lock {
                    true => Cell::name(format!("{} (of a lock)", side.field)),
                    false => Cell::name(&side.field),
                },
                side.source.as_deref().unwrap_or("").into(),
            ]);
        }
    }
    let left_out = collisions.len() - shown.len();
    top.note(&mut table, left_out, "line", " with less than 0.1% of the most misses");
    if shown.iter().any(|collision| collision.lock) {
        table.note(
            "Words of one lock belong into one line: such a lock is contended, and no false sharing is to be mended."
                .to_string(),
        );
    }
    table
}

/// The policies by time.
pub fn policies(advice: &Advice) -> Table {
    let nodes = advice.machine.nodes > 1;
    let outer = |outcome: &Outcome| outcome.caches.last().cloned().unwrap_or_default();
    let name = advice
        .policies
        .first()
        .map_or(String::new(), |outcome| outer(outcome).name);
    let mut columns = vec![
        Column::new(Role::Label, "policy"),
        Column::new(Role::Time, "time"),
        Column::new(Role::Change, "").named("change"),
        Column::new(Role::Count, format!("{name} misses")),
    ];
    if nodes {
        columns.push(Column::new(Role::Share, "local"));
    }
    columns.push(Column::new(Role::Text, "misses by class").wrap());
    let mut table = Table::new("Policies, the fastest first", columns);
    let base = advice.base().map_or(0, |base| base.time_ns.wall) as f64;
    for outcome in &advice.policies {
        let outer = outer(outcome);
        let wall = outcome.time_ns.wall as f64;
        let more = if base > 0.0 { wall / base - 1.0 } else { 0.0 };
        let change = Cell::change(wall, base);
        let change = match outcome.policy == advice.baseline {
            true => change.in_words("(as now)").toned(Tone::Faint),
            false if more.abs() < 0.0005 => change.in_words("same").toned(Tone::Faint),
            false => change.toned(if more < 0.0 { Tone::Good } else { Tone::Bad }),
        };
        let mut row = vec![
            Cell::name(&outcome.policy),
            Cell::time(outcome.time_ns.wall),
            change,
            Cell::quiet(outer.misses),
        ];
        if nodes {
            row.push(Cell::share(outcome.memory.local_percent / 100.0));
        }
        row.push(Cell::faint(classes(&outer.totals())));
        table.row(row);
    }
    table
}
