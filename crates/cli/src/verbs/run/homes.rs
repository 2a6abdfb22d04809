//! A program whose parallel loops declare which cpu uses which page: each page gets its home on that cpu's node, before
//! its first touch.

use std::process::Command;

use capture::locate::Program;
use live::protocol::{Homed, HomesReport, HomesWhen, Report, State};
use live::summary_homes::seats;
use policy::Name;
use policy::slots::Plan;
use results::run::{Kept, NodeHomes, OnNodes, Seat};
use sys::supervise::Supervisor;

use super::arrays::{count, silent};
use super::outcome::time;
use super::{Run, copies, named, started};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::verbs::Done;

/// The most reasons and nodes that are reported.
const MOST_LINES: usize = 8;
const MOST_NODES: usize = 16;

/// The variables that tell OpenMP's libraries the cpus of threads: those that a user may have set.
const PLACES: &str = "OMP_PLACES";
const BIND: &str = "OMP_PROC_BIND";
const KEEPING: [&str; 4] = [PLACES, BIND, "GOMP_CPU_AFFINITY", "KMP_AFFINITY"];

impl Run {
    /// Runs the program with its arrays where the policy puts them.
    pub fn at_home(&self, console: &mut Console, policy: &Name) -> Done {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        if self.align.is_some() || self.force_colors.is_some() {
            return Err(Failure::usage(format!(
                "policy `{policy}` gives pages homes on nodes and no colors: leave out --align and --force-colors"
            )));
        }
        if self.text.is_some() {
            copies::are_wanted(self.text.as_deref(), Some(policy))?;
        }
        if !self.watching.is_unused() {
            return Err(Failure::usage(format!(
                "policy `{policy}` watches nothing: leave out --set, --interval, --source and --observations"
            )));
        }
        // A report that cannot be written is refused before a program runs for hours.
        let report = self.report_file()?;
        let mut on = here(policy);
        let outcome = if on.unchanged.is_some() {
            let mut supervisor =
                Supervisor::begin().map_err(|error| Failure::work(format!("cannot catch signals: {error}")))?;
            let mut command = Command::new(program);
            command.args(arguments);
            let cannot = |error| Failure::work(format!("cannot run {}: {error}", program.to_string_lossy()));
            let status = supervisor.run(command).map_err(cannot)?;
            results::run::Run {
                exit_code: started::code(status),
                homes: Some(on),
                ..Default::default()
            }
        } else {
            let found = Program::find(program).map_err(Failure::work)?;
            let named = named::Named::none(&found);
            for note in &named.notes {
                console::note(format_args!("note: {note}"));
            }
            let environment = kept(&mut on);
            let start = started::Start {
                command: program,
                arguments,
                environment,
                children: self.children,
                colors: None,
                forced: None,
                plan: Plan::default(),
                directed: None,
                homed: Some(Homed {
                    policy: policy.clone(),
                    seats: on.seats.clone(),
                }),
            };
            let ended = start.run(&found, named)?;
            for note in &ended.notes {
                console::note(format_args!("note: {note}"));
            }
            results::run::Run {
                exit_code: ended.code,
                homes: Some(on),
                processes: ended.reports,
                ..Default::default()
            }
        };
        Ok(self.ended(console, report, &outcome))
    }
}

/// The cpus and nodes of threads on this machine, and why nothing can be done here, if so.
fn here(policy: &Name) -> OnNodes {
    let nodes = sys::nodes::nodes(&sys::Root::default());
    let allowed = sys::affinity::allowed(None);
    let mut on = OnNodes {
        policy: policy.to_string(),
        ..OnNodes::default()
    };
    match (nodes, allowed) {
        (Ok(nodes), Ok(allowed)) => {
            on.seats = seats(&nodes, &allowed);
            on.unchanged = alone(&on.seats, nodes.len());
        }
        (Err(error), _) => on.unchanged = Some(format!("the kernel shows no memory nodes: {error}")),
        (_, Err(error)) => on.unchanged = Some(format!("the cpus that the program may have are not known: {error}")),
    }
    on
}

/// Why there is no choice, if so.
fn alone(seats: &[Seat], nodes: usize) -> Option<String> {
    let Some(first) = seats.first() else {
        return Some("the node of no cpu that the program may have is known".to_string());
    };
    match seats.iter().all(|seat| seat.node == first.node) {
        false => None,
        true if nodes == 1 => Some("this machine has one memory node, where all pages are".to_string()),
        true => Some(format!(
            "all cpus that the program may have are on memory node {}, where its pages are anyway",
            first.node
        )),
    }
}

/// Variables that keep the threads of OpenMP on their seats, unless the user set some.
fn kept(on: &mut OnNodes) -> Vec<(&'static str, String)> {
    if KEEPING.iter().any(|name| std::env::var_os(name).is_some()) {
        on.kept = Kept::Given;
        return Vec::new();
    }
    on.kept = Kept::Set;
    let places: Vec<String> = on.seats.iter().map(|seat| format!("{{{}}}", seat.cpu)).collect();
    vec![(PLACES, places.join(",")), (BIND, "close".to_string())]
}

/// The text about the run as a whole, for people.
pub fn said(on: &OnNodes) -> Option<String> {
    let why = on.unchanged.as_ref()?;
    Some(format!(
        "{}: nothing was done, and the program ran unchanged: {why}",
        on.policy
    ))
}

