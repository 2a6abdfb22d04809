//! Grids: programs by numbers of cpus by policies of placing pages (Bugnion96, its figures and table 2).
//!
//! A *cell* is one program, as one compiler built it, with this many threads. It is recorded once and simulated on the
//! machines of the item, with as many cpus, under all policies; its steady phase is counted. A *bar* is one of the
//! cell's builds and policies, as the figures draw them side by side.

mod bars;
mod breakdown;
mod cell;
mod checks;
mod draw;
mod pages;
mod rating;

use machine::Machine;
use policy::Name;
use serde::Deserialize;

use crate::error::ReproduceError;
use crate::paper::Item;
use crate::programs::Programs;
use crate::reproduce::{Reproduction, Section};

/// The contents of an item of this kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    pub view: View,
    pub programs: Vec<String>,
    pub cpus: Vec<u32>,
    /// The cells that run by default.
    pub usual: Usual,
    /// The policies simulated for each cell; more than the bars need if another item needs them, so that both share the
    /// result.
    pub policies: Vec<Name>,
    #[serde(rename = "machine")]
    pub machines: Vec<Variant>,
    #[serde(rename = "bar")]
    pub bars: Vec<Bar>,
    #[serde(rename = "gain", default)]
    pub gains: Vec<Gain>,
    #[serde(rename = "check", default)]
    pub checks: Vec<Check>,
    /// True if each bar's speedup over one cpu is reported.
    #[serde(default)]
    pub speedups: bool,
}

/// How the numbers are presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The parts of the time, memory's cost per instruction, the bus's traffic.
    Breakdown,
    /// Combined execution times, and the gain of one bar over another.
    Bars,
    /// The pages that each cpu touches, in the order of addresses.
    Pages,
    /// The same in the order in which hints are given.
    ColoringOrder,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usual {
    pub programs: Vec<String>,
    pub cpus: Vec<u32>,
}

/// A machine, possibly with one figure changed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub preset: String,
    /// Of the outermost cache.
    pub bytes: Option<u64>,
    pub ways: Option<u32>,
    /// Of the processors; latencies stay.
    pub clock_mhz: Option<f64>,
    /// Of memory.
    pub bandwidth_gbps: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    pub name: String,
    /// The program's build.
    pub version: String,
    pub policy: Name,
}

impl Grid {
    /// The policies' names, in their order.
    pub(crate) fn policies_in_words(&self) -> String {
        let names: Vec<String> = self.policies.iter().map(Name::to_string).collect();
        names.join(" ")
    }
}

/// How much faster one bar is than another.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    pub of: String,
    pub over: String,
    /// The gain as the paper's text states it.
    #[serde(default)]
    pub paper: Vec<Said>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub program: String,
    pub cpus: u32,
    pub times: f64,
    pub section: String,
}

/// A conclusion of the paper, to be compared with the results.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Check {
    /// The text's gains are reached here, within this part of them on either side.
    Reached { within: f64 },
    /// A bar is nowhere slower than the best of some others, within a part of their time.
    NeverBehind {
        of: String,
        others: Vec<String>,
        within: f64,
    },
    /// The gain of a bar over another is larger with most cpus than with fewest.
    Grows { program: String, of: String, over: String },
    /// A bar is this many times as fast as another, with each of these numbers of cpus.
    Between {
        /// In words: `gains nothing`.
        says: String,
        program: String,
        cpus: Vec<u32>,
        of: String,
        over: String,
        least: f64,
        most: Option<f64>,
        /// Why not, where it did not hold.
        otherwise: Option<String>,
    },
    /// The rating of the whole suite with this many cpus gains this many percent, within a part of that gain on either
    /// side.
    Rated {
        cpus: u32,
        of: String,
        over: String,
        percent: f64,
        within: f64,
        /// Why not, where it did not hold.
        otherwise: Option<String>,
    },
    /// A bar is faster than each of some others.
    Fastest {
        program: String,
        cpus: u32,
        of: String,
        others: Vec<String>,
    },
    /// The bus is occupied for at least this many percent in this many of the programs.
    Busy { cpus: u32, percent: f64, programs: usize },
}

