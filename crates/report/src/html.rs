//! Results as one self-contained HTML page: no fonts, no other files, no network.
//!
//! The first screen is the same as a terminal's. Pictures follow, each with tables of its numbers, and then the tables
//! of the result.

mod advice;
mod comparison;
mod false_sharing;
mod first_screen;
mod flame;
mod nodes;
mod outcomes;
mod page;
mod pictures;
mod policies;
mod regions;
mod sections;
mod sharing;
mod source;
mod text;
mod timeline;

use results::{Advice, Comparison, Outcome};

use page::page;

/// The page of an advice. `read` returns the text of a source file, or why there is none.
pub fn advice_page(advice: &Advice, read: &dyn Fn(&str) -> Result<String, String>) -> String {
    let (body, pictures) = advice::body(advice, read);
    page(
        &format!("{} on {}", advice.program, advice.machine.name),
        &pictures,
        &body,
    )
}

/// The page of simulated runs side by side.
pub fn outcomes_page(outcomes: &[Outcome]) -> String {
    let machine = outcomes.first().map_or("", |outcome| outcome.machine.as_str());
    let (body, pictures) = outcomes::body(outcomes);
    let title = match outcomes.first().map_or("", |outcome| &outcome.program) {
        "" => format!("Simulation on {machine}"),
        program => format!("{program} on {machine}, simulated"),
    };
    page(&title, &pictures, &body)
}

/// The page of a comparison of two versions of a program.
pub fn comparison_page(of: &Comparison) -> String {
    let (body, pictures) = comparison::body(of);
    page(&format!("Comparison on {}", of.machine), &pictures, &body)
}
