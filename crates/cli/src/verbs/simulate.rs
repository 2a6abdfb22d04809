//! `domicile simulate`: a trace on a machine under placement policies.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::model::Model;
use super::{Done, trace};
use crate::console::Console;
use crate::failure::Failure;
use crate::progress;

/// Simulate a trace on a machine under placement policies
///
/// With --json, prints one JSON object a line, one line for each policy.
#[derive(Args)]
#[command(after_help = "Example:\n  domicile simulate sort.trace --machine simos-r4400 \
                        --policy page-coloring --policy bin-hopping")]
pub struct Simulate {
    /// The trace (see `domicile record` and `domicile import`)
    trace: PathBuf,

    #[command(flatten)]
    model: Model,

    /// Split the counts by thread, data structure or page too
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    by: Vec<By>,

    /// Leave out the classes of misses, which is faster
    #[arg(long)]
    no_classes: bool,
}

/// Pages that `--by page` tells, those with the largest stall.
const PAGES: usize = 100;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Thread,
    Structure,
    Page,
}

impl Simulate {
    pub fn run(&self, console: &mut Console) -> Done {
        if self.model.machine.is_none() {
            return Err(Failure::usage(
                "no machine was given; add `--machine NAME`, with a name from `domicile machine list`, or `--machine host`",
            ));
        }
        let machine = self.model.machine("host")?;
        let policies = self.model.policies(vec!["page-coloring".to_string()])?;
        let detail = sim::Detail {
            threads: self.by.contains(&By::Thread),
            structures: self.by.contains(&By::Structure),
            pages: if self.by.contains(&By::Page) { PAGES } else { 0 },
            ..sim::Detail::default()
        };
        let mut config = self.model.config(machine, policies, detail);
        config.classes = !self.no_classes;
        let opened = trace::open(&self.trace)?;
        for damage in opened.damage() {
            anstream::eprintln!(
                "domicile: note: {} ends early, at byte {}: {}",
                self.trace.display(),
                damage.offset,
                damage.what
            );
        }
        let outcomes = simulate(&self.trace, &opened, &config)?;
        if console.json() {
            for outcome in &outcomes {
                console.line(outcome)?;
            }
        } else {
            let columns = console.columns();
            console.text(&report::outcomes(&readable(&outcomes)?, columns))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Runs all policies, with progress.
pub fn simulate(file: &Path, trace: &::trace::Trace, config: &sim::Config) -> Result<Vec<sim::Outcome>, Failure> {
    let bar = progress::known("simulating", trace.references() * config.policies.len() as u64);
    let outcomes = sim::simulate(trace, config, &|references| bar.inc(references));
    bar.finish_and_clear();
    outcomes.map_err(|error| match error {
        sim::SimError::Policy(error) => error.into(),
        sim::SimError::Trace(error) => trace::explain(file, &error),
        error => Failure::work(format!("{}: {error}", file.display())),
    })
}

/// Outcomes as the reports read them: from their JSON.
pub fn readable(outcomes: &[sim::Outcome]) -> Result<Vec<report::Outcome>, Failure> {
    let read = |outcome| serde_json::to_value(outcome).and_then(serde_json::from_value);
    let outcomes: Result<_, _> = outcomes.iter().map(read).collect();
    outcomes.map_err(|error| Failure::work(format!("cannot read the simulator's result: {error}")))
}
