//! The loops of a program, each once.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use policy::cdpc::{Loop, Malformed};

use crate::PAGE_BYTES;

/// Loops, and summaries of all of them, that are kept.
const MOST_LOOPS: usize = 4096;
const MOST_SUMMARIES: usize = 1 << 16;

/// What a loop was to the collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was there already.
    Known,
    /// It was not. `pages`: of arrays that no loop had before.
    New { pages: Vec<Range<u64>> },
    /// It is not kept.
    TooMany,
}

#[derive(Debug, Default)]
pub struct Collection {
    loops: Vec<Loop>,
    summaries: usize,
    /// By hash.
    known: HashSet<u64>,
    /// Where in `loops` the loop of this place and these arrays is.
    places: HashMap<u64, usize>,
    /// The most bytes of each array, by start.
    arrays: HashMap<u64, u64>,
    /// How often a loop came that was known, and how many were not kept or not understood.
    pub again: u64,
    pub refused: u64,
}

impl Collection {
    pub fn all(&self) -> &[Loop] {
        &self.loops
    }

    /// Arrays, by start.
    pub fn arrays(&self) -> usize {
        self.arrays.len()
    }

    pub fn knows(&self, told: &Loop) -> bool {
        self.known.contains(&hash(told))
    }

    pub fn add(&mut self, told: Loop) -> Heard {
        if !self.known.insert(hash(&told)) {
            self.again += 1;
            return Heard::Known;
        }
        if self.loops.len() >= MOST_LOOPS || self.summaries + told.summaries.len() > MOST_SUMMARIES {
            self.refused += 1;
            return Heard::TooMany;
        }
        let mut pages = Vec::new();
        for summary in &told.summaries {
            // Of one that is longer than was known, the rest is new.
            let known = self.arrays.entry(summary.start).or_insert(0);
            if summary.bytes > *known {
                let page = PAGE_BYTES as u64;
                let from = match *known {
                    0 => summary.start / page,
                    known => (summary.start + known).div_ceil(page),
                };
                *known = summary.bytes;
                pages.push(from..(summary.start + summary.bytes).div_ceil(page));
            }
        }
        let place = place(&told);
        match self.places.get(&place) {
            // A team of another size deals the same work anew: what was said of the old one is over.
            Some(&at) if self.loops[at].threads != told.threads => {
                // Should the old size come back, it is new again.
                self.known.remove(&hash(&self.loops[at]));
                self.summaries = self.summaries + told.summaries.len() - self.loops[at].summaries.len();
                self.loops[at] = told;
            }
            _ => {
                self.summaries += told.summaries.len();
                self.places.insert(place, self.loops.len());
                self.loops.push(told);
            }
        }
        Heard::New { pages }
    }
}

impl Collection {
    /// Drops the loops that a check fails for; why it did.
    pub fn retain<T>(&mut self, check: impl Fn(&Loop) -> Result<T, Malformed>) -> Vec<Malformed> {
        let mut wrong = Vec::new();
        self.loops
            .retain(|told| check(told).map_err(|why| wrong.push(why)).is_ok());
        self.refused += wrong.len() as u64;
        // Numbers have changed.
        let keys = self.loops.iter().enumerate().map(|(at, told)| (place(told), at));
        self.places = keys.collect();
        self.summaries = self.loops.iter().map(|told| told.summaries.len()).sum();
        wrong
    }
}

/// Which loop it is, whatever its bounds and its team.
fn place(told: &Loop) -> u64 {
    let arrays: Vec<u64> = told.summaries.iter().map(|summary| summary.start).collect();
    hash(&(&told.place, arrays))
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::tests::a_loop;
    use super::*;

    fn heard(pages: Range<u64>) -> Heard {
        Heard::New { pages: vec![pages] }
    }

    #[test]
    fn a_loop_is_there_once_and_an_array_new_once() {
        let mut loops = Collection::default();
        let first = a_loop("f", &[(0x1800, 0x1000)], 2);
        assert_eq!(loops.add(first.clone()), heard(1..3));
        assert!(loops.knows(&first));
        assert_eq!(loops.add(first.clone()), Heard::Known);
        let second = a_loop("g", &[(0x1800, 0x1000), (0x8000, 1)], 2);
        assert_eq!(loops.add(second), heard(8..9));
        assert_eq!((loops.all().len(), loops.arrays(), loops.again), (2, 2, 1));
        let longer = a_loop("h", &[(0x1800, 0x3000)], 2);
        assert_eq!(loops.add(longer), heard(3..5));
        assert_eq!(loops.arrays(), 2);
    }

    #[test]
    fn a_team_of_another_size_takes_the_place_of_the_old_one() {
        let mut loops = Collection::default();
        for threads in [2, 4, 2] {
            let heard = loops.add(a_loop("f", &[(0x1000, 0x1000)], threads));
            assert!(matches!(heard, Heard::New { .. }));
            assert_eq!(loops.all().len(), 1);
            assert_eq!(loops.all()[0].threads, threads);
        }
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut loops = Collection::default();
        for number in 0..MOST_LOOPS + 10 {
            loops.add(a_loop(&number.to_string(), &[(0x1000, 1)], 1));
        }
        assert_eq!((loops.all().len(), loops.refused), (MOST_LOOPS, 10));
    }
}
