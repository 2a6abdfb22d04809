//! Results, made readable: tables for terminals and one self-contained HTML page.
//!
//! Everything here is pure: data in, text out. The data are the types of [`results`], fresh or read from what was saved, so
//! that a saved result is shown exactly as a fresh one.
#![forbid(unsafe_code)]

mod advice_text;
mod bar;
mod cdpc;
mod cdpc_text;
mod html;
mod lists;
mod outcome_text;
mod split_text;
mod table;
mod traffic_text;
mod work;

use results::Document;

pub use advice_text::advice;
pub use html::{advice_page, outcomes_page};
pub use lists::{machines, policies};
pub use outcome_text::outcomes;
pub use results::{bytes, count, nanoseconds, percent};
pub use table::{Cell, Column, Table};

/// A saved result for terminals, in at most `width` columns.
pub fn text(document: &Document, width: usize) -> String {
    match document {
        Document::Advice(of) => advice(of, width),
        Document::Outcomes(of) => outcomes(of, width),
    }
}

/// A saved result as one HTML page.
pub fn page(document: &Document) -> String {
    match document {
        Document::Advice(of) => advice_page(of),
        Document::Outcomes(of) => outcomes_page(of),
    }
}
