//! `domicile simulate`: a trace on a machine under placement policies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use policy::{Kind, Name};
use report::Top;
use results::{ExplainedHints, ProgramChange, saved};
use serde::Serialize;
use sim::Scheduling;

use super::model::{HOST, Model};
use super::{Done, trace};
use crate::console::{self, Console};
use crate::destination::{Destination, Overwrite, apart};
use crate::failure::Failure;
use crate::progress;
use crate::shown::{Details, Shown};

/// Simulate a trace on a machine under placement policies
///
/// With --json, prints one JSON object on each line, one line for each policy.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile simulate sort.trace --machine simos-r4400 \
                        --policy page-coloring --policy bin-hopping")]
pub struct Simulate {
    /// The trace (see `domicile record` and `domicile import`)
    trace: PathBuf,

    #[command(flatten)]
    model: Model,

    /// Also split the counts by thread, data structure, line of the source, page, time or call stack
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    by: Vec<By>,

    #[command(flatten)]
    details: Details,

    #[command(flatten)]
    shown: Shown,

    /// Simulate a change to the program's data, without changing the program; can be repeated
    ///
    /// The name of the data comes last, as `--by structure` shows it. Numbers are bytes, except `columns`, `chains` and
    /// `ahead`.
    /// pad,row_bytes=R,pad_bytes=P,data=NAME: P unused bytes follow each row of R bytes.
    /// transpose,element_bytes=E,columns=N,data=NAME: rows of N elements are stored column by column.
    /// fields,element_bytes=E,groups=OFFSET:BYTES+.../...,data=NAME: each group of fields becomes an array of its own,
    /// and the fields in no group become the last array; a single group gives the fields another order.
    /// shift,bytes=B,data=NAME: the data begins B bytes later (the second block 2 B, the third 3 B).
    /// separate,element_bytes=E,data=NAME: each element begins at a line of its own.
    /// tile,bytes=B,data=NAME: the work runs in the order of blocks of B bytes of the data, as if it were independent.
    /// interleave,element_bytes=E,part_bytes=P,data=NAME: arrays of P bytes, one after the other, become one array of
    /// elements.
    /// interleave,element_bytes=E,data=NAME + NAME + ...: variables or blocks of their own become one array of
    /// elements.
    /// interchange,line=FILE:LINE,data=NAME: the loops around the line, which walk over the data, run in the order of
    /// its addresses.
    /// chains,line=FILE:LINE,chains=N,data=NAME: N chains of pointers are followed in turn (machines with a core).
    /// prefetch,line=FILE:LINE,ahead=N,data=NAME: the line's loads are prefetched N loads ahead (machines with a core).
    /// huge-pages or huge-pages,data=NAME: the TLB has an entry for each 2 MiB.
    /// A JSON object with the same content is also accepted.
    #[arg(long = "change", value_name = "CHANGE")]
    changes: Vec<ProgramChange>,

    /// Simulate the caches once, under first touch, and let each home policy decide over the resulting misses
    ///
    /// Much faster, and suited to many settings. Latencies are fixed. The effects of policies on caches, the TLB and
    /// contention are left out, and so are writes that hit.
    #[arg(long)]
    fast: bool,

    /// Move each thread to the next cpu after this much simulated time, again and again, as if the system moved all
    /// threads: seconds, or a value such as 100ms
    #[arg(long, value_name = "TIME", value_parser = results::quantities::duration)]
    move_threads: Option<Duration>,

    /// Schedule by which the system gives cpus to threads while they run
    ///
    /// stay: each thread keeps its cpu, and the threads of one cpu take turns (the default).
    /// next,every=TIME: the same as `--move-threads TIME`.
    /// priority: a small scheduler of the simulator, not a real one, gives cpus by priority, with affinity to the last
    /// cpu.
    /// partition: the same within the cpus of each process, which are divided anew when a process enters or leaves.
    /// The last two take `slice=TIME` (10ms: how long a thread runs before others are considered), `affinity=TIME`
    /// (60ms: how much longer than another thread it must have run to lose its cpu to that thread; 0 for no affinity)
    /// and `decay=TIME` (1s: the time after which past running counts half), as in `priority,affinity=200ms`.
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "move_threads")]
    schedule: Option<Scheduling>,

    /// First cpu of each thread, in the order of the trace; beyond them, thread n is on cpu n modulo the number of cpus
    #[arg(long, value_name = "CPUS", value_delimiter = ',', conflicts_with = "fast")]
    place_threads: Vec<u32>,

    /// Time for each page that a policy moves, copies or collapses, the same for all three: nanoseconds, or a value
    /// such as 350us
    #[arg(long, value_name = "NS", value_parser = results::quantities::nanoseconds)]
    page_ns: Option<u32>,

    /// Leave out the classes of misses, which is faster
    #[arg(long)]
    no_classes: bool,

    /// Write the hints of policy `cdpc` to this file (JSON): arrays, uniform access segments and sets, the coloring order
    #[arg(long, value_name = "FILE")]
    explain_hints: Option<PathBuf>,

    /// Write a page access map to this file (JSON): which cpus touch each page, its array, its color under each policy, and its
    /// place in the coloring order
    #[arg(long, value_name = "FILE")]
    page_map: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Skip damaged parts of the trace and simulate the rest
    #[arg(long)]
    salvage: bool,
}

