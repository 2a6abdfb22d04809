//! Both sides of a pair, recorded and simulated.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use machine::Machine;
use policy::{Kind, Name};
use results::{ProgramChange, TruthExperiment, TruthMeasured, TruthPair, TruthPredicted};
use trace::Trace;

use crate::TruthError;
use crate::experiments::{CHANGES, Change, that_close};
use crate::pairs::Pair;
use crate::programs::{Commands, LONGEST, Run};
use crate::ratio::off;

/// The phases that a program of ours marks its work by (`timed.c`).
const WORK: [&str; 2] = ["work", "rest"];

/// The machine and the page size that a run is simulated with.
#[derive(Clone, Copy)]
struct On<'a> {
    machine: &'a Machine,
    huge_pages: bool,
}

/// Predicts, with recordings in a folder.
pub struct Predictor {
    pub folder: PathBuf,
    /// Recordings stay, and those that are there are taken.
    pub keep: bool,
    /// A pair that missed is predicted once more with each figure of the machine changed.
    pub experiments: bool,
    /// The recorder waits for signals, of which a process has one of each: one recording at a time.
    pub recorder: Mutex<()>,
}

/// The simulated time of one run.
#[derive(Clone, Copy)]
struct Simulated {
    ns: f64,
    references: u64,
}

/// A pair's recordings.
struct Recordings {
    before: PathBuf,
    after: PathBuf,
    /// None, one for both sides, or one of each.
    start_up: Vec<PathBuf>,
}

impl Predictor {
    /// The prediction; and where it misses and experiments are asked for, the changes of the machine that bring it near.
    pub fn predict(
        &self,
        pair: &Pair,
        commands: &Commands,
        machine: &Machine,
        measured: &TruthMeasured,
    ) -> Result<(TruthPredicted, Option<Vec<TruthExperiment>>), TruthError> {
        let recordings = self.recordings(pair, commands)?;
        let predicted = on_machine(pair, &recordings, machine).map(|said| {
            let misses = off(said.ratio, measured.ratio) > TruthPair::NEAR;
            let close = (self.experiments && misses).then(|| {
                let on = |change: &Change| on_machine(pair, &recordings, &change.of(machine)?).ok();
                let tried = CHANGES.iter().filter_map(|change| Some((change.says, on(change)?)));
                that_close(tried.collect(), measured)
            });
            (said, close)
        });
        if !self.keep {
            for trace in [&recordings.before, &recordings.after]
                .into_iter()
                .chain(&recordings.start_up)
            {
                // It is in a folder that goes, or that its owner chose.
                let _ = std::fs::remove_file(trace);
            }
        }
        predicted
    }

    fn recordings(&self, pair: &Pair, commands: &Commands) -> Result<Recordings, TruthError> {
        let before = self.recording(pair, "before", &commands.before)?;
        let after = self.recording(pair, "after", &commands.after)?;
        let start_up = match &commands.start_up[..] {
            [] => Vec::new(),
            [both] if !pair.huge_pages => vec![self.recording(pair, "start-up", both)?],
            of => vec![
                self.recording(pair, "before-start-up", &of[0])?,
                self.recording(pair, "after-start-up", &of[of.len() - 1])?,
            ],
        };
        Ok(Recordings {
            before,
            after,
            start_up,
        })
    }

    fn recording(&self, pair: &Pair, side: &str, run: &Run) -> Result<PathBuf, TruthError> {
        let trace = self.folder.join(format!("{}-{side}.dtr", pair.name));
        // One that cannot be read was not written to its end, or by another version.
        if !(self.keep && Trace::open(&trace).is_ok()) {
            let _alone = self.recorder.lock();
            record(pair, run, &trace)?;
        }
        Ok(trace)
    }
}

fn on_machine(pair: &Pair, recordings: &Recordings, machine: &Machine) -> Result<TruthPredicted, TruthError> {
    let on = |huge_pages: bool| On { machine, huge_pages };
    let (before_on, after_on) = (on(false), on(pair.huge_pages));
    let before = simulate(pair, &recordings.before, before_on)?;
    let after = simulate(pair, &recordings.after, after_on)?;
    let off = match &recordings.start_up[..] {
        [] => [0.0; 2],
        [both] => [simulate(pair, both, before_on)?.ns; 2],
        [first, last, ..] => [simulate(pair, first, before_on)?.ns, simulate(pair, last, after_on)?.ns],
    };
    let (before_ns, after_ns) = (before.ns - off[0], after.ns - off[1]);
    if before_ns <= 0.0 || after_ns <= 0.0 {
        let what = "a run is simulated to take no longer than its start-up";
        return Err(TruthError::Pair(what.to_string()));
    }
    Ok(TruthPredicted {
        ratio: before_ns / after_ns,
        before_ns,
        after_ns,
        before_references: before.references,
        after_references: after.references,
    })
}

fn record(pair: &Pair, run: &Run, trace: &Path) -> Result<(), TruthError> {
    // A recording that breaks off is not taken for a whole one.
    let partial = trace.with_extension("partial");
    let said = trace.with_extension("said");
    let recorded = recorded(pair, run, &partial, &said)
        .and_then(|()| std::fs::rename(&partial, trace).map_err(|error| TruthError::file(trace, error)));
    // Neither file is wanted, if it exists at all.
    let _ = std::fs::remove_file(&partial);
    let _ = std::fs::remove_file(&said);
    recorded
}

/// Errors: the program, or the recorder, did not end well; with the last that it said.
fn recorded(pair: &Pair, run: &Run, partial: &Path, said: &Path) -> Result<(), TruthError> {
    let (program, arguments) = run.by_shell(said);
    let mut options = capture::Options::new(&program, &arguments, partial);
    options.environment = run
        .environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    options.prefetches = pair.prefetches;
    options.discard_output = true;
    options.within = Some(LONGEST);
    let outcome = capture::record(&options, &mut |_| {})?;
    if outcome.interrupted.is_some() {
        return Err(TruthError::Interrupted);
    }
    let problem = match (outcome.exit.code(), outcome.failure) {
        _ if outcome.ended_by_us => format!("it was not done after {} seconds", LONGEST.as_secs()),
        (0, None) => return Ok(()),
        (0, Some(failure)) => failure,
        (code, _) => format!("ended with {code}"),
    };
    let said = std::fs::read_to_string(said).unwrap_or_default();
    Err(TruthError::Command(format!(
        "recording {}: {problem}: {}",
        run.words.join(" "),
        said.trim()
    )))
}

fn simulate(pair: &Pair, trace: &Path, on: On) -> Result<Simulated, TruthError> {
    let trace = Trace::open(trace)?;
    // Frames are those that Linux gives.
    let policy = Name::first(&[Kind::Color], |traits| traits.linux);
    let mut config = sim::Config::new(on.machine.clone(), vec![sim::PolicySpec::new(policy)]);
    config.classes = false;
    if on.huge_pages {
        config.changes = vec![ProgramChange::HugePages { data: None }];
    }
    if pair.source.is_some() {
        let [from_phase, to_phase] = WORK.map(|phase| Some(phase.to_string()));
        config.window = Some(sim::Window { from_phase, to_phase });
    }
    let runs = sim::simulate(&trace, &config, &|_| {})?;
    let outcome = &runs
        .first()
        .ok_or_else(|| TruthError::Pair("nothing was simulated".to_string()))?
        .outcome;
    Ok(Simulated {
        ns: outcome.time_ns.wall as f64,
        references: outcome.references,
    })
}
