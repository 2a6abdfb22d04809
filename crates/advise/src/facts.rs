//! The subject of an advice, and the parts of it that are only estimates.

use machine::Machine;
use results::{CacheFacts, Facts, MachineFacts, Outcome, Windows, count, percent};
use trace::{Chosen, Header, Trace};

use crate::gaps;

pub fn of_machine(machine: &Machine) -> MachineFacts {
    let cache = |cache: &machine::Cache| CacheFacts {
        name: cache.name.clone(),
        level: cache.level,
        bytes: cache.bytes,
        ways: cache.ways,
        cpus_per_instance: cache.cpus_per_instance,
        hit_ns: cache.hit_ns,
        colors: machine.colors(cache),
    };
    MachineFacts {
        name: machine.name.clone(),
        clock_mhz: machine.clock_mhz,
        cpus: machine.cpus,
        nodes: machine.memory.all_nodes(),
        colors: machine.color_count(),
        page_bytes: machine.page_bytes,
        caches: machine.caches.iter().map(cache).collect(),
        local_ns: machine.memory.local_ns,
        remote_ns: machine.memory.remote_ns,
        basis: None,
    }
}

pub fn of_trace(trace: &Trace, machine: &Machine, outcomes: &[Outcome]) -> Facts {
    let pages = outcomes.iter().map(|outcome| outcome.memory.pages).max().unwrap_or(0);
    let windows = outcomes.first().and_then(|outcome| outcome.windows.as_ref());
    Facts {
        file: None,
        // References that only warmed caches do not count.
        references: windows.map_or(trace.references(), Windows::references),
        instructions: match windows {
            Some(_) => outcomes.first().and_then(|outcome| outcome.instructions),
            None => trace.instructions(),
        },
        threads: trace.threads().len() as u64,
        processes: trace.processes().len() as u64,
        footprint_bytes: pages.saturating_mul(machine.page_bytes),
        part: part_in_words(trace.header(), windows),
    }
}

/// The least half interval of 95% that is reported, as a part of the time.
const UNSURE: f64 = 0.05;

/// The part of a run that is examined, in a word or two; `None`: all of it.
fn part_in_words(header: &Header, windows: Option<&Windows>) -> Option<String> {
    let of = windows.and_then(|windows| {
        let all = windows.of_references.filter(|all| *all > 0)?;
        Some(format!(
            ", {} of the run",
            percent(windows.references() as f64 / all as f64)
        ))
    });
    // An interval that matters to a reader.
    let about = windows.and_then(|windows| windows.ns_per_reference.relative());
    let about = about
        .filter(|half| *half > UNSURE)
        .map(|half| format!(", time ± {}", percent(half)));
    let counted = windows.map(|windows| windows.counted.len());
    match (counted, &header.chosen) {
        (Some(1), _) => Some(format!("a window{}", of.unwrap_or_default())),
        (Some(windows), _) => Some(format!(
            "{windows} windows{}{}",
            of.unwrap_or_default(),
            about.unwrap_or_default()
        )),
        (None, Some(chosen)) if chosen.windows > 1 => Some(format!("{} windows of the run", chosen.windows)),
        (
            None,
            Some(Chosen {
                from: Some(from),
                skipped: 0,
                references: None,
                ..
            }),
        ) => Some(format!("from {from} on")),
        (None, Some(_)) => Some("a part of the run".to_string()),
        (None, None) => None,
    }
}

/// The parts of an advice that are only estimates, and the reasons.
pub fn estimates(trace: &Trace, machine: &Machine, facts: &Facts, basis: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(basis.map(str::to_string));
    if facts.instructions.is_none() {
        notes.push("the trace does not count instructions: each reference is taken for one".to_string());
    }
    if !trace.header().has_fetches {
        notes.push("instruction fetches are not in the trace: misses of code are not counted".to_string());
    }
    if facts.threads > u64::from(machine.cpus) {
        notes.push(format!(
            "{} threads take turns on {} cpus of the machine",
            facts.threads, machine.cpus
        ));
    }
    notes.extend(limits(trace.header()));
    notes
}

/// The parts of a run that a trace does not hold.
pub fn limits(header: &Header) -> Vec<String> {
    let mut notes = header.gaps.as_ref().map_or_else(Vec::new, gaps::in_words);
    notes.extend(header.chosen.as_ref().map(part));
    notes
}

/// The note that a trace contains only this part of a run.
fn part(chosen: &Chosen) -> String {
    let mut after = match &chosen.from {
        None => String::new(),
        Some(function) => format!(", from where `{function}` was entered"),
    };
    if let Some(ms) = chosen.duration_ms {
        after += &format!(", for {} seconds at most", ms as f64 / 1000.0);
    }
    if chosen.skipped > 0 {
        after += &format!(", after the first {} references", count(chosen.skipped));
    }
    match chosen.references {
        Some(each) if chosen.warmed => format!(
            "the trace holds {} windows of {} references spread over the run{after}, each after what warms its caches: times are \
             of the windows",
            chosen.windows,
            count(each),
        ),
        Some(each) if chosen.windows > 1 => format!(
            "the trace holds {} windows of {} references spread over the run{after}: times are of the windows, and the first \
             touches in them may be none in the whole run",
            chosen.windows,
            count(each),
        ),
        Some(each) => format!(
            "the trace holds {} references of the run{after}: times are of that part",
            count(each)
        ),
        None if chosen.warmed && chosen.windows > 1 => format!(
            "the trace holds {} windows of the run{after}, each after what warms its caches: times are of the windows",
            chosen.windows
        ),
        None if chosen.warmed => {
            "the first part of the trace only warms caches, and was filtered: times and counts are of what comes after it".to_string()
        }
        None if chosen.windows > 1 => format!(
            "the trace holds {} windows of the run{after}: times are of the windows, and the first touches in them may be none in \
             the whole run",
            chosen.windows
        ),
        None if after.is_empty() => "the trace holds a window of the run: times are of that part".to_string(),
        None => format!("the trace holds the run{after}: times are of that part"),
    }
}