/// The text about one process.
pub fn report(report: &Report, homes: &HomesReport, on: &OnNodes) -> Vec<String> {
    if homes.loops == 0 {
        let mut lines = vec![silent(homes.refused)];
        if homes.openmp {
            lines.push(format!("  {}", threads(homes, on)));
        }
        return lines;
    }
    let mut lines = vec![format!(
        "{}: {} in {} by up to {}; {} have a home",
        homes.policy,
        count(homes.arrays, "array"),
        count(homes.loops, "parallel loop"),
        count(homes.threads, "thread"),
        count(homes.pages, "page"),
    )];
    // The final check can run out of memory; then all of its numbers are 0.
    let seen = homes.at_home + homes.elsewhere + homes.absent + homes.out_of_sight + homes.unknown;
    let looked = report.state == State::Ended && seen > 0;
    if looked {
        lines.push(looked_at(homes));
    }
    lines.extend(homes.nodes.iter().take(MOST_NODES).map(|of| node(of, looked)));
    lines.push(format!("  {}", threads(homes, on)));
    lines.push(format!("  at start {}", when(&homes.start)));
    if homes.later.times > 0 {
        lines.push(format!("  at later loops {}", when(&homes.later)));
    }
    for left in homes.left_out.iter().take(MOST_LINES) {
        lines.push(format!("  {} left out: {}", count(left.pages, "page"), left.why));
    }
    if homes.refused > 0 {
        lines.push(format!("  {} could not be used", count(homes.refused, "loop")));
    }
    lines
}

fn looked_at(homes: &HomesReport) -> String {
    let all = report::count(homes.pages);
    let mut line = format!("  {} of {all} at home at the end", report::count(homes.at_home));
    for (pages, what) in [
        (homes.elsewhere, "on another node"),
        (homes.absent, "without a frame"),
        (
            homes.out_of_sight,
            "where nothing is mapped (any more), or only zeros were read",
        ),
        (homes.unknown, "unknown"),
    ] {
        if pages > 0 {
            line += &format!(", {} {what}", report::count(pages));
        }
    }
    line
}

fn node(of: &NodeHomes, looked: bool) -> String {
    let at_home = match looked {
        true => format!(", {} of them there", report::count(of.at_home)),
        false => String::new(),
    };
    format!("  node {}: {}{at_home}", of.node, count(of.pages, "page"))
}

/// The text on whether threads are where the homes need them.
fn threads(homes: &HomesReport, on: &OnNodes) -> String {
    let cpus = sys::cpus::list(&on.seats.iter().map(|seat| seat.cpu).collect::<Vec<_>>());
    let seats = format!("thread t of a team on the t-th of the cpus {cpus}");
    let mut line = match on.kept {
        _ if !homes.openmp => {
            format!(
                "nothing keeps {seats}, as the homes take it to be: the program has no OpenMP. Let it pin its threads so"
            )
        }
        Kept::Set => format!("OpenMP keeps {seats} ({PLACES}, {BIND}=close)"),
        Kept::Given | Kept::Not => format!(
            "the homes take {seats}; the variables of OpenMP that the environment has were left as they are, and may say otherwise"
        ),
    };
    if homes.threads > on.seats.len() as u64 {
        line += "; there are more threads than cpus, after the last cpu the homes begin again at the first, and OpenMP need not";
    }
    line
}

fn when(when: &HomesWhen) -> String {
    match when.times {
        0 => format!("nothing, in {}", time(when.us)),
        times => {
            let times = if times == 1 {
                String::new()
            } else {
                format!(", {times} times")
            };
            let moved = report::count(when.moved);
            let (pages, us) = (count(when.pages, "page"), time(when.us));
            format!("{pages}{times} in {us}; {moved} were elsewhere already, and moved")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(nodes: &[u32]) -> OnNodes {
        OnNodes {
            policy: "summary-homes".to_string(),
            seats: (0..).zip(nodes).map(|(cpu, &node)| Seat { cpu, node }).collect(),
            ..OnNodes::default()
        }
    }

    #[test]
    fn one_node_is_nothing_to_choose_from() {
        assert_eq!(alone(&on(&[0, 0, 1, 1]).seats, 2), None);
        assert!(alone(&on(&[0, 0]).seats, 1).unwrap().contains("one memory node"));
        assert!(alone(&on(&[1, 1]).seats, 2).unwrap().contains("on memory node 1"));
        assert!(alone(&[], 2).is_some());
    }

    #[test]
    fn what_was_not_looked_at_is_not_said_to_be_away() {
        let report = Report {
            state: State::Ended,
            ..Report::default()
        };
        let mut homes = HomesReport {
            loops: 1,
            pages: 10,
            ..HomesReport::default()
        };
        let said = |homes: &HomesReport| super::report(&report, homes, &on(&[0, 1])).join("\n");
        assert!(!said(&homes).contains("at home at the end"));
        homes.absent = 10;
        assert!(said(&homes).contains("0 of 10 at home at the end, 10 without a frame"));
    }

    #[test]
    fn threads_that_are_kept_for_nothing_are_named() {
        let mut on = on(&[0, 1]);
        on.kept = Kept::Set;
        let homes = HomesReport {
            openmp: true,
            ..HomesReport::default()
        };
        assert!(report(&Report::default(), &homes, &on)[1].contains("OpenMP keeps thread t"));
    }

    #[test]
    fn it_is_said_whether_threads_are_where_they_are_taken_to_be() {
        let mut on = on(&[0, 0, 1, 1]);
        let mut homes = HomesReport {
            threads: 4,
            ..HomesReport::default()
        };
        on.kept = Kept::Set;
        assert!(threads(&homes, &on).starts_with("nothing keeps thread t of a team on the t-th of the cpus 0-3"));
        homes.openmp = true;
        assert!(threads(&homes, &on).starts_with("OpenMP keeps"));
        homes.threads = 5;
        assert!(threads(&homes, &on).contains("more threads than cpus"));
        on.kept = Kept::Given;
        assert!(threads(&homes, &on).contains("may say otherwise"));
    }
}
