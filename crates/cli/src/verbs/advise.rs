//! `domicile advise`: where a program spends its memory time, and what placement would gain.

mod in_time;
mod native;
mod share;
mod tunables;
mod verify;
mod written;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::advise::{PlacementForm, Policies, Settings};
use clap::{ArgGroup, Args, ValueEnum};
use machine::Machine;
use report::Top;
use results::{Advice, Native};

use super::model::{HOST, Model};
use super::record::{Recording, status};
use super::{Done, simulate, trace};
use crate::console::Console;
use crate::destination::{Overwrite, apart};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::progress;
use crate::shown::{Details, OF_JSON, Shown};
use verify::Changed;
use written::Places;

/// The default file of the full result.
const RESULT: &str = "domicile-advice.json";

/// Say what to change about a program so that it waits less for memory, and what that would save
///
/// Records the program (or takes a trace), simulates it on a machine, and prints one screen: what was examined; up to
/// three changes to make, each with its source line, data, cause and simulated gain; what else was examined; and where
/// the time goes. `--details` prints tables: data structures, lines, causes, false sharing, page placement policies,
/// cache partitions. Policies that cannot matter, as one run shows, are not simulated; `--every-policy` simulates all.
/// If the program marks its work items, policy `order` shows the gain from running them in another order.
///
/// With --json, the full result goes to standard output, and the program's output goes to standard error. Without
/// --json, standard output belongs to the program; if it is not a terminal (a file, a pipe), the advice goes to
/// standard error.
///
/// `domicile advise` exits with the program's exit status, or with 128 plus the signal number if a signal killed the
/// program. Status 0 becomes 1 if the trace could not be written to its end. If the run broke off, the first line says
/// so: the advice covers what was recorded until then.
///
/// Signals that are sent to `domicile advise` while it records are passed on to the program. Ctrl-C (SIGINT) also ends
/// the recording, and it ends the program if that continues for seconds; the advice on windows of the recorded part
/// follows soon. A second Ctrl-C ends everything at once. If the program did not end with status 0 after such a signal,
/// the exit status is 128 plus the signal number.
#[derive(Args)]
#[command(
    group = ArgGroup::new("subject").required(true).args(["trace", "command"]),
    after_help = "Examples:\n  domicile advise -- sqlite3 my.db 'select ...'\n  \
                  domicile advise --machine flash-cc-numa sort.trace\n  \
                  domicile advise --verify './sort-new big.txt' -- ./sort-old big.txt"
)]
pub struct Advise {
    /// A trace that was recorded before
    trace: Option<PathBuf>,

    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    recording: Recording,

    /// Write the full result (JSON) to this file [default: domicile-advice.json, or domicile-advice-2.json if that
    /// exists, and so on; none with --json]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the result as one self-contained HTML page
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,

    /// Write the cache slot partition with the largest gain, if any partition gains, for `domicile run --slots` and for
    /// `--slots`
    #[arg(long, value_name = "FILE")]
    write_slots: Option<PathBuf>,

    /// Write a file that tells a scheduler which threads belong under which cache, if that makes a difference. The
    /// ending of the file name selects the scheduler: .sh for taskset, .cpuset for control groups, .slice for systemd,
    /// .json for scx_layered, .toml for `domicile run --placement`
    #[arg(long, value_name = "FILE")]
    write_placement: Option<PathBuf>,

    /// Form of the file that `--write-placement` writes, whatever its name
    #[arg(long, value_name = "FORM", requires = "write_placement")]
    placement_form: Option<Form>,

    /// Write the source with the stall and the misses of each line, as far as the program has line information and the
    /// source files are available
    #[arg(long, value_name = "FILE")]
    annotate: Option<PathBuf>,

    /// Take about this long in total (60s, 5m). Half of it is for recording from main (or --from), after which the
    /// program is ended. The rest is for simulating as much as fits: windows spread over the recorded part
    #[arg(long, value_name = "TIME", value_parser = results::quantities::duration, conflicts_with_all = ["trace", "window", "windows", "duration"])]
    budget: Option<Duration>,

