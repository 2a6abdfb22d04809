//! The entry point: measures the items of a paper, and returns its numbers beside ours.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use machine::Machine;
use measured::{Effort, Measured, measured};

use crate::error::ReproduceError;
use crate::line::{Line, Place};
use crate::paper::{Item, Job, Kind, Measure, Paper, Run};
use crate::programs::{Build, Program, Programs, filled};
use crate::record::{Keeping, Recording};
use crate::several::Several;
use crate::times::{self, Timing};
use crate::traces::Replayed;
use crate::watch::{Step, Watch};
use crate::{claims, counts::Counts, overhead};

const MICRO: f64 = 1e-3;
/// No machine that runs this has less.
const LEAST_CACHE: u64 = 64 << 10;

/// How the work is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of the programs; `None` finds it.
    pub programs: Option<PathBuf>,
    pub keeping: Keeping,
    /// The cache that determines sizes; `None` measures it.
    pub cache_bytes: Option<u64>,
    /// Rounds of everything that is timed; `None`: three (one for figures), with `full` seven (three).
    pub rounds: Option<usize>,
    pub full: bool,
    /// Run everything at this size instead of the paper's (counts) or the scaled one (times).
    pub n: Option<u64>,
    /// For grids: only these programs and numbers of cpus; empty: the usual ones, with `full` all.
    pub only: Vec<String>,
    pub cpus: Vec<u32>,
    /// Figure 9 of lee12 on this machine rather than simulated.
    pub live: bool,
    /// Folder of recorded workloads; `None`: where `make traces` puts them.
    pub traces: Option<PathBuf>,
}

/// One item, reproduced.
#[derive(Clone, Debug)]
pub struct Section {
    pub item: Item,
    pub lines: Vec<Line>,
    /// Notes for the reader: sizes, rounds, differences from the paper.
    pub notes: Vec<String>,
    /// Failures; lines that depend on them have a reason instead of a value.
    pub failures: Vec<String>,
    /// Its picture (SVG), if it is a grid.
    pub drawing: Option<String>,
}

/// Reproduces items of a paper.
pub struct Reproduction<'a> {
    pub(crate) paper: &'a Paper,
    pub(crate) options: &'a Options,
    pub(crate) watch: Watch<'a>,
    pub(crate) machine: Machine,
    /// Measurements of this machine, made when first needed.
    measured: Option<Measured>,
    /// Results from streams of misses, by trace and machine: items share them.
    pub(crate) replayed: HashMap<(PathBuf, String), Rc<Replayed>>,
}

impl<'a> Reproduction<'a> {
    pub fn new(paper: &'a Paper, options: &'a Options, watch: Watch<'a>) -> Result<Self, ReproduceError> {
        Ok(Reproduction {
            paper,
            options,
            watch,
            machine: machine::load(&paper.about.machine)?,
            measured: None,
            replayed: HashMap::new(),
        })
    }

    /// One item. Fails if nothing of it is available; the section reports failures of its parts.
    pub fn item(&mut self, item: &Item) -> Result<Section, ReproduceError> {
        let mut section = Section {
            item: item.clone(),
            lines: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
            drawing: None,
        };
        match item.kind {
            Kind::Overhead => self.overhead(item, &mut section)?,
            Kind::Times => self.times(item, &mut section)?,
            Kind::Counts => self.counts(item, &mut section)?,
            Kind::Blocks => self.blocks(item, &mut section)?,
            Kind::Saved => self.saved(item, &mut section)?,
            Kind::Pairs => self.pairs(item, &mut section)?,
            Kind::Slots => self.slot_cost(item, &mut section)?,
            Kind::Grid => self.grid(item, &mut section)?,
            Kind::Traces => self.traces(item, &mut section)?,
            Kind::Regions => self.regions(item, &mut section)?,
            Kind::Absent => self.absent(item, &mut section),
        }
        let conclusions = claims::notes(&item.claims, &section.lines, item.kind == Kind::Regions);
        section.notes.splice(0..0, conclusions);
        Ok(section)
    }

