//! What a page begins with, and a terminal's screen too: what was looked at, what to do, where the time goes.

use std::iter::once;

use maud::{Markup, html};
use results::{Advice, Outcome, Todo, count, percent, time};

use super::text::{Text, name, prose};
use crate::screen::{saves, time_parts};

/// Things to do that are shown at once.
const MOST: usize = 3;

pub fn header(advice: &Advice) -> Markup {
    let command = once(&advice.program).chain(&advice.arguments);
    let command = command.map(String::as_str).collect::<Vec<_>>().join(" ");
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
            p.facts { "on " (Text(&machine)) ": " (count(advice.trace.references)) " references, " (Text(part)) }
            @if let Some(native) = &advice.native {
                p.facts {
                    "Measured, without recorder: " (time(native.user_ns)) " in the program, " (time(native.system_ns))
                    " in the kernel. Simulated: " (time(native.simulated_ns)) "."
                }
            }
            @if let Some(warning) = advice.warning() { p.warning role="alert" { (prose(&warning)) } }
        }
    }
}

/// What to do, the largest gain first.
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
                @match (&todo.source, &todo.data) {
                    (Some(source), Some(data)) => { (name(source)) " waits for " (name(data)) }
                    (Some(only), None) | (None, Some(only)) => (name(only)),
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
            @for other in &todo.instead {
                p.do { "or " (prose(&other.action)) ": " span.gain { (Text(&saves(other.gain, other.range))) } }
            }
        }
    }
}

/// Where the time goes, in one bar with its numbers below.
pub fn time_bar(outcome: &Outcome) -> Markup {
    let parts = time_parts(outcome);
    let before = |at: usize| parts[..at].iter().map(|part| part.1).sum::<f64>() * 100.0;
    html! {
        p.time-label { "Time" }
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
