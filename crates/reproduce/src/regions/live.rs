//! Figure 9 on this machine: `memlat` alone, and with its thread following its regions, by each available means to
//! close pages.

use std::fs::File;
use std::process::{Command, Stdio};

use live::following::{self, Asked, Closing};
use policy::Name;
use results::{LiveFollowing, RegionsVerdict};

use crate::error::ReproduceError;
use crate::line::{Line, Ours};
use crate::paper::Item;
use crate::programs::Programs;
use crate::reproduce::{Reproduction, Section};
use crate::times::median;
use crate::watch::Step;

/// One region, in percent of a cache, and reads at a time, as powers of two. Two regions fit into one cache, or do not, and fit into two.
const CELLS: [(u64, u32); 5] = [(40, 16), (70, 14), (70, 16), (70, 18), (90, 16)];
/// Reads of a run: ten seconds to a minute, partly spent on finding the regions.
const READS: u64 = 1 << 31;

/// Runs at one size and stay.
#[derive(Default)]
struct Cell {
    alone: Vec<Read>,
    /// By each means.
    by: Vec<Followed>,
}

/// Nanoseconds a read: of a run, and of its last quarter, by which time regions are found if at all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Read {
    all: f64,
    last: f64,
}

/// All of a run, or its last quarter.
type Part = fn(&Read) -> f64;

/// Runs in which pages were closed by one means.
#[derive(Clone, Default)]
struct Followed {
    reads: Vec<Read>,
    moves: u64,
    /// Runs in which threads were following regions at the end.
    found: usize,
    verdict: String,
}

impl Followed {
    fn in_words(&self) -> String {
        let runs = self.reads.len();
        format!(
            "{} moves in a run; {} of {runs} runs followed to the end; the last one: {}",
            self.moves / runs.max(1) as u64,
            self.found,
            self.verdict
        )
    }

    fn add(&mut self, read: Read, report: &LiveFollowing) {
        self.reads.push(read);
        self.moves += report.moves;
        self.verdict = verdict(report);
        let process = report.regions.as_ref().and_then(|regions| regions.processes.first());
        self.found += usize::from(process.is_some_and(|process| process.verdict == RegionsVerdict::Pays));
    }
}

impl Cell {
    /// The gain in percent of following by a means in a part of the runs, and the smallest and the largest of the
    /// rounds.
    fn gain(&self, by: &Followed, part: Part) -> Option<(f64, f64, f64)> {
        let mut gains: Vec<f64> = self
            .alone
            .iter()
            .zip(&by.reads)
            .map(|(alone, followed)| (part(alone) / part(followed) - 1.0) * 100.0)
            .collect();
        let middle = median(&mut gains)?;
        Some((middle, gains[0], gains[gains.len() - 1]))
    }
}

impl Reproduction<'_> {
    /// The item on this machine, beside the paper's numbers of a move.
    pub(super) fn live_memlat(&self, item: &Item, section: &mut Section) -> Result<(), ReproduceError> {
        let host = |error: &dyn std::fmt::Display| ReproduceError::Host(error.to_string());
        let domains = sys::cache_domains::usable().map_err(|error| host(&error))?;
        let cache = domains.iter().filter_map(|domain| domain.bytes).min();
        let cache =
            cache.ok_or_else(|| ReproduceError::Host("the size of this machine's caches is not known".to_string()))?;
        let closings = closings();
        let moves = closings.iter().map(|(closing, _)| {
            let found = following::move_ns(Command::new("true"), &domains, Some(*closing), true);
            found.map_err(|error| host(&error))
        });
        let moves = moves.collect::<Result<Vec<u64>, _>>()?;
        let policy: Name = "regions".parse().map_err(|error: policy::PolicyError| host(&error))?;
        let asked = |closing| Asked {
            policy: policy.clone(),
            settings: Vec::new(),
            domains: domains.clone(),
            closing: Some(closing),
            awake: true,
            bounds: None,
        };
        let program = Programs::find(self.options.programs.as_deref())?.bare("memlat")?;
        let rounds = self.options.rounds.unwrap_or(3);
        let runs = CELLS.len() * (1 + closings.len()) * rounds;
        let mut run = 0;
        let mut cells: Vec<(u64, u32, Cell)> = Vec::new();
        for (size, stay) in CELLS {
            let cell = Cell {
                alone: Vec::new(),
                by: vec![Followed::default(); closings.len()],
            };
            cells.push((cache * size / 100 / 4096 * 4096, stay, cell));
        }
        // Each round goes through all, so that other load on the machine affects all alike.
        for round in 0..rounds {
            for (bytes, stay, cell) in &mut cells {
                let mut ways: Vec<Option<usize>> = std::iter::once(None).chain((0..closings.len()).map(Some)).collect();
                if round % 2 == 1 {
                    ways.reverse();
                }
                for way in ways {
                    (self.watch)(Step::Timing {
                        what: "figure9 live",
                        run,
                        runs,
                    });
                    run += 1;
                    let mut command = Command::new(&program);
                    command.args([
                        bytes.to_string(),
                        "2".to_string(),
                        (1u64 << *stay).to_string(),
                        READS.to_string(),
                        (READS / 4).to_string(),
                    ]);
                    let (read, report) = reads(command, way.map(|by| asked(closings[by].0)).as_ref())?;
                    match (way, report) {
                        (Some(by), Some(report)) => {
                            cell.by[by].add(read, &report);
                        }
                        _ => cell.alone.push(read),
                    }
                }
            }
        }
        for ((_, means), move_ns) in closings.iter().zip(&moves) {
            for (name, paper_us) in [("a move, Clovertown", 15.86), ("a move, Westmere", 6.357)] {
                let row = format!("here, by {means}");
                let place = self.place(item, &row, name, "us");
                let ours = Ok(*move_ns as f64 / 1e3);
                section.lines.push(Line::new(place, Some(paper_us), ours));
            }
        }
        for (bytes, stay, cell) in &cells {
            for ((_, means), by) in closings.iter().zip(&cell.by) {
                let row = format!("2 x {:.2} MB, by {means}", *bytes as f64 / f64::from(1 << 20));
                let parts: [(&str, Part); 2] = [("reads", |read| read.all), ("reads, last quarter", |read| read.last)];
                for (name, part) in parts {
                    let column = format!("2^{stay} {name}");
                    let gain = cell.gain(by, part);
                    let ours: Ours = gain
                        .map(|(gain, ..)| gain)
                        .ok_or_else(|| "no round was run".to_string());
                    let line = Line::new(self.place(item, &row, &column, "percent"), None, ours);
                    let (_, least, most) = gain.unwrap_or_default();
                    let middle = |reads: &[Read]| {
                        let mut reads: Vec<f64> = reads.iter().map(part).collect();
                        median(&mut reads).unwrap_or_default()
                    };
                    let (alone, followed) = (middle(&cell.alone), middle(&by.reads));
                    let said = by.in_words();
                    section.lines.push(line.of_run(&format!(
                        "{least:.1} to {most:.1}; {alone:.1} ns a read alone, {followed:.1} followed; {said}"
                    )));
                }
            }
        }
        section.notes.push(format!(
            "live: `memlat` with two regions on this machine ({} of {} KB), by itself and under `domicile run --policy regions`, medians of {rounds} \
             rounds in turns of {} million reads; percent that the whole run gains, finding the regions included, and the last quarter of its reads; the policy's own \
             conditions, by the rule of what a move takes; cpus of both caches are kept from sleeping while pages are closed",
            domains.len(),
            cache >> 10,
            READS / 1_000_000,
        ));
        Ok(())
    }
}