    /// Measure causes and reuse on all of a long run. Otherwise they are measured on samples, and the result notes the
    /// error (counts and times are exact either way)
    #[arg(long)]
    exact: bool,

    /// Verify a change: also record and simulate this changed program, run both programs by themselves in turn, and
    /// print predictions beside measurements. One quoted string, as in --verify './sort-new big.txt'. While they are
    /// measured, both programs have an empty standard input, and their output is dropped
    #[arg(long, value_name = "CHANGED COMMAND", conflicts_with = "trace")]
    verify: Option<String>,

    /// Simulate all policies that differ on the machine, not only those that could gain something, as one run shows
    #[arg(long, conflicts_with = "policies")]
    every_policy: bool,

    /// Do not run the program again without the recorder to check its simulated time. By default this is done on the
    /// machine `host`, if the recorded run was whole and standard input is a terminal or /dev/null: three times, more often if
    /// the program is short or other work disturbs it, once if it is long; for ten seconds at most (with --budget, a tenth
    /// of it), with an empty standard input, and with the output dropped
    #[arg(long)]
    no_native: bool,

    /// The time that these runs took.
    #[arg(skip)]
    native: std::cell::RefCell<Option<Native>>,

    /// Keep the recorded trace in this file
    #[arg(long, value_name = "TRACE", conflicts_with = "trace")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    details: Details,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Skip damaged parts of the trace and use the rest
    #[arg(long, conflicts_with = "command")]
    salvage: bool,

    /// The program to record and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Half of it is for recording, which takes longer than this to begin.
const LEAST_BUDGET: Duration = Duration::from_millis(100);

/// How long simulations may take after the user has ended the recording and waits.
const SOON: Duration = Duration::from_secs(5);

/// How a recording ended.
#[derive(Default)]
struct End {
    /// Our exit status, which is the program's.
    status: u8,
    /// Why the run does not count as whole.
    broke: Option<String>,
    /// The program's own status, if it ended by itself.
    exit: Option<i32>,
    /// It ended by itself, without a request to end.
    whole: bool,
    /// A signal asked it to end, and the sender waits.
    interrupted: bool,
    /// Why there is nothing to advise on.
    nothing: Option<String>,
}

/// Facts about the recorded runs.
struct Runs {
    /// Why the program's run does not count as whole.
    broke: Option<String>,
    /// The program's own status, if it ended by itself.
    exit: Option<i32>,
    /// How long the simulation may take, if there is a limit.
    left: Option<Duration>,
    /// The changed program, if one is to be verified.
    changed: Option<Changed>,
}

/// The scheduler or tool that applies a placement of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A shell script that calls taskset for each thread
    Taskset,
    /// A shell script that makes threaded control groups with cpusets
    Cpuset,
    /// Slices with AllowedCPUs, for whole processes
    Systemd,
    /// Layers of the scheduler scx_layered
    ScxLayered,
    /// A file for `domicile run --placement`, which can also measure it
    Run,
}

impl Form {
    fn of(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "sh" => Some(Form::Taskset),
            "cpuset" => Some(Form::Cpuset),
            "slice" => Some(Form::Systemd),
            "json" => Some(Form::ScxLayered),
            "toml" => Some(Form::Run),
            _ => None,
        }
    }

    /// The scheduler that it is written for, unless that is `domicile run`.
    pub fn scheduler(self) -> Option<PlacementForm> {
        match self {
            Form::Taskset => Some(PlacementForm::Taskset),
            Form::Cpuset => Some(PlacementForm::Cpuset),
            Form::Systemd => Some(PlacementForm::Systemd),
            Form::ScxLayered => Some(PlacementForm::ScxLayered),
            Form::Run => None,
        }
    }
}

