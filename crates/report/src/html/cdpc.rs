//! The part of the advice on compiler-directed page coloring, as a page.

use super::markup::Html;
use results::{CdpcAdvice, change, count, time};

use crate::cdpc::{facts, size};

pub fn section(html: &mut Html, advice: &CdpcAdvice) {
    html.inside("section", "", |html| {
        html.text("h2", "", "Compiler-directed page coloring");
        let misses = format!("#{} misses", advice.cache);
        html.table(&["policy", "#time", "#cdpc", &misses], |html| {
            for rival in &advice.against {
                html.inside("tr", "", |html| {
                    html.text("td", "name", &rival.policy);
                    html.number(&time(rival.wall_ns));
                    html.number(&change(advice.wall_ns as f64, rival.wall_ns as f64));
                    html.number(&count(rival.misses.before));
                });
            }
        });
        if !advice.arrays.is_empty() {
            html.table(
                &["#conflicts", &misses, "#size", "arrays that conflict as things are"],
                |html| {
                    for array in advice.arrays.iter().take(crate::tables::ARRAYS) {
                        html.inside("tr", "", |html| {
                            html.number(&count(array.conflicts));
                            html.number(&count(array.misses));
                            html.number(&size(array));
                            html.text("td", "name", &array.name);
                        });
                    }
                },
            );
        }
        html.text("p", "faint", &facts(advice));
    });
}
