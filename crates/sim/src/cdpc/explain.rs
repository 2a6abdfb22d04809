//! Hints, and how they came about, for people and pictures.

use std::ops::Range;

use policy::cdpc::{Array, Hints, Placed};
use serde::Serialize;

use super::told::Told;

/// The hints of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// `summaries` or `trace`.
    pub from: &'static str,
    pub loops: u64,
    pub page_bytes: u64,
    pub colors: u32,
    pub malformed: Vec<String>,
    pub malformed_summaries: u64,
    pub processes: Vec<ExplainedProcess>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedProcess {
    /// Its index in the trace.
    pub process: u32,
    pub arrays: Vec<Array>,
    /// Uniform access sets in their order.
    pub sets: Vec<ExplainedSet>,
    /// Uniform access segments in coloring order.
    pub segments: Vec<ExplainedSegment>,
    /// Pages with a hint; the first so many of them in coloring order are touched by some cpu.
    pub pages: u64,
    pub used: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedSet {
    pub cpus: Vec<u32>,
    /// The first of its segments, and the one after its last.
    pub segments: [usize; 2],
    pub pages: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedSegment {
    /// Which of the arrays.
    pub array: u32,
    pub cpus: Vec<u32>,
    /// Its first page (an address divided by the bytes of a page), and the one after its last.
    pub pages: [u64; 2],
    /// Where it stands in the coloring order: the page `begin`, which has the color `color`. Pages follow up to the end of
    /// the segment, and then from its first page to `begin`, each with the next color.
    pub position: u64,
    pub begin: u64,
    pub color: u32,
    /// Earlier segments whose starts its own was kept away from.
    pub conflicts: u32,
}

impl Told {
    /// How the hints came about.
    pub fn explain(&self) -> Explained {
        let process = |(process, hints): &(u32, Hints)| ExplainedProcess {
            process: *process,
            arrays: hints.arrays.clone(),
            sets: hints
                .sets
                .iter()
                .map(|set| ExplainedSet {
                    cpus: list(set.cpus),
                    segments: ends(&set.segments),
                    pages: set.pages,
                })
                .collect(),
            segments: hints.segments.iter().map(|placed| self.segment(placed)).collect(),
            pages: hints.pages.len() as u64,
            used: hints.used as u64,
        };
        Explained {
            from: self.from,
            loops: self.loops,
            page_bytes: self.machine.page_bytes,
            colors: self.machine.colors,
            malformed: self.malformed.told.clone(),
            malformed_summaries: self.malformed.count,
            processes: self.spaces.iter().map(process).collect(),
        }
    }

    fn segment(&self, placed: &Placed) -> ExplainedSegment {
        ExplainedSegment {
            array: placed.array,
            cpus: list(placed.cpus),
            pages: ends(&placed.pages),
            position: placed.position,
            begin: placed.begin,
            color: (placed.position % u64::from(self.machine.colors)) as u32,
            conflicts: placed.conflicts,
        }
    }
}

fn ends<T: Copy>(range: &Range<T>) -> [T; 2] {
    [range.start, range.end]
}

/// The numbers of the bits that are set.
pub fn list(cpus: u128) -> Vec<u32> {
    (0..128).filter(|cpu| cpus >> cpu & 1 == 1).collect()
}
