//! `domicile advise`: where a program's memory time goes, and what placement would gain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ::advise::{PlacementForm, Policies, Settings};
use clap::{ArgGroup, Args, ValueEnum};
use machine::Machine;
use report::Top;
use results::{Advice, saved};

use super::model::{HOST, Model};
use super::record::Recording;
use super::{Done, simulate, trace};
use crate::console::{Console, quoted};
use crate::destination::{Destination, Overwrite, apart};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::progress;
use crate::shown::{OF_JSON, Shown};

/// Where the full result goes unless the command line says otherwise.
const RESULT: &str = "domicile-advice.json";

/// Show where a program's memory time goes, and what placing its pages would gain
///
/// Records the program (or takes a trace), simulates it on a machine under all policies that can make a difference
/// there, and prints where the time goes, which data structures cost most, false sharing, and the policies by predicted
/// time. Where the program marks its work items, it also says what running them in another order would gain (policy
/// `order`), and which data a partition of the outermost cache would protect or confine (policy `slots`). Policy `cdpc` says what
/// compiler-directed page coloring would gain: from what the compiler said of the parallel loops, or from who touches which
/// pages where it said nothing. With --json the full result goes to standard output, and what the program prints to standard error.
///
/// Signals that are sent to `domicile advise` while it records are sent on to the program. Where one of them asked it to end (Ctrl-C),
/// and the program did not end with status 0, the advice is on what was recorded until then, which is said, and the exit
/// status is 128 and the signal's number.
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

    /// Write which threads belong under which cache, where that makes a difference, for a scheduler to take. A name that ends in .sh
    /// is for taskset, .cpuset for control groups, .slice for systemd, .json for scx_layered
    #[arg(long, value_name = "FILE")]
    write_placement: Option<PathBuf>,

    /// What `--write-placement` writes, whatever the file is called
    #[arg(long, value_name = "FORM", requires = "write_placement")]
    placement_form: Option<Form>,

    /// Write the source with what each line waits for and misses, as far as the program has line information and the files are
    /// here
    #[arg(long, value_name = "FILE")]
    annotate: Option<PathBuf>,

    /// Take about so long in all (60s, 5m): half of it for recording from main (or --from), after which the program is ended,
    /// and half for simulating what fits, windows spread over what was recorded
    #[arg(long, value_name = "TIME", value_parser = results::quantities::duration, conflicts_with_all = ["trace", "window", "windows", "duration"])]
    budget: Option<Duration>,

    /// Measure causes and reuse on all of a long run; else samples are enough, and their error is noted (counts and times
    /// are exact either way)
    #[arg(long)]
    exact: bool,

    /// Keep the recorded trace in this file
    #[arg(long, value_name = "TRACE", conflicts_with = "trace")]
    keep: Option<PathBuf>,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    overwrite: Overwrite,

    /// Skip what is damaged of the trace and take the rest
    #[arg(long, conflicts_with = "command")]
    salvage: bool,

    /// The program to record and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What takes a placement of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A shell script that calls taskset for each thread
    Taskset,
    /// A shell script that makes threaded control groups with cpusets
    Cpuset,
    /// Slices with AllowedCPUs, for whole processes
    Systemd,
    /// Layers of the scheduler scx_layered
    ScxLayered,
}

impl Form {
    fn of(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "sh" => Some(Form::Taskset),
            "cpuset" => Some(Form::Cpuset),
            "slice" => Some(Form::Systemd),
            "json" => Some(Form::ScxLayered),
            _ => None,
        }
    }

    fn written(self) -> PlacementForm {
        match self {
            Form::Taskset => PlacementForm::Taskset,
            Form::Cpuset => PlacementForm::Cpuset,
            Form::Systemd => PlacementForm::Systemd,
            Form::ScxLayered => PlacementForm::ScxLayered,
        }
    }
}

impl Advise {
    pub fn run(&self, console: &mut Console) -> Done {
        let machine = self.model.machine(HOST)?;
        let top = self.shown.top(console.json().then_some(OF_JSON))?;
        // Faults of the command line are reported before a program is run.
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

        if let (Some(file), Some(option)) = (&self.trace, self.recording.given()) {
            return Err(Failure::usage(format!(
                "`{option}` chooses what is recorded, and {} is recorded already: leave it out, or record again",
                file.display()
            )));
        }
        let places = self.places(form, top, console.json())?;

        let mut notes = Vec::new();
        let mut recording = None;
        let file = match (&self.trace, &self.keep) {
            (Some(file), _) => file.clone(),
            (None, Some(file)) => recording.insert(Kept::named(file)).file().to_path_buf(),
            (None, None) => recording.insert(Kept::new("advise.trace")?).file().to_path_buf(),
        };
        let mut interrupted = None;
        if self.trace.is_none() {
            console.flush()?;
            interrupted = self.record(&machine, &file, console.json(), &mut notes)?;
        }
        if let Some(recording) = &mut recording {
            recording.recorded();
        }
        let done = self.go_on(&machine, &file, notes, places, console);
        let done = done.map(|code| interrupted.map_or(code, ExitCode::from));
        match &recording {
            Some(recording) => recording.or_failed(done),
            None => done,
        }
    }

