//! `domicile record`: the references of a program, to a trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use machine::Machine;
use results::{Recorded, saved};

use super::Done;
use crate::console::{self, Console};
use crate::destination::{Overwrite, no_stream};
use crate::failure::Failure;
use crate::progress;

/// Record which memory a program touches
///
/// The program runs unmodified, under Valgrind, with its own input and output. Signals that are sent to `domicile
/// record` are passed on to the program. `domicile record` exits with the program's exit status, or with 128 plus the
/// signal number if a signal killed the program. If the trace could not be written to its end, a message says so, and
/// status 0 becomes 1. The same holds if nothing could be recorded. Everything that was recorded until a crash, a
/// signal, Ctrl-C or a full disk is kept.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile record -o sort.trace -- sort big.txt > sorted.txt")]
pub struct Record {
    #[command(flatten)]
    recording: Recording,

    /// The trace to write
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,

    #[command(flatten)]
    overwrite: Overwrite,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The part of a run that is recorded: options shared by `record` and `advise`.
#[derive(Args, Clone)]
pub struct Recording {
    /// Record from the moment when a process first enters this function, such as main. Earlier code (the dynamic
    /// linker, start-up) runs, but is not recorded. Windows and skipped references count from there. In a Python
    /// program, `domicile_recording` is the entry to `with domicile.recording()`
    #[arg(long, value_name = "FUNCTION")]
    from: Option<String>,

    /// Record for this long (60s, 5m, 500ms) from the start of recording; then end the program by SIGTERM, and by
    /// SIGKILL if it has not ended after 5 seconds. Programs run more slowly while they are recorded
    #[arg(long, value_name = "TIME", value_parser = results::quantities::duration)]
    duration: Option<Duration>,

    /// Record only N references (of each window)
    #[arg(long, value_name = "N", value_parser = results::quantities::count_in(1..=u64::MAX))]
    window: Option<u64>,

    /// Record K windows, spread over the run
    #[arg(long, value_name = "K", requires = "window", value_parser = results::quantities::small_in(1..=u32::MAX))]
    windows: Option<u32>,

    /// Place each window elsewhere within the part of the run that it stands for
    #[arg(long, value_name = "SEED", requires = "window", value_parser = results::quantities::count)]
    windows_seed: Option<u64>,

    /// Before each of several windows, warm caches and TLBs with this much of the memory that the program touched last
    /// (such as 2MiB); 0 leaves them cold [default: 32 MiB; with advise, the size of the machine's outermost cache]
    #[arg(long, value_name = "BYTES", value_parser = results::quantities::bytes_in(0..=1 << 30))]
    warm: Option<u64>,

    /// Skip the first N references
    #[arg(long, value_name = "N", value_parser = results::quantities::count)]
    skip: Option<u64>,

    /// Record instruction fetches too
    #[arg(long)]
    fetches: bool,
    /// Record software prefetches too
    #[arg(long)]
    prefetches: bool,

    /// Leave out the program counters: a smaller trace, without lines of the source, call stacks and causes
    ///
    /// `advise` then names the data that is waited for, and simulates policies. It shows no line to change, no flame
    /// graph and no annotated source.
    #[arg(long)]
    no_pcs: bool,

    /// Take no samples of call stacks: profiles of results then show lines without their callers
    #[arg(long)]
    no_call_stacks: bool,

    /// Do not record the processes that the program starts
    #[arg(long)]
    no_children: bool,

