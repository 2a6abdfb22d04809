//! Bars beside each other: combined execution times, and the gain of one over another (figures 6 to 9, table 2).

use super::cell::Simulated;
use super::checks;
use super::{Gain, Grid, View, breakdown, draw, rating};
use crate::error::ReproduceError;
use crate::line::{Line, Ours};
use crate::paper::Item;
use crate::programs::Programs;
use crate::reproduce::{Reproduction, Section};

/// One bar of one cell, or why it is missing.
pub struct Drawn {
    pub program: String,
    pub cpus: u32,
    /// By their positions in the grid.
    pub machine: usize,
    pub bar: usize,
    pub simulated: Result<Simulated, String>,
    /// The command that was run for it.
    pub run: String,
}

/// A build of a program, its result on each machine under each policy, and the command that was run.
type Built<'g> = (&'g str, Result<Vec<Vec<Simulated>>, String>, String);

/// All requested bars of an item.
pub struct Drawings<'g> {
    pub grid: &'g Grid,
    pub drawn: Vec<Drawn>,
}

impl Drawings<'_> {
    pub fn find(&self, program: &str, cpus: u32, machine: usize, bar: &str) -> Option<&Drawn> {
        self.drawn.iter().find(|drawn| {
            drawn.program == program
                && drawn.cpus == cpus
                && drawn.machine == machine
                && self.grid.bars[drawn.bar].name == bar
        })
    }

    /// How many times faster one bar is than another; none if either was not requested.
    pub fn gain(&self, program: &str, cpus: u32, machine: usize, of: &str, over: &str) -> Option<Ours> {
        let wall = |bar| {
            let drawn = self.find(program, cpus, machine, bar)?;
            Some(drawn.simulated.as_ref().map(|simulated| simulated.wall as f64))
        };
        Some(match (wall(of)?, wall(over)?) {
            (Ok(of), Ok(over)) => Ok(over / of),
            (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
        })
    }

    /// The cells, program by program, as they were run.
    pub fn cells(&self) -> Vec<(&str, u32)> {
        let mut cells: Vec<(&str, u32)> = Vec::new();
        for drawn in &self.drawn {
            let cell = (drawn.program.as_str(), drawn.cpus);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        cells
    }
}

impl Reproduction<'_> {
    pub(crate) fn bars(&self, programs: &Programs, item: &Item, grid: &Grid, section: &mut Section) {
        let mut drawn = Vec::new();
        for (program, cpus) in self.places(grid) {
            // Bars of one build come from one recording.
            let mut built: Vec<Built> = Vec::new();
            for version in grid.bars.iter().map(|bar| bar.version.as_str()) {
                if built.iter().any(|(name, ..)| *name == version) {
                    continue;
                }
                let team = self.team(programs, &program, version, cpus);
                let run = team.as_ref().map(|team| team.line()).unwrap_or_default();
                let cell = team.and_then(|team| self.cell(item, grid, &team, cpus, version == "prefetch"));
                let cell = cell.map_err(|error: ReproduceError| error.to_string());
                if let Err(reason) = &cell {
                    section
                        .failures
                        .push(format!("{program}-{version}, {cpus} cpus: {reason}"));
                }
                built.push((version, cell, run));
            }
            for machine in 0..grid.machines.len() {
                for (bar, about) in grid.bars.iter().enumerate() {
                    let Some((_, cell, run)) = built.iter().find(|(name, ..)| *name == about.version) else {
                        continue;
                    };
                    let of_policy = |cell: &Vec<Vec<Simulated>>| {
                        let all = cell.get(machine).into_iter().flatten();
                        let found = all
                            .into_iter()
                            .find(|simulated| simulated.policy == about.policy.to_string());
                        found
                            .cloned()
                            .ok_or_else(|| format!("{} was not simulated", about.policy))
                    };
                    drawn.push(Drawn {
                        program: program.clone(),
                        cpus,
                        machine,
                        bar,
                        simulated: cell.as_ref().map_err(Clone::clone).and_then(of_policy),
                        run: run.clone(),
                    });
                }
            }
        }
        let drawings = Drawings { grid, drawn };
        match grid.view {
            View::Breakdown => breakdown::lines(self, item, &drawings, section),
            _ => self.gains(item, &drawings, section),
        }
        checks::notes(item, &drawings, section);
        section.notes.push(described(grid, self.options.full));
        section.drawing = draw::bars(item, &drawings);
    }

    /// Times of all bars, then their gains.
    fn gains(&self, item: &Item, drawings: &Drawings, section: &mut Section) {
        let grid = drawings.grid;
        for (program, cpus) in drawings.cells() {
            let row = format!("{program}, {}", cpus_in_words(cpus));
            for (machine, about) in grid.machines.iter().enumerate() {
                let column = |what: String| match grid.machines.len() {
                    1 => what,
                    _ => format!("{}: {what}", about.name),
                };
                for bar in &grid.bars {
                    let Some(drawn) = drawings.find(program, cpus, machine, &bar.name) else {
                        continue;
                    };
                    let ms = drawn.simulated.as_ref().map(|simulated| simulated.total as f64 / 1e6);
                    let title = column(bar.name.clone());
                    let place = self.place(item, &row, &title, &item.unit);
                    section
                        .lines
                        .push(Line::new(place, None, ms.map_err(Clone::clone)).of_run(&drawn.run));
                    if let (true, Some(alone)) = (grid.speedups, drawings.find(program, 1, machine, &bar.name))
                        && cpus > 1
                    {
                        let ours = match (&alone.simulated, &drawn.simulated) {
                            (Ok(alone), Ok(simulated)) => Ok(alone.wall as f64 / simulated.wall as f64),
                            (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
                        };
                        let paper = printed(item, program, &bar.name, 1)
                            .zip(printed(item, program, &bar.name, cpus))
                            .map(|(alone, here)| alone / here);
                        let title = column(format!("{}, speedup over 1 cpu", bar.name));
                        let place = self.place(item, &row, &title, "times");
                        section.lines.push(Line::new(place, paper, ours).of_run(&drawn.run));
                    }
                }
                for gain in &grid.gains {
                    let Some(ours) = drawings.gain(program, cpus, machine, &gain.of, &gain.over) else {
                        continue;
                    };
                    let title = column(format!("{} over {}", gain.of, gain.over));
                    let place = self.place(item, &row, &title, "times");
                    let paper = papers(item, gain, program, cpus);
                    section.lines.push(Line::new(place, paper, ours));
                }
            }
        }
        self.ratings(item, drawings, section);
    }

    /// The gains of the rating of all programs, with each number of cpus.
    fn ratings(&self, item: &Item, drawings: &Drawings, section: &mut Section) {
        for &cpus in &drawings.grid.cpus {
            let row = format!("{}, {}", rating::ROW, cpus_in_words(cpus));
            for gain in &drawings.grid.gains {
                let Some(ours) = rating::gain(item, drawings, gain, cpus, 0) else {
                    continue;
                };
                let column = format!("{} over {}", gain.of, gain.over);
                let place = self.place(item, &row, &column, "times");
                let paper = rating::papers_gain(item, gain, cpus);
                section.lines.push(Line::new(place, paper, ours));
            }
        }
    }
}

/// The paper's value of a gain: from its text, or from the times of its table.
pub fn papers(item: &Item, gain: &Gain, program: &str, cpus: u32) -> Option<f64> {
    let said = gain
        .paper
        .iter()
        .find(|said| said.program == program && said.cpus == cpus);
    said.map(|said| said.times).or_else(|| {
        let over = printed(item, program, &gain.over, cpus)?;
        Some(over / printed(item, program, &gain.of, cpus)?)
    })
}

/// The paper's time of a program; its columns are called by bar and processors, `CDPC 8P`.
pub fn printed(item: &Item, program: &str, bar: &str, cpus: u32) -> Option<f64> {
    let column = format!("{bar} {cpus}P");
    let column = item.columns.iter().position(|name| *name == column)?;
    item.rows.iter().find(|row| row.name == program)?.value(column)
}

pub fn cpus_in_words(cpus: u32) -> String {
    match cpus {
        1 => "1 cpu".to_string(),
        cpus => format!("{cpus} cpus"),
    }
}

fn described(grid: &Grid, full: bool) -> String {
    let machines: Vec<String> = grid
        .machines
        .iter()
        .map(|variant| match variant.is_changed() {
            false => variant.preset.clone(),
            true => format!("{} ({})", variant.preset, variant.name),
        })
        .collect();
    let mut text = format!(
        "simulated on {}: the second time step of each program, caches and page table as the first one left them; times are of all \
         cpus together",
        machines.join(" and ")
    );
    if !full {
        text += "; some programs and numbers of cpus (--full: all, --program and --cpus: others)";
    }
    text
}