    /// The paper's numbers, and why there are no others.
    fn absent(&self, item: &Item, section: &mut Section) {
        let why = item.absent.clone().unwrap_or_default();
        for row in &item.rows {
            for (index, column) in item.columns.iter().enumerate() {
                if let Some(paper) = row.value(index) {
                    let place = self.place(item, &row.name, column, &item.unit);
                    section.lines.push(Line::new(place, Some(paper), Err(why.clone())));
                }
            }
        }
        if section.lines.is_empty() {
            section.notes.push(format!("no numbers: {why}"));
        }
        section
            .notes
            .extend(item.says.iter().map(|says| format!("the paper: {says}")));
    }

    pub(crate) fn place<'p>(&self, item: &'p Item, row: &'p str, column: &'p str, unit: &'p str) -> Place<'p> {
        Place {
            paper: self.paper.name,
            item: &item.name,
            row,
            column,
            unit,
        }
    }

    /// A version of an item's program at a size; the error says why there is none.
    fn program(
        &self,
        programs: &Programs,
        build: Build,
        job: &Job,
        run: &Run,
        n: u64,
        cache: u64,
    ) -> Result<Program, String> {
        let (Some(name), Some(version)) = (&job.program, &run.version) else {
            return Err(run
                .absent
                .clone()
                .unwrap_or_else(|| "there is no such program".to_string()));
        };
        let values = [("n", n), ("plane", plane(cache))];
        let mut arguments = filled(&job.arguments, &values);
        arguments.extend(filled(&run.arguments, &values));
        if let Some(hints) = run.hints {
            arguments.extend(["--block".to_string(), (cache / hints.max(1)).to_string()]);
        }
        let program = programs.program(build, name, version, arguments);
        program.map_err(|error| error.to_string())
    }

    /// Tables of misses.
    fn counts(&self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let programs = Programs::find(self.options.programs.as_deref())?;
        let cache = self.paper_cache();
        let n = self.size(&item.job, cache);
        let references = item.rows.iter().find(|row| row.measure == Some(Measure::References));
        let recordings = self.options.rounds.unwrap_or(if self.options.full { 5 } else { 1 });
        let (mut counted, mut lines) = (Vec::new(), Vec::new());
        for (index, run) in item.runs.iter().enumerate() {
            let program = self.program(&programs, Build::Count, &item.job, run, n, cache);
            let line = program.as_ref().ok().map(Program::line);
            let what = format!("{} {}", item.name, run.of);
            let paper = references.and_then(|row| row.value(index)).unwrap_or(0.0);
            let of = |recording| {
                let elsewhere = program.clone()?.elsewhere(recording);
                let counts = Recording {
                    program: &elsewhere,
                    machine: &self.machine,
                    keeping: &self.options.keeping,
                    what: &what,
                    expected: (paper * 1000.0) as u64,
                    prefetches: false,
                    children: false,
                    watch: self.watch,
                }
                .count();
                counts.map_err(|error| error.to_string())
            };
            let counts: Vec<_> = (0..recordings).map(of).collect();
            if let (Some(reason), None) = (counts.iter().find_map(|counts| counts.as_ref().err()), &run.absent) {
                section.failures.push(format!("{}: {reason}", run.of));
            }
            counted.push(counts);
            lines.push(line);
        }
        let first: Vec<Result<Counts, String>> = counted.first().cloned().unwrap_or_default();
        for row in &item.rows {
            for (index, (column, (counts, run))) in item.columns.iter().zip(counted.iter().zip(&lines)).enumerate() {
                let paper = row.value(index);
                // Numbers that are only in the paper's text exist for some columns only.
                let (Some(measure), false) = (row.measure, row.source.is_some() && paper.is_none()) else {
                    continue;
                };
                let each = counts.iter().zip(&first);
                let ours = each.map(|(counts, first)| counts.clone()?.measure(measure, &first.clone()?));
                let unit = match measure {
                    Measure::L1Rate
                    | Measure::L2Rate
                    | Measure::ReferencesSaved
                    | Measure::L1Saved
                    | Measure::L2Saved
                    | Measure::CapacitySaved => "percent",
                    Measure::Threads | Measure::Bins => "each",
                    _ => &item.unit,
                };
                let place = self.place(item, &row.name, column, unit);
                let line = Line::of_several(place, paper, &Several(ours.collect()));
                section.lines.push(match run {
                    Some(run) => line.of_run(run),
                    None => line,
                });
            }
        }
        section.notes.push(format!(
            "counted: the programs' own references at size {n}, simulated on {} with the colors of frames those of \
             their pages (the paper's simulator worked with virtual addresses); start-up is left out; {}",
            self.paper.about.machine,
            match recordings {
                1 => "one recording (--rounds 5: medians of five, each with its data elsewhere)".to_string(),
                many => format!("medians of {many} recordings, each with its data elsewhere"),
            }
        ));
        Ok(())
    }

