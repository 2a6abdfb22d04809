//! The gain of a whole suite's rating (Bugnion96, section 7 and table 2).
//!
//! A SPEC rating is the geometric mean, over the programs, of a reference time divided by the program's. In the ratio
//! of two ratings the reference times cancel, so it is the geometric mean of the programs' gains. Programs that are not
//! reproduced have the paper's times.

use super::bars::{Drawings, papers, printed};
use super::{Gain, Grid};
use crate::line::Ours;
use crate::paper::Item;

/// The row of the paper's ratings.
pub const ROW: &str = "SPEC95fp";

/// The ratio of two bars' ratings; none if the paper has none, or not every program was requested.
pub fn gain(item: &Item, drawings: &Drawings, gain: &Gain, cpus: u32, machine: usize) -> Option<Ours> {
    item.rows.iter().find(|row| row.name == ROW)?;
    let programs = item.rows.iter().filter(|row| row.name != ROW);
    let each = programs.map(|row| match drawings.grid.programs.contains(&row.name) {
        true => drawings.gain(&row.name, cpus, machine, &gain.of, &gain.over),
        false => papers(item, gain, &row.name, cpus).map(Ok),
    });
    let each: Vec<Ours> = each.collect::<Option<_>>()?;
    let logarithms = each.iter().map(|gain| gain.as_ref().map(|gain| gain.ln()));
    let sum: Result<f64, &String> = logarithms.sum();
    Some(match sum {
        Ok(sum) => Ok((sum / each.len() as f64).exp()),
        Err(reason) => Err(reason.clone()),
    })
}

/// How many programs have the paper's times, in words.
pub fn of_the_paper(item: &Item, grid: &Grid) -> String {
    let programs: Vec<_> = item.rows.iter().filter(|row| row.name != ROW).collect();
    let theirs = programs.iter().filter(|row| !grid.programs.contains(&row.name));
    format!(
        "{} of the {} programs have the paper's times",
        theirs.count(),
        programs.len()
    )
}

/// The same for the paper's ratings; a larger one is better.
pub fn papers_gain(item: &Item, gain: &Gain, cpus: u32) -> Option<f64> {
    Some(printed(item, ROW, &gain.of, cpus)? / printed(item, ROW, &gain.over, cpus)?)
}
