//! Both sides of a pair, recorded and simulated.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use machine::Machine;
use policy::{Kind, Name};
use results::{ProgramChange, TruthPredicted};
use trace::Trace;

use crate::TruthError;
use crate::pairs::Pair;
use crate::programs::{Commands, LONGEST, Run};

/// The phases that a program of ours marks its work by (`timed.c`).
const WORK: [&str; 2] = ["work", "rest"];

/// Where a run is simulated.
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
    /// The recorder waits for signals, of which a process has one of each: one recording at a time.
    pub recorder: Mutex<()>,
}

/// What one run is simulated to take.
#[derive(Clone, Copy)]
struct Simulated {
    ns: f64,
    references: u64,
}

impl Predictor {
    pub fn predict(&self, pair: &Pair, commands: &Commands, machine: &Machine) -> Result<TruthPredicted, TruthError> {
        let on = |huge_pages: bool| On { machine, huge_pages };
        let (before_on, after_on) = (on(false), on(pair.huge_pages));
        let before = self.one(pair, "before", &commands.before, before_on)?;
        let after = self.one(pair, "after", &commands.after, after_on)?;
        let mut off = [0.0; 2];
        match &commands.start_up[..] {
            [] => {}
            [both] if !pair.huge_pages => off = [self.one(pair, "start-up", both, before_on)?.ns; 2],
            of => {
                off[0] = self.one(pair, "before-start-up", &of[0], before_on)?.ns;
                off[1] = self.one(pair, "after-start-up", &of[of.len() - 1], after_on)?.ns;
            }
        }
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

    fn one(&self, pair: &Pair, side: &str, run: &Run, on: On) -> Result<Simulated, TruthError> {
        let trace = self.folder.join(format!("{}-{side}.dtr", pair.name));
        // One that cannot be read was not written to its end, or by another version.
        if !(self.keep && Trace::open(&trace).is_ok()) {
            let _alone = self.recorder.lock();
            record(pair, run, &trace)?;
        }
        let simulated = simulate(pair, &trace, on);
        if !self.keep {
            // It is in a folder that goes, or that its owner chose.
            let _ = std::fs::remove_file(&trace);
        }
        simulated
    }
}

fn record(pair: &Pair, run: &Run, trace: &Path) -> Result<(), TruthError> {
    // A recording that breaks off is not taken for a whole one.
    let partial = trace.with_extension("partial");
    let said = trace.with_extension("said");
    let recorded = recorded(pair, run, &partial, &said)
        .and_then(|()| std::fs::rename(&partial, trace).map_err(|error| TruthError::file(trace, error)));
    // Neither is wanted, whether they are there or not.
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
