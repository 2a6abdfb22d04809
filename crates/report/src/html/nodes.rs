//! The nodes' memories and the nodes' cpus that they serve, as a matrix.

use results::HomesAdvice;

use super::pictures::{Drawing, Picture, Row, Unit, View};
use super::sections::Sections;
use crate::table::{Cell, Column, Role, Table};

pub const TITLE: &str = "Traffic between memory nodes";

/// No section if each node serves itself.
pub fn section(sections: &mut Sections, of: &HomesAdvice) {
    let crosses =
        |(from, row): (usize, &Vec<u64>)| row.iter().enumerate().any(|(to, misses)| from != to && *misses > 0);
    if !of.traffic.iter().enumerate().any(crosses) {
        return;
    }
    let all_nodes = of.traffic.iter().map(Vec::len).max().unwrap_or(0);
    let memory: Vec<String> = (0..all_nodes).map(|node| format!("memory of node {node}")).collect();
    let row = |(node, values): (usize, &Vec<u64>)| Row {
        name: format!("by node {node}"),
        about: String::new(),
        values: values.clone(),
    };
    let drawing = Drawing::Heat {
        along: "memory".to_string(),
        columns: (0..all_nodes).map(|node| format!("node {node}")).collect(),
        rows: of.traffic.iter().enumerate().map(row).collect(),
        unit: Unit::Misses,
        marks: Vec::new(),
    };
    let picture = Picture::new(
        TITLE,
        vec![View {
            name: TITLE.to_string(),
            drawing,
        }],
    );
    let caption = "Misses beyond all caches. On the diagonal a node's own memory served them; a dirty cache counts as the memory of its page.";
    sections.picture(TITLE, caption, picture, &[table(of, &memory)]);
}

fn table(of: &HomesAdvice, memory: &[String]) -> Table {
    let mut columns = vec![Column::new(Role::Label, "misses of")];
    columns.extend(memory.iter().map(|name| Column::new(Role::Count, name.as_str())));
    let mut table = Table::new(format!("Misses by node, under {}", of.against), columns);
    for (node, row) in of.traffic.iter().enumerate() {
        let name = Cell::name(format!("cpus of node {node}"));
        table.row(std::iter::once(name).chain(row.iter().map(|misses| Cell::count(*misses))));
    }
    table
}
