//! Two versions of a program held against each other, as a page.

use results::Comparison;

use super::markup::Html;
use crate::comparison_text::verdict;
use crate::table::{Layout, Table, Tone};
use crate::tables::{Top, of_comparison, unchanged};

pub fn body(comparison: &Comparison) -> Html {
    let mut html = Html::default();
    html.inside("header", "", |html| {
        html.text("p", "product", "Domicile: comparison");
        html.text("h1", "", &verdict(comparison));
        for (which, side) in [("before", &comparison.before), ("after", &comparison.after)] {
            html.text("p", "faint", &format!("{which}: {}", side.name));
        }
        let subject = format!("on {} under {}", comparison.machine, comparison.policy);
        html.text("p", "faint", &subject);
    });
    for table in of_comparison(comparison, Top::All) {
        html.inside("section", "", |html| drawn(html, &table));
    }
    html.inside("section", "", |html| {
        for condition in &comparison.conditions {
            let met = if condition.met { "met" } else { "not met" };
            html.text("p", "", &format!("{} is {met}: {}", condition.condition, condition.why));
        }
        let unchanged = unchanged(comparison);
        if !unchanged.is_empty() {
            html.text("p", "", &format!("Unchanged: {unchanged}"));
        }
        for note in &comparison.notes {
            html.text("p", "faint", note);
        }
    });
    html
}

/// A table in the page's own style.
fn drawn(html: &mut Html, table: &Table) {
    html.text("h2", "", table.title());
    let right = |at: usize| table.columns()[at].layout() == Layout::Right;
    let title = |at: usize| match right(at) {
        true => format!("#{}", table.columns()[at].name()),
        false => table.columns()[at].name().to_string(),
    };
    let titles: Vec<String> = (0..table.columns().len()).map(title).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    html.table(&titles, |html| {
        for row in table.rows() {
            html.inside("tr", "", |html| {
                for (at, cell) in row.iter().enumerate() {
                    match (right(at), cell.tone()) {
                        (true, _) => html.number(&cell.words()),
                        (false, Tone::Name) => html.text("td", "name", &cell.words()),
                        (false, _) => html.text("td", "", &cell.words()),
                    }
                }
            });
        }
    });
}
