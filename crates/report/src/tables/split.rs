//! A run's misses and waiting by thread, data structure, line of the source and page.

use results::{Misses, Outcome, Page, SourceLine, Structure, StructureKind, Thread, short};

use super::{Top, classes, of_levels, sized};
use crate::table::{Cell, Column, Role, Table};

/// How many pages are shown; the result has more.
const PAGES: usize = 20;

/// A line's data is named if it has at least this part of the line's stall.
const NAMED: f64 = 0.05;

/// How many source lines are shown; the result has more.
const LINES: usize = 10;

/// Structures and lines with a smaller part of the stall are counted, not shown.
const SEEN: f64 = 0.001;

pub fn threads(outcome: &Outcome, threads: &[Thread]) -> Table {
    let levels = levels(threads.iter().map(|thread| &thread.caches[..]));
    let mut columns = head(&levels);
    columns.push(Column::new(Role::Count, "references"));
    columns.push(Column::new(Role::Label, "thread").cut());
    columns.push(Column::new(Role::Text, "misses by class").wrap());
    let mut table = Table::new(format!("Threads under {}", outcome.policy), columns);
    let name = |thread: &Thread| match thread.name.is_empty() {
        true => thread.number.to_string(),
        false => format!("{} ({})", thread.number, thread.name),
    };
    for thread in threads {
        let mut row = figures(outcome, thread.stall_ns, &thread.caches, &levels);
        row.push(Cell::count(thread.references));
        row.push(Cell::name(name(thread)));
        row.push(outermost(&thread.caches, &levels));
        table.row(row);
    }
    table
}

/// The data structures that cost most. `stall` is the time that their shares refer to.
pub fn structures(title: impl Into<String>, structures: &[Structure], stall: u64, top: Top) -> Table {
    let levels = levels(structures.iter().map(|structure| &structure.caches[..]));
    let mut columns = head(&levels);
    columns.push(Column::new(Role::Bytes, "size"));
    columns.push(Column::new(Role::Label, "data structure").wrap());
    let mut table = Table::new(title, columns);
    let shown = top.of(structures, |_, structure| {
        stall == 0 || structure.stall_ns as f64 >= SEEN * stall as f64
    });
    for structure in &shown {
        let mut row = vec![Cell::part(structure.stall_ns, stall)];
        row.extend(
            levels
                .iter()
                .map(|&level| Cell::quiet(structure.of_level(level).misses)),
        );
        row.push(sized(structure));
        row.push(Cell::name(named_with_place(structure)));
        table.row(row);
        for &level in &levels {
            let classes = classes(&structure.of_level(level));
            if !classes.is_empty() {
                let mut row = vec![Cell::empty(); levels.len() + 2];
                row.push(Cell::faint(format!("L{level}: {classes}")));
                table.row(row);
            }
        }
    }
    let left_out = structures.len() - shown.len();
    top.note(
        &mut table,
        left_out,
        "data structure",
        " with less than 0.1% of the stall",
    );
    table
}

/// The names of allocation sites contain their places; symbols get theirs here.
fn named_with_place(structure: &Structure) -> String {
    match (structure.kind, &structure.file, structure.line) {
        (StructureKind::Symbol, Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{} ({file}:{line})", structure.name)
        }
        _ => structure.name.clone(),
    }
}

/// The source lines that wait most, and their data. `stall` is the time that their shares refer to.
pub fn source_lines(title: impl Into<String>, lines: &[SourceLine], stall: u64, top: Top) -> Table {
    let levels = levels(lines.iter().map(|line| &line.caches[..]));
    let mut columns = head(&levels);
    columns.push(Column::new(Role::Label, "line"));
    columns.push(Column::new(Role::Text, "function").cut());
    columns.push(Column::new(Role::Text, "waits for").wrap());
    let mut table = Table::new(title, columns);
    let shown = top.of(lines, |at, line| {
        at < LINES && line.stall_ns as f64 >= SEEN * stall as f64
    });
    for line in &shown {
        let mut row = vec![Cell::part(line.stall_ns, stall)];
        row.extend(
            levels
                .iter()
                .map(|&level| Cell::quiet(Misses::of_level(&line.caches, level).misses)),
        );
        row.push(line.place().map_or_else(Cell::unknown, Cell::name));
        row.push(short(&line.function).into());
        let data = line
            .structures
            .iter()
            .filter(|data| data.stall_ns as f64 >= NAMED * line.stall_ns as f64);
        let data: Vec<String> = data.map(|data| short(&data.name)).collect();
        row.push(data.join(", ").into());
        table.row(row);
    }
    top.note(&mut table, lines.len() - shown.len(), "line", " with less of the stall");
    table
}

