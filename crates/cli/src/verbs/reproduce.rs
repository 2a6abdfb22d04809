//! `domicile reproduce`: a paper's numbers beside ours.

mod book;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use ::reproduce::{Choice, Keeping, Line, Options, PAPERS, Paper, Reproduction, Section, Step};
use clap::Args;
use indicatif::ProgressBar;

use super::Done;
use crate::console::{self, Console};
use crate::destination::{Destination, Overwrite};
use crate::failure::Failure;
use crate::progress;
use book::Book;

#[derive(Args)]
#[command(
    about = "Reproduce the tables and figures of a paper",
    long_about = words::manual(),
    after_help = words::examples()
)]
pub struct Reproduce {
    /// The paper
    #[arg(value_parser = words::papers().names())]
    paper: String,

    /// A table or figure, such as table3 or figure10; can be repeated [default: all]
    #[arg(value_name = "ITEM")]
    items: Vec<String>,

    #[arg(long, help = words::full())]
    full: bool,

    /// How often each number is measured: rounds of timing, recordings for counts, seeds of frames for cache slots; the
    /// report shows the median, the minimum and the maximum
    #[arg(long, value_name = "N", value_parser = results::quantities::count_in(1..=1000))]
    rounds: Option<u64>,

    /// Choose sizes and blocks by a cache of this many bytes instead of the measured one
    #[arg(long, value_name = "BYTES", value_parser = results::quantities::bytes_in(65_536..=1 << 40))]
    cache: Option<u64>,

    /// Run the programs at this size instead of the paper's, to try things out
    #[arg(long, value_name = "N", value_parser = results::quantities::count_in(1..=u64::MAX))]
    size: Option<u64>,

    #[arg(long = "program", value_name = "NAME", help = words::program())]
    only: Vec<String>,

    #[arg(long, value_name = "N", help = words::cpus(), value_parser = results::quantities::small_in(1..=16))]
    cpus: Vec<u32>,

    /// Folder of the programs, with count/ and time/ in it [default: beside the command, or the source tree's]
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,

    #[arg(long, value_name = "FOLDER", help = words::traces())]
    traces: Option<PathBuf>,

    /// Folder for counts [default: $XDG_CACHE_HOME/domicile/reproduce]
    #[arg(long, value_name = "FOLDER")]
    kept: Option<PathBuf>,

    /// Also keep the recorded traces there, and use them again
    #[arg(long)]
    keep_traces: bool,

    /// Measure figure 9 of lee12 on this machine, by `domicile run --policy regions`, instead of simulating it
    #[arg(long)]
    live: bool,

    /// Count again instead of using the counts that are kept
    #[arg(long)]
    afresh: bool,

    #[arg(long, value_name = "FILE", help = words::plot())]
    plot: Option<PathBuf>,