    /// Tables of times.
    fn times(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let programs = Programs::find(self.options.programs.as_deref())?;
        let cache = self.cache();
        let n = self.size(&item.job, cache);
        let rounds = self.options.rounds.unwrap_or(if self.options.full { 7 } else { 3 });
        let mut found: Vec<Result<usize, String>> = Vec::new();
        let mut timed = Vec::new();
        for run in &item.runs {
            let program = self.program(&programs, Build::Time, &item.job, run, n, cache);
            if let (Err(reason), None) = (&program, &run.absent) {
                section.failures.push(format!("{}: {reason}", run.of));
            }
            found.push(program.map(|program| {
                timed.push(program);
                timed.len() - 1
            }));
        }
        let timings = times::time(&timed, rounds, &item.name, self.watch)?;
        let of = |row: &str| -> Result<&Timing, String> {
            let at = item
                .runs
                .iter()
                .position(|run| run.of == row)
                .ok_or("there is no such run")?;
            let index = found[at].clone()?;
            timings.get(index).ok_or_else(|| "it was not run".to_string())
        };
        let baseline = item.baseline.as_deref().unwrap_or_default();
        for (index, row) in item.rows.iter().enumerate() {
            let ours = Several::of(of(&row.name), |timing| timing.rounds.clone());
            let run = found
                .get(index)
                .and_then(|found| found.as_ref().ok())
                .map(|&at| timed[at].line());
            let mut push = |line: Line| {
                section.lines.push(match &run {
                    Some(run) => line.of_run(run),
                    None => line,
                });
            };
            let here = ["here".to_string()];
            let columns = if row.is_ours() { &here[..] } else { &item.columns };
            for (column, name) in columns.iter().enumerate() {
                let place = self.place(item, &row.name, name, &item.unit);
                push(Line::of_several(place, row.value(column), &ours));
            }
            let baseline = row.baseline.as_deref().unwrap_or(baseline);
            if row.name == baseline {
                continue;
            }
            for (column, name) in columns.iter().enumerate() {
                let base = item.rows.iter().find(|row| row.name == baseline);
                let paper = base.and_then(|base| Some(base.value(column)? / row.value(column)?));
                // Round by round: other load on the machine in a round affected both.
                let both = of(baseline).and_then(|base| Ok((base, of(&row.name)?)));
                let speedup = Several::of(both, |(base, own)| {
                    base.rounds
                        .iter()
                        .zip(&own.rounds)
                        .map(|(base, own)| base / own)
                        .collect()
                });
                let title = format!("{name} speedup over {baseline}");
                push(Line::of_several(
                    self.place(item, &row.name, &title, "times"),
                    paper,
                    &speedup,
                ));
            }
        }
        section.notes.push(format!(
            "timed here: processor seconds at size {n}, so that the data has the paper's ratio to the cache of {} that \
             this process gets; {}; seconds are of another machine and size: compare the speedups",
            report::bytes(cache),
            rounds_in_words(rounds)
        ));
        Ok(())
    }

