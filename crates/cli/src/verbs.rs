//! The verbs, one file each.

mod advise;
mod compare;
mod completions;
mod daemon;
mod doctor;
mod import;
mod machine;
pub mod man;
mod model;
mod policy;
mod probe;
mod record;
mod report;
mod reproduce;
mod run;
mod saved;
mod simulate;
mod sweep;
mod trace;
mod truth;
mod watching;

use std::process::ExitCode;

use clap::Subcommand;

use crate::console::Console;
use crate::failure::Failure;

/// The result of a verb: the exit code of a command that succeeded.
pub type Done = Result<ExitCode, Failure>;

#[derive(Subcommand)]
pub enum Verb {
    #[command(subcommand)]
    Machine(machine::Machine),
    Probe(probe::Probe),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Policy(policy::Policy),
    Record(record::Record),
    Import(import::Import),
    #[command(subcommand)]
    Trace(trace::Trace),
    Simulate(simulate::Simulate),
    Advise(advise::Advise),
    Report(report::Report),
    Compare(compare::Compare),
    Sweep(sweep::Sweep),
    Run(run::Run),
    Reproduce(reproduce::Reproduce),
    Truth(truth::Truth),
    Daemon(daemon::Daemon),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Verb {
    pub fn run(&self, console: &mut Console) -> Done {
        match self {
            Verb::Machine(verb) => verb.run(console),
            Verb::Probe(verb) => verb.run(console),
            Verb::Doctor(verb) => verb.run(console),
            Verb::Policy(verb) => verb.run(console),
            Verb::Record(verb) => verb.run(console),
            Verb::Import(verb) => verb.run(console),
            Verb::Trace(verb) => verb.run(console),
            Verb::Simulate(verb) => verb.run(console),
            Verb::Advise(verb) => verb.run(console),
            Verb::Report(verb) => verb.run(console),
            Verb::Compare(verb) => verb.run(console),
            Verb::Sweep(verb) => verb.run(console),
            Verb::Run(verb) => verb.run(console),
            Verb::Reproduce(verb) => verb.run(console),
            Verb::Truth(verb) => verb.run(console),
            Verb::Daemon(verb) => verb.run(console),
            Verb::Completions(verb) => verb.run(console),
            Verb::Man(verb) => verb.run(console),
        }
    }
}
