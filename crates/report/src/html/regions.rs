//! Regions over time: the data of each cache.

use results::{Outcome, Regions, RegionsMoment, time};

use super::pictures::{Drawing, Picture, Row, Unit, View};
use super::sections::Sections;
use crate::table::{Cell, Column, Role, Table};

const TITLE: &str = "Regions over time";
/// Moments of the picture: with more, they are thinned out evenly.
const MOMENTS: usize = 128;

/// No section if the run formed no regions.
pub fn section(sections: &mut Sections, outcome: &Outcome) {
    let Some(of) = outcome.regions.as_ref().filter(|of| !of.moments.is_empty()) else {
        return;
    };
    let step = of.moments.len().div_ceil(MOMENTS);
    let moments: Vec<&RegionsMoment> = of.moments.iter().step_by(step).collect();
    let title = format!("{TITLE} under {}", outcome.name());
    let view = |name: &str, unit, value: fn(&RegionsMoment) -> &[u64]| View {
        name: name.to_string(),
        drawing: Drawing::Heat {
            along: "time".to_string(),
            columns: moments.iter().map(|moment| time(moment.at_ns)).collect(),
            rows: rows(of, &moments, value),
            unit,
            marks: Vec::new(),
        },
    };
    let load = view("Working sets", Unit::Bytes, |moment| &moment.load_bytes);
    let picture = Picture::new(&title, vec![load]);
    let caption = "The working sets of the regions that each cache was given, after each regioning phase.";
    sections.picture(&title, caption, picture, &[table(&title, &moments)]);
}

fn rows(of: &Regions, moments: &[&RegionsMoment], value: fn(&RegionsMoment) -> &[u64]) -> Vec<Row> {
    let of_cache = |cache: usize| Row {
        name: format!("{} number {cache}", of.cache),
        about: String::new(),
        values: moments
            .iter()
            .map(|moment| value(moment).get(cache).copied().unwrap_or(0))
            .collect(),
    };
    (0..of.caches as usize).map(of_cache).collect()
}

fn table(title: &str, moments: &[&RegionsMoment]) -> Table {
    let columns = [
        Column::new(Role::Time, "at"),
        Column::new(Role::Count, "regions with a cache"),
        Column::new(Role::Bytes, "their working sets"),
        Column::new(Role::Count, "without one"),
        Column::new(Role::Count, "pages by themselves"),
        Column::new(Role::Count, "moves of threads so far"),
    ];
    let mut table = Table::new(title, columns);
    for moment in moments {
        table.row([
            Cell::time(moment.at_ns),
            Cell::count(moment.regions.iter().sum()),
            Cell::bytes(moment.load_bytes.iter().sum()),
            Cell::count(moment.regular),
            Cell::count(moment.seeds),
            Cell::count(moment.switches),
        ]);
    }
    table
}
