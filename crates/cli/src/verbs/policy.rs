//! `domicile policy`: the available policies.

use std::process::ExitCode;

use clap::Subcommand;

use super::Done;
use crate::console::Console;

/// The placement policies and their parameters
#[derive(Subcommand)]
pub enum Policy {
    /// List the policies with their parameters, ranges and sources
    ///
    /// A policy that chooses colors and one that chooses homes combine as `first-touch+page-coloring`, and either
    /// with the order of work as `first-touch+page-coloring+order`. Parameters are set as `--set random.seed=7`.
    List,
}

/// The text below the list.
const COMBINED: &str = "
A policy that chooses homes and one that chooses colors combine, and either with one for the order of
work: first-touch+page-coloring+order.
Parameters are set as in --set random.seed=7.
";

impl Policy {
    pub fn run(&self, console: &mut Console) -> Done {
        match self {
            Policy::List if console.json() => console.line(policy::registry())?,
            Policy::List => {
                let columns = console.columns();
                console.text(&report::policies(policy::registry()).text(columns))?;
                console.text(COMBINED)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
