//! Simulated runs side by side, for terminals.

use results::{Outcome, count};

use crate::table::{HEADING, PLAIN, Table, heading, paragraph};
use crate::tables::{self, Top};

/// Runs of one trace on one machine, in the order given.
pub fn outcomes(outcomes: &[Outcome], width: usize, top: Top) -> String {
    let Some(first) = outcomes.first() else {
        return "There are no results to show.\n".to_string();
    };
    let mut text = format!(
        "{HEADING}{}{HEADING:#}  {} references",
        first.machine,
        count(first.references)
    );
    if let Some(instructions) = first.instructions {
        text += &format!(", {} instructions", count(instructions));
    }
    text += &format!(", {} pages\n", count(first.memory.pages));
    let sections = |tables: Vec<Table>| tables.iter().map(|table| table.section(width)).collect::<String>();
    for change in &first.changes {
        text += &format!("changed: {}\n", change.in_words());
    }
    text += &sections(tables::side_by_side(outcomes));
    for outcome in outcomes {
        let slots = outcome.slots.as_ref().map(advise::slots_in_words);
        let cdpc = outcome.cdpc.as_ref().map(advise::cdpc_in_words);
        let regions = outcome.regions.as_ref().map(advise::regions_in_words);
        for words in slots.into_iter().chain(cdpc).chain(regions) {
            text += &format!("\n{}", heading(&format!("Under {}", outcome.policy)));
            text += &paragraph("", &words, width, PLAIN);
        }
        text += &sections(tables::own(outcome, top));
    }
    text
}