/// The means to close pages here, in words.
fn closings() -> Vec<(Closing, &'static str)> {
    let mut closings = vec![(Closing::Protection, "mprotect")];
    if sys::protection_keys::try_key().is_ok() {
        closings.insert(0, (Closing::Keys, "keys"));
    }
    closings
}

/// The state of the regions at the end of a run.
fn verdict(report: &LiveFollowing) -> String {
    let process = report
        .regions
        .as_ref()
        .and_then(|regions| regions.processes.first().map(|process| process.verdict));
    let verdict = process.and_then(|verdict| serde_json::to_value(verdict).ok());
    let verdict = verdict
        .and_then(|verdict| Some(verdict.as_str()?.to_string()))
        .unwrap_or_default();
    match &report.stepped_aside {
        Some(why) => format!("{verdict}, left alone: {why}"),
        None => verdict,
    }
}

/// As `memlat` prints them.
fn reads(mut command: Command, asked: Option<&Asked>) -> Result<(Read, Option<LiveFollowing>), ReproduceError> {
    let line = format!("{command:?}");
    let failed = |what: String| ReproduceError::Program {
        line: line.clone(),
        what,
    };
    let file = tempfile::NamedTempFile::new().map_err(|error| failed(format!("no temporary file: {error}")))?;
    let out = File::create(file.path()).map_err(|error| failed(error.to_string()))?;
    command.stdin(Stdio::null()).stdout(out);
    let report = match asked {
        Some(asked) => Some(following::run(command, asked, |_| ()).map_err(|error| failed(error.to_string()))?),
        None => {
            command.status().map_err(|error| failed(error.to_string()))?;
            None
        }
    };
    let text = std::fs::read_to_string(file.path()).map_err(|error| failed(error.to_string()))?;
    let mut numbers = text
        .split("; ")
        .map(|part| part.split_whitespace().next()?.parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(all), Some(last)) => Ok((Read { all, last }, report)),
        _ => Err(failed(format!("it printed `{}`", text.trim()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_those_of_pairs_of_runs() {
        let read = |all: f64| Read { all, last: all / 2.0 };
        let cell = Cell {
            alone: [20.0, 30.0, 10.0].map(read).to_vec(),
            by: Vec::new(),
        };
        let by = Followed {
            reads: vec![Read { all: 10.0, last: 10.0 }; 3],
            ..Followed::default()
        };
        assert_eq!(cell.gain(&by, |read| read.all), Some((100.0, 0.0, 200.0)));
        assert_eq!(cell.gain(&by, |read| read.last), Some((0.0, -50.0, 50.0)));
        assert_eq!(cell.gain(&Followed::default(), |read| read.all), None);
    }

    #[test]
    fn a_program_that_prints_no_number_is_refused() {
        let mut echo = Command::new("echo");
        echo.arg("12.5 ns a read, sum 3; 10 ns a read of the last 4");
        assert_eq!(reads(echo, None).unwrap().0, Read { all: 12.5, last: 10.0 });
        let error = reads(Command::new("true"), None).unwrap_err().to_string();
        assert!(error.contains("it printed ``"), "{error}");
    }
}
