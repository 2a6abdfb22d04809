//! The outcome for pages that follow their users.

use results::{HomesInterval, HomesProcess, HomesReplication, LiveHomes, ReplicationMode, bytes, count, percent};

use crate::table::Table;

/// Processes that are listed one by one.
const PROCESSES: usize = 8;

/// Fact by fact.
pub fn live_homes(report: &LiveHomes) -> Table {
    let mut facts: Vec<(&str, String)> = vec![
        ("policy", format!("{} ({})", report.policy, report.settings.join(", "))),
        ("source", format!("{}: a count is {}", report.source, report.counts)),
    ];
    let others = report.other_sources.iter();
    facts.extend(others.map(|other| ("not used", format!("{}: {}", other.name, other.why))));
    facts.push(("balancing", balancing(report).to_string()));
    facts.push(("watched", many(report.processes.len() as u64, "process", "processes")));
    let listed = report.processes.iter().take(PROCESSES);
    facts.extend(listed.map(|process| ("", one(process))));
    if report.processes.len() > PROCESSES {
        facts.push(("", format!("and {} more", report.processes.len() - PROCESSES)));
    }
    facts.push(("pages", moved(report)));
    for failed in &report.moves.failed {
        facts.push(("stayed", format!("{}: {}", pages(failed.pages), failed.why)));
    }
    let (copies, ends) = (report.moves.copies_not_made, report.moves.collapses_not_made);
    if copies + ends > 0 {
        facts.push((
            "copies",
            format!(
                "{} were to be copied, and copies of {} given up: none is carried out, Linux has no transparent replicas",
                pages(copies),
                pages(ends)
            ),
        ));
    }
    facts.extend(report.replication.iter().map(|copies| ("replicas", replicated(copies))));
    facts.push(("local", local(report)));
    facts.extend(passed_over(report).map(|over| ("passed over", over)));
    facts.push(("own time", time(report)));
    facts.extend(report.notes.iter().map(|note| ("note", note.clone())));
    Table::of_facts("Pages that follow their users", facts)
}

fn balancing(report: &LiveHomes) -> &'static str {
    match report.kernel_balancing {
        None => "the kernel has none of its own",
        Some(state) if state.among_nodes => "the kernel's own is on, and moves pages, too",
        Some(state) if state.among_tiers => "the kernel's own moves pages between fast and slow memory only",
        Some(_) => "the kernel's own is off",
    }
}

