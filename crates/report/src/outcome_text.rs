//! Simulated runs side by side, for terminals.

use results::{Outcome, count, percent, time as time_in_words};

use crate::screen::time;
use crate::table::{HEADING, PLAIN, Table, heading, paragraph};
use crate::tables::{self, Top};

/// Runs of one trace on one machine, in the order given: all tables.
pub fn outcomes(outcomes: &[Outcome], width: usize, top: Top) -> String {
    let Some(first) = outcomes.first() else {
        return NOTHING.to_string();
    };
    let tables = tables::side_by_side(outcomes);
    headline(first) + &sections(&tables, width) + &of_policies(outcomes, width, top)
}

/// The same in short: the results, and tables only if policies are compared or the user requested them (`--by`).
pub fn outcomes_screen(outcomes: &[Outcome], width: usize, top: Top) -> String {
    let Some(first) = outcomes.first() else {
        return NOTHING.to_string();
    };
    let mut text = headline(first) + paragraph("", &result(outcomes), width, PLAIN).trim_start();
    match outcomes {
        [only] => text += &time(only, width),
        _ => text += &sections(&[tables::times(outcomes)], width),
    }
    text + &of_policies(outcomes, width, top)
}

const NOTHING: &str = "There are no results to show.\n";

fn headline(first: &Outcome) -> String {
    let mut text = format!(
        "{HEADING}{}{HEADING:#}  {} references",
        first.machine,
        count(first.references)
    );
    if let Some(instructions) = first.instructions {
        text += &format!(", {} instructions", count(instructions));
    }
    text += &format!(", {} pages\n", count(first.memory.pages));
    for change in &first.changes {
        text += &format!("changed: {}\n", change.in_words());
    }
    text
}

/// The policy that takes least time, and how often each cache misses under it.
fn result(outcomes: &[Outcome]) -> String {
    let Some(best) = outcomes.iter().min_by_key(|outcome| outcome.time_ns.wall) else {
        return String::new();
    };
    let wall = |outcome: &Outcome| outcome.time_ns.wall;
    let others = outcomes.iter().filter(|other| !std::ptr::eq(*other, best));
    let slowest = others.max_by_key(|outcome| wall(outcome));
    let compared = slowest.map_or_else(String::new, |slowest| match wall(slowest) == wall(best) {
        true => ", as do all others".to_string(),
        false => {
            let more = wall(slowest) as f64 / wall(best).max(1) as f64 - 1.0;
            format!(", the least; `{}` takes most, {} more", slowest.policy, percent(more))
        }
    });
    let misses = best.caches.iter().filter(|cache| cache.accesses > 0);
    let rate = |misses: u64, of: u64| percent(misses as f64 / of.max(1) as f64);
    let mut misses: Vec<String> = misses
        .map(|cache| format!("{} {}", cache.name, rate(cache.misses, cache.accesses)))
        .collect();
    if let (Some(of), Some(missed)) = (best.tlb.accesses, best.tlb.misses) {
        misses.push(format!("TLB {}", rate(missed, of)));
    }
    format!(
        "`{}` takes {}{compared}. Misses: {}.",
        best.policy,
        time_in_words(wall(best)),
        misses.join(", ")
    )
}

fn sections(tables: &[Table], width: usize) -> String {
    tables.iter().map(|table| table.section(width)).collect()
}

/// The text on single policies, and the tables of their parts.
fn of_policies(outcomes: &[Outcome], width: usize, top: Top) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let slots = outcome.slots.as_ref().map(advise::slots_in_words);
        let cdpc = outcome.cdpc.as_ref().map(advise::cdpc_in_words);
        let regions = outcome.regions.as_ref().map(advise::regions_in_words);
        let pairing = outcome.pairing.as_ref().map(advise::pairing_in_words);
        for words in slots.into_iter().chain(cdpc).chain(regions).chain(pairing) {
            text += &format!("\n{}", heading(&format!("Under {}", outcome.policy)));
            text += &paragraph("", &words, width, PLAIN);
        }
        text += &sections(&tables::own(outcome, top), width);
    }
    text
}