impl Grid {
    /// The requirements of every file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let bar = |name: &String| match self.bars.iter().any(|bar| bar.name == *name) {
            true => Ok(()),
            false => Err(format!("`{name}` is no bar")),
        };
        let known = |cpus: &u32| match self.cpus.contains(cpus) {
            true => Ok(()),
            false => Err(format!("{cpus} is none of the numbers of cpus")),
        };
        let program = |name: &String| match self.programs.contains(name) {
            true => Ok(()),
            false => Err(format!("`{name}` is no program of the grid")),
        };
        if self.machines.is_empty() || self.bars.is_empty() {
            return Err("a grid has a machine and a bar".to_string());
        }
        if let Some(other) = self.bars.iter().find(|bar| !self.policies.contains(&bar.policy)) {
            return Err(format!("policy `{}` is not simulated", other.policy));
        }
        self.usual.cpus.iter().try_for_each(known)?;
        self.usual.programs.iter().try_for_each(program)?;
        for gain in &self.gains {
            bar(&gain.of)?;
            bar(&gain.over)?;
            gain.paper.iter().try_for_each(|said| program(&said.program))?;
        }
        for check in &self.checks {
            match check {
                Check::Reached { .. } | Check::Busy { .. } => {}
                Check::Rated { of, over, cpus, .. } => {
                    known(cpus)?;
                    if !self.gains.iter().any(|gain| gain.of == *of && gain.over == *over) {
                        return Err(format!("`{of}` over `{over}` is no gain of the grid"));
                    }
                }
                Check::NeverBehind { of, others, .. } => {
                    bar(of)?;
                    others.iter().try_for_each(bar)?;
                }
                Check::Grows {
                    program: name,
                    of,
                    over,
                } => {
                    program(name)?;
                    bar(of)?;
                    bar(over)?;
                }
                Check::Between {
                    program: name,
                    cpus,
                    of,
                    over,
                    least,
                    most,
                    ..
                } => {
                    program(name)?;
                    bar(of)?;
                    bar(over)?;
                    cpus.iter().try_for_each(known)?;
                    if cpus.is_empty() || most.is_some_and(|most| most < *least) {
                        return Err(format!(
                            "a check of {name} has no numbers of cpus, or bounds that nothing keeps"
                        ));
                    }
                }
                Check::Fastest {
                    program: name,
                    of,
                    others,
                    ..
                } => {
                    program(name)?;
                    bar(of)?;
                    others.iter().try_for_each(bar)?;
                }
            }
        }
        Ok(())
    }
}

impl Variant {
    /// Returns true if it differs from its preset.
    fn is_changed(&self) -> bool {
        self.bytes.is_some() || self.ways.is_some() || self.clock_mhz.is_some() || self.bandwidth_gbps.is_some()
    }

    /// The machine with this many cpus.
    fn machine(&self, cpus: u32) -> Result<Machine, ReproduceError> {
        let mut machine = machine::load(&self.preset)?.with_cpus(cpus)?;
        machine.clock_mhz = self.clock_mhz.unwrap_or(machine.clock_mhz);
        machine.memory.bandwidth_gbps = self.bandwidth_gbps.unwrap_or(machine.memory.bandwidth_gbps);
        if let Some(outermost) = machine.caches.iter_mut().max_by_key(|cache| cache.level) {
            outermost.bytes = self.bytes.unwrap_or(outermost.bytes);
            outermost.ways = self.ways.unwrap_or(outermost.ways);
        }
        machine.check()?;
        Ok(machine)
    }
}

impl Reproduction<'_> {
    /// An item that is a grid.
    pub(crate) fn grid(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let Some(grid) = &item.grid else {
            return Ok(());
        };
        let programs = Programs::find(self.options.programs.as_deref())?;
        match grid.view {
            View::Bars | View::Breakdown => self.bars(&programs, item, grid, section),
            View::Pages | View::ColoringOrder => self.pages(&programs, item, grid, section)?,
        }
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
        Ok(())
    }

    /// The requested programs and numbers of cpus, program by program.
    pub(crate) fn places(&self, grid: &Grid) -> Vec<(String, u32)> {
        let options = self.options;
        let pick = |asked: bool, all, usual| if asked || options.full { all } else { usual };
        let programs: &Vec<String> = pick(!options.only.is_empty(), &grid.programs, &grid.usual.programs);
        let cpus: &Vec<u32> = match options.full || !options.cpus.is_empty() {
            true => &grid.cpus,
            false => &grid.usual.cpus,
        };
        let programs = programs
            .iter()
            .filter(|program| options.only.is_empty() || options.only.contains(program));
        let cpus: Vec<u32> = cpus
            .iter()
            .copied()
            .filter(|cpus| options.cpus.is_empty() || options.cpus.contains(cpus))
            .collect();
        programs
            .flat_map(|program| cpus.iter().map(move |&cpus| (program.clone(), cpus)))
            .collect()
    }
}
