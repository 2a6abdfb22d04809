//! A run's misses and waiting by thread and by page, for terminals.

use results::{Misses, Outcome, Page, Thread, count, percent};

use crate::outcome_text::classes;
use crate::table::{Cell, Column, FAINT, NAME, Table};

/// Pages that are shown; the result has more.
const PAGES: usize = 20;

pub fn threads(outcome: &Outcome, threads: &[Thread], width: usize) -> String {
    let levels = levels(threads.iter().map(|thread| &thread.caches[..]));
    let mut columns = head(&levels);
    columns.push((Column::Right, "references".to_string()));
    columns.push((Column::Cut, "thread".to_string()));
    columns.push((Column::Wrap, "misses by class".to_string()));
    let mut table = Table::new(columns);
    let name = |thread: &Thread| match thread.name.is_empty() {
        true => thread.number.to_string(),
        false => format!("{} ({})", thread.number, thread.name),
    };
    for thread in threads {
        let mut row = figures(outcome, thread.stall_ns, &thread.caches, &levels);
        row.push(count(thread.references).into());
        row.push(Cell::styled(name(thread), NAME));
        row.push(outermost(&thread.caches, &levels));
        table.row(row);
    }
    table.render(width)
}

pub fn pages(outcome: &Outcome, pages: &[Page], width: usize) -> String {
    let levels = levels(pages.iter().map(|page| &page.caches[..]));
    let several = pages.iter().any(|page| page.process > 0);
    let mut columns = head(&levels);
    columns.push((Column::Right, "page".to_string()));
    columns.push((Column::Cut, "mostly of".to_string()));
    columns.push((Column::Wrap, "misses by class".to_string()));
    let mut table = Table::new(columns);
    let name = |page: &Page| match several {
        true => format!("{}:{:#x}", page.process, page.page),
        false => format!("{:#x}", page.page),
    };
    for page in pages.iter().take(PAGES) {
        let mut row = figures(outcome, page.stall_ns, &page.caches, &levels);
        row.push(name(page).into());
        row.push(Cell::styled(&page.structure, NAME));
        row.push(outermost(&page.caches, &levels));
        table.row(row);
    }
    table.render(width)
}

fn levels<'a>(rows: impl Iterator<Item = &'a [Misses]>) -> Vec<u8> {
    let mut levels: Vec<u8> = rows.flatten().map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

fn head(levels: &[u8]) -> Vec<(Column, String)> {
    let mut columns = vec![(Column::Right, "stall".to_string())];
    columns.extend(levels.iter().map(|level| (Column::Right, format!("L{level} misses"))));
    columns
}

fn figures(outcome: &Outcome, stalled: u64, caches: &[Misses], levels: &[u8]) -> Vec<Cell> {
    let all = outcome.stall_ns();
    let share = if all > 0 {
        percent(stalled as f64 / all as f64)
    } else {
        String::new()
    };
    let mut row = vec![Cell::from(share)];
    row.extend(
        levels
            .iter()
            .map(|&level| Cell::from(count(Misses::of_level(caches, level).misses))),
    );
    row
}

/// The classes of the misses in the outermost caches.
fn outermost(caches: &[Misses], levels: &[u8]) -> Cell {
    let last = levels.last().copied().unwrap_or_default();
    Cell::styled(classes(&Misses::of_level(caches, last)), FAINT)
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
        let told = anstream::adapter::strip_str(&threads(&run(), &run().threads.unwrap(), 100)).to_string();
        for part in ["75.0%", "71 (one)", "2 cold, 1 conflict", "12"] {
            assert!(told.contains(part), "`{part}` is missing:\n{told}");
        }
        let told = anstream::adapter::strip_str(&pages(&run(), &run().pages.unwrap(), 100)).to_string();
        for part in ["25.0%", "0x1000", "table"] {
            assert!(told.contains(part), "`{part}` is missing:\n{told}");
        }
    }
}
