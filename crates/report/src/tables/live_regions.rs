//! The outcome for processes that are paired with cache domains.

use results::{
    LiveRegions, PairedProcess, PairingAction, PairingDomain, PairingMeasure, PairingTrial, bytes, count, percent,
};

use crate::table::Table;

/// Processes and actions that are listed one by one.
const LISTED: usize = 16;

/// Fact by fact.
pub fn live_regions(report: &LiveRegions) -> Table {
    let is_place = |action: &PairingAction| action.domains.is_some() && action.failed.is_none();
    // In a long run the first actions are not listed.
    let placed = report.actions.iter().any(is_place) || report.actions_count > report.actions.len() as u64;
    let mode = match report.acted {
        true if placed => "processes were placed".to_string(),
        true => "no process was placed".to_string(),
        false => "dry run: nothing was changed; `--act` places them".to_string(),
    };
    // The answer first, then its basis.
    let mut facts: Vec<(&str, String)> = vec![("mode", mode)];
    let name = if report.acted { "done" } else { "would do" };
    let from = report.actions.len().saturating_sub(LISTED);
    facts.extend(report.actions[from..].iter().map(|action| (name, one_action(action))));
    if report.actions.is_empty() {
        facts.push(("why", report.why.clone()));
    }
    // If nothing was done, it cannot have an effect either.
    let decided = !report.actions.is_empty();
    let fullest = report.fullest_before_bytes.zip(report.fullest_after_bytes);
    if let Some((before, after)) = fullest.filter(|_| decided) {
        let text = match before == after {
            true => format!("{} at the fullest cache, at worst", bytes(before)),
            false => format!(
                "{} at the fullest cache, instead of {} at worst",
                bytes(after),
                bytes(before)
            ),
        };
        facts.push(("predicted", text));
    }
    let (measure, trial): (_, fn(&PairingTrial) -> String) = match report.measure {
        Some(PairingMeasure::Instructions) => ("instructions", counted_trial),
        Some(PairingMeasure::Progress) | None => ("progress", told_trial),
    };
    facts.extend(report.trials.iter().map(|one| (measure, trial(one))));
    if report.acted {
        facts.push((
            "restored",
            format!(
                "{} have the cpus again that they had before",
                threads(report.restored_threads)
            ),
        ));
    }
    if report.recovered_threads > 0 {
        let text = format!(
            "{} have their cpus again from a run that was killed",
            threads(report.recovered_threads)
        );
        facts.push(("recovered", text));
    }
    let loads = match (fullest, decided) {
        (None, _) => Loads::None,
        (Some(_), false) => Loads::Seen,
        (Some(_), true) => Loads::Both,
    };
    let domains = (0..).zip(&report.domains);
    facts.extend(domains.map(|(at, domain)| (if at == 0 { "caches" } else { "" }, one_domain(at, domain, loads))));
    let listed = report.processes.iter().take(LISTED).enumerate();
    facts.extend(listed.map(|(at, process)| (if at == 0 { "processes" } else { "" }, one_process(process))));
    if report.processes.len() > LISTED {
        facts.push(("", format!("and {} more", report.processes.len() - LISTED)));
    }
    facts.push(("source", format!("{}: {}", report.source, report.source_limit)));
    let others = report.other_sources.iter();
    facts.extend(others.map(|other| ("not used", format!("{}: {}", other.name, other.why))));
    let share = report.own_ns as f64 / report.wall_ns.max(1) as f64;
    facts.push((
        "own time",
        format!(
            "{} of a cpu, over {} {}",
            percent(share),
            count(report.intervals),
            if report.intervals == 1 { "interval" } else { "intervals" }
        ),
    ));
    facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
    Table::of_facts("Processes paired with caches", facts)
}

fn threads(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "thread" } else { "threads" })
}

fn cpus(thousandths: u32) -> String {
    format!("{:.2}", f64::from(thousandths) / 1000.0)
}

/// The known load of caches: none before a decision; a decision without changes adds none.
#[derive(Clone, Copy)]
enum Loads {
    None,
    Seen,
    Both,
}

fn one_domain(at: usize, domain: &PairingDomain, loads: Loads) -> String {
    let level = domain.level.map_or(String::new(), |level| format!(" L{level}"));
    let size = domain.cache_bytes.map_or("size not known".to_string(), bytes);
    let of = match domain.cpus.contains([',', '-']) {
        true => "cpus",
        false => "cpu",
    };
    let mut text = format!("{at}:{level} of {of} {}, {size}", domain.cpus);
    if !matches!(loads, Loads::None) {
        let (seen, busy) = (bytes(domain.seen_bytes), cpus(domain.seen_busy));
        text += &format!(": seen {seen} and {busy} busy threads");
    }
    if matches!(loads, Loads::Both) {
        let (decided, busy) = (bytes(domain.decided_bytes), cpus(domain.decided_busy));
        text += &format!(", decided {decided} and {busy}");
    }
    text
}

