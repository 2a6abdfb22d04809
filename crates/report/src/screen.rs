//! The advice on one screen: the subject, the things to do, the rest, the parts of the time.
//!
//! At most 30 lines of 80 columns: tables are available on request ([`crate::advice`]).

use std::iter::once;

use results::{Advice, Native, Outcome, Todo, command_line, count, percent, short, time as time_of};

use crate::bar::bar;
use crate::table::{FAINT, HEADING, PLAIN, WARNING, cut, paragraph, unbroken, wrap};

/// How many things to do are shown; and how many if the verification of a change follows.
const MOST: usize = 3;
const BESIDE_VERIFIED: usize = 2;
/// The longest lines, however wide the terminal is.
pub(crate) const WIDEST: usize = 80;
/// Lines of a cause, and of the change: fewer if there are several.
const LINES: usize = 3;
const FEW_LINES: usize = 2;
/// Lines about everything else that was examined.
const REST: usize = 4;
/// With more things to do, the alternatives are only in the tables.
const INSTEAD: usize = 2;
/// Columns of a bar of the whole time.
const BAR: f64 = 24.0;
/// A smaller part of the time gets no bar.
const SEEN: f64 = 0.005;

/// The whole screen in at most `width` columns, without the closing lines that name files. The warning that a run broke off is
/// one line of any length.
pub fn screen(advice: &Advice, width: usize) -> String {
    let width = width.min(WIDEST);
    // One line, whatever its length: a reader of only the first line gets all of it.
    let warning = advice.warning().map(|text| format!("{WARNING}{text}{WARNING:#}\n"));
    let mut text = warning.unwrap_or_default() + &headline(advice, width);
    let most = if advice.verified.is_some() {
        BESIDE_VERIFIED
    } else {
        MOST
    };
    for (number, todo) in (1..).zip(advice.todo.iter().take(most)) {
        text += &item(number, todo, advice.todo.len(), width);
    }
    let mut rest = String::new();
    if advice.todo.len() > most {
        rest = match advice.todo.len() - most {
            1 => "One more thing to do is in --details. ".to_string(),
            more => format!("{more} more things to do are in --details. "),
        };
    }
    // Results of older versions have only a verdict.
    rest += match advice.otherwise.is_empty() {
        true => &advice.verdict,
        false => &advice.otherwise,
    };
    text += &lines(&rest, "", width, REST);
    for line in advice.regions.iter().flat_map(|regions| &regions.lines) {
        text += &lines(line, "", width, FEW_LINES);
    }
    text + &advice.base().map_or_else(String::new, |base| time(base, width))
}

/// The program, the machine, the amount of work examined.
fn headline(advice: &Advice, width: usize) -> String {
    let command = command_line(once(&advice.program).chain(&advice.arguments));
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let machine = match &advice.machine.basis {
        None => advice.machine.name.clone(),
        Some(basis) => format!("{} ({basis})", advice.machine.name),
    };
    let run = match (&advice.broke, &advice.trace.part) {
        (Some(_), _) => "broken run".to_string(),
        (None, Some(part)) => part.clone(),
        (None, None) => "whole run".to_string(),
    };
    let exit = advice
        .exit
        .map_or_else(String::new, |status| format!(", exit {status}"));
    let references = count(advice.trace.references);
    let facts = format!(" on {machine}: {references} references, {run}{exit}");
    let room = width.saturating_sub(facts.chars().count()).max(16);
    let mut text = format!("{HEADING}{}{HEADING:#}", cut(&command, room));
    match styled_columns(&text) + facts.chars().count() <= width {
        true => text += &format!("{facts}\n"),
        false => text += &format!("\n{}", lines(facts.trim_start(), "  ", width, REST)),
    }
    text + &advice
        .native
        .as_ref()
        .map_or_else(String::new, |native| clock(native, width))
}

/// The simulated time compared with the clock's.
fn clock(native: &Native, width: usize) -> String {
    lines(&clock_in_words(native), "", width, LINES)
}

pub fn clock_in_words(native: &Native) -> String {
    let [user, system, simulated] = [native.user_ns, native.system_ns, native.simulated_ns].map(time_of);
    let model = match native.overlapping_ns {
        Some(overlapping) => format!(
            ", each load waiting by itself ({} if loads overlap)",
            time_of(overlapping)
        ),
        None => String::new(),
    };
    let runs = match native.runs {
        0 | 1 => String::new(),
        runs => format!(" (mean of {runs} runs)"),
    };
    let faults = match native.faults_ns {
        0 => String::new(),
        faults => format!(", and {} of page faults", time_of(faults)),
    };
    format!(
        "Measured, without recorder: {user} in the program, {system} in the kernel{runs}. Simulated: {simulated}{model}{faults}."
    )
}

