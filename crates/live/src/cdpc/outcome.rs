//! What came of it: counted when the program ends, by a look at the frames.

use std::collections::BTreeMap;
use std::time::Duration;

use policy::cdpc::NamedChoice;

use super::{Coloring, fit};

/// What was done at one time, or at several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How often pages were colored.
    pub times: u64,
    /// Pages that were to get a color; those of them that had it already, and those that got it.
    pub pages: u64,
    pub kept: u64,
    pub colored: u64,
    /// Of `colored`, those whose frames came from the daemon.
    pub supplied: u64,
    /// All of it: computing the hints, finding frames, placing them.
    pub duration: Duration,
    /// Of that, finding frames and placing them.
    pub placing: Duration,
}

/// How the hints of a program fared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Loops that count, how often known ones were described again, and how many were not understood or too many.
    pub loops: usize,
    pub again: u64,
    pub refused: u64,
    pub arrays: usize,
    /// The most threads that a loop has.
    pub threads: u32,
    /// Pages with a preferred color. The five numbers that follow add up to it.
    pub pages: usize,
    /// Pages that lie in a frame of their color now.
    pub honoured: usize,
    /// Pages in frames of other colors.
    pub elsewhere: usize,
    /// Pages without a frame: given back since.
    pub absent: usize,
    /// Pages of whose frames nothing is known.
    pub unknown: usize,
    /// Pages where nothing is mapped any more.
    pub out_of_sight: usize,
    /// Pages that have the color of the fewest, and of the most.
    pub fewest: usize,
    pub most: usize,
    /// Why pages did not get their color, and how many: the most frequent first.
    pub left: Vec<(String, usize)>,
    pub start: Moment,
    pub later: Moment,
    /// What was chosen for sets of arrays that loops use together, and why, when all loops were last seen together; empty where
    /// nothing was weighed.
    pub weighed: Vec<NamedChoice>,
    /// What moves pages: a line each.
    pub means: String,
    pub notes: Vec<String>,
}

impl Coloring {
    /// How things stand; with a look at all pages if `look`, else those numbers are 0.
    pub fn outcome(&mut self, look: bool) -> Outcome {
        let mut by_color = vec![0usize; self.colors.count() as usize];
        for &color in self.preferred.values() {
            if let Some(pages) = by_color.get_mut(usize::from(color)) {
                *pages += 1;
            }
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for why in self.left.values() {
            *reasons.entry(why).or_default() += 1;
        }
        let mut left: Vec<(String, usize)> = reasons
            .into_iter()
            .map(|(why, pages)| (why.to_string(), pages))
            .collect();
        left.extend(
            self.passed_over
                .iter()
                .map(|(why, &pages)| (why.to_string(), pages as usize)),
        );
        left.sort_by_key(|(_, pages)| std::cmp::Reverse(*pages));
        let mut outcome = Outcome {
            loops: self.program.loops().len(),
            again: self.again,
            refused: self.refused,
            arrays: self.program.arrays(),
            threads: self
                .program
                .loops()
                .iter()
                .map(|known| known.threads)
                .max()
                .unwrap_or(0),
            pages: self.preferred.len(),
            fewest: by_color.iter().copied().min().unwrap_or(0),
            most: by_color.iter().copied().max().unwrap_or(0),
            left,
            start: self.start.clone(),
            later: self.later.clone(),
            weighed: self.weighed.clone(),
            means: self.engine.means().to_string(),
            notes: self.notes.clone(),
            ..Outcome::default()
        };
        if look {
            self.look(&mut outcome);
        }
        outcome
    }

    fn look(&mut self, outcome: &mut Outcome) {
        let preferred: Vec<(u64, u16)> = self.preferred.iter().map(|(&page, &color)| (page, color)).collect();
        outcome.out_of_sight = preferred.len();
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
                    outcome.out_of_sight -= census.pages;
                    outcome.honoured += census.right;
                    outcome.elsewhere += census.wrong;
                    outcome.absent += census.absent;
                    outcome.unknown += census.unknown;
                }
                Err(error) => outcome.notes.push(format!("pages could not be looked at: {error}")),
            }
        }
        outcome.notes.truncate(super::MOST_NOTES);
    }
}