    /// The tool that a placement is written for. A wrong request is reported before a program is run.
    fn form(&self, machine: &Machine) -> Result<Option<PlacementForm>, Failure> {
        let Some(file) = &self.write_placement else {
            return Ok(None);
        };
        if !self.model.policies.is_empty() {
            return Err(Failure::usage(
                "`--write-placement` goes without `--policy`: threads are placed, and compared, where all policies are simulated",
            ));
        }
        if machine.divided_cache().is_none() {
            return Err(Failure::usage(format!(
                "`--write-placement` needs a machine with several caches that each serve several cpus, and {} has none; see \
                 `domicile machine list`",
                machine.name
            )));
        }
        match self.placement_form.or_else(|| Form::of(file)) {
            Some(form) => Ok(Some(form.written())),
            None => Err(Failure::usage(format!(
                "what to write to {} is not known by its name: add `--placement-form taskset`, `cpuset`, `systemd` or \
                 `scx-layered`, or let the name end in .sh, .cpuset, .slice or .json",
                file.display()
            ))),
        }
    }

    /// The files of the results. A file that cannot be written is refused before a program is run.
    fn places(&self, form: Option<PlacementForm>, top: Top, json: bool) -> Result<Places, Failure> {
        let what = "the full result";
        apart(&[
            ("the trace", self.trace.as_deref()),
            ("`--output`", self.output.as_deref()),
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
            slots: slots.transpose()?,
            placement: placement.transpose()?,
            annotated: annotated.transpose()?,
            top,
        })
    }

    /// Simulates what was recorded, and says what came out.
    fn go_on(&self, machine: &Machine, file: &Path, notes: Vec<String>, places: Places, console: &mut Console) -> Done {
        let opened = trace::open_or_salvage(file, self.salvage).map_err(|failure| self.was_a_program(failure))?;
        let mut advice = self.advise(machine, file, &opened)?;
        advice.notes.splice(0..0, notes);
        advice.notes.extend(trace::missing(&opened, self.salvage));
        if machine.core.is_some() && opened.dependences().is_none() {
            advice.notes.push(
                "the trace does not say which loads wait for one another: here none does, so lists and trees are as fast as \
                 arrays"
                    .to_string(),
            );
        }
        let recorded = self.trace.as_ref().or(self.keep.as_ref());
        advice.trace.file = recorded.map(|file| file.display().to_string());
        self.report(advice, places, console)?;
        Ok(ExitCode::SUCCESS)
    }

    fn advise(&self, machine: &Machine, file: &Path, trace: &::trace::Trace) -> Result<Advice, Failure> {
        let marked = trace.work_items().map_err(|error| trace::explain(file, &error))? > 0;
        let described = trace.data_sets().map_err(|error| trace::explain(file, &error))? > 0;
        let usual = ::advise::policies(machine, marked, described || self.model.slots.is_some());
        let policies = self.model.policies(usual)?;
        let bar = progress::Simulations::default();
        let config = self.model.config(machine.clone(), Vec::new(), sim::Detail::default())?;
        let settings = Settings {
            policies: match self.model.policies.is_empty() {
                true => Policies::All {
                    sets: self.model.sets.clone(),
                    plan: policies.iter().find_map(|policy| policy.plan.clone()),
                },
                // Policies that were named are the only ones.
                false => Policies::These(policies),
            },
            seed: config.seed,
            order: config.order,
            barrier_ns: config.barrier_ns,
            window: config.window,
            exact: self.exact,
            machine_basis: self.model.basis(HOST)?,
            progress: Some(&|step| bar.step(step)),
        };
        let advice = ::advise::advise(trace, machine, &settings);
        bar.finish();
        advice.map_err(|error| simulate::failure(file, error))
    }