impl Advise {
    pub fn run(&self, console: &mut Console) -> Done {
        let begun = Instant::now();
        let machine = self.model.machine(HOST)?;
        let top = self.shown.top(console.json().then_some(OF_JSON))?;
        let details = self.details.wanted(self.shown);
        // Errors in the command line are reported before a program runs.
        self.model
            .policies(::advise::policies(&machine, true, self.model.slots.is_some()))?;

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

        let form = self.form(&machine)?;
        let changed = self.changed()?;

        if self.budget.is_some_and(|budget| budget < LEAST_BUDGET) {
            return Err(Failure::usage(
                "`--budget` is too short to record anything in half of it: give some seconds, such as `--budget 60s`",
            ));
        }
        if let (Some(file), Some(option)) = (&self.trace, self.recording.given()) {
            return Err(Failure::usage(format!(
                "`{option}` chooses what is recorded, and {} is recorded already: leave it out, or record again",
                file.display()
            )));
        }
        let places = self.places(form, details.then_some(top), console.json())?;

        let mut notes = Vec::new();
        let mut recording = None;
        let file = match (&self.trace, &self.keep) {
            (Some(file), _) => file.clone(),
            (None, Some(file)) => recording.insert(Kept::named(file)).file().to_path_buf(),
            (None, None) => recording.insert(Kept::new("advise.trace")?).file().to_path_buf(),
        };
        let mut end = End::default();
        if self.trace.is_none() {
            console.make_room()?;
            console.flush()?;
            end = self.record(&machine, &file, console.json(), &mut notes)?;
            if let Some(why) = end.nothing {
                Failure::work(why).report();
                return Ok(ExitCode::from(end.status));
            }
        }
        if let Some(status) = end.exit.filter(|_| end.whole) {
            self.native.replace(self.measured(status));
        }
        // Signals belong to the recorder until all recordings are done.
        let changed = changed.map(|changed| self.record_change(&machine, changed, end.broke.as_ref(), end.exit));
        if let Some(recording) = &mut recording {
            recording.recorded();
        }
        let left = self.left(begun.elapsed(), end.interrupted);
        let of_runs = Runs {
            broke: end.broke,
            exit: end.exit,
            left,
            changed,
        };
        let done = self.go_on(&machine, &file, of_runs, notes, places, console);
        let done = done.map(|verified| match (end.status, verified) {
            (0, false) => ExitCode::FAILURE,
            (status, _) => ExitCode::from(status),
        });
        match &recording {
            Some(recording) => recording.or_failed(done),
            None => done,
        }
    }

    /// The tool that a placement is written for. A wrong request is reported before a program runs.
    fn form(&self, machine: &Machine) -> Result<Option<Form>, Failure> {
        let Some(file) = &self.write_placement else {
            return Ok(None);
        };
        if !self.model.policies.is_empty() {
            return Err(Failure::usage(
                "`--write-placement` goes without `--policy`: threads are placed, and compared, where all policies are simulated",
            ));
        }
        // A program with more threads than cpus also has a choice where each cpu has its own cache.
        if machine.divided_cache_for(usize::MAX).is_none() {
            return Err(Failure::usage(format!(
                "`--write-placement` needs a machine with several caches of one level, and {} has none; see `domicile machine list`",
                machine.name
            )));
        }
        match self.placement_form.or_else(|| Form::of(file)) {
            Some(form) => Ok(Some(form)),
            None => Err(Failure::usage(format!(
                "what to write to {} is not known by its name: add `--placement-form` with `run`, `taskset`, `cpuset`, `systemd` \
                 or `scx-layered`, or let the name end in .toml, .sh, .cpuset, .slice or .json",
                file.display()
            ))),
        }
    }

