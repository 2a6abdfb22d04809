//! Waiting over time; and the page-access map.

use results::{Timeline, TimelineBlock, TimelinePhase, TimelineRow, bytes, short, time};

use super::pictures::{Drawing, Mark, Picture, Row, Unit, View};
use super::sections::Sections;
use crate::table::{Cell, Column, Role, Table};

pub const TITLE: &str = "Waiting over time";

/// Phases that are marked in a picture; the table has all.
const MARKS: usize = 12;
/// Parts of the time in the table of the picture: intervals are merged.
const PARTS: usize = 8;

pub fn section(sections: &mut Sections, title: &str, of: &Timeline) {
    if of.blocks.is_empty() {
        return;
    }
    let mut views = vec![over_time("Data structures", of, rows(&of.structures), Unit::Ns)];
    if of.threads.len() > 1 {
        views.push(over_time("Threads", of, rows(&of.threads), Unit::Ns));
    }
    let waits = |block: &TimelineBlock| block.stall_ns.clone();
    views.push(over_time("Addresses", of, blocks(of, waits), Unit::Ns));
    let misses = |block: &TimelineBlock| block.misses.clone();
    views.push(over_time("Addresses: misses", of, blocks(of, misses), Unit::Misses));
    if of.threads.len() > 1 {
        views.push(by_thread(of));
    }
    if of.colors.len() > 1 {
        views.push(over_time("Page colors", of, rows(&of.colors), Unit::Ns));
    }
    if !of.moved_pages.is_empty() {
        let moved = Row {
            name: "pages moved or copied".to_string(),
            about: String::new(),
            values: of.moved_pages.clone(),
        };
        views.push(over_time("Pages moved", of, vec![moved], Unit::Pages));
    }
    let picture = Picture::new(title, views);
    let caption = "The colors say how long cpus waited for the data in a row. Under Addresses: misses they say how often it missed the first \
                   cache, and under Pages moved how many pages were moved or copied. Addresses run downwards; places that were not touched \
                   beyond the first cache are left out.";
    let mut tables = vec![table(
        "Waiting by data structure over time",
        "data structure",
        of,
        &of.structures,
    )];
    if of.threads.len() > 1 {
        tables.push(table("Waiting by thread over time", "thread", of, &of.threads));
    }
    tables.push(places(of));
    if of.colors.len() > 1 {
        tables.push(table("Waiting by page color over time", "page color", of, &of.colors));
    }
    if !of.phases.is_empty() {
        tables.push(phases(of));
    }
    sections.picture(title, caption, picture, &tables);
}

fn over_time(name: &str, of: &Timeline, rows: Vec<Row>, unit: Unit) -> View {
    let intervals = rows.iter().map(|row| row.values.len()).max().unwrap_or(0) as u64;
    let columns = (0..intervals).map(|at| time(at * of.interval_ns)).collect();
    View {
        name: name.to_string(),
        drawing: Drawing::Heat {
            along: format!("time, in intervals of {}", time(of.interval_ns)),
            columns,
            rows,
            unit,
            marks: marks(of, intervals),
        },
    }
}

/// The beginnings of phases, within the intervals.
fn marks(of: &Timeline, intervals: u64) -> Vec<Mark> {
    let mark = |phase: &TimelinePhase| Mark {
        column: (phase.begin_ns / of.interval_ns.max(1)) as usize,
        name: short(&phase.name),
    };
    let marks = of
        .phases
        .iter()
        .map(mark)
        .filter(|mark| (mark.column as u64) < intervals);
    marks.take(MARKS).collect()
}

fn phases(of: &Timeline) -> Table {
    let columns = [
        Column::new(Role::Time, "from"),
        Column::new(Role::Label, "phase").wrap(),
    ];
    let mut table = Table::new("Phases that the program named", columns);
    for phase in &of.phases {
        table.row([Cell::time(phase.begin_ns), Cell::name(phase.name.as_str())]);
    }
    table
}

fn rows(of: &[TimelineRow]) -> Vec<Row> {
    let row = |row: &TimelineRow| Row {
        name: short(&row.name),
        about: String::new(),
        values: row.stall_ns.clone(),
    };
    of.iter().map(row).collect()
}

fn blocks(of: &Timeline, values: impl Fn(&TimelineBlock) -> Vec<u64>) -> Vec<Row> {
    let row = |block: &TimelineBlock| Row {
        name: place(of, block),
        about: format!("{} of {}", bytes(block.bytes), short(&block.structure)),
        values: values(block),
    };
    of.blocks.iter().map(row).collect()
}

/// An address, with its process if there are several.
fn place(of: &Timeline, block: &TimelineBlock) -> String {
    match block.process {
        u32::MAX => "other processes".to_string(),
        process if of.blocks.iter().any(|block| block.process > 0) => format!("{process}:{:#x}", block.address),
        _ => format!("{:#x}", block.address),
    }
}

fn by_thread(of: &Timeline) -> View {
    View {
        name: "Addresses by thread".to_string(),
        drawing: Drawing::Heat {
            along: "thread".to_string(),
            columns: of.threads.iter().map(|row| row.name.clone()).collect(),
            rows: blocks(of, |block| block.threads_stall_ns.clone()),
            unit: Unit::Ns,
            marks: Vec::new(),
        },
    }
}

/// The waiting time of each row in each of some parts of the time.
fn table(title: &str, what: &str, of: &Timeline, rows: &[TimelineRow]) -> Table {
    let intervals = rows.iter().map(|row| row.stall_ns.len()).max().unwrap_or(0);
    let together = intervals.div_ceil(PARTS).max(1);
    let from = |part: usize| time((part * together) as u64 * of.interval_ns);
    let parts = intervals.div_ceil(together);
    let mut columns = vec![Column::new(Role::Label, what), Column::new(Role::Time, "in all")];
    columns.extend((0..parts).map(|part| Column::new(Role::Time, format!("from {}", from(part)))));
    let mut table = Table::new(title, columns);
    for row in rows {
        let all = row.stall_ns.iter().sum();
        let mut cells = vec![Cell::name(row.name.as_str()), Cell::time(all)];
        let part = |part: usize| row.stall_ns.iter().skip(part * together).take(together).sum();
        cells.extend((0..parts).map(|at| Cell::time(part(at))));
        table.row(cells);
    }
    table
}

fn places(of: &Timeline) -> Table {
    let columns = [
        Column::new(Role::Address, "address"),
        Column::new(Role::Bytes, "size"),
        Column::new(Role::Text, "data structure"),
        Column::new(Role::Time, "waited for"),
        Column::new(Role::Count, "misses of the first cache"),
    ];
    let mut table = Table::new("Waiting by address", columns);
    for block in &of.blocks {
        table.row([
            Cell::address(block.address).in_words(place(of, block)),
            Cell::bytes(block.bytes),
            Cell::name(block.structure.as_str()),
            Cell::time(block.stall_ns.iter().sum()),
            Cell::count(block.misses.iter().sum()),
        ]);
    }
    table
}
