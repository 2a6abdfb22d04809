//! Results for readers: tables, described once, and drawn as text for terminals or as HTML.
//!
//! Everything here is pure: data in, text out. The data are the types of [`results`], fresh or loaded, so a saved
//! result is shown exactly like a fresh one. [`tables`], [`advice_tables`], [`outcome_tables`] and
//! [`comparison_tables`] return a result's tables: each is a description, which draws itself ([`Table::text`],
//! [`Table::html`]).
#![forbid(unsafe_code)]

mod advice_text;
mod annotated;
mod bar;
mod cdpc;
mod comparison_text;
mod escape;
mod html;
mod outcome_text;
mod screen;
mod table;
mod tables;
pub mod truth_text;
mod verified_text;
mod work;

use results::Document;

pub use advice_text::advice;
pub use annotated::annotated;
pub use comparison_text::{comparison, verdict as verdict_of_comparison};
pub use html::{advice_page, comparison_page, outcomes_page};
pub use outcome_text::{outcomes, outcomes_screen};
pub use results::{bytes, count, nanoseconds, percent};
pub use screen::screen;
pub use table::{Cell, Cells, Column, Exact, Has, Layout, Role, Rounding, Table, Tone, Value, heading};
pub use tables::{
    Top, daemon, doctor, live_following, live_homes, live_regions, machines, measured_ways, of_advice as advice_tables,
    of_comparison as comparison_tables, of_outcomes as outcome_tables, placed, policies,
};

pub use truth_text::truth;
pub use verified_text::verified;

/// A saved result for terminals, in at most `width` columns.
pub fn text(document: &Document, width: usize, top: Top) -> String {
    match document {
        Document::Advice(of) => advice(of, width, top),
        Document::Outcomes(of) => outcomes(of, width, top),
        Document::Comparison(of) => comparison(of, width, top),
    }
}

/// The tables of a saved result, in the order in which they are shown.
pub fn tables(document: &Document, top: Top) -> Vec<Table> {
    match document {
        Document::Advice(of) => advice_tables(of, top),
        Document::Outcomes(of) => outcome_tables(of, top),
        Document::Comparison(of) => comparison_tables(of, top),
    }
}

/// A saved result as one HTML page. `read` returns the text of a source file, or why there is none.
pub fn page(document: &Document, read: &dyn Fn(&str) -> Result<String, String>) -> String {
    match document {
        Document::Advice(of) => advice_page(of, read),
        Document::Outcomes(of) => outcomes_page(of),
        Document::Comparison(of) => comparison_page(of),
    }
}