    /// The time from the start of the program in which the recording ends.
    #[arg(skip)]
    within: Option<Duration>,
    /// True if Ctrl-C ends the recording, and the program if that would continue.
    #[arg(skip)]
    interrupt_ends: bool,
    /// The option to suggest if the recording takes long.
    #[arg(skip)]
    shorter: progress::Shorter,
}

/// The function where C programs begin.
const MAIN: &str = "main";
/// A shorter window would measure caches that are still empty.
const LEAST_WINDOW: u64 = 100_000;
/// The bounds for warming caches before a window: enough to have an effect, and not so much that it takes longer than
/// the window.
const LEAST_WARM: u64 = 1 << 20;
const MOST_WARM: u64 = 256 << 20;

impl Record {
    pub fn run(&self, console: &mut Console) -> Done {
        no_stream(&self.output)?;
        self.overwrite.allows(&self.output, "the trace")?;
        // JSON needs standard output for itself.
        let outcome = self.recording.record(&self.command, &self.output, console.json())?;
        let code = exit_code(&outcome);
        let summary = &outcome.summary;
        if console.json() {
            console.line(&saved(&Recorded {
                output: self.output.display().to_string(),
                exit_code: code,
                references: summary.references,
                references_seen: outcome.references_seen,
                instructions: summary.instructions,
                bytes: summary.bytes,
                notes: outcome.notes.clone(),
                failure: outcome.failure.clone(),
                broke: outcome.broke.clone(),
            }))?;
        } else {
            // Standard output belongs to the program.
            if let Some(broke) = &outcome.broke {
                console::note(format_args!("{broke}; the trace holds what was recorded until then"));
            } else if code != 0 {
                console::note(format_args!("{}", capture::ended_with(code)));
            }
            if outcome.failure.is_none() || summary.references > 0 {
                console::note(format_args!(
                    "{} references in {}, {} ({:.2} bytes a reference)",
                    report::count(summary.references),
                    self.output.display(),
                    report::bytes(summary.bytes),
                    summary.bytes_per_reference
                ));
            }
            for note in &outcome.notes {
                console::note(format_args!("note: {note}"));
            }
        }
        let status = ExitCode::from(status(&outcome));
        if let Some(failure) = outcome.failure {
            console.flush()?;
            Failure::work(failure).report();
        }
        Ok(status)
    }
}

/// The program's exit code. A program that was ended because the time was up did not fail.
fn exit_code(outcome: &capture::Outcome) -> i32 {
    if outcome.ended_by_us { 0 } else { outcome.exit.code() }
}

/// The exit status of a recording. A failed program's own status says more than ours; success would suggest a complete
/// trace.
pub fn status(outcome: &capture::Outcome) -> u8 {
    match u8::try_from(exit_code(outcome)).unwrap_or(1) {
        0 if outcome.failure.is_some() => 1,
        code => code,
    }
}

impl Recording {
    /// The first of these options that was given, if any: without a recording, none has an effect.
    pub fn given(&self) -> Option<&'static str> {
        self.options()
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(name, _)| name)
    }

    fn options(&self) -> [(&'static str, bool); 12] {
        [
            ("--from", self.from.is_some()),
            ("--duration", self.duration.is_some()),
            ("--window", self.window.is_some()),
            ("--windows", self.windows.is_some()),
            ("--windows-seed", self.windows_seed.is_some()),
            ("--warm", self.warm.is_some()),
            ("--skip", self.skip.is_some()),
            ("--fetches", self.fetches),
            ("--prefetches", self.prefetches),
            ("--no-pcs", self.no_pcs),
            ("--no-call-stacks", self.no_call_stacks),
            ("--no-children", self.no_children),
        ]
    }

    /// The first given option of those that record only a part of a run, with any beginning and end.
    pub fn part(&self) -> Option<&'static str> {
        let parts = ["--duration", "--window", "--windows", "--windows-seed", "--skip"];
        let mut options = self.options().into_iter();
        options
            .find(|(name, given)| *given && parts.contains(name))
            .map(|(name, _)| name)
    }

    /// Returns true if processes that the program starts are recorded, too.
    pub fn follows_children(&self) -> bool {
        !self.no_children
    }

    /// The function where the recording begins.
    pub fn begins(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// The same for an advice that should take no longer than `budget`: records for half of it, and as much, in
    /// windows, as is simulated in the other half.
    pub fn within(&self, budget: Duration) -> Recording {
        let half = budget / 2;
        let references = half.as_secs_f64() * progress::ADVISED_A_SECOND;
        Recording {
            from: Some(self.from.clone().unwrap_or_else(|| MAIN.to_string())),
            duration: Some(half),
            window: Some(((references / f64::from(capture::WINDOWS)) as u64).max(LEAST_WINDOW)),
            windows: Some(capture::WINDOWS),
            within: Some(half),
            shorter: progress::Shorter::Nothing,
            ..self.clone()
        }
    }

    /// The same for an advice: Ctrl-C ends the recording, and the advice is on what was recorded.
    pub fn for_advice(&self) -> Recording {
        let limited = self.duration.is_some() || self.window.is_some();
        Recording {
            interrupt_ends: true,
            shorter: match limited {
                true => progress::Shorter::Nothing,
                false => progress::Shorter::Budget,
            },
            ..self.clone()
        }
    }

    /// The same, warming caches with as much as the machine's outermost ones hold, unless the user asked otherwise.
    pub fn warming(&self, machine: &Machine) -> Recording {
        let instances = |cache: &machine::Cache| u64::from(machine.cpus.div_ceil(cache.cpus_per_instance.max(1)));
        let bytes = machine
            .outermost()
            .map_or(0, |cache| cache.bytes.saturating_mul(instances(cache)));
        Recording {
            warm: self.warm.or(Some(bytes.clamp(LEAST_WARM, MOST_WARM))),
            ..self.clone()
        }
    }

    /// The part of the run that an advice is based on, if it is not all that should be recorded.
    pub fn rests_on(&self, outcome: &capture::Outcome, budget: Option<Duration>) -> Option<String> {
        let (taken, all) = (outcome.summary.references, outcome.references_seen);
        // For several warmed windows the verdict says it.
        let warmed = self.warm != Some(0) && (budget.is_some() || self.windows.is_some_and(|windows| windows > 1));
        let windowed = !warmed && (budget.is_some() || self.window.is_some());
        (windowed && taken < all).then(|| {
            format!(
                "this rests on {} references, {:.1}% of the {} that the program made while it was recorded",
                report::count(taken),
                100.0 * taken as f64 / all as f64,
                report::count(all)
            )
        })
    }

    /// Runs a command and records it; `aside` sends the command's output to standard error.
    pub fn record(&self, command: &[OsString], output: &Path, aside: bool) -> Result<capture::Outcome, Failure> {
        let (program, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::usage("no program was given"))?;
        let mut options = capture::Options::new(program, arguments, output);
        options.from = self.from.clone();
        options.duration = self.duration;
        options.skip = self.skip.unwrap_or(0);
        options.window = self.window;
        options.windows = self.windows.unwrap_or(1);
        options.windows_seed = self.windows_seed.unwrap_or(options.windows_seed);
        options.warm_bytes = self.warm.unwrap_or(options.warm_bytes);
        options.fetches = self.fetches;
        options.prefetches = self.prefetches;
        options.pcs = !self.no_pcs;
        options.call_stacks = !self.no_call_stacks;
        options.follow_children = !self.no_children;
        options.within = self.within;
        options.interrupt_ends = self.interrupt_ends;
        options.machine = host_name();
        options.output_to_stderr = aside;
        let mut progress = progress::Recording::begin(self.shorter);
        let recorded = capture::record(&options, &mut |step| progress.step(step));
        progress.end();
        recorded.map_err(|error| match error {
            capture::CaptureError::BadOptions(_) => Failure::usage(error),
            capture::CaptureError::GivenUp => Failure::GivenUp(error.to_string()),
            error => Failure::work(error),
        })
    }
}

/// The trace's description of the machine that it was recorded on.
fn host_name() -> String {
    machine::load("host").map_or_else(|_| String::new(), |host| format!("{}, {} cpus", host.name, host.cpus))
}