    /// Records the program; how it ended is noted. The exit status of a recording that was interrupted, if it was.
    fn record(
        &self,
        machine: &Machine,
        file: &Path,
        json: bool,
        notes: &mut Vec<String>,
    ) -> Result<Option<u8>, Failure> {
        let recording = self.recording.warming(machine);
        let outcome = match self.budget {
            None => recording.record(&self.command, file, json)?,
            Some(budget) => recording.within(budget).record(&self.command, file, json)?,
        };
        if let (Some(failure), 0) = (&outcome.failure, outcome.summary.references) {
            return Err(Failure::work(failure));
        }
        notes.extend(self.recording.rests_on(&outcome, self.budget));
        notes.extend(outcome.notes);
        // A program that ends in good order when asked to, as servers do, was recorded whole.
        let interrupted = outcome.interrupted.filter(|_| outcome.exit != capture::Exit::Code(0));
        if let Some(signal) = interrupted {
            notes.push(format!(
                "the program was interrupted (signal {signal}): this is advice on what was recorded until then"
            ));
        }
        match outcome.exit {
            _ if outcome.ended_by_us => {}
            capture::Exit::Code(0) => {}
            capture::Exit::Code(code) => notes.push(format!("the program ended with exit status {code}")),
            capture::Exit::Signal(signal) => notes.push(format!("the program was killed by signal {signal}")),
        }
        notes.extend(outcome.failure);
        Ok(interrupted.and_then(|signal| u8::try_from(128 + signal).ok()))
    }

    /// A program in the place of a trace: the `--` was forgotten.
    fn was_a_program(&self, failure: Failure) -> Failure {
        match (failure, &self.trace) {
            (Failure::Work(text), Some(file)) => Failure::Work(format!(
                "{text} (to record a program, write `domicile advise -- {}`)",
                file.display()
            )),
            (failure, _) => failure,
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
        let asked = places.slots.as_ref().map(|place| place.path().display().to_string());
        if let (Some(place), Some(slots)) = (places.slots, advice.slots.as_mut())
            && ::advise::slots_gain(slots)
        {
            let name = place.path().display().to_string();
            if wrote(place.write_text(&slots.plan)) {
                slots.written = Some(name);
            }
        }
        if let Some(name) = asked.filter(|_| advice.slots.as_ref().is_none_or(|slots| slots.written.is_none())) {
            let why = match &advice.slots {
                Some(slots) if ::advise::slots_gain(slots) => "it could not be written",
                Some(slots) if !slots.data.is_empty() => "the proposed partition would save less than 1% of the time",
                _ => "no cache slots are proposed",
            };
            advice.notes.push(format!("{name} was not written: {why}"));
        }
        if let Some((place, form)) = places.placement {
            let name = place.path().display().to_string();
            let text = match &advice.sharing {
                None => Err("one thread ran, and it shares nothing".to_string()),
                Some(sharing) if !::advise::placement_matters(sharing) => {
                    Err("it makes less than 1% of difference under which caches the threads run".to_string())
                }
                Some(sharing) => ::advise::placement_text(sharing, form),
            };
            let done = text.and_then(|text| match wrote(place.write_text(&text)) {
                true => Ok(()),
                false => Err("it could not be written".to_string()),
            });
            match (done, &mut advice.sharing) {
                (Ok(()), Some(sharing)) => sharing.written = Some(name),
                (Err(why), _) => advice.notes.push(format!("{name} was not written: {why}")),
                _ => {}
            }
        }
        if let Some(place) = places.annotated {
            let name = place.path().display().to_string();
            match report::annotated(&advice, source) {
                Some(text) => {
                    wrote(place.write_text(&text));
                }
                None => advice.notes.push(format!(
                    "{name} was not written: the program has no line information (compile it with -g)"
                )),
            }
        }
        let mut full = None;
        if let Some(place) = places.result {
            let file = place.path().to_path_buf();
            let text = serde_json::to_string(&saved(&advice)).map_err(Failure::work)? + "\n";
            if wrote(place.write_text(&text)) {
                full = Some(file);
            }
        }
        if console.json() {
            console.line(&saved(&advice))?;
        } else {
            let columns = console.columns();
            console.text(&report::advice(&advice, columns, places.top))?;
            if let Some(file) = full {
                let (file, name) = (file.display(), quoted(&file));
                console.text(&format!(
                    "\nFull result: {file}\nTry next:    domicile report {name} --html advice.html\n"
                ))?;
            }
        }
        console.flush()?;
        failed.map_or(Ok(()), Err)
    }
}

/// The text of a source file; longer ones are nobody's source.
fn source(path: &str) -> Result<String, String> {
    use std::io::Read;
    const MOST_BYTES: u64 = 16 << 20;
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|about| about.is_file()) {
        return Err("it is no file".to_string());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where results go, and how many rows of each list are printed.
struct Places {
    result: Option<Destination>,
    slots: Option<Destination>,
    placement: Option<(Destination, PlacementForm)>,
    annotated: Option<Destination>,
    top: Top,
}
