//! `domicile machine`: the available machines, and their descriptions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::machine::{MachineError, Trust};
use clap::Subcommand;

use super::Done;
use crate::console::Console;
use crate::failure::Failure;
use crate::suggested;

/// The machines that programs can be simulated on
#[derive(Subcommand)]
pub enum Machine {
    /// List the machines that come with Domicile
    List,
    /// Show a machine's description, as a machine file that can be changed
    #[command(after_help = "Example:\n  domicile machine show zen3-milan > mine.toml\n  \
                            domicile simulate prog.trace --machine ./mine.toml")]
    Show {
        /// A name from `domicile machine list`, a machine file, or `host`
        #[arg(value_name = "NAME|FILE|host", value_parser = suggested::machines(), hide_possible_values = true)]
        name: String,
    },
    /// Measure on a simulated machine when threads gain by following their data from cache to cache
    ///
    /// Prints a machine file whose table `[regions]` has the bounds that policy `regions` uses. Takes seconds, or a
    /// minute if caches are large. Without this table, the policy measures the bounds before each run.
    #[command(after_help = "Example:\n  domicile machine calibrate ./mine.toml > calibrated.toml")]
    Calibrate {
        /// A name from `domicile machine list`, a machine file, or `host`
        #[arg(value_name = "NAME|FILE|host", value_parser = suggested::machines(), hide_possible_values = true)]
        name: String,
    },
    /// Show the machine that this runs on, as far as Linux reports
    ///
    /// Prints a machine file; comments say what Linux reports, what it does not, and what is assumed instead.
    Host {
        /// Read /proc and /sys below this folder, captured on another machine
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
}

impl Machine {
    pub fn run(&self, console: &mut Console) -> Done {
        match self {
            Machine::List if console.json() => console.line(::machine::presets())?,
            Machine::List => {
                let host = ("host", "the machine that this runs on, as far as Linux reports");
                let presets = ::machine::presets().iter().map(|preset| (preset.name, preset.summary));
                let table = report::machines(presets.chain([host]));
                console.text(&table.text(console.columns()))?;
            }
            Machine::Show { name } => show(name, console)?,
            Machine::Calibrate { name } => calibrate(name, console)?,
            Machine::Host { root } => host(root.as_deref(), console)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn show(name: &str, console: &mut Console) -> Result<(), Failure> {
    let machine = load(name)?;
    if console.json() {
        return console.line(&machine);
    }
    // A preset's own text gives the source of each figure.
    match ::machine::presets().iter().find(|preset| preset.name == name) {
        Some(preset) => console.text(preset.text),
        None => console.text(&machine.to_toml()),
    }
}

fn calibrate(name: &str, console: &mut Console) -> Result<(), Failure> {
    let mut machine = load(name)?;
    let gains = sim::calibrate::calibrate(&machine).map_err(Failure::work)?;
    if gains.is_none() {
        return Err(Failure::work(format!(
            "`{name}` has one outermost cache for all its cpus; there is nothing to follow"
        )));
    }
    let switch_ns = machine
        .regions
        .map_or(sim::calibrate::SWITCH_NS as f64, |regions| regions.switch_ns);
    machine.regions = Some(::machine::Regions { switch_ns, gains });
    if console.json() {
        return console.line(&machine);
    }
    console.text(&machine.to_toml())
}

fn host(root: Option<&Path>, console: &mut Console) -> Result<(), Failure> {
    // Measured figures are for this machine, not for a captured one.
    let report = match root {
        None => ::measured::here(),
        Some(root) => ::machine::host(&sys::Root::new(root)),
    };
    let report = report.map_err(Failure::work)?;
    if console.json() {
        return console.line(&report);
    }
    let mut text = String::new();
    if let Some(processor) = &report.processor {
        text += &format!("# {processor}\n");
    }
    text += &format!("# online cpus: {}\n", report.online);
    for (number, memory) in report.node_numbers.iter().zip(&report.node_memory_bytes) {
        let memory = memory.map_or("of unknown size".to_string(), ::report::bytes);
        text += &format!("# memory of node {number}: {memory}\n");
    }
    text += &match &report.huge_pages {
        Some(pages) => format!("# transparent huge pages: {}\n", pages.enabled),
        None => "# transparent huge pages: this kernel does not say\n".to_string(),
    };
    for note in &report.notes {
        text += &format!("# {}: {}: {}\n", trust(note.trust), note.about, note.text);
    }
    console.text(&(text + "\n" + &report.machine.to_toml()))
}

/// The origin of a figure, in a word.
fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Read => "as Linux reports",
        Trust::Measured => "measured",
        Trust::Assumed => "assumed",
        Trust::Missing => "not reported by Linux",
        Trust::Simplified => "simplified",
    }
}

/// Loads a machine by name or file. An unknown name is a wrong command line; a file that cannot be read or is invalid
/// is failed work.
pub fn load(name: &str) -> Result<::machine::Machine, Failure> {
    ::measured::load(name).map_err(|error| match error {
        MachineError::UnknownName { .. } => Failure::usage(error),
        _ => Failure::work(error),
    })
}
