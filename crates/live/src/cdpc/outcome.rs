//! The outcome, counted when the program ends by a look at the frames.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use policy::cdpc::NamedChoice;
use results::run::{Brought, CdpcReport, Chosen, LeftOut, When};

use super::{Coloring, fit};

/// The work done at one time, or at several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How often pages were colored.
    pub times: u64,
    /// Pages that were to get a color; those of them that had it already, and those that got it.
    pub pages: u64,
    pub kept: u64,
    pub colored: u64,
    /// The pages of `colored` whose frames came from the daemon.
    pub supplied: u64,
    /// All of it: computing the hints, finding frames, placing them.
    pub duration: Duration,
    /// The part of it spent on finding frames and placing them.
    pub placing: Duration,
}

/// The outcome of a program's hints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// It leaves out a fact unknown here: if blocks of the heap are kept apart.
    pub report: CdpcReport,
    /// The means that move pages: a line each.
    pub means: String,
    pub notes: Vec<String>,
}

/// Arrays of one set that are named.
const MOST_NAMES: usize = 8;
/// Sets of arrays that are reported.
const MOST_SETS: usize = 64;

impl Coloring {
    /// The outcome so far. If `look`, it counts all pages; else those numbers are 0.
    pub fn outcome(&mut self, look: bool) -> Outcome {
        let mut by_color = vec![0u64; self.colors.count() as usize];
        for &color in self.preferred.values() {
            if let Some(pages) = by_color.get_mut(usize::from(color)) {
                *pages += 1;
            }
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for why in self.left.values() {
            *reasons.entry(why).or_default() += 1;
        }
        let passed_over = self.passed_over.iter().map(|(why, &pages)| (*why, pages));
        let left_out = reasons.into_iter().chain(passed_over).map(|(why, pages)| LeftOut {
            why: why.to_string(),
            pages,
        });
        let mut left_out: Vec<LeftOut> = left_out.collect();
        left_out.sort_by_key(|left| Reverse(left.pages));
        let loops = self.program.loops();
        let mut outcome = Outcome {
            report: CdpcReport {
                policy: self.policy.to_string(),
                loops: loops.len() as u64,
                again: self.again,
                refused: self.refused,
                arrays: self.program.arrays() as u64,
                threads: loops.iter().map(|known| u64::from(known.threads)).max().unwrap_or(0),
                pages: self.preferred.len() as u64,
                fewest: by_color.iter().copied().min().unwrap_or(0),
                most: by_color.iter().copied().max().unwrap_or(0),
                left_out,
                weighed: self.weighed.iter().take(MOST_SETS).map(chosen).collect(),
                start: when(&self.start),
                later: when(&self.later),
                ..CdpcReport::default()
            },
            means: self.engine.means().to_string(),
            notes: self.notes.clone(),
        };
        if look {
            self.look(&mut outcome);
        }
        outcome
    }

    fn look(&mut self, outcome: &mut Outcome) {
        let preferred: Vec<(u64, u16)> = self.preferred.iter().map(|(&page, &color)| (page, color)).collect();
        outcome.report.out_of_sight = preferred.len() as u64;
        let fit = match fit::mapped(&preferred) {
            Ok(fit) => fit,
            Err(error) => {
                outcome
                    .notes
                    .push(format!("the pages could not be looked at: /proc/self/maps: {error}"));
                return;
            }
        };
        for run in fit.runs {
            match self.engine.census_of(run.pages, &run.wish) {
                Ok(census) => {
                    let report = &mut outcome.report;
                    report.out_of_sight -= census.pages as u64;
                    report.honoured += census.right as u64;
                    report.elsewhere += census.wrong as u64;
                    report.absent += census.absent as u64;
                    report.unknown += census.unknown as u64;
                }
                Err(error) => outcome.notes.push(format!("pages could not be looked at: {error}")),
            }
        }
        outcome.notes.truncate(super::MOST_NOTES);
    }
}

fn chosen(set: &NamedChoice) -> Chosen {
    let brought = |brought: &policy::cdpc::Brought| Brought {
        policy: brought.by.policy().to_string(),
        blocks: brought.blocks,
    };
    Chosen {
        arrays_in_all: set.arrays.len() as u64,
        arrays: set.arrays.iter().take(MOST_NAMES).cloned().collect(),
        pages: set.pages,
        policy: set.choice.policy().to_string(),
        brought: set.brought.iter().map(brought).collect(),
    }
}

fn when(moment: &Moment) -> When {
    When {
        times: moment.times,
        pages: moment.pages,
        kept: moment.kept,
        colored: moment.colored,
        supplied: moment.supplied,
        us: moment.duration.as_micros() as u64,
        placing_us: moment.placing.as_micros() as u64,
    }
}
