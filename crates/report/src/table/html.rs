//! A table as HTML: its meaning without its appearance.
//!
//! Classes state what a cell contains and means; `data-value` has the exact number, in the `data-unit` of its column.

use maud::{Markup, html};

use super::{Cell, Column, Exact, Role, Table, Tone, Value};
use crate::escape::Text;

impl Table {
    /// The table as one element, ready to be put into a page.
    pub fn html(&self) -> String {
        // The first name of a row is its subject.
        let about = self.columns.iter().position(|column| column.role == Role::Label);
        let table = html! {
            table {
                @if !self.title.is_empty() { caption { (Text(&self.title)) } }
                thead { tr { @for column in &self.columns { (title(column)) } } }
                tbody {
                    @for row in self.rows() {
                        tr {
                            @for (at, (column, cell)) in self.columns.iter().zip(&row).enumerate() {
                                (drawn(column.role, cell, Some(at) == about && !cell.words().is_empty()))
                            }
                        }
                    }
                }
                @if !self.notes.is_empty() {
                    tfoot { @for note in &self.notes { tr { td.note colspan=(self.columns.len().max(1)) { (Text(note)) } } } }
                }
            }
        };
        table.into_string()
    }
}

fn title(column: &Column) -> Markup {
    let unit = Some(column.unit).filter(|unit| !unit.is_empty());
    html! { th scope="col" class=(column.role.name()) data-unit=[unit] { (Text(&column.name)) } }
}

fn drawn(role: Role, cell: &Cell, heads: bool) -> Markup {
    let class = match cell.tone() {
        Tone::Plain => role.name().to_string(),
        tone => format!("{} {}", role.name(), tone.name()),
    };
    let value = match cell.exact() {
        Some(Exact::Whole(value)) => Some(value.to_string()),
        Some(Exact::Real(value)) if value.is_finite() => Some(value.to_string()),
        _ => None,
    };
    let words = cell.words();
    let words = words.trim();
    html! {
        @if heads {
            th scope="row" class=(class) data-value=[value] { (Text(words)) }
        } @else if let Value::Bar(fraction) = cell.value() {
            td class=(class) data-value=[value] {
                svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" {
                    rect height="1" width=(format!("{:.2}", fraction.clamp(0.0, 1.0) * 100.0)) {}
                }
            }
        } @else {
            td class=(class) data-value=[value] { (Text(words)) }
        }
    }
}
