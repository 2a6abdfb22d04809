//! `domicile compare`: what is better and what is worse after a change.

mod simulated;
mod source;

use std::path::Path;
use std::process::ExitCode;

use capture::Folder;
use clap::Args;
use results::{Comparison, Condition, Counted, Incomparable, Recordings, SideKind, saved};

use super::model::Model;
use super::record::Recording;
use super::{Done, saved as files};
use crate::console::{self, Console};
use crate::failure::Failure;
use crate::shown::{OF_JSON, Shown};
use source::Source;

pub use simulated::{Simulation, record};
pub use source::Command;

/// The exit status when a condition is met.
const MET: u8 = 3;

/// The default number of recordings of each command: two show how far they differ.
const RECORDINGS: u32 = 2;

/// Show what is better and what is worse after a change: by line, data structure, cause and time
///
/// BEFORE and AFTER are each a saved result of `advise` or `simulate --json`, a trace, or a command in one quoted
/// string. A file that begins with `{` is a result; any other file that is not a program is a trace; everything else is
/// a command. Traces are simulated here, on `--machine` (default: `host`) under `--policy` (default: the policy that
/// stands for a usual kernel). Commands are recorded first, in turn, `--recordings` times each.
///
/// A difference counts if it is larger than the differences between recordings of the same command. With one recording
/// each (results and traces, unless `--before-also` and `--after-also` give more), the differences between recordings
/// are unknown, and a difference of under 1% does not count. Results of different machines or policies are refused.
///
/// With `--fail-if`, the exit status is 3 if a condition is met, and one line on standard error says why.
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile compare before.json after.json\n  \
                        domicile compare --machine zen3-milan before.trace after.trace --fail-if 'time > +3%'\n  \
                        domicile compare './sort-old big.txt' './sort big.txt' --fail-if 'time > +3%' --fail-if 'misses(L2) > +5%'")]
pub struct Compare {
    /// A saved result, a trace, or a command in quotes
    before: String,

    /// The same for the changed program
    after: String,

    /// One more recording of BEFORE: a result, a trace or a command; can be repeated
    #[arg(long, value_name = "BEFORE")]
    before_also: Vec<String>,

    /// One more recording of AFTER; can be repeated
    #[arg(long, value_name = "AFTER")]
    after_also: Vec<String>,

    /// Record each command this many times [default: 2]
    #[arg(long, value_name = "N", value_parser = results::quantities::small_in(1..=100))]
    recordings: Option<u32>,

    /// Leave out the causes of traces and commands, which is faster
    #[arg(long)]
    no_causes: bool,

    #[command(flatten)]
    judging: Judging,

    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    recording: Recording,

    #[command(flatten)]
    shown: Shown,
}

/// The conditions under which a comparison fails: an option that `report` also has.
#[derive(Args, Clone, Debug)]
pub struct Judging {
    /// Exit with status 3 if this condition holds: `time`, `stall`, `references` or `misses(CACHE)`, then `>` or `<`,
    /// then a percentage of the value before the change, as in 'time > +3%' or 'misses(L2) > +5%'; can be repeated
    ///
    /// A change that may be chance meets only conditions that no change at all would also meet.
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<Condition>,
}

impl Compare {
    pub fn run(&self, console: &mut Console) -> Done {
        let top = self.shown.top(console.json().then_some(OF_JSON))?;
        let read = |first: &String, also: &[String]| {
            let all = std::iter::once(first).chain(also);
            all.map(|text| Source::of(text)).collect::<Result<Vec<_>, _>>()
        };
        let before = read(&self.before, &self.before_also)?;
        let after = read(&self.after, &self.after_also)?;
        self.have_effect(before.iter().chain(&after))?;
        console::note(format_args!("before: {}; after: {}", before[0], after[0]));
        let (before, after) = self.counted(&before, &after)?;
        let comparison = self.judging.judged(compared(&before, &after)?)?;
        if console.json() {
            console.line(&saved(&comparison))?;
        } else {
            let columns = console.columns();
            console.text(&report::comparison(&comparison, columns, top))?;
        }
        console.flush()?;
        Ok(status(&comparison))
    }

