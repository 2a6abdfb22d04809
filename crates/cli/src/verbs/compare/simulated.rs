//! Traces and commands of a comparison, simulated.

use std::path::Path;

use advise::{Policies, Settings};
use machine::Machine;
use policy::{Kind, Name};
use results::{Condition, Counted, ProgramChange};

use super::source::Command;
use crate::console;
use crate::failure::Failure;
use crate::progress;
use crate::verbs::model::{HOST, Model};
use crate::verbs::record::Recording;
use crate::verbs::{simulate, trace};

/// How many source lines are kept, the worst ones: as many as an advice keeps.
const SOURCE_LINES: usize = 1000;

/// How all traces and commands of a comparison are simulated.
pub struct Simulation {
    config: sim::Config,
}

impl Simulation {
    /// Errors in the command line are found before anything is recorded.
    pub fn new(model: &Model, conditions: &[Condition]) -> Result<Simulation, Failure> {
        let machine = model.machine(HOST)?;
        let policies = model.policies(vec![baseline(&machine)])?;
        if policies.len() > 1 {
            return Err(Failure::usage("one policy is compared: give `--policy` once"));
        }
        let caches = machine.caches.iter().map(|cache| cache.name.as_str());
        let tlb = machine.tlb.iter().map(|_| "TLB");
        let caches: Vec<&str> = caches.chain(tlb).collect();
        for condition in conditions {
            condition.knows(&caches).map_err(Failure::usage)?;
        }
        let detail = sim::Detail {
            structures: true,
            source_lines: SOURCE_LINES,
            ..sim::Detail::default()
        };
        let config = model.config(machine, policies, detail)?;
        if let Some((basis, _)) = model.basis(HOST)? {
            console::note(format_args!("note: {basis}"));
        }
        Ok(Simulation { config })
    }

    /// A simulation that counts time and misses, under a policy that an advice has simulated.
    pub fn under(model: &Model, machine: Machine, policy: &str) -> Result<Simulation, Failure> {
        let named = match model.policies.is_empty() {
            // The given parameters and plans may belong to other policies.
            true => vec![sim::PolicySpec {
                name: policy.parse()?,
                sets: model.sets.clone(),
                plan: None,
            }],
            false => model.policies(Vec::new())?,
        };
        let spec = named.into_iter().find(|spec| spec.name.to_string() == policy);
        let spec = spec.ok_or_else(|| Failure::work(format!("policy `{policy}` is not simulated here")))?;
        let config = model.config(machine, vec![spec], sim::Detail::default())?;
        Ok(Simulation { config })
    }

    /// The same with all data on huge pages.
    pub fn on_huge_pages(mut self) -> Simulation {
        self.config.changes = vec![ProgramChange::HugePages { data: None }];
        self
    }

    /// The counts of a trace; with `causes`, also why its data misses, if the trace contains everything that this
    /// needs.
    pub fn of_trace(&self, file: &Path, causes: bool) -> Result<Counted, Failure> {
        let opened = trace::to_simulate(trace::open(file)?, file)?;
        let gaps = &opened.header().gaps;
        for missing in gaps.iter().flat_map(advise::gaps_in_words) {
            console::note(format_args!("note: {}: {missing}", file.display()));
        }
        let broke = capture::broke_off(opened.header()).map(str::to_string);
        let counted = match causes && gaps.is_none() {
            true => self.advised(file, &opened)?,
            false => Counted {
                outcome: one(file, simulate::simulate(file, &opened, &self.config)?)?.outcome,
                ..Counted::default()
            },
        };
        Ok(Counted {
            broke: broke.or_else(|| opened.lost_in_a_clause()),
            ..counted
        })
    }

    /// The same with the causes that an advice names.
    fn advised(&self, file: &Path, trace: &::trace::Trace) -> Result<Counted, Failure> {
        let bar = progress::Simulations::default();
        let settings = Settings {
            policies: Policies::These(self.config.policies.clone()),
            seed: self.config.seed,
            order: self.config.order,
            barrier_ns: self.config.barrier_ns,
            window: self.config.window.clone(),
            progress: Some(&|step| bar.step(step)),
            ..Settings::default()
        };
        let advice = advise::advise(trace, &self.config.machine, &settings);
        bar.finish();
        let advice = advice.map_err(|error| simulate::failure(file, error))?;
        Ok(Counted {
            outcome: one(file, advice.policies)?,
            causes: Some(advice.causes),
            ..Counted::default()
        })
    }

    /// The same for a command, which is first recorded to `file`.
    pub fn of_command(
        &self,
        command: &Command,
        recording: &Recording,
        file: &Path,
        causes: bool,
    ) -> Result<Counted, Failure> {
        record(command, recording, &self.config.machine, file, 0)?;
        let counted = self.of_trace(file, causes);
        // The next recording uses the same file.
        let _ = std::fs::remove_file(file);
        counted
    }
}

/// The result under the simulated policy.
fn one<T>(file: &Path, mut all: Vec<T>) -> Result<T, Failure> {
    all.pop()
        .ok_or_else(|| Failure::work(format!("{}: no policy was simulated", file.display())))
}

/// Records a command to `file`. Its output goes to standard error. A run that fails, or ends with another `status`, is
/// refused: the two sides would have done different work.
pub fn record(
    command: &Command,
    recording: &Recording,
    machine: &Machine,
    file: &Path,
    status: i32,
) -> Result<(), Failure> {
    let outcome = recording.warming(machine).record(&command.words, file, true)?;
    let other = match outcome.exit {
        capture::Exit::Code(code) if code != status && !outcome.ended_by_us => Some(capture::ended_with(code)),
        _ => None,
    };
    match outcome.failure.or(outcome.broke).or(other) {
        Some(why) => Err(Failure::work(format!("`{}` is not compared: {why}", command.text))),
        None => Ok(()),
    }
}

/// The policy that represents a usual kernel: the baseline of an advice.
fn baseline(machine: &Machine) -> Name {
    let names = advise::policies(machine, false, false);
    let kinds = [Kind::Home, Kind::Color];
    match names.as_slice() {
        // There is nothing to choose.
        [only] => only.clone(),
        names => {
            let chosen = |kind: &Kind| names.iter().any(|name| name.of(*kind).is_some());
            let kinds: Vec<Kind> = kinds.into_iter().filter(chosen).collect();
            Name::first(&kinds, |traits| traits.linux)
        }
    }
}