    /// A figure of times over block sizes.
    fn blocks(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let programs = Programs::find(self.options.programs.as_deref())?;
        let cache = self.cache();
        let rounds = self.options.rounds.unwrap_or(if self.options.full { 3 } else { 1 });
        for row in &item.rows {
            let n = self.size(&row.job, cache);
            let ready = |column: &String| -> Result<Program, ReproduceError> {
                let bytes = results::quantities::bytes(column).map_err(ReproduceError::Host)?;
                let arguments = filled(
                    &row.job.arguments,
                    &[("n", n), ("block", bytes), ("plane", plane(cache))],
                );
                let name = row.job.program.as_deref().unwrap_or_default();
                programs.program(Build::Time, name, "threaded", arguments)
            };
            let ready: Result<Vec<Program>, ReproduceError> = item.columns.iter().map(ready).collect();
            let what = format!("{} {}", item.name, row.name);
            let timed = ready.and_then(|ready| Ok((times::time(&ready, rounds, &what, self.watch)?, ready)));
            if let Err(error) = &timed {
                section.failures.push(format!("{}: {error}", row.name));
            }
            for (index, column) in item.columns.iter().enumerate() {
                let place = self.place(item, &row.name, column, &item.unit);
                section.lines.push(match &timed {
                    Ok((timings, ready)) => {
                        Line::new(place, row.value(index), Ok(timings[index].median)).of_run(&ready[index].line())
                    }
                    Err(error) => Line::new(place, row.value(index), Err(error.to_string())),
                });
            }
        }
        section.notes.push(format!(
            "timed here: processor seconds of the threaded versions; {}; the cache that this process gets holds {}, the \
             paper's 2 MB; the paper prints curves without numbers",
            rounds_in_words(rounds),
            report::bytes(cache)
        ));
        Ok(())
    }

    /// The cost of threads.
    fn overhead(&mut self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let miss = self.measured().memory_ns;
        let rounds = self.options.rounds.unwrap_or(if self.options.full { 21 } else { 7 });
        let count = item.threads.unwrap_or(1 << 20);
        (self.watch)(Step::Measuring { what: &item.name });
        let measured = overhead::measure(count, rounds)?;
        for row in &item.rows {
            let ours = match row.name.as_str() {
                "Fork" => measured.fork,
                "Run" => measured.run,
                "Total" => measured.fork + measured.run,
                _ => miss,
            };
            for (column, name) in item.columns.iter().enumerate() {
                let place = self.place(item, &row.name, name, &item.unit);
                section
                    .lines
                    .push(Line::new(place, row.value(column), Ok(ours * MICRO)));
            }
        }
        let paper = |name: &str, column| {
            item.rows
                .iter()
                .find(|row| row.name == name)
                .and_then(|row| row.value(column))
        };
        for (column, name) in item.columns.iter().enumerate() {
            let place = self.place(item, "Total in L2 misses", name, "misses");
            let then = paper("Total", column).and_then(|total| Some(total / paper("L2 Miss", column)?));
            let now = (measured.fork + measured.run) / miss;
            section.lines.push(Line::new(place, then, Ok(now)));
        }
        section.notes.push(format!(
            "measured here: {count} null threads over {} bins, on one cpu, warm; {}; an L2 miss is a load from memory",
            measured.bins,
            rounds_in_words(rounds)
        ));
        Ok(())
    }

    /// The cache that determines sizes and blocks.
    fn cache(&mut self) -> u64 {
        match self.options.cache_bytes {
            Some(bytes) => bytes,
            None => self.measured().cache_bytes.max(LEAST_CACHE),
        }
    }

    /// The machine as this process actually gets it; measured once.
    fn measured(&mut self) -> &Measured {
        let watch = self.watch;
        self.measured.get_or_insert_with(|| {
            watch(Step::Measuring { what: "this machine" });
            measured(Effort::Careful)
        })
    }

    /// The paper's cache.
    fn paper_cache(&self) -> u64 {
        self.machine.caches.iter().map(|cache| cache.bytes).max().unwrap_or(0)
    }

    /// The size of a job: the requested one, or the paper's, scaled to a cache of this many bytes.
    fn size(&self, job: &Job, cache: u64) -> u64 {
        match (self.options.n, job.size) {
            (Some(n), _) => n,
            (None, Some(size)) => size.grown(cache, self.paper_cache()),
            (None, None) => 0,
        }
    }
}

/// Bytes along one side of the cube that N-body's places are scaled to: four blocks of a third of the cache. The paper
/// says only "the dimensions of the scheduling plane" (section 4.4); its 46 bins are more than three blocks a side
/// produce.
fn plane(cache: u64) -> u64 {
    4 * (cache / 3)
}

pub(crate) fn rounds_in_words(rounds: usize) -> String {
    match rounds {
        1 => "one round".to_string(),
        rounds => format!("the median of {rounds} rounds, in turn"),
    }
}
