//! What there is to choose from: policies and machines.

use policy::{Entry, Kind, Range};

use crate::table::{Cell, Column, FAINT, NAME, Table};

/// The policies with their parameters.
pub fn policies(entries: &[Entry], width: usize) -> String {
    let mut table = Table::new([
        (Column::Left, "policy"),
        (Column::Left, "chooses"),
        (Column::Wrap, "what it does (source)"),
    ]);
    for entry in entries {
        let chooses = match entry.kind {
            Kind::Color => "color",
            Kind::Home => "home",
            Kind::Order => "order",
        };
        table.row([
            Cell::styled(entry.name, NAME),
            chooses.into(),
            format!("{} ({})", entry.summary, entry.source).into(),
        ]);
        for param in entry.params {
            let named = |value: u64| param.names.get(value as usize).map(|name| name.to_string());
            let range = match param.range {
                _ if !param.names.is_empty() => param.names.join(", "),
                Range {
                    least: 0,
                    most: u64::MAX,
                } => "any number".to_string(),
                Range { least, most: u64::MAX } => format!("{least} or more"),
                Range { least, most } => format!("{least} to {most}"),
            };
            let unit = if param.unit.is_empty() {
                String::new()
            } else {
                format!(" of {}", param.unit)
            };
            let default = named(param.default).unwrap_or(param.default.to_string());
            table.row([
                Cell::styled(format!("  .{}", param.name), FAINT),
                "".into(),
                format!("{}: {range}{unit}; {default} unless set", param.summary).into(),
            ]);
        }
    }
    let mut text = table.render(width);
    text += "\nA policy that chooses homes and one that chooses colors combine, and either with one for the order of\n\
             work: first-touch+page-coloring+order.\n";
    text += "Parameters are set as in --set random.seed=7.\n";
    text
}

/// Names of machines, with a line about each.
pub fn machines<'a>(machines: impl IntoIterator<Item = (&'a str, &'a str)>, width: usize) -> String {
    let mut table = Table::new([(Column::Left, "machine"), (Column::Wrap, "what it is")]);
    for (name, summary) in machines {
        table.row([Cell::styled(name, NAME), summary.into()]);
    }
    table.render(width)
}
