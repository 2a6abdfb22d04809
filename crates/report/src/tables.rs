//! The tables of each kind of result.

mod advice;
mod causes;
mod comparison;
mod found;
mod gains;
mod homes;
mod lists;
mod live_following;
mod live_homes;
mod live_regions;
mod outcomes;
mod placement;
mod sharing;
mod split;
mod traffic;

use results::{Advice, CLASSES, ClassTotals, Outcome, Structure, bytes, count};

use crate::table::{Cell, Column, Role, Table, Tone, unbroken};

pub use comparison::{ROWS as COMPARED_ROWS, of_comparison, unchanged};
pub use found::{daemon, doctor};
pub use lists::{machines, policies};
pub use live_following::live_following;
pub use live_homes::live_homes;
pub use live_regions::live_regions;
pub use outcomes::{own, times};
pub use placement::{measured_ways, placed};
pub use split::levels;

/// How many rows of a list are shown: of data structures, lines, arrays, pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Top {
    /// Those that make a difference.
    #[default]
    Usual,
    Rows(usize),
    All,
}

impl Top {
    /// The rows of a list that are shown; by default those that are `seen`.
    fn of<T>(self, rows: &[T], seen: impl Fn(usize, &T) -> bool) -> Vec<&T> {
        let shown = rows.iter().enumerate().filter(|(at, row)| match self {
            Top::Usual => seen(*at, row),
            Top::Rows(most) => *at < most,
            Top::All => true,
        });
        shown.map(|(_, row)| row).collect()
    }

    /// A note on the rows that are not shown, if any. `small` is their common property under `Usual`.
    fn note(self, table: &mut Table, left_out: usize, what: &str, small: &str) {
        let small = if self == Top::Usual { small } else { "" };
        match left_out {
            0 => {}
            1 => table.note(format!("and 1 more {what}{small}")),
            _ if small.is_empty() => table.note(format!("and {left_out} more {what}s")),
            _ => table.note(format!("and {left_out} more {what}s{small} each")),
        }
    }
}

/// The tables of an advice, in the order in which they are shown.
pub fn of_advice(advice: &Advice, top: Top) -> Vec<Table> {
    if advice.policies.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![advice::shares(advice)];
    let base = advice.base();
    // An advice names only the first entries of its baseline's.
    let longer = base.filter(|_| top != Top::Usual);
    let structures = longer.filter(|base| base.structures.is_some());
    let structures = structures.map_or_else(|| advice.structures.clone(), advise::worst_structures);
    let source_lines = longer.filter(|base| base.source_lines.is_some());
    let source_lines = source_lines.map_or_else(|| advice.source_lines.clone(), advise::worst_source_lines);
    let lines = longer.filter(|base| base.false_sharing.is_some());
    let lines = lines.map_or_else(|| advice.false_sharing.clone(), advise::worst_lines);
    let stall = base.map_or(0, Outcome::stall_ns);
    if !structures.is_empty() {
        tables.push(split::structures("What costs most", &structures, stall, top));
    }
    if !source_lines.is_empty() {
        let title = "Lines of the source that wait most";
        tables.push(split::source_lines(title, &source_lines, stall, top));
    }
    if !lines.is_empty() {
        tables.push(advice::collisions(&lines, top));
    }
    if !advice.causes.is_empty() {
        tables.push(causes::causes(&advice.causes, top));
    }
    if let Some(homes) = &advice.homes {
        // If cpus hardly wait for other nodes, the verdict says so, and only the JSON has the data.
        if !homes.structures.is_empty() && homes.remote_share >= homes::MATTERS {
            tables.push(homes::remote(homes, top));
        }
        if !homes.remedies.is_empty() {
            tables.push(homes::remedies(homes));
        }
    }
    if let Some(sharing) = advice
        .sharing
        .as_ref()
        .filter(|sharing| !sharing.graph.edges.is_empty())
    {
        tables.push(sharing::edges(sharing, top));
        if sharing::matters(sharing) {
            tables.push(sharing::groups(sharing, top));
            tables.push(sharing::placements(sharing));
        }
    }
    tables.push(advice::policies(advice));
    if let Some(work) = &advice.work {
        tables.push(gains::work(work));
    }
    if let Some(slots) = advice.slots.as_ref().filter(|slots| !slots.data.is_empty()) {
        tables.push(gains::partition(slots));
    }
    if let Some(cdpc) = &advice.cdpc {
        tables.extend(gains::cdpc(cdpc, top));
    }
    tables
}

/// The tables of runs side by side; none for no runs.
pub fn of_outcomes(outcomes: &[Outcome], top: Top) -> Vec<Table> {
    let mut tables = side_by_side(outcomes);
    tables.extend(outcomes.iter().flat_map(|outcome| own(outcome, top)));
    tables
}

/// The tables that contain all runs.
pub fn side_by_side(outcomes: &[Outcome]) -> Vec<Table> {
    if outcomes.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![outcomes::times(outcomes)];
    tables.extend(traffic::waiting(outcomes));
    tables.push(outcomes::misses(outcomes));
    tables.extend(traffic::bus(outcomes));
    tables.extend(traffic::prefetches(outcomes));
    tables
}

/// The classes that misses are of, the most frequent first; empty if they were not classed.
fn classes(misses: &ClassTotals) -> String {
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

/// The change of a count; empty if there was none before.
fn changed(results::Change { before, after }: results::Change) -> Cell {
    let change = Cell::change(after as f64, before as f64);
    match before {
        _ if before == after => change.in_words("same").toned(Tone::Faint),
        0 => Cell::empty(),
        _ => change,
    }
}

/// The size of a structure and its number of blocks.
pub fn sized(structure: &Structure) -> Cell {
    match (structure.bytes, structure.blocks) {
        (0, _) => Cell::empty(),
        (size, 0 | 1) => Cell::bytes(size),
        (size, blocks) => Cell::bytes(size).in_words(format!("{} in {}", bytes(size), count(blocks))),
    }
}

/// The columns of misses in caches of these levels.
fn of_levels(levels: &[u8]) -> impl Iterator<Item = Column> + '_ {
    levels
        .iter()
        .map(|level| Column::new(Role::Count, format!("L{level} misses")))
}
