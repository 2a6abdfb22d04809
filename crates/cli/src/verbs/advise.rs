//! `domicile advise`: where a program's memory time goes, and what placement would gain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::trace::Chosen;
use clap::{ArgGroup, Args};
use machine::Machine;
use policy::Kind;
use report::{Advice, Facts, count};

use super::model::{Model, SLOTS, has};
use super::record::Recording;
use super::{Done, simulate, slots, trace};
use crate::console::Console;
use crate::destination::{Destination, Overwrite};
use crate::failure::Failure;
use crate::kept::Kept;

/// Where the full result goes unless the command line says otherwise.
const RESULT: &str = "domicile-advice.json";

/// Tell where a program's memory time goes, and what placing its pages would gain
///
/// Records the program (or takes a trace), simulates it on a machine under all policies that can make a difference
/// there, and prints where the time goes, which data structures cost most, false sharing, and the policies by predicted
/// time. Where the program marks its work items, it also tells what running them in another order would gain (policy
/// `order`), and which data a partition of the outermost cache would protect or confine (policy `slots`). Policy `cdpc` tells what
/// compiler-directed page coloring would gain: from what the compiler said of the parallel loops, or from who touches which
/// pages where it said nothing. With --json the full result goes to standard output, and what the program prints to standard error.
#[derive(Args)]
#[command(
    group = ArgGroup::new("subject").required(true).args(["trace", "command"]),
    after_help = "Examples:\n  domicile advise -- sqlite3 my.db 'select ...'\n  \
                  domicile advise --machine flash-cc-numa sort.trace"
)]
pub struct Advise {
    /// A trace that was recorded before
    trace: Option<PathBuf>,

    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    recording: Recording,

    /// Where to write the full result (JSON) [default: domicile-advice.json, or domicile-advice-2.json where that exists,
    /// and so on; none with --json]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the partition by cache slots that gains most, if any gains, for `domicile run --slots` and for `--slots`
    #[arg(long, value_name = "FILE")]
    write_slots: Option<PathBuf>,

    /// Keep the recorded trace in this file
    #[arg(long, value_name = "TRACE", conflicts_with = "trace")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Skip what is damaged of the trace and take the rest
    #[arg(long, conflicts_with = "command")]
    salvage: bool,

    /// The program to record and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The policy that runs marked work in another order.
const ORDER: &str = "order";

/// What is told of a program without marks.
const UNMARKED: &str = "the trace has no marked work items, so what another order of the work would gain is not known: put \
                        DOMICILE_WORK_BEGIN(count, hints) and DOMICILE_WORK_END() of domicile-trace.h around pieces of work \
                        that can be done in any order, and record again";

/// Lines with false sharing that are looked at.
const COLLISIONS: usize = 10;

/// What is simulated, and what of it is told in detail.
struct Plan {
    policies: Vec<String>,
    /// The policy that stands for what happens today.
    baseline: String,
}

impl Advise {
    pub fn run(&self, console: &mut Console) -> Done {
        let machine = self.model.machine("host")?;
        // What is wrong on the command line is told before a program is run; of its work nothing is known yet.
        self.model
            .policies(Plan::new(&machine, true, self.model.slots.is_some()).policies)?;

        if self.write_slots.is_some() && !self.model.policies.is_empty() {
            return Err(Failure::usage(
                "`--write-slots` goes without `--policy`: a partition is proposed, and compared, where all policies are simulated",
            ));
        }
        if self.write_slots.is_some() && sim::slot_caches(&machine).is_none() {
            return Err(Failure::usage(
                "`--write-slots` needs a machine whose outermost cache has colors; see `domicile machine`",
            ));
        }

        if let (Some(file), Some(option)) = (&self.trace, self.recording.given()) {
            return Err(Failure::usage(format!(
                "`{option}` chooses what is recorded, and {} is recorded already: leave it out, or record again",
                file.display()
            )));
        }
        let places = self.places(console.json())?;

        let mut notes = Vec::new();
        let mut recording = None;
        let file = match (&self.trace, &self.keep) {
            (Some(file), _) | (None, Some(file)) => file.clone(),
            (None, None) => recording.insert(Kept::new("advise.trace")?).file().to_path_buf(),
        };
        if self.trace.is_none() {
            console.flush()?;
            notes.extend(self.record(&file, console.json())?);
        }
        if let Some(recording) = &mut recording {
            recording.recorded();
        }
        let done = self.advise(&machine, &file, notes, places, console);
        match &recording {
            Some(recording) => recording.or_failed(done),
            None => done,
        }
    }

