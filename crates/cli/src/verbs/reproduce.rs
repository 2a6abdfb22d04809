//! `domicile reproduce`: a paper's numbers beside ours.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use ::reproduce::{Item, Keeping, Kind, Line, Options, Paper, Reproduction, Section, Step};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use super::Done;
use crate::console::{self, Console};
use crate::destination::{Destination, Overwrite};
use crate::failure::Failure;
use crate::progress;

/// Reproduce the tables and figures of a paper
///
/// Prints the paper's number beside ours and the ratio. Without an item, all of them: the counts of references and misses
/// at the paper's size, simulated on the paper's machine (some minutes the first time; counts are kept and found again),
/// and times measured here, at sizes scaled to the cache that this process really gets. Times with cache slots are
/// measured only where page colors are real (`domicile probe`); elsewhere they are simulated, and it says so. Everything of
/// bugnion96 is simulated, with the paper's conclusions held against what comes out. With --json, one array of
/// objects with paper, item, row, column, paper_value, value and ratio; what cannot be had is null, with a reason.
///
/// The programs are those of `workloads/`: `make reproduce` builds and runs everything.
#[derive(Args)]
#[command(after_help = "Examples:\n  domicile reproduce philbin96 table7\n  \
                        domicile reproduce philbin96 --full --json > philbin96.json\n  \
                        domicile reproduce philbin96 figure4 --plot figure4.svg\n  \
                        domicile reproduce ding11 figure10\n  \
                        domicile reproduce bugnion96 figure6 --program tomcatv --cpus 8")]
pub struct Reproduce {
    /// The paper
    #[arg(value_enum)]
    paper: Name,

    /// A table or figure, such as table3 or figure10; can be repeated [default: all]
    #[arg(value_name = "ITEM")]
    items: Vec<String>,

    /// More rounds of everything that is timed; of ding11 also the paper's whole sizes, which takes hours; of
    /// bugnion96 all programs with 1 to 16 cpus, which takes half an hour
    #[arg(long)]
    full: bool,

    /// Rounds of everything that is timed; medians are reported
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: Option<u64>,

    /// Choose sizes and blocks by a cache of this many bytes instead of the measured one
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(65_536..=1 << 40))]
    cache: Option<u64>,

    /// Run the programs at this size instead of the paper's, to try things out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    size: Option<u64>,

    /// Only this program, of bugnion96; can be repeated [default: those that take minutes]
    #[arg(long = "program", value_name = "NAME")]
    only: Vec<String>,

    /// Only this number of cpus, of bugnion96; can be repeated [default: some of 1 to 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    cpus: Vec<u32>,

    /// Folder of the programs, with count/ and time/ in it [default: beside the command, or the source tree's]
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,

    /// Where counts are kept [default: $XDG_CACHE_HOME/domicile/reproduce]
    #[arg(long, value_name = "FOLDER")]
    kept: Option<PathBuf>,

    /// Keep the recorded traces there, too, and use them again
    #[arg(long)]
    keep_traces: bool,

    /// Count anew what was counted before
    #[arg(long)]
    afresh: bool,

    /// Draw the one figure asked for into this file (SVG): figure4 of philbin96, any of bugnion96
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Philbin and others, "Thread Scheduling for Cache Locality" (1996)
    Philbin96,
    /// Ding, Wang and Zhang, "ULCC: A User-Level Facility for Optimizing Shared Cache Performance on Multicores" (2011)
    Ding11,
    /// Bugnion and others, "Compiler-Directed Page Coloring for Multiprocessors" (1996)
    Bugnion96,
}

impl Reproduce {
    pub fn run(&self, console: &mut Console) -> Done {
        let paper = match self.paper {
            Name::Philbin96 => ::reproduce::philbin96(),
            Name::Ding11 => ::reproduce::ding11(),
            Name::Bugnion96 => ::reproduce::bugnion96(),
        };
        let paper = paper.map_err(Failure::work)?;
        self.suits()?;
        let wanted = self.wanted(&paper)?;
        let mut plot = self.place()?;
        let options = Options {
            programs: self.programs.clone(),
            keeping: Keeping {
                folder: self.kept.clone().unwrap_or_else(Keeping::usual),
                traces: self.keep_traces,
                afresh: self.afresh,
            },
            cache_bytes: self.cache,
            rounds: self.rounds.and_then(|rounds| usize::try_from(rounds).ok()),
            full: self.full,
            n: self.size,
            only: self.only.clone(),
            cpus: self.cpus.clone(),
        };
        let display = Display::default();
        let watch = |step: Step| display.show(step);
        let mut reproduction = Reproduction::new(&paper, &options, &watch).map_err(Failure::work)?;
        let mut lines: Vec<Line> = Vec::new();
        let mut failures = Vec::new();
        for (index, item) in paper
            .items
            .iter()
            .filter(|item| wanted.contains(&item.name))
            .enumerate()
        {
            let done = reproduction.item(item);
            display.clear();
            let section = match done {
                Ok(section) => section,
                Err(error) => {
                    // What came out so far is printed all the same.
                    failures.push(format!("{}: {error}", item.name));
                    break;
                }
            };
            failures.extend(section.failures.iter().map(|what| format!("{}: {what}", item.name)));
            if !console.json() {
                let columns = console.columns();
                let gap = if index > 0 { "\n" } else { "" };
                console.text(&format!("{gap}{}", ::reproduce::text(&section, columns)))?;
                console.flush()?;
            }
            if drawable(&section.item)
                && let Some(place) = plot.take()
            {
                failures.extend(draw(place, &section).err());
            }
            lines.extend(section.lines);
        }
        if console.json() {
            console.line(&lines)?;
        }
        console.flush()?;
        for failure in &failures {
            console::say(&format!("domicile: {failure}\n"));
        }
        Ok(ExitCode::from(u8::from(!failures.is_empty())))
    }