    /// Refuses options that would have no effect.
    fn have_effect<'a>(&self, mut sources: impl Iterator<Item = &'a Source> + Clone) -> Result<(), Failure> {
        let commands = sources.clone().any(|source| source.kind() == SideKind::Command);
        let of_simulations = [
            ("--machine", self.model.machine.is_some()),
            ("--cpus", self.model.cpus.is_some()),
            ("--no-causes", self.no_causes),
        ];
        let given = of_simulations.iter().find(|(_, given)| *given);
        if let (Some((option, _)), true) = (given, sources.all(|source| source.kind() == SideKind::Result)) {
            return Err(Failure::usage(format!(
                "`{option}` is for traces and commands, which are simulated here, and both are results: leave it out"
            )));
        }
        let recordings = self.recordings.map(|_| "--recordings");
        match recordings.or_else(|| self.recording.given()).filter(|_| !commands) {
            Some(option) => Err(Failure::usage(format!(
                "`{option}` is for commands, which are recorded here, and none was given: leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// Collects all figures of both sides.
    fn counted(&self, before: &[Source], after: &[Source]) -> Result<(Recordings, Recordings), Failure> {
        let needed = before
            .iter()
            .chain(after)
            .any(|source| source.kind() != SideKind::Result);
        let simulation = match needed {
            true => Some(Simulation::new(&self.model, &self.judging.conditions)?),
            false => None,
        };
        let policy = match self.model.policies.as_slice() {
            [] => None,
            [policy] => Some(policy.as_str()),
            _ => return Err(Failure::usage("one policy is compared: give `--policy` once")),
        };
        let mut sides = [(before, Vec::new(), "BEFORE"), (after, Vec::new(), "AFTER")];
        let rounds = self.recordings.unwrap_or(RECORDINGS);
        let folder = Folder::make("compare")
            .map_err(|error| Failure::work(format!("cannot make a folder for traces: {error}; set TMPDIR")))?;
        // Both in turn: a change on the machine meanwhile affects both alike.
        for round in 0..rounds {
            for (sources, counted, which) in &mut sides {
                for source in sources.iter() {
                    // Causes take several simulations: those of one recording represent a side.
                    let causes = !self.no_causes && counted.is_empty();
                    match (source, &simulation) {
                        (Source::Command(command), Some(simulation)) => {
                            let file = folder.path().join("program.trace");
                            counted.push(simulation.of_command(command, &self.recording, &file, causes)?);
                        }
                        (Source::Trace(file), Some(simulation)) if round == 0 => {
                            counted.push(simulation.of_trace(file, causes)?)
                        }
                        (Source::Result(file, document), _) if round == 0 => {
                            let name = format!("{which} ({})", file.display());
                            let one = Counted::of(document.clone(), policy, &name).map_err(refused)?;
                            counted.push(one);
                        }
                        _ => {}
                    }
                }
            }
        }
        let [before, after] = sides.map(|(sources, recordings, _)| Recordings {
            name: sources[0].name(),
            kind: sources[0].kind(),
            recordings,
        });
        Ok((before, after))
    }
}

/// Compares two saved results, as `report A B` does.
pub fn of_results(before: &Path, after: &Path, judging: &Judging) -> Result<Comparison, Failure> {
    let side = |file: &Path, which: &str| {
        let document = files::parse(&files::text(file)?, file)?;
        let name = files::name(file);
        let counted = Counted::of(document, None, &format!("{which} ({name})")).map_err(|refusal| match refusal {
            Incomparable::Several { .. } => Failure::work(format!("{refusal} of `domicile compare`")),
            other => refused(other),
        })?;
        Ok::<_, Failure>(Recordings {
            name,
            kind: SideKind::Result,
            recordings: vec![counted],
        })
    };
    let (before, after) = (side(before, "BEFORE")?, side(after, "AFTER")?);
    judging.judged(compared(&before, &after)?)
}

fn compared(before: &Recordings, after: &Recordings) -> Result<Comparison, Failure> {
    results::compare(before, after).map_err(refused)
}

fn refused(refusal: Incomparable) -> Failure {
    Failure::work(format!("these are not compared: {refusal}"))
}

impl Judging {
    fn judged(&self, mut comparison: Comparison) -> Result<Comparison, Failure> {
        let judged = self.conditions.iter().map(|condition| condition.judge(&comparison));
        let judged: Result<_, _> = judged.collect();
        comparison.conditions = judged.map_err(Failure::usage)?;
        Ok(comparison)
    }
}

/// Prints which conditions are met; a comparison that meets one has its own exit status.
pub fn status(comparison: &Comparison) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for condition in comparison.met() {
        console::say(&format!(
            "domicile: {} is met: {}\n",
            condition.condition, condition.why
        ));
        status = ExitCode::from(MET);
    }
    status
}
