//! The verbs, one file each.

mod completions;
pub mod man;
mod policy;

use std::process::ExitCode;

use clap::Subcommand;

use crate::console::Console;
use crate::failure::Failure;

/// What a verb comes to: the exit code of a command that worked.
pub type Done = Result<ExitCode, Failure>;

#[derive(Subcommand)]
pub enum Verb {
    #[command(subcommand)]
    Policy(policy::Policy),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Verb {
    pub fn run(&self, console: &mut Console) -> Done {
        match self {
            Verb::Policy(verb) => verb.run(console),
            Verb::Completions(verb) => verb.run(console),
            Verb::Man(verb) => verb.run(console),
        }
    }
}