    /// The files of the results. A file that cannot be written is refused before a program runs.
    fn places(&self, form: Option<Form>, details: Option<Top>, json: bool) -> Result<Places, Failure> {
        let what = "the full result";
        apart(&[
            ("the trace", self.trace.as_deref()),
            ("`--output`", self.output.as_deref()),
            ("`--html`", self.html.as_deref()),
            ("`--write-slots`", self.write_slots.as_deref()),
            ("`--write-placement`", self.write_placement.as_deref()),
            ("`--annotate`", self.annotate.as_deref()),
            ("`--keep`", self.keep.as_deref()),
            ("`--slots`", self.model.slots.as_deref()),
        ])?;
        let result = match &self.output {
            Some(file) => Some(self.overwrite.destination(file, what)?),
            None if json => None,
            None => Some(self.overwrite.unnamed(Path::new(RESULT), what)?),
        };
        let page = self.html.as_ref();
        let page = page.map(|file| self.overwrite.destination(file, "the page"));
        let slots = self.write_slots.as_ref();
        let slots = slots.map(|file| self.overwrite.destination(file, "the plan of cache slots"));
        let annotated = self.annotate.as_ref();
        let annotated = annotated.map(|file| self.overwrite.destination(file, "the annotated source"));
        let placement = self.write_placement.as_ref().zip(form).map(|(file, form)| {
            let place = self.overwrite.destination(file, "the placement of threads");
            place.map(|place| (place, form))
        });
        if let Some(file) = &self.keep {
            self.overwrite.allows(file, "the trace")?;
        }
        Ok(Places {
            result,
            page: page.transpose()?,
            slots: slots.transpose()?,
            placement: placement.transpose()?,
            annotated: annotated.transpose()?,
            details,
        })
    }

    /// How long the simulation may take, if there is a limit: what remains of the budget, and only briefly after
    /// Ctrl-C.
    fn left(&self, passed: Duration, interrupted: bool) -> Option<Duration> {
        let of_budget = |budget: Duration| budget.saturating_sub(passed).max(budget / 20);
        let left = self.budget.map(of_budget);
        match interrupted {
            true => Some(left.map_or(SOON, |left| left.min(SOON))),
            false => left,
        }
    }

    /// Simulates what was recorded, and prints the result. False: a change was to be verified, and could not be.
    fn go_on(
        &self,
        machine: &Machine,
        file: &Path,
        of_runs: Runs,
        notes: Vec<String>,
        places: Places,
        console: &mut Console,
    ) -> Result<bool, Failure> {
        let opened = trace::open_or_salvage(file, self.salvage).map_err(|failure| self.was_a_program(failure))?;
        let opened = trace::to_simulate(opened, file)?;
        let broke = of_runs
            .broke
            .or_else(|| capture::broke_off(opened.header()).map(str::to_string));
        let broke = broke.or_else(|| opened.lost_in_a_clause());
        let (mut advice, ref machine) = self.advise_now(machine, file, &opened, broke, of_runs.left)?;
        advice.notes.splice(0..0, notes);
        advice.exit = of_runs.exit;
        advice.notes.extend(opened.lost_in_words());
        if machine.core.is_some() && opened.dependences().is_none() {
            advice.notes.push(
                "the trace does not say which loads wait for one another: here none does, so lists and trees are as fast as \
                 arrays"
                    .to_string(),
            );
        }
        let recorded = self.trace.as_ref().or(self.keep.as_ref());
        advice.trace.file = recorded.map(|file| file.display().to_string());
        let mut verified = true;
        if let Some(changed) = of_runs.changed {
            match self.verified(machine, &advice, changed) {
                Ok(found) => advice.verified = Some(found),
                Err(failure) => {
                    failure.report();
                    advice.notes.push(failure.to_string());
                    verified = false;
                }
            }
        }
        self.report(advice, places, console)?;
        Ok(verified)
    }