/// One of `all` things to do.
fn item(number: usize, todo: &Todo, all: usize, width: usize) -> String {
    let most = if all > 1 { FEW_LINES } else { LINES };
    let what = match (todo.place(), &todo.data) {
        (Some(place), Some(data)) => format!("{place} {} for {}", waits(todo), short(data)),
        (Some(place), None) => place,
        (None, Some(data)) => short(data),
        (None, None) => "the program".to_string(),
    };
    let share = format!("{} of run time", percent(todo.share));
    let start = format!("{number}. ");
    let room = width.saturating_sub(start.len() + share.len() + 2);
    let with_kind = format!("{what}: {}", todo.kind);
    // If that is too long, the kind stands before the sentence: whole names are more important.
    let (what, because) = match with_kind.chars().count() <= room {
        true => (with_kind, todo.because.clone()),
        false => (cut(&what, room), format!("{}: {}", todo.kind, todo.because)),
    };
    let gap = " ".repeat(room + 2 - what.chars().count());
    let mut text = format!("{start}{HEADING}{what}{HEADING:#}{gap}{share}\n");
    if let Some(code) = &todo.code {
        text += &format!("     {FAINT}{}{FAINT:#}\n", cut(code.trim(), width.saturating_sub(5)));
    }
    text += &lines(&because, "   ", width, most);
    let worth = match todo.gain {
        Some(gain) => saves(gain, todo.range),
        None => format!("at most {}, not simulated", percent(todo.share)),
    };
    text += &action("DO", &todo.action, &worth, width, most);
    if all == 1 && !todo.conditions.is_empty() {
        let conditions = lines(&format!("({})", todo.conditions), "      ", width, LINES);
        text += &format!("{FAINT}{}{FAINT:#}\n", conditions.trim_end());
    }
    if let Some(other) = todo.instead.first().filter(|_| all <= INSTEAD) {
        text += &action("OR", &other.action, &saves(other.gain, other.range), width, most);
    }
    text
}

/// The verb of the line, or of several.
pub(crate) fn waits(todo: &Todo) -> &'static str {
    match todo.other_lines {
        0 => "waits",
        _ => "wait",
    }
}

/// An action, and the time that it saves. A long text is cut, but never the number after it.
fn action(word: &str, action: &str, saves: &str, width: usize, most: usize) -> String {
    let start = format!("   {HEADING}{word}{HEADING:#} ");
    let room = width.saturating_sub(styled_columns(&start)).max(20);
    let fits = |action: &str| wrap(&format!("{action}: {saves}"), room).len() <= most;
    let mut shown = action.to_string();
    while !fits(&shown) && shown.contains(' ') {
        let text = shown.trim_end_matches(" …");
        let mut kept = text.rfind(' ').unwrap_or(0);
        // Words in brackets, and commands to type, are shown completely or not at all.
        if let Some(open) = text[..kept].rfind(" (").filter(|open| !text[*open..kept].contains(')')) {
            kept = open;
        }
        if text[..kept].matches('`').count() % 2 == 1 {
            kept = text[..kept].rfind(" `").unwrap_or(kept);
        }
        shown.truncate(kept);
        shown += " …";
    }
    lines(&format!("{shown}: {saves}"), &start, width, most)
}

/// A gain, and its possible error, if known.
pub fn saves(gain: f64, range: Option<[f64; 2]>) -> String {
    let simulated = percent(gain);
    match range.map(|range| range.map(|part| part * 100.0)) {
        None => format!("saves {simulated} (simulated)"),
        Some([_, most]) if most < 1.0 => format!("may save nothing (simulated: {simulated})"),
        Some([least, most]) if least < 1.0 => format!("saves up to {most:.0}% (simulated: {simulated})"),
        Some([least, most]) => format!("saves {least:.0} to {most:.0}% (simulated: {simulated})"),
    }
}

/// A text in lines, `most` at most: the first begins with `start`, the others below its text.
fn lines(text: &str, start: &str, width: usize, most: usize) -> String {
    // Styles take no columns.
    let columns = styled_columns(start);
    let room = width.saturating_sub(columns).max(20);
    let mut all = wrap(text, room);
    if all.len() > most {
        // Room for the ellipsis.
        all = wrap(text, room.saturating_sub(2));
    }
    let left_out = all.len() > most;
    let shown = all.iter().take(most).enumerate();
    let shown = shown.map(|(at, line)| {
        let more = if left_out && at + 1 == most { " …" } else { "" };
        match at {
            0 => format!("{start}{line}{more}\n"),
            _ => format!("{}{line}{more}\n", " ".repeat(columns)),
        }
    });
    shown.collect()
}