    /// Where results go. What cannot be written is refused before a program is run.
    fn places(&self, json: bool) -> Result<Places, Failure> {
        let what = "the full result";
        let result = match &self.output {
            Some(file) => Some(self.overwrite.destination(file, what)?),
            None if json => None,
            None => Some(self.overwrite.unnamed(Path::new(RESULT), what)?),
        };
        let slots = self.write_slots.as_ref();
        let slots = slots.map(|file| self.overwrite.destination(file, "the plan of cache slots"));
        if let Some(file) = &self.keep {
            self.overwrite.allows(file, "the trace")?;
        }
        Ok(Places {
            result,
            slots: slots.transpose()?,
        })
    }

    /// Simulates what was recorded, and says what came out.
    fn advise(
        &self,
        machine: &Machine,
        file: &Path,
        mut notes: Vec<String>,
        places: Places,
        console: &mut Console,
    ) -> Done {
        let opened = trace::open_or_salvage(file, self.salvage).map_err(|failure| self.was_a_program(failure))?;
        let items = opened.work_items().map_err(|error| trace::explain(file, &error))?;
        let spoken = opened.data_sets().map_err(|error| trace::explain(file, &error))?;
        let plan = Plan::new(machine, items > 0, spoken > 0 || self.model.slots.is_some());
        let policies = self.model.policies(plan.policies)?;
        let names: Vec<_> = policies.iter().map(|policy| policy.name.clone()).collect();
        let plain = |name: &&String| !has(name, ORDER);
        let baseline = names.iter().find(|name| **name == plan.baseline);
        let baseline = baseline.or(names.iter().find(plain)).or(names.first());
        let baseline = baseline.cloned().unwrap_or_default();
        let detail = sim::Detail {
            structures: true,
            false_sharing: COLLISIONS,
            // Who names the policies gets those and no more.
            curves: self.model.policies.is_empty(),
            ..sim::Detail::default()
        };
        let mut config = self.model.config(machine.clone(), policies, detail);
        config.detail_for = names.iter().position(|name| *name == baseline);
        let mut found = simulate::simulate(file, &opened, &config)?;
        let slots = match found.iter_mut().find_map(|outcome| outcome.curves.take()) {
            Some(curves) => {
                let partition = slots::Partition::new(file, &opened, &config, &baseline, &found);
                Some(partition.advise(&curves, &mut found)?)
            }
            None => None,
        };
        if self.model.policies.is_empty() {
            notes.extend(without_hints(&mut found, opened.threads().len()));
        }
        let outcomes = simulate::readable(&found)?;
        let facts = self.facts(&opened, machine, &outcomes);
        notes.extend(estimates(&opened, machine, &facts, self.model.machine.as_deref()));
        notes.extend(trace::missing(&opened, self.salvage));
        if items == 0 {
            notes.push(UNMARKED.to_string());
        }
        for told in outcomes
            .iter()
            .filter_map(|outcome| outcome.slots.as_ref().filter(|told| told.refusals > 0))
        {
            notes.push(told.in_words());
        }
        for told in outcomes.iter().filter_map(|outcome| outcome.cdpc.as_ref()).take(1) {
            if told.malformed_summaries > 0 {
                notes.push(told.in_words());
            }
        }
        let mut advice = Advice::new(machine, facts, &baseline, outcomes, notes).with_slots(slots);
        advice.program.clone_from(&opened.header().program);
        advice.arguments.clone_from(&opened.header().arguments);
        self.report(advice, places, console)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Records the program; how it ended is noted.
    fn record(&self, file: &Path, json: bool) -> Result<Vec<String>, Failure> {
        let outcome = self.recording.record(&self.command, file, json)?;
        let mut notes = outcome.notes;
        match outcome.exit {
            capture::Exit::Code(0) => {}
            capture::Exit::Code(code) => notes.push(format!("the program ended with exit status {code}")),
            capture::Exit::Signal(signal) => notes.push(format!("the program was killed by signal {signal}")),
        }
        notes.extend(outcome.failure);
        Ok(notes)
    }

    /// Who gives a program where a trace is wanted has forgotten the `--`.
    fn was_a_program(&self, failure: Failure) -> Failure {
        match (failure, &self.trace) {
            (Failure::Work(text), Some(file)) => Failure::Work(format!(
                "{text} (to record a program, write `domicile advise -- {}`)",
                file.display()
            )),
            (failure, _) => failure,
        }
    }

    fn facts(&self, trace: &::trace::Trace, machine: &Machine, outcomes: &[report::Outcome]) -> Facts {
        let pages = outcomes.iter().map(|outcome| outcome.memory.pages).max().unwrap_or(0);
        Facts {
            file: self
                .trace
                .as_ref()
                .or(self.keep.as_ref())
                .map(|file| file.display().to_string()),
            references: trace.references(),
            instructions: trace.instructions(),
            threads: trace.threads().len() as u64,
            processes: trace.processes().len() as u64,
            footprint_bytes: pages.saturating_mul(machine.page_bytes),
        }
    }

    /// Tables are printed whatever becomes of the files.
    fn report(&self, mut advice: Advice, places: Places, console: &mut Console) -> Result<(), Failure> {
        let mut failed = None;
        let mut wrote = |done: Result<(), Failure>| match done {
            Ok(()) => true,
            Err(failure) => {
                failed.get_or_insert(failure);
                false
            }
        };
        if let (Some(place), Some(slots)) = (places.slots, advice.slots.as_mut())
            && slots.gains()
        {
            let name = place.path().display().to_string();
            if wrote(place.write_text(&slots.plan)) {
                slots.written = Some(name);
            }
        }
        let mut saved = None;
        if let Some(place) = places.result {
            let file = place.path().to_path_buf();
            let text = serde_json::to_string(&advice).map_err(Failure::work)? + "\n";
            if wrote(place.write_text(&text)) {
                saved = Some(file);
            }
        }
        if console.json() {
            console.line(&advice)?;
        } else {
            let columns = console.columns();
            console.text(&report::advice(&advice, columns))?;
            if let Some(file) = saved {
                let file = file.display();
                console.text(&format!(
                    "\nFull result: {file}\nTry next:    domicile report {file} --html advice.html\n"
                ))?;
            }
        }
        console.flush()?;
        failed.map_or(Ok(()), Err)
    }
}

/// Where results go.
struct Places {
    result: Option<Destination>,
    slots: Option<Destination>,
}

impl Plan {
    /// All policies that can make a difference on the machine: colors where there is more than one, homes
    /// where there are several nodes, and each of the ones with each of the others. Where work is marked, it is put in
    /// order on the baseline's placement too. Where slots are spoken of, by the program or a plan, they are given.
    fn new(machine: &Machine, marked: bool, spoken: bool) -> Plan {
        let of_kind = |kind: Kind| {
            let entries = policy::registry().iter().filter(move |entry| entry.kind == kind);
            let names = entries.map(|entry| entry.name);
            names.filter(|name| spoken || *name != SLOTS).collect::<Vec<_>>()
        };
        let colors = if machine.color_count() > 1 {
            of_kind(Kind::Color)
        } else {
            Vec::new()
        };
        let homes = if machine.memory.nodes > 1 {
            of_kind(Kind::Home)
        } else {
            Vec::new()
        };
        // Linux places on first touch, and its frames come in an order that looks random to a cache.
        let (mut policies, baseline): (Vec<String>, _) = match (colors.is_empty(), homes.is_empty()) {
            (true, true) => (vec!["page-coloring".to_string()], "page-coloring"),
            (false, true) => (colors.into_iter().map(String::from).collect(), "random"),
            (true, false) => (homes.into_iter().map(String::from).collect(), "first-touch"),
            (false, false) => {
                let pairs = homes
                    .iter()
                    .flat_map(|home| colors.iter().map(move |color| format!("{home}+{color}")));
                (pairs.collect(), "first-touch+random")
            }
        };
        if marked {
            policies.push(format!("{baseline}+{ORDER}"));
        }
        Plan {
            policies,
            baseline: baseline.to_string(),
        }
    }
}

/// Policy `cdpc` without a hint is page coloring, which is told already: it is left out, and why is said where it could have
/// been expected to do something.
fn without_hints(found: &mut Vec<sim::Outcome>, threads: usize) -> Option<String> {
    let none = |outcome: &sim::Outcome| outcome.cdpc.as_ref().is_some_and(|told| told.pages == 0);
    if !found.iter().any(none) {
        return None;
    }
    found.retain(|outcome| !none(outcome));
    (threads > 1).then(|| {
        "no hints for page coloring can be made: the compiler said nothing of parallel loops, and the trace shows no array of \
         several pages"
            .to_string()
    })
}

/// What of an advice is only an estimate, and why.
fn estimates(trace: &::trace::Trace, machine: &Machine, facts: &Facts, named: Option<&str>) -> Vec<String> {
    let mut notes = Vec::new();
    if matches!(named, None | Some("host")) {
        notes.push(
            "Linux tells the sizes of this machine's caches but not their latencies: those used are typical ones, so times \
             are estimates, while misses are counted; see `domicile machine host`"
                .to_string(),
        );
    }
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
    notes.extend(trace.header().chosen.map(part));
    notes
}

/// That a trace holds a part of a run, and which.
fn part(chosen: Chosen) -> String {
    let after = match chosen.skipped {
        0 => String::new(),
        skipped => format!(", after the first {} references", count(skipped)),
    };
    match chosen.references {
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
        None => format!("the trace holds the run{after}: times are of that part"),
    }
}
