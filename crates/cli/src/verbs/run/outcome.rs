//! The outcome of a plan, for people and for programs.

use std::fmt::Write;

use live::Colors;
use results::run::{DataReport, InWays, OnNodes, Report, Run, State};

use super::homes;

/// The most names and reasons that are reported of one data set.
const MOST_LINES: usize = 8;

/// The end of a run with these colors, which were found beforehand.
pub fn run(exit_code: i32, colors: &Colors, processes: Vec<Report>) -> Run {
    Run {
        exit_code,
        colors: colors.count(),
        color_bytes: colors.color_bytes,
        colors_forced: super::is_forced(colors),
        ways: None,
        homes: None,
        processes,
    }
}

/// Returns true if the program ran unchanged, although a placement was requested.
pub fn placed_nothing(run: &Run) -> bool {
    run.ways.is_none() && run.processes.iter().all(|process| process.state == State::Failed)
}

/// The text, whose lines each begin with `domicile: `.
pub fn text(run: &Run) -> String {
    let mut lines = Vec::new();
    if let Some(ways) = &run.ways {
        lines.push(in_ways(ways));
    } else if let Some(said) = run.homes.as_ref().and_then(homes::said) {
        lines.push(said);
    } else if run.processes.is_empty() {
        lines.push(
            "the run-time was not loaded, or the program never became the one that was looked at: nothing was \
             placed (a program with capabilities of its own? one that starts the other in another process?)"
                .to_string(),
        );
    }
    if run.colors_forced {
        lines.push("the colors are forced: nothing says that they are any on this machine".to_string());
    }
    for process in &run.processes {
        lines.extend(of_process(process, run.homes.as_ref()));
    }
    lines.iter().map(|line| format!("domicile: {line}\n")).collect()
}

fn in_ways(ways: &InWays) -> String {
    if ways.caches.is_empty() {
        return "the plan has no private slot: the program ran as without it".to_string();
    }
    let masks: Vec<String> = ways
        .caches
        .iter()
        .map(|cache| format!("{} of cache {}", cache.mask, cache.cache))
        .collect();
    format!(
        "the program had {} of each L{} cache for itself, of {} in private slots (ways {}); they were given back",
        report::bytes(ways.bytes),
        ways.level,
        report::bytes(ways.asked_bytes),
        masks.join(", ")
    )
}

fn of_process(report: &Report, on: Option<&OnNodes>) -> Vec<String> {
    let mut lines = Vec::new();
    match report.state {
        State::Failed => lines.push("nothing was placed; the program ran as without a plan".to_string()),
        State::Running => lines.push(
            "the program ended without saying so (a signal, _exit, or another program in its place): its pages were not \
             looked at"
                .to_string(),
        ),
        State::Passive | State::Ended => {}
    }
    // First the outcome for the data, then its cost.
    lines.extend(
        report
            .data_sets
            .iter()
            .flat_map(|data| data_set(data, report.state == State::Ended)),
    );
    if let Some(cdpc) = &report.cdpc {
        lines.extend(super::arrays::report(report, cdpc));
    } else if let (Some(at_home), Some(on)) = (&report.homes, on) {
        lines.extend(homes::report(report, at_home, on));
    } else if report.state != State::Failed {
        let (start, allocations) = (time(report.start_us), time(report.allocation_us));
        lines.push(format!(
            "{}; placing took {start} before main, {allocations} in allocations",
            report.colors
        ));
        lines.extend(report.means.lines().map(|line| format!("  {line}")));
    }
    lines.extend(report.notes.iter().map(|note| format!("note: {note}")));
    lines
}

fn data_set(data: &DataReport, looked: bool) -> Vec<String> {
    let mut line = format!("{} in {}", data.name, slot(data));
    if looked {
        let _ = match (data.pages, data.unknown) {
            (0, _) => write!(line, ": no pages at the end"),
            (pages, unknown) if unknown == pages => {
                write!(
                    line,
                    ": {} pages at the end; only a privileged process sees their colors",
                    report::count(pages)
                )
            }
            (pages, _) => write!(
                line,
                ": {} of {} pages at the end have its colors",
                report::count(data.allowed),
                report::count(pages)
            ),
        };
    }
    let mut lines = vec![line];
    for name in data.names.iter().take(MOST_LINES).filter(|name| name.blocks > 0) {
        let mut line = format!(
            "  {} block{}, {} at most at once",
            report::count(name.blocks),
            if name.blocks == 1 { "" } else { "s" },
            report::bytes(name.peak_bytes)
        );
        if name.refused > 0 {
            let _ = write!(line, "; {} more got no pages of their own", report::count(name.refused));
        }
        lines.push(line);
    }
    if data.supplied > 0 {
        lines.push(format!(
            "  {} of {} frames came from the daemon",
            report::count(data.supplied),
            report::count(data.placed)
        ));
    }
    if data.left_out > 0 {
        lines.push(format!(
            "  {} stay where they are, on pages shared with other data",
            report::bytes(data.left_out)
        ));
    }
    lines.extend(data.notes.iter().take(MOST_LINES).map(|note| format!("  {note}")));
    lines
}

fn slot(data: &DataReport) -> String {
    let slot = match data.slot.as_str() {
        "none" => "no slot".to_string(),
        name => format!("slot {name}"),
    };
    match data.granted.len() {
        0 => slot,
        1 => format!("{slot} (color {})", data.granted[0]),
        count => format!("{slot} ({count} colors)"),
    }
}

pub fn time(microseconds: u64) -> String {
    if microseconds < 1000 {
        format!("{microseconds} us")
    } else {
        format!("{:.1} ms", microseconds as f64 / 1000.0)
    }
}