    fn advise(
        &self,
        machine: &Machine,
        file: &Path,
        trace: &::trace::Trace,
        broke: Option<String>,
    ) -> Result<Advice, Failure> {
        let marked = trace.work_items().map_err(|error| trace::explain(file, &error))? > 0;
        let described = trace.data_sets().map_err(|error| trace::explain(file, &error))? > 0;
        let usual = ::advise::policies(machine, marked, described || self.model.slots.is_some());
        let policies = self.model.policies(usual)?;
        let bar = progress::Simulations::default();
        let config = self.model.config(machine.clone(), Vec::new(), sim::Detail::default())?;
        let (machine_basis, machine_is) = self.model.basis(HOST)?.unzip();
        let settings = Settings {
            policies: match self.model.policies.is_empty() {
                true => Policies::All {
                    sets: self.model.sets.clone(),
                    plan: policies.iter().find_map(|policy| policy.plan.clone()),
                    every: self.every_policy,
                },
                // Policies named by the user are the only ones.
                false => Policies::These(policies),
            },
            seed: config.seed,
            order: config.order,
            barrier_ns: config.barrier_ns,
            window: config.window,
            exact: self.exact,
            machine_basis,
            machine_is,
            no_colors: self.model.no_colors(HOST),
            asks_huge_pages: tunables::recorded_asks(trace.header(), &self.command),
            native: self.native.borrow().clone(),
            truth: ::truth::kept(),
            ran: self.trace.is_none(),
            broke,
            progress: Some(&|step| bar.step(step)),
        };
        let advice = ::advise::advise(trace, machine, &settings);
        bar.finish();
        advice.map_err(|error| simulate::failure(file, error))
    }

    /// How long the program takes, if that is measured. `status`: the exit status it must end with.
    fn measured(&self, status: i32) -> Option<Native> {
        let here = self.model.machine.as_deref().is_none_or(|name| name == HOST);
        let whole = self.recording.part().is_none() && self.recording.follows_children();
        let most = self.budget.map_or(native::MOST, |budget| native::MOST.min(budget / 10));
        (here && whole && !self.no_native).then(|| native::measured(&self.command, status, most))?
    }

    /// Records the program, and reports how it ended.
    fn record(&self, machine: &Machine, file: &Path, json: bool, notes: &mut Vec<String>) -> Result<End, Failure> {
        let recording = self.recording.warming(machine).for_advice();
        let outcome = match self.budget {
            None => recording.record(&self.command, file, json)?,
            Some(budget) => recording.within(budget).record(&self.command, file, json)?,
        };
        // A program that ends with status 0 when asked to, as servers do, was recorded whole.
        let interrupted = outcome.interrupted.filter(|_| outcome.exit != capture::Exit::Code(0));
        let interrupted = interrupted.and_then(|signal| u8::try_from(128 + signal).ok());
        let mut end = End {
            status: interrupted.unwrap_or_else(|| status(&outcome)),
            broke: outcome.broke.clone(),
            exit: match outcome.exit {
                capture::Exit::Code(code) => Some(code),
                _ => None,
            },
            interrupted: outcome.interrupted.is_some(),
            whole: !outcome.ended_by_us && outcome.interrupted.is_none(),
            nothing: None,
        };
        if let Some(failure) = &outcome.failure {
            if outcome.summary.references == 0 {
                let broke = end.broke.take().map_or(String::new(), |broke| format!("{broke}; "));
                end.nothing = Some(format!("{broke}{failure}"));
                return Ok(end);
            }
            let broke = end.broke.take().map_or(String::new(), |broke| format!("{broke}; "));
            end.broke = Some(format!("{broke}the trace could not be written to its end: {failure}"));
        }
        notes.extend(self.recording.rests_on(&outcome, self.budget));
        notes.extend(outcome.notes);
        Ok(end)
    }

    /// If a program stands in place of a trace, says so: the `--` was forgotten.
    fn was_a_program(&self, failure: Failure) -> Failure {
        match (failure, &self.trace) {
            (Failure::Work(text), Some(file)) => Failure::Work(format!(
                "{text} (to record a program, write `domicile advise -- {}`)",
                file.display()
            )),
            (failure, _) => failure,
        }
    }
}
