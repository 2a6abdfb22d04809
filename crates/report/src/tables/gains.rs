//! The gains of changes: another order of the work, cache slots, hints for page colors.

use results::{CdpcAdvice, SlotAdvice, WorkAdvice, bytes};

use super::{Top, changed};
use crate::table::{Cell, Column, Role, Table, Tone, unbroken};

/// The default number of arrays shown.
pub const ARRAYS: usize = 10;

/// Misses of every cache, before and after.
pub fn work(advice: &WorkAdvice) -> Table {
    let mut table = Table::new(
        format!("The work in another order, {}", advice.policy),
        [
            Column::new(Role::Label, "cache"),
            Column::new(Role::Count, "misses"),
            Column::new(Role::Count, "in order"),
            Column::new(Role::Change, "").named("change"),
            Column::new(Role::Text, "by class").wrap(),
        ],
    );
    for cache in &advice.caches {
        let classes = cache.classes.iter().filter(|(_, change)| change.before != change.after);
        let classes = classes.map(|(class, change)| unbroken(&advise::class_in_words(class, *change)));
        table.row([
            Cell::name(&cache.name),
            Cell::quiet(cache.misses.before),
            Cell::quiet(cache.misses.after),
            changed(cache.misses),
            Cell::faint(classes.collect::<Vec<_>>().join(", ")),
        ]);
    }
    table.note(crate::work::facts(&advice.work));
    table
}

/// The protected and the confined structures, with misses before and after.
pub fn partition(advice: &SlotAdvice) -> Table {
    let mut table = Table::new(
        format!("Cache slots: a partition of {}", advice.cache),
        [
            Column::new(Role::Text, "").named("role"),
            Column::new(Role::Bytes, "slot"),
            Column::new(Role::Count, format!("{} misses", advice.cache)),
            Column::new(Role::Count, "in slots"),
            Column::new(Role::Change, "").named("change"),
            Column::new(Role::Count, "first uses"),
            Column::new(Role::Label, "data structure").wrap(),
        ],
    );
    for data in &advice.data {
        table.row([
            data.role.as_str().into(),
            Cell::bytes(data.slot_bytes),
            Cell::quiet(data.misses.before),
            Cell::quiet(data.misses.after),
            changed(data.misses),
            Cell::quiet(data.cold),
            Cell::name(&data.name),
        ]);
    }
    table.row([
        Cell::empty(),
        Cell::empty(),
        Cell::quiet(advice.misses.before),
        Cell::quiet(advice.misses.after),
        changed(advice.misses),
        Cell::empty(),
        "all data".into(),
    ]);
    table.note(format!(
        "{} of {} a color; a private slot is its data's alone, shared ones are small",
        bytes(advice.color_bytes),
        bytes(advice.bytes)
    ));
    table
}

/// The other policies compared with `cdpc`, the arrays that conflict, and the coverage of the hints.
pub fn cdpc(advice: &CdpcAdvice, top: Top) -> Vec<Table> {
    let mut tables = vec![rivals(advice)];
    if !advice.arrays.is_empty() {
        tables.push(arrays(advice, top));
    }
    if let Some(last) = tables.last_mut() {
        last.note(crate::cdpc::facts(advice));
    }
    tables
}

fn rivals(advice: &CdpcAdvice) -> Table {
    let mut table = Table::new(
        format!("Compiler-directed page coloring of {}", advice.cache),
        [
            Column::new(Role::Label, "policy"),
            Column::new(Role::Time, "time"),
            Column::new(Role::Change, "cdpc"),
            Column::new(Role::Count, format!("{} misses", advice.cache)),
        ],
    );
    for rival in &advice.against {
        let change = Cell::change(advice.wall_ns as f64, rival.wall_ns as f64);
        let change = match rival.gain.abs() < 0.0005 {
            true => change.in_words("same").toned(Tone::Faint),
            false => change.toned(if rival.gain > 0.0 { Tone::Good } else { Tone::Bad }),
        };
        table.row([
            Cell::name(&rival.policy),
            Cell::time(rival.wall_ns),
            change,
            Cell::count(rival.misses.before),
        ]);
    }
    let after = advice.against.first();
    table.row([
        Cell::name(&advice.policy),
        Cell::time(advice.wall_ns),
        Cell::empty(),
        after.map_or_else(Cell::empty, |rival| Cell::count(rival.misses.after)),
    ]);
    table
}

fn arrays(advice: &CdpcAdvice, top: Top) -> Table {
    let mut table = Table::new(
        "Arrays that conflict",
        [
            Column::new(Role::Count, "conflicts"),
            Column::new(Role::Count, format!("{} misses", advice.cache)),
            Column::new(Role::Bytes, "size"),
            Column::new(Role::Label, "arrays that conflict as things are").wrap(),
        ],
    );
    let shown = top.of(&advice.arrays, |at, _| at < ARRAYS);
    for array in &shown {
        table.row([
            Cell::count(array.conflicts),
            Cell::count(array.misses),
            if array.bytes == 0 {
                Cell::empty()
            } else {
                Cell::bytes(array.bytes)
            },
            Cell::name(&array.name),
        ]);
    }
    top.note(&mut table, advice.arrays.len() - shown.len(), "array", "");
    table.continued()
}
