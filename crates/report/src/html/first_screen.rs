//! The beginning of a page, and of a terminal's output: the subject, the things to do, the parts of the time.

use std::iter::once;

use maud::{Markup, html};
use results::{Advice, Outcome, Todo, bytes, command_line, count, percent};

use super::text::{Text, name, prose};
use crate::screen::{clock_in_words, saves, time_parts, waits};

/// How many things to do are shown at once.
const MOST: usize = 3;
/// A smaller part of the time in which cpus are idle is not named.
const IDLE: f64 = 0.005;

pub fn header(advice: &Advice) -> Markup {
    let command = command_line(once(&advice.program).chain(&advice.arguments));
    let machine = match &advice.machine.basis {
        None => advice.machine.name.clone(),
        Some(basis) => format!("{} ({basis})", advice.machine.name),
    };
    let part = match (&advice.broke, &advice.trace.part) {
        (Some(_), _) => "broken run",
        (None, Some(part)) => part,
        (None, None) => "whole run",
    };
    html! {
        header {
            p.product { "Domicile: where memory time goes" }
            h1 { (Text(&command)) }
            p.facts {
                "on " (Text(&machine)) ": " (count(advice.trace.references)) " references, " (Text(part))
                @if let Some(status) = advice.exit { ", exit " (status) }
            }
            p.facts { (Text(&facts(advice))) }
            @if let Some(native) = &advice.native { p.facts { (Text(&clock_in_words(native))) } }
            @if let Some(warning) = advice.warning() { p.warning role="alert" { (prose(&warning)) } }
        }
    }
}

/// The sizes of machine and run.
fn facts(advice: &Advice) -> String {
    let (machine, trace) = (&advice.machine, &advice.trace);
    let many = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut facts = vec![
        many(machine.cpus.into(), "cpu"),
        many(machine.nodes.into(), "node"),
        many(machine.colors.into(), "color"),
        many(trace.threads, "thread"),
    ];
    if trace.processes > 1 {
        facts.push(format!("{} processes", trace.processes));
    }
    facts.extend(
        trace
            .instructions
            .map(|instructions| format!("{} instructions", count(instructions))),
    );
    facts.push(format!("{} of memory touched", bytes(trace.footprint_bytes)));
    facts.join(", ")
}

/// The things to do, the largest gain first.
pub fn to_do(advice: &Advice) -> Markup {
    html! {
        @if !advice.todo.is_empty() {
            ol.todo { @for todo in advice.todo.iter().take(MOST) { (item(todo)) } }
        }
        @if advice.todo.len() > MOST {
            details {
                summary { (advice.todo.len() - MOST) " more" }
                ol.todo start=(MOST + 1) { @for todo in &advice.todo[MOST..] { (item(todo)) } }
            }
        }
        @let rest = if advice.otherwise.is_empty() { &advice.verdict } else { &advice.otherwise };
        p { (prose(rest)) }
        @for line in advice.regions.iter().flat_map(|regions| &regions.lines) { p { (prose(line)) } }
        @if let Some(base) = advice.base() { (time_bar(base)) }
    }
}

fn item(todo: &Todo) -> Markup {
    html! {
        li {
            p.what {
                @match (todo.place(), &todo.data) {
                    (Some(place), Some(data)) => { span.name { (Text(&place)) } " " (waits(todo)) " for " (name(data)) }
                    (Some(place), None) => span.name { (Text(&place)) },
                    (None, Some(data)) => (name(data)),
                    (None, None) => "the program",
                }
                ": " (Text(&todo.kind)) " "
                span.share { (percent(todo.share)) " of run time" }
            }
            @if let Some(code) = &todo.code { pre { code { (Text(code.trim())) } } }
            p { (prose(&todo.because)) }
            p.do {
                strong { "Do" } " " (prose(&todo.action)) ": "
                span.gain {
                    @match todo.gain {
                        Some(gain) => (Text(&saves(gain, todo.range))),
                        None => { "at most " (percent(todo.share)) ", not simulated" }
                    }
                }
            }
            @if !todo.conditions.is_empty() { p.faint { "(" (prose(&todo.conditions)) ")" } }
            @for other in &todo.instead {
                p.do { "or " (prose(&other.action)) ": " span.gain { (Text(&saves(other.gain, other.range))) } }
                @if !other.conditions.is_empty() { p.faint { "(" (prose(&other.conditions)) ")" } }
            }
        }
    }
}

/// The parts of the time, in one bar with its numbers below.
pub fn time_bar(outcome: &Outcome) -> Markup {
    let parts = time_parts(outcome);
    let before = |at: usize| parts[..at].iter().map(|part| part.1).sum::<f64>() * 100.0;
    html! {
        @let time = &outcome.time_ns;
        @let idle = (time.imbalance + time.sequential + time.synchronization) as f64 / time.total.max(1) as f64;
        p.time-label { "Time" @if idle >= IDLE { "; cpus idle " (percent(idle)) } }
        svg.time viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label="Where the time goes" {
            @for (at, (part, fraction)) in parts.iter().enumerate() {
                rect class={ "part-" (part.replace(' ', "-").to_lowercase()) } x=(format!("{:.2}", before(at))) y="0" height="4" width=(format!("{:.2}", fraction * 100.0)) {}
            }
        }
        ul.legend {
            @for (part, fraction) in &parts {
                li { svg.key viewBox="0 0 1 1" aria-hidden="true" { rect class={ "part-" (part.replace(' ', "-").to_lowercase()) } width="1" height="1" {} } (part) " " (percent(*fraction)) }
            }
        }
    }
}
