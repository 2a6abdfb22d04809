//! The choices: policies and machines.

use policy::{Entry, Kind, Range};

use crate::table::{Cell, Column, Role, Table, Tone};

/// The policies with their parameters.
pub fn policies(entries: &[Entry]) -> Table {
    let mut table = Table::new(
        "Policies",
        [
            Column::new(Role::Label, "policy"),
            Column::new(Role::Text, "chooses"),
            Column::new(Role::Text, "what it does (source)").wrap(),
        ],
    );
    for entry in entries {
        let chooses = match entry.kind {
            Kind::Color => "color",
            Kind::Home => "home",
            Kind::Order => "order",
            Kind::Threads => "threads",
        };
        table.row([
            Cell::name(entry.name),
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
                Cell::from(format!("  .{}", param.name)).toned(Tone::Faint),
                Cell::empty(),
                format!("{}: {range}{unit}; {default} unless set", param.summary).into(),
            ]);
        }
    }
    table
}

/// Names of machines, with a line about each.
pub fn machines<'a>(machines: impl IntoIterator<Item = (&'a str, &'a str)>) -> Table {
    let mut table = Table::new(
        "Machines",
        [
            Column::new(Role::Label, "machine"),
            Column::new(Role::Text, "what it is").wrap(),
        ],
    );
    for (name, summary) in machines {
        table.row([Cell::name(name), summary.into()]);
    }
    table
}
