//! Results as one HTML page that needs nothing else: no scripts, no fonts, no other files.

mod advice;
mod cdpc;
mod comparison;
mod markup;
mod outcomes;

use results::{Advice, Comparison, Outcome};

use crate::escape::escape;
use markup::Html;

/// Colors and layout, for light and dark screens and for paper.
const STYLE: &str = include_str!("html/style.css");

/// The page of an advice.
pub fn advice_page(advice: &Advice) -> String {
    page(
        &format!("{} on {}", advice.program, advice.machine.name),
        &advice::body(advice),
    )
}

/// The page of simulated runs side by side.
pub fn outcomes_page(outcomes: &[Outcome]) -> String {
    let machine = outcomes.first().map_or("", |outcome| outcome.machine.as_str());
    page(&format!("Simulation on {machine}"), &outcomes::body(outcomes))
}

/// The page of two versions of a program held against each other.
pub fn comparison_page(of: &Comparison) -> String {
    page(&format!("Comparison on {}", of.machine), &comparison::body(of))
}

fn page(title: &str, body: &Html) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}