/// Columns of a text with styles.
fn styled_columns(text: &str) -> usize {
    let mut columns = 0;
    let mut within = false;
    for character in text.chars() {
        match (within, character) {
            (false, '\u{1b}') => within = true,
            (false, _) => columns += 1,
            (true, 'm') => within = false,
            (true, _) => {}
        }
    }
    columns
}

/// The parts of the time, in one bar.
pub fn time(outcome: &Outcome, width: usize) -> String {
    let time = &outcome.time_ns;
    let parts = time_parts(outcome);
    let one = |(name, part): &(&str, f64)| {
        let length = (part * BAR).round().max(1.0) as usize;
        unbroken(&format!("{} {name} {}", bar(1.0, length), percent(*part)))
    };
    let parts: Vec<String> = parts.iter().map(one).collect();
    let mut text = format!("Time: {}", parts.join("  "));
    let idle = time.imbalance + time.sequential + time.synchronization;
    if idle as f64 >= SEEN * time.total as f64 {
        let idle = percent(idle as f64 / time.total.max(1) as f64);
        text += &format!("; {}", unbroken(&format!("cpus idle {idle}")));
    }
    paragraph("", &text, width, PLAIN).trim_start().to_string()
}

/// The visible parts of the time, the largest first, as fractions of the time in which cpus worked.
pub fn time_parts(outcome: &Outcome) -> Vec<(&'static str, f64)> {
    let time = &outcome.time_ns;
    let worked = time.worked().max(1) as f64;
    let parts = [
        ("busy", time.busy),
        ("caches", time.cache_stall),
        ("memory", time.local_stall),
        ("other nodes", time.remote_stall),
        ("TLB", time.tlb_stall),
        ("prefetches", time.prefetch_stall),
        ("policy", time.policy_overhead),
        ("page faults", time.page_faults),
    ];
    let parts = parts.into_iter().map(|(name, ns)| (name, ns as f64 / worked));
    let mut parts: Vec<(&'static str, f64)> = parts.filter(|(_, part)| *part >= SEEN).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_advice_fits_on_a_screen() {
        let todo = Todo {
            source: Some("a_source_of_some_length.cc:1234".to_string()),
            code: Some("x ".repeat(100)),
            data: Some("heap: main (a_source_of_some_length.cc:1234)".to_string()),
            kind: "walks-across".to_string(),
            because: "because ".repeat(50),
            other_lines: 3,
            action: "action ".repeat(50),
            conditions: "simulated ".repeat(50),
            instead: vec![results::Instead {
                action: "instead ".repeat(50),
                conditions: String::new(),
                gain: 0.1,
                range: Some([0.04, 0.2]),
            }],
            share: 0.5,
            gain: Some(0.25),
            range: Some([0.1, 0.4]),
            ..Todo::default()
        };
        for count in 1..=4 {
            let mut advice = Advice {
                program: "/a/program/with/a/long/path/of/its/own".to_string(),
                arguments: vec!["and".to_string(), "arguments".to_string()],
                exit: Some(0),
                todo: vec![todo.clone(); count],
                otherwise: "otherwise ".repeat(100),
                native: Some(Native {
                    user_ns: 1_234_567_890,
                    system_ns: 1_234_567,
                    simulated_ns: 1_234_567_890,
                    overlapping_ns: Some(1_234_567_890),
                    ..Native::default()
                }),
                ..Advice::default()
            };
            advice.trace.part = Some("20 windows, 17.4% of the run, time ± 37.3%".to_string());
            advice.policies = vec![results::Outcome::default()];
            let time = &mut advice.policies[0].time_ns;
            (time.busy, time.cache_stall, time.local_stall) = (100, 100, 100);
            (time.remote_stall, time.tlb_stall, time.imbalance, time.total) = (100, 100, 100, 600);
            let text = screen(&advice, 80);
            // The saving of a change is shown, however long its description is.
            assert!(text.contains("saves 10 to 40% (simulated: 25.0%)"), "{text}");
            // Two more lines name files.
            assert!(text.lines().count() <= 28, "{} lines:\n{text}", text.lines().count());
            for line in text.lines() {
                assert!(styled_columns(line) <= 80, "{line}");
            }
        }
    }

    #[test]
    fn styles_take_no_columns() {
        assert_eq!(styled_columns("   DO "), 6);
        assert_eq!(styled_columns(&format!("   {HEADING}DO{HEADING:#} ")), 6);
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let text = lines(&"word ".repeat(100), "   ", 40, 3);
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.ends_with("…\n") && text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
    }
}