fn numbers(domains: &[u32]) -> String {
    let numbers: Vec<String> = domains.iter().map(u32::to_string).collect();
    format!(
        "{} {}",
        if numbers.len() == 1 { "cache" } else { "caches" },
        numbers.join(", ")
    )
}

fn one_process(process: &PairedProcess) -> String {
    let size = process.working_set_bytes.map_or("not known".to_string(), bytes);
    let place = match (&process.domains, &process.why) {
        (Some(domains), _) => numbers(domains),
        (None, Some(why)) => format!("no place: {why}"),
        (None, None) => "no place".to_string(),
    };
    let PairedProcess {
        process: number,
        name,
        busy,
        ..
    } = process;
    format!(
        "{number} ({name}): working set {size}, {} busy threads; {place}",
        cpus(*busy)
    )
}

fn one_action(action: &PairingAction) -> String {
    let PairingAction {
        at_ns,
        process,
        name,
        why,
        ..
    } = action;
    let to = action
        .domains
        .as_deref()
        .map_or("the cpus that it had before".to_string(), numbers);
    let failed = action
        .failed
        .as_ref()
        .map_or(String::new(), |why| format!("; refused: {why}"));
    format!(
        "{:.1} s: {process} ({name}) to {to}: {why}{failed}",
        *at_ns as f64 / 1e9
    )
}

fn told_trial(trial: &PairingTrial) -> String {
    let (before, after) = (trial.before_ns / 1e6, trial.after_ns / 1e6);
    format!(
        "{before:.4} ms of processor time a unit before, {after:.4} ms after {}",
        outcome(trial)
    )
}

fn counted_trial(trial: &PairingTrial) -> String {
    let (before, after) = (1.0 / trial.before_ns, 1.0 / trial.after_ns);
    format!(
        "{before:.2} a ns of processor time before, {after:.2} after {}",
        outcome(trial)
    )
}

fn outcome(trial: &PairingTrial) -> String {
    let change = trial.after_ns / trial.before_ns - 1.0;
    let undone = if trial.undone { "; the change was undone" } else { "" };
    format!(
        "({}{} time for the same work){undone}",
        if change < 0.0 { "-" } else { "+" },
        percent(change.abs()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_says_so_and_what_it_would_do() {
        let mut report = LiveRegions {
            source: "referenced".to_string(),
            source_limit: "it counts pages".to_string(),
            domains: vec![PairingDomain {
                cpus: "0".to_string(),
                level: Some(2),
                cache_bytes: Some(512 << 10),
                seen_bytes: 2 << 20,
                decided_bytes: 1 << 20,
                seen_busy: 2000,
                decided_busy: 1500,
            }],
            processes: vec![PairedProcess {
                process: 7,
                name: "x".to_string(),
                working_set_bytes: Some(1 << 20),
                busy: 1000,
                domains: Some(vec![0]),
                why: None,
            }],
            fullest_before_bytes: Some(2 << 20),
            fullest_after_bytes: Some(1 << 20),
            why: "a reason".to_string(),
            actions: vec![PairingAction {
                at_ns: 3_000_000_000,
                process: 7,
                name: "x".to_string(),
                domains: Some(vec![0]),
                why: "a reason".to_string(),
                failed: None,
            }],
            ..LiveRegions::default()
        };
        let text = live_regions(&report).facts(11);
        for part in [
            "dry run: nothing was changed",
            "--act",
            "0: L2 of cpu 0, 512 KB: seen 2.00 MB and 2.00 busy threads, decided 1.00 MB and 1.50",
            "7 (x): working set 1.00 MB, 1.00 busy threads; cache 0",
            "1.00 MB at the fullest cache, instead of 2.00 MB at worst",
            "would do    3.0 s: 7 (x) to cache 0: a reason",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        report.acted = true;
        report.trials.push(PairingTrial {
            before_ns: 1e6,
            after_ns: 2e6,
            undone: true,
        });
        let text = live_regions(&report).facts(11);
        assert!(
            text.contains("the change was undone") && text.contains("processes were placed"),
            "{text}"
        );
        report.measure = Some(PairingMeasure::Instructions);
        report.trials[0] = PairingTrial {
            before_ns: 0.5,
            after_ns: 0.4,
            undone: false,
        };
        let text = live_regions(&report).facts(11);
        let said = "instructions 2.00 a ns of processor time before, 2.50 after (-20.0% time for the same work)";
        assert!(text.contains(said), "{text}");
        // A run that ended early: a decision without processes is not mentioned.
        report.actions.clear();
        report.intervals = 1;
        let text = live_regions(&report).facts(11);
        for part in ["no process was placed", "2.00 busy threads\n", "over 1 interval\n"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains("decided") && !text.contains("predicted"), "{text}");
        report.fullest_before_bytes = None;
        let text = live_regions(&report).facts(11);
        assert!(text.contains("0: L2 of cpu 0, 512 KB\n"), "{text}");
    }
}