fn many(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

fn pages(number: u64) -> String {
    many(number, "page", "pages")
}

fn one(process: &HomesProcess) -> String {
    let ended = process.ended.as_deref().map_or(String::new(), |why| format!("; {why}"));
    let HomesProcess {
        process: number, name, ..
    } = process;
    format!("{number} ({name}): {} moved{ended}", pages(process.pages_moved))
}

fn moved(report: &LiveHomes) -> String {
    let moves = &report.moves;
    let took = match moves.moved {
        0 => String::new(),
        _ => format!(", in {:.1} ms", moves.ns as f64 / 1e6),
    };
    format!(
        "{} of {} asked for were moved{took}",
        count(moves.moved),
        count(moves.asked)
    )
}

/// The kind of replication that ran, and its cost.
fn replicated(copies: &HomesReplication) -> String {
    let (name, users) = match copies.mode {
        ReplicationMode::Text => ("program text", many(copies.users, "process", "processes")),
        ReplicationMode::Handles => ("handles", format!("{} replicated data", count(copies.users))),
        ReplicationMode::Mappings => ("shared mappings", format!("{} replicated data", count(copies.users))),
    };
    let why = copies.why.as_deref();
    if copies.users == 0 {
        return format!("{name}: none{}", why.map_or(String::new(), |why| format!("; {why}")));
    }
    let mut said = format!("{name}: copies for {users} took {} of memory", bytes(copies.bytes));
    if copies.mode != ReplicationMode::Text {
        said += " at most";
    }
    let nodes = copies.nodes.iter();
    let nodes: Vec<String> = nodes
        .map(|on| format!("{} on node {}", bytes(on.bytes), on.node))
        .collect();
    if !nodes.is_empty() {
        said += &format!(" ({})", nodes.join(", "));
    }
    if copies.left_bytes > 0 {
        said += &format!("; {} stayed where they were", bytes(copies.left_bytes));
        said += &why.map_or(String::new(), |why| format!(": {why}"));
    }
    said
}

/// The local part in the first and the last interval with touches.
fn local(report: &LiveHomes) -> String {
    let mut with_counts = report
        .intervals
        .iter()
        .filter(|interval| interval.local_percent().is_some());
    let share = |interval: &HomesInterval| percent(interval.local_percent().unwrap_or_default() / 100.0);
    match (with_counts.next(), with_counts.next_back()) {
        (Some(first), Some(last)) => format!(
            "{} of counts in the first interval, {} in the last",
            share(first),
            share(last)
        ),
        (Some(only), None) => format!("{} of counts", share(only)),
        _ => "no page was seen to be touched".to_string(),
    }
}

fn passed_over(report: &LiveHomes) -> impl Iterator<Item = String> {
    let samples = &report.samples;
    let shared = match samples.shared {
        0 => None,
        shared => Some(format!(
            "{} counts are of several nodes each, where threads ran on several in one interval",
            count(shared)
        )),
    };
    let over = [
        (samples.nobody, "touched while no thread was seen to run"),
        (samples.of_several_processes, "that other processes have, too"),
        (samples.too_many, "that an interval has no room for; they come later"),
    ];
    let over = over.into_iter().filter(|(number, _)| *number > 0);
    let over: Vec<String> = over.map(|(number, why)| format!("{} {why}", pages(number))).collect();
    shared.into_iter().chain(over)
}

fn time(report: &LiveHomes) -> String {
    let share = |ns: u64| match report.wall_ns {
        0 => "nothing".to_string(),
        wall => percent(ns as f64 / wall as f64),
    };
    let kernel = report.kernel_ns.map_or(String::new(), |ns| {
        format!("; threads of the kernel that watched {}", share(ns))
    });
    format!(
        "{} of a cpu for {:.1} s{kernel}",
        share(report.own_ns),
        report.wall_ns as f64 / 1e9
    )
}

#[cfg(test)]
mod tests {
    use results::{HomesCopies, HomesFailed, HomesMoves, HomesSamples, SourceNotUsed};

    use super::*;

    #[test]
    fn facts_say_what_was_done_and_why_not() {
        let interval = |local, remote| HomesInterval {
            local,
            remote,
            ..HomesInterval::default()
        };
        let report = LiveHomes {
            policy: "migrate".to_string(),
            source: "damon".to_string(),
            counts: "a look".to_string(),
            other_sources: vec![SourceNotUsed {
                name: "hardware".to_string(),
                why: "hidden".to_string(),
            }],
            moves: HomesMoves {
                asked: 1200,
                moved: 1199,
                failed: vec![HomesFailed {
                    why: "busy".to_string(),
                    pages: 1,
                }],
                copies_not_made: 3,
                ns: 1_500_000,
                ..HomesMoves::default()
            },
            samples: HomesSamples {
                shared: 7,
                ..HomesSamples::default()
            },
            intervals: vec![interval(0, 0), interval(1, 3), interval(9, 1), interval(0, 0)],
            own_ns: 1_000_000,
            kernel_ns: Some(2_000_000),
            wall_ns: 100_000_000,
            processes: vec![HomesProcess::default(); 10],
            replication: vec![
                HomesReplication {
                    users: 2,
                    bytes: 3 << 20,
                    nodes: vec![HomesCopies {
                        node: 1,
                        bytes: 3 << 20,
                    }],
                    left_bytes: 4096,
                    why: Some("node 1 is full".to_string()),
                    ..HomesReplication::default()
                },
                HomesReplication {
                    mode: ReplicationMode::Handles,
                    users: 5,
                    bytes: 1 << 20,
                    ..HomesReplication::default()
                },
                HomesReplication {
                    why: Some("no run-time".to_string()),
                    ..HomesReplication::default()
                },
            ],
            ..LiveHomes::default()
        };
        let text = live_homes(&report).facts(11);
        for part in [
            "not used    hardware: hidden\n",
            "watched     10 processes\n",
            "and 2 more\n",
            "pages       1199 of 1200 asked for were moved, in 1.5 ms\n",
            "stayed      1 page: busy\n",
            "copies      3 pages were to be copied",
            "Linux has no transparent replicas\n",
            "replicas    program text: copies for 2 processes took 3.00 MB of memory (3.00 MB on node 1); 4.00 KB stayed where they were: \
             node 1 is full\n",
            "replicas    handles: copies for 5 replicated data took 1.00 MB of memory at most\n",
            "replicas    program text: none; no run-time\n",
            "25.0% of counts in the first interval, 90.0% in the last\n",
            "7 counts are of several nodes each",
            "1.0% of a cpu for 0.1 s; threads of the kernel that watched 2.0%\n",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
