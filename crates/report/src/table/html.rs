//! A table as HTML: what it means and nothing of how it looks.
//!
//! Classes say what a cell holds and what it means; `data-value` has the exact number, in the `data-unit` of its column.

use std::fmt::Write;

use super::{Cell, Exact, Role, Table, Tone};
use crate::escape::escape;

impl Table {
    /// The table as one element, ready to be put into a page.
    pub fn html(&self) -> String {
        let mut html = String::from("<table>\n");
        if !self.title.is_empty() {
            html += &format!("<caption>{}</caption>\n", escape(&self.title));
        }
        html += "<thead>\n<tr>";
        for column in &self.columns {
            html += &format!("<th scope=\"col\" class=\"{}\"", column.role.name());
            if !column.unit.is_empty() {
                html += &format!(" data-unit=\"{}\"", escape(column.unit));
            }
            html += &format!(">{}</th>", escape(&column.name));
        }
        html += "</tr>\n</thead>\n<tbody>\n";
        for row in &self.rows {
            html += "<tr>";
            // The first name of a row is what the row is about.
            let about = self.columns.iter().position(|column| column.role == Role::Label);
            for (at, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                let heads = Some(at) == about && !cell.words().is_empty();
                draw(&mut html, column.role, cell, heads);
            }
            html += "</tr>\n";
        }
        html += "</tbody>\n";
        if !self.notes.is_empty() {
            html += "<tfoot>\n";
            for note in &self.notes {
                let columns = self.columns.len().max(1);
                html += &format!(
                    "<tr><td class=\"note\" colspan=\"{columns}\">{}</td></tr>\n",
                    escape(note)
                );
            }
            html += "</tfoot>\n";
        }
        html + "</table>\n"
    }
}

fn draw(html: &mut String, role: Role, cell: &Cell, heads: bool) {
    let (tag, scope) = match heads {
        true => ("th", " scope=\"row\""),
        false => ("td", ""),
    };
    let tone = match cell.tone() {
        Tone::Plain => "",
        Tone::Name => " name",
        Tone::Faint => " faint",
        Tone::Good => " good",
        Tone::Partly => " partly",
        Tone::Bad => " bad",
    };
    let value = match cell.exact() {
        Some(Exact::Whole(value)) => format!(" data-value=\"{value}\""),
        Some(Exact::Real(value)) if value.is_finite() => format!(" data-value=\"{value}\""),
        _ => String::new(),
    };
    // Writing to a string does not fail.
    let _ = write!(
        html,
        "<{tag}{scope} class=\"{}{tone}\"{value}>{}</{tag}>",
        role.name(),
        escape(cell.words().trim())
    );
}
