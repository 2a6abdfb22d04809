//! Misses and stall by line of the source: by the instruction that made an access, and the structure that it went to.
//!
//! A run counts by place in the code ([`Lines::row`]), which is one look into a table if an instruction goes on with
//! the same structure. The names of the places are looked up at the end ([`Lines::ranked`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use results::{LineStructure, Misses, SourceLine};

use super::code::{Code, Spot};
use super::rows::{Row, Rows};
use crate::clock::{Units, whole_ns};
use crate::structures::{StructureId, Structures};

/// An instruction of a process, and the structure that it accessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    space: u32,
    site: u32,
    structure: StructureId,
}

pub struct Lines {
    places: Vec<Place>,
    numbers: HashMap<Place, u32>,
    /// By site: the row of its last access.
    last: Vec<u32>,
    pub rows: Rows,
}

/// No row yet.
const NONE: u32 = u32::MAX;
/// Structures of a line that are named.
const MOST_STRUCTURES: usize = 4;

impl Lines {
    pub fn new(kinds: usize) -> Lines {
        Lines {
            places: Vec::new(),
            numbers: HashMap::new(),
            last: Vec::new(),
            rows: Rows::new(kinds),
        }
    }

    /// Counts begin here.
    pub fn restart(&mut self) {
        self.rows.restart();
    }

    /// The row of an access.
    #[inline]
    pub fn row(&mut self, space: u32, site: u32, structure: StructureId) -> u32 {
        let place = Place { space, site, structure };
        let at = site as usize;
        if self.last.len() <= at {
            self.last.resize(at + 1, NONE);
        }
        let last = self.last[at];
        if self.places.get(last as usize) == Some(&place) {
            return last;
        }
        let row = *self.numbers.entry(place).or_insert_with(|| {
            self.places.push(place);
            self.places.len() as u32 - 1
        });
        self.last[at] = row;
        row
    }

    /// Each row: process, instruction and structure.
    pub fn places(&self) -> impl Iterator<Item = (u32, (u32, u32, StructureId))> + '_ {
        let places = self.places.iter().enumerate();
        places.map(|(row, place)| (row as u32, (place.space, place.site, place.structure)))
    }

    /// The lines with the largest stall, up to the given number.
    pub fn ranked(
        &self,
        most: usize,
        code: &Code,
        structures: &Structures,
        caches: impl Fn(Row) -> Vec<Misses>,
    ) -> Vec<SourceLine> {
        let mut spots: Vec<Spot> = Vec::new();
        let mut numbers: HashMap<Spot, u32> = HashMap::new();
        let mut sums = Rows::new(self.rows.kinds());
        let mut stalls: Vec<HashMap<StructureId, Units>> = Vec::new();
        for (number, row) in self.rows.ranked() {
            let place = self.places[number as usize];
            let line = *numbers
                .entry(code.spot(place.space, place.site))
                .or_insert_with_key(|spot| {
                    spots.push(spot.clone());
                    stalls.push(HashMap::new());
                    spots.len() as u32 - 1
                });
            sums.add(line, row);
            *stalls[line as usize].entry(place.structure).or_default() += row.stall();
        }
        let line = |(number, row): (u32, Row)| {
            let Spot { function, file, line } = spots[number as usize].clone();
            SourceLine {
                function,
                file,
                line,
                stall_ns: whole_ns(row.stall()),
                caches: caches(row),
                structures: largest(&stalls[number as usize], structures),
            }
        };
        sums.ranked().into_iter().take(most).map(line).collect()
    }
}

/// The structures that a line stalls for most.
fn largest(stalls: &HashMap<StructureId, Units>, structures: &Structures) -> Vec<LineStructure> {
    // Those of several processes may have one name.
    let mut by_name: BTreeMap<String, Units> = BTreeMap::new();
    for (&structure, &stall) in stalls {
        *by_name.entry(structures.describe(structure).name).or_default() += stall;
    }
    let mut by_stall: Vec<(String, Units)> = by_name.into_iter().collect();
    by_stall.sort_by_key(|&(_, stall)| Reverse(stall));
    let named = by_stall
        .into_iter()
        .take(MOST_STRUCTURES)
        .map(|(name, stall)| LineStructure {
            name,
            stall_ns: whole_ns(stall),
        });
    named.collect()
}