    /// Options that the paper has nothing to do with are refused.
    fn suits(&self) -> Result<(), Failure> {
        let sizes = [("--size", self.size.is_some()), ("--cache", self.cache.is_some())];
        let cells = [("--program", !self.only.is_empty()), ("--cpus", !self.cpus.is_empty())];
        let given =
            |options: &[(&'static str, bool)]| options.iter().find(|(_, given)| *given).map(|(option, _)| *option);
        match (self.paper, given(&sizes), given(&cells)) {
            (Name::Ding11, Some(option), _) => Err(Failure::usage(format!(
                "{option} is for philbin96; the sizes of ding11 are the paper's, and of times those of the cache that has colors"
            ))),
            (Name::Bugnion96, Some(option), _) => Err(Failure::usage(format!(
                "{option} is for philbin96; the sizes of bugnion96 are the paper's"
            ))),
            (Name::Philbin96 | Name::Ding11, _, Some(option)) => Err(Failure::usage(format!(
                "{option} is for bugnion96, whose figures are of programs and cpus"
            ))),
            _ => Ok(()),
        }
    }

    /// The names of the items asked for, or all.
    fn wanted(&self, paper: &Paper) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = paper.items.iter().map(|item| item.name.clone()).collect();
        if let Some(unknown) = self.items.iter().find(|item| !names.contains(item)) {
            return Err(Failure::usage(format!(
                "{} has no `{unknown}` that can be reproduced; there are: {}",
                paper.name,
                names.join(", ")
            )));
        }
        let wanted = if self.items.is_empty() {
            names
        } else {
            self.items.clone()
        };
        let of_grids = paper.items.iter().filter(|item| wanted.contains(&item.name));
        for (name, grid) in of_grids.filter_map(|item| Some((&item.name, item.grid.as_ref()?))) {
            if let Some(other) = self.only.iter().find(|program| !grid.programs.contains(program)) {
                return Err(Failure::usage(format!(
                    "{name} has no program `{other}`; it has {}",
                    grid.programs.join(", ")
                )));
            }
            if let Some(other) = self.cpus.iter().find(|cpus| !grid.cpus.contains(cpus)) {
                let has: Vec<String> = grid.cpus.iter().map(u32::to_string).collect();
                return Err(Failure::usage(format!(
                    "{name} is not of {other} cpus, but of {}",
                    has.join(", ")
                )));
            }
        }
        let drawn = paper
            .items
            .iter()
            .filter(|item| drawable(item) && wanted.contains(&item.name));
        if self.plot.is_some() && drawn.count() != 1 {
            return Err(Failure::usage(
                "one figure is drawn at a time, figure4 of philbin96 or one of bugnion96; name it, or leave `--plot` out",
            ));
        }
        Ok(wanted)
    }

    /// Where the drawing goes.
    fn place(&self) -> Result<Option<Destination>, Failure> {
        if self.overwrite.force && self.plot.is_none() {
            return Err(Failure::usage(
                "`--force` is for a file that is written; add `--plot FILE`",
            ));
        }
        let place = self
            .plot
            .as_ref()
            .map(|file| self.overwrite.destination(file, "the drawing"));
        place.transpose()
    }
}

/// Draws a section; what went wrong.
fn draw(place: Destination, section: &Section) -> Result<(), String> {
    let Some(svg) = ::reproduce::plot(section) else {
        return Ok(());
    };
    let name = section.item.name.clone();
    place.write_text(&svg).map_err(|failure| format!("{name}: {failure}"))
}

/// Times over block sizes, and grids, have pictures.
fn drawable(item: &Item) -> bool {
    matches!(item.kind, Kind::Blocks | Kind::Grid)
}

/// One bar at a time; a new one for each stage of the work.
#[derive(Default)]
struct Display {
    now: Mutex<Option<(String, ProgressBar)>>,
}

impl Display {
    fn show(&self, step: Step) {
        match step {
            Step::Recording {
                what,
                references,
                expected,
                ..
            } => self.at(format!("{what}: recording"), references, expected),
            Step::Simulating { what, done, total } => self.at(format!("{what}: simulating"), done, total),
            Step::Timing { what, run, runs } => self.at(format!("{what}: timing"), run as u64, runs as u64),
            Step::Unkept { what, why } => console::note(format_args!("note: {what}: {why}")),
            Step::Measuring { what } => self.at(format!("{what}: measuring"), 0, 0),
        }
    }

    fn at(&self, stage: String, position: u64, length: u64) {
        // A display that panicked elsewhere is no reason to stop the work.
        let Ok(mut now) = self.now.lock() else { return };
        if now.as_ref().is_none_or(|(shown, _)| *shown != stage) {
            if let Some((_, bar)) = now.take() {
                bar.finish_and_clear();
            }
            let bar = match length {
                0 => progress::unknown(&stage),
                length => progress::known(&stage, length),
            };
            *now = Some((stage, bar));
        }
        if let Some((_, bar)) = &*now {
            // The paper's own count is only near: a bar that is full goes on as full.
            bar.set_position(if length == 0 { 0 } else { position.min(length) });
        }
    }

    fn clear(&self) {
        if let Ok(mut now) = self.now.lock()
            && let Some((_, bar)) = now.take()
        {
            bar.finish_and_clear();
        }
    }
}