/// How many pages `--by page` finds at least, those with the largest stall.
const PAGES: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Thread,
    Structure,
    /// A line of the source, and which data it waits for
    Line,
    Page,
    /// Stall over time, in JSON
    Time,
    /// Stall by call stack, in JSON: `domicile report --format` makes profiles of it
    Stack,
}

impl Simulate {
    pub fn run(&self, console: &mut Console) -> Done {
        if self.model.machine.is_none() {
            return Err(Failure::usage(
                "no machine was given; add `--machine NAME`, with a name from `domicile machine list`, or `--machine host`",
            ));
        }
        let machine = self.model.machine(HOST)?;
        let top = self.top(console.json())?;
        let default = match (self.fast, self.model.no_colors(HOST)) {
            (true, _) => Name::default_of(Kind::Home),
            // If colors do nothing, frames are as Linux gives them, as for `advise`.
            (false, Some(_)) => Name::first(&[Kind::Color], |traits| traits.linux),
            (false, None) => Name::default_of(Kind::Color),
        };
        let default = vec![default];
        let (policies, swept): (Vec<_>, Vec<_>) = match self.fast {
            true => self.model.runs(default)?.into_iter().unzip(),
            false => (self.model.policies(default)?, Vec::new()),
        };
        let hinted = |policy: &sim::PolicySpec| policy.name.is(|traits| traits.hints);
        if self.explain_hints.is_some() && !policies.iter().any(hinted) {
            return Err(Failure::usage(
                "`--explain-hints` is of policy `cdpc`, which is not simulated here; add `--policy cdpc`",
            ));
        }
        if self.overwrite.force && self.explain_hints.is_none() && self.page_map.is_none() {
            return Err(Failure::usage(
                "`--force` is for files that are written; add `--explain-hints FILE` or `--page-map FILE`",
            ));
        }
        if self.page_map.is_some() && !self.changes.is_empty() {
            return Err(Failure::usage(
                "`--page-map` is of the program as it is; leave `--change` out",
            ));
        }
        apart(&[
            ("the trace", Some(&self.trace)),
            ("`--explain-hints`", self.explain_hints.as_deref()),
            ("`--page-map`", self.page_map.as_deref()),
            ("`--slots`", self.model.slots.as_deref()),
        ])?;
        let place = |file: &Option<PathBuf>, what| {
            let place = file.as_ref().map(|file| self.overwrite.destination(file, what));
            place.transpose()
        };
        let hints_to = place(&self.explain_hints, "the hints")?;
        let map_to = place(&self.page_map, "the page access map")?;
        let detail = sim::Detail {
            placements: self.page_map.is_some(),
            threads: self.by.contains(&By::Thread),
            structures: self.by.contains(&By::Structure),
            source_lines: if self.by.contains(&By::Line) { usize::MAX } else { 0 },
            pages: self.pages(top),
            timeline: self.by.contains(&By::Time),
            profile: self.by.contains(&By::Stack),
            ..sim::Detail::default()
        };
        let mut config = self.model.config(machine, policies, detail)?;
        config.classes = !self.no_classes;
        config.changes.clone_from(&self.changes);
        config.schedule = self.scheduled(config.order)?;
        if !self.place_threads.is_empty() {
            config.placement = Some(self.placed(&config)?);
        }
        if let Some(ns) = self.page_ns {
            let ns = f64::from(ns);
            config.costs = sim::Costs {
                move_page_ns: ns,
                copy_page_ns: ns,
                collapse_ns: ns,
                ..config.costs
            };
        }
        if self.fast {
            self.is_fast(&config.policies)?;
        }
        let opened = trace::open_or_salvage(&self.trace, self.salvage)?;
        let opened = trace::to_simulate(opened, &self.trace)?;
        if let Some((basis, _)) = self.model.basis(HOST)? {
            console::note(format_args!("note: {basis}"));
        }
        for missing in opened.header().gaps.iter().flat_map(advise::gaps_in_words) {
            console::note(format_args!("note: {missing}"));
        }
        if self.fast {
            let mut outcomes = self.replayed(&opened, &config)?;
            self.name_missing(&opened);
            for (outcome, swept) in outcomes.iter_mut().zip(swept) {
                outcome.settings = swept;
            }
            name_program(&mut outcomes, opened.header());
            self.print(&outcomes, top, console)?;
            return Ok(ExitCode::SUCCESS);
        }
        let runs = simulate(&self.trace, &opened, &config)?;
        self.name_missing(&opened);
        // Files are written after the output, so that it appears even if a file fails.
        let mut outcomes: Vec<_> = runs.iter().map(|run| run.outcome.clone()).collect();
        for profile in outcomes.iter_mut().filter_map(|outcome| outcome.profile.as_mut()) {
            profile.keep(results::Profile::KEPT);
        }
        name_program(&mut outcomes, opened.header());
        self.print(&outcomes, top, console)?;
        if let Some(place) = hints_to {
            write(place, &saved(&explained(&opened, &config, &runs)))?;
        }
        if let Some(place) = map_to {
            let map = sim::page_map(&opened, &config, &runs).map_err(|error| failure(&self.trace, error))?;
            write(place, &saved(&map))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// How cpus are given to threads while they run.
    fn scheduled(&self, order: sim::Order) -> Result<Scheduling, Failure> {
        let (option, schedule) = match (self.move_threads, self.schedule) {
            (Some(every), _) => {
                let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
                ("--move-threads", Scheduling::Next { every_ns })
            }
            (None, schedule) => ("--schedule", schedule.unwrap_or_default()),
        };
        // With a stream of misses, threads move to the next cpu only after the stream has been recorded.
        let afterwards = self.fast && matches!(schedule, Scheduling::Next { .. });
        if order == sim::Order::Recorded && schedule != Scheduling::Stay && !afterwards {
            return Err(Failure::usage(format!(
                "`{option}` goes by the simulated clocks, which `--order recorded` does not follow; leave one of them out"
            )));
        }
        Ok(schedule)
    }

    /// The cpus that threads are placed on.
    fn placed(&self, config: &sim::Config) -> Result<Vec<u32>, Failure> {
        let machine = &config.machine;
        if let Some(cpu) = self.place_threads.iter().find(|cpu| **cpu >= machine.cpus) {
            return Err(Failure::usage(format!(
                "`--place-threads` names cpu {cpu}, and {} has cpus 0 to {}",
                machine.name,
                machine.cpus - 1
            )));
        }
        let told = |policy: &&sim::PolicySpec| {
            policy
                .name
                .is(|traits| traits.hints || traits.summaries || traits.slots)
        };
        if let Some(policy) = config.policies.iter().find(told) {
            return Err(Failure::usage(format!(
                "`--place-threads` goes without policy `{}`, which is told before the run on which cpus the threads are: in their order",
                policy.name
            )));
        }
        Ok(self.place_threads.clone())
    }

    fn name_missing(&self, trace: &::trace::Trace) {
        for missing in trace.lost_in_words() {
            console::warn(format_args!("note: {}: {missing}", self.trace.display()));
        }
        if let Some(broke) = capture::broke_off(trace.header()) {
            console::warn(format_args!(
                "note: {}: not a whole run: {broke}; this is what was recorded until then",
                self.trace.display()
            ));
        }
    }

    /// How many rows of lists are shown, if there are any.
    fn top(&self, json: bool) -> Result<Top, Failure> {
        let pages = self.by.contains(&By::Page);
        let lists = pages || self.by.contains(&By::Structure) || self.by.contains(&By::Line);
        self.shown.top(match json {
            false if !lists => Some(
                "is of lists of data structures, lines or pages, and none is printed here; add `--by structure`, `--by line` or \
                 `--by page`",
            ),
            true if !pages => Some("is of pages where JSON is printed, which has all of everything else; add `--by page`"),
            _ => None,
        })
    }

    /// How many pages are searched for.
    fn pages(&self, top: Top) -> usize {
        match top {
            _ if !self.by.contains(&By::Page) => 0,
            Top::Usual => PAGES,
            Top::Rows(most) => most.max(PAGES),
            Top::All => usize::MAX,
        }
    }

    /// Refuses requests that a stream of misses cannot answer.
    fn is_fast(&self, policies: &[sim::PolicySpec]) -> Result<(), Failure> {
        let refused = [
            (!self.by.is_empty(), "--by"),
            (!self.changes.is_empty(), "--change"),
            (self.page_map.is_some(), "--page-map"),
            (self.explain_hints.is_some(), "--explain-hints"),
            (self.model.from_phase.is_some(), "--from-phase"),
            (self.model.to_phase.is_some(), "--to-phase"),
        ];
        if let Some((_, option)) = refused.iter().find(|(given, _)| *given) {
            return Err(Failure::usage(format!(
                "`{option}` needs the whole simulation; leave it or `--fast` out"
            )));
        }
        for policy in policies {
            sim::misses::is_replayable(&policy.name).map_err(Failure::usage)?;
        }
        Ok(())
    }

    /// Records the misses of the trace, with progress, and replays all policies over them.
    fn replayed(&self, trace: &::trace::Trace, config: &sim::Config) -> Result<Vec<results::Outcome>, Failure> {
        let bar = progress::known("simulating", trace.references());
        let recorded = sim::misses::record_to_replay(trace, config, &|references| bar.inc(references));
        bar.finish_and_clear();
        let (stream, shared) = recorded.map_err(|error| failure(&self.trace, error))?;
        if shared > 0 {
            console::note(format_args!(
                "note: processes share pages of files that nobody writes to, so that there are {shared} pages fewer"
            ));
        }
        sim::misses::replay(&stream, config).map_err(|error| failure(&self.trace, error))
    }

    fn print(&self, outcomes: &[results::Outcome], top: Top, console: &mut Console) -> Result<(), Failure> {
        if console.json() {
            for outcome in outcomes {
                console.line(&saved(outcome))?;
            }
        } else {
            let columns = console.columns();
            let text = match self.details.given() {
                true => report::outcomes(outcomes, columns, top),
                false => {
                    report::outcomes_screen(outcomes, columns, top)
                        + "More: --details (waiting, misses by kind and cache, the bus), --by line, --json\n"
                }
            };
            console.text(&text)?;
        }
        console.flush()
    }
}

/// Runs all policies, with progress.
pub fn simulate(file: &Path, trace: &::trace::Trace, config: &sim::Config) -> Result<Vec<sim::Simulated>, Failure> {
    let bar = progress::known("simulating", trace.references() * config.policies.len() as u64);
    let runs = sim::simulate(trace, config, &|references| bar.inc(references));
    bar.finish_and_clear();
    runs.map_err(|error| failure(file, error))
}

/// An error in a trace.
pub fn failure(file: &Path, error: sim::SimError) -> Failure {
    match error {
        sim::SimError::Policy(error) => error.into(),
        sim::SimError::Trace(error) => trace::explain(file, &error),
        error @ (sim::SimError::Change { .. }
        | sim::SimError::ChangesUnder { .. }
        | sim::SimError::MissesOfWindows
        | sim::SimError::TwoSchedulers { .. }) => Failure::usage(format!("{}: {error}", file.display())),
        error => Failure::work(format!("{}: {error}", file.display())),
    }
}

/// The contents of `--explain-hints`.
fn explained(trace: &::trace::Trace, config: &sim::Config, runs: &[sim::Simulated]) -> ExplainedHints {
    let explained = runs
        .iter()
        .filter_map(|run| Some(run.hints.as_ref()?.explain(&run.outcome.policy)));
    ExplainedHints {
        program: trace.header().program.clone(),
        machine: config.machine.name.clone(),
        policies: explained.collect(),
    }
}

/// Results of a simulation stand alone: each names its program.
fn name_program(outcomes: &mut [results::Outcome], header: &::trace::Header) {
    for outcome in outcomes {
        outcome.program.clone_from(&header.program);
        outcome.arguments.clone_from(&header.arguments);
    }
}

/// Writes a part of the result to its own file.
fn write(place: Destination, value: &impl Serialize) -> Result<(), Failure> {
    place.write(|out| {
        serde_json::to_writer(&mut *out, value)?;
        out.write_all(b"\n")
    })
}