pub fn pages(outcome: &Outcome, pages: &[Page], top: Top) -> Table {
    let levels = levels(pages.iter().map(|page| &page.caches[..]));
    let several = pages.iter().any(|page| page.process > 0);
    let mut columns = head(&levels);
    columns.push(Column::new(Role::Address, "page"));
    columns.push(Column::new(Role::Label, "mostly of").cut());
    columns.push(Column::new(Role::Text, "misses by class").wrap());
    let title = format!("Pages with the most waiting under {}", outcome.policy);
    let mut table = Table::new(title, columns);
    let shown = top.of(pages, |at, _| at < PAGES);
    for page in &shown {
        let mut row = figures(outcome, page.stall_ns, &page.caches, &levels);
        let address = Cell::address(page.page);
        row.push(match several {
            true => address.in_words(format!("{}:{:#x}", page.process, page.page)),
            false => address,
        });
        row.push(Cell::name(&page.structure));
        row.push(outermost(&page.caches, &levels));
        table.row(row);
    }
    if top != Top::Usual {
        top.note(&mut table, pages.len() - shown.len(), "page", "");
    }
    table
}

/// The levels of the caches that rows have misses of.
pub fn levels<'a>(rows: impl Iterator<Item = &'a [Misses]>) -> Vec<u8> {
    let mut levels: Vec<u8> = rows.flatten().map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn head(levels: &[u8]) -> Vec<Column> {
    let mut columns = vec![Column::new(Role::Share, "stall")];
    columns.extend(of_levels(levels));
    columns
}

fn figures(outcome: &Outcome, stalled: u64, caches: &[Misses], levels: &[u8]) -> Vec<Cell> {
    let mut row = vec![Cell::part(stalled, outcome.stall_ns())];
    row.extend(
        levels
            .iter()
            .map(|&level| Cell::count(Misses::of_level(caches, level).misses)),
    );
    row
}

/// The classes of the misses in the outermost caches.
fn outermost(caches: &[Misses], levels: &[u8]) -> Cell {
    let last = levels.last().copied().unwrap_or_default();
    Cell::faint(classes(&Misses::of_level(caches, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Outcome {
        serde_json::from_str(
            r#"{
                "time_ns": {"cache_stall": 60, "local_stall": 40},
                "threads": [{"thread": 0, "number": 71, "name": "one", "references": 12, "stall_ns": 75,
                    "caches": [{"name": "L1", "level": 1, "misses": 3, "cold": 2, "conflict": 1}]}],
                "pages": [{"process": 0, "page": 4096, "structure": "table", "stall_ns": 25,
                    "caches": [{"name": "L1", "level": 1, "misses": 1, "cold": null}]}]
            }"#,
        )
        .expect("it is an outcome")
    }

    #[test]
    fn threads_and_pages_are_told_with_their_share() {
        let told = anstream::adapter::strip_str(&threads(&run(), &run().threads.unwrap()).text(100)).to_string();
        for part in ["75.0%", "71 (one)", "2 cold, 1 conflict", "12"] {
            assert!(told.contains(part), "`{part}` is missing:\n{told}");
        }
        let told =
            anstream::adapter::strip_str(&pages(&run(), &run().pages.unwrap(), Top::Usual).text(100)).to_string();
        for part in ["25.0%", "0x1000", "table"] {
            assert!(told.contains(part), "`{part}` is missing:\n{told}");
        }
    }
}