    /// Write the reproduced items into this page (Markdown), between the marks `<!-- domicile reproduce PAPER ITEM -->`
    /// and `<!-- end of ITEM -->`; without an ITEM, all items that have marks in it
    #[arg(long, value_name = "PAGE")]
    write_book: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl Reproduce {
    pub fn run(&self, console: &mut Console) -> Done {
        let source = PAPERS.iter().find(|source| source.name == self.paper);
        let source = source.ok_or_else(|| Failure::usage(format!("there is no paper {}", self.paper)))?;
        let paper = source.read().map_err(Failure::work)?;
        self.suits()?;
        let named = self.named(&paper)?;
        let (book, asked) = match &self.write_book {
            Some(page) => {
                let (book, items) = Book::open(page, &paper, named)?;
                (Some(book), items)
            }
            None => (None, named.to_vec()),
        };
        let wanted = self.wanted(&paper, asked)?;
        self.live_suits(&wanted)?;
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
            live: self.live,
            traces: self.traces.clone(),
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
                    // Earlier results are still printed.
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
            if section.item.is_drawn()
                && let Some(place) = plot.take()
            {
                failures.extend(draw(place, &section).err());
            }
            if let Some(book) = &book {
                failures.extend(book.write(&section).err().map(|failure| failure.to_string()));
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

    /// Refuses options that do not apply to the paper.
    fn suits(&self) -> Result<(), Failure> {
        let given = [
            (Choice::Size, self.size.is_some()),
            (Choice::Cache, self.cache.is_some()),
            (Choice::Program, !self.only.is_empty()),
            (Choice::Cpus, !self.cpus.is_empty()),
            (Choice::Traces, self.traces.is_some()),
        ];
        let papers = words::papers();
        let mut refusals = given
            .iter()
            .filter(|(_, given)| *given)
            .filter_map(|(choice, _)| papers.refusal(&self.paper, *choice));
        refusals.next().map_or(Ok(()), |refusal| Err(Failure::usage(refusal)))
    }

    /// Checks `--live`, which one figure supports.
    fn live_suits(&self, wanted: &[String]) -> Result<(), Failure> {
        const LIVE: (&str, &str) = ("lee12", "figure9");
        match (self.live, self.paper.as_str(), wanted) {
            (false, ..) => Ok(()),
            (true, paper, [item]) if (paper, item.as_str()) == LIVE => Ok(()),
            _ => Err(Failure::usage(
                "--live is for figure 9 of lee12: `domicile reproduce lee12 figure9 --live`",
            )),
        }
    }

    /// The requested items, which the paper has.
    fn named(&self, paper: &Paper) -> Result<&[String], Failure> {
        let names: Vec<&str> = paper.items.iter().map(|item| item.name.as_str()).collect();
        if let Some(unknown) = self.items.iter().find(|item| !names.contains(&item.as_str())) {
            return Err(Failure::usage(format!(
                "{} has no `{unknown}` that can be reproduced; there are: {}",
                paper.name,
                names.join(", ")
            )));
        }
        Ok(&self.items)
    }

    /// The names of the requested items, or all; each suits the other options.
    fn wanted(&self, paper: &Paper, asked: Vec<String>) -> Result<Vec<String>, Failure> {
        let wanted = match asked.is_empty() {
            true => paper.items.iter().map(|item| item.name.clone()).collect(),
            false => asked,
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
        let of_traces = paper.items.iter().filter(|item| wanted.contains(&item.name));
        for (name, traces) in of_traces.filter_map(|item| Some((&item.name, item.traces.as_ref()?))) {
            if let Some(other) = self.only.iter().find(|program| !traces.workloads.contains(program)) {
                return Err(Failure::usage(format!(
                    "{name} has no program `{other}`; it has {}",
                    traces.workloads.join(", ")
                )));
            }
        }
        let of_regions = paper.items.iter().filter(|item| wanted.contains(&item.name));
        for (name, programs) in of_regions.filter_map(|item| Some((&item.name, item.programs()?))) {
            if let Some(other) = self.only.iter().find(|program| !programs.contains(&program.as_str())) {
                return Err(Failure::usage(format!(
                    "{name} has no program `{other}`; it has {}",
                    programs.join(", ")
                )));
            }
        }
        let drawn = paper
            .items
            .iter()
            .filter(|item| item.is_drawn() && wanted.contains(&item.name));
        if self.plot.is_some() && drawn.count() != 1 {
            return Err(Failure::usage(format!(
                "one figure is drawn at a time, {}; name it, or leave `--plot` out",
                words::papers().drawn("one", " or ")
            )));
        }
        Ok(wanted)
    }

    /// The destination of the drawing.
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

/// Draws a section. Error: the reason.
fn draw(place: Destination, section: &Section) -> Result<(), String> {
    let Some(svg) = ::reproduce::plot(section) else {
        return Ok(());
    };
    let name = section.item.name.clone();
    place.write_text(&svg).map_err(|failure| format!("{name}: {failure}"))
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
        // A panic elsewhere in the display must not stop the work.
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
            // The paper's own count is approximate: a full bar stays full.
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
