//! The measurements put together: by line of the source and structure, and by structure.

use results::Misses;

use super::addresses::Addresses;
use crate::structures::Description;

/// Why data misses, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Bytes of the machine's longest line, and of a page.
    pub line_bytes: u64,
    pub page_bytes: u64,
    /// The sample of a long run on which steps, fields and uses were measured; `None`: of a short run, or of all of it.
    pub sampled: Option<Sampled>,
    /// Lines of the source with a structure each, the longest waiting first.
    pub places: Vec<Place>,
    pub structures: Vec<StructureEvidence>,
}

/// The part of a run's accesses that was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Of this many.
    pub accesses: u64,
    /// Bursts that were looked at, and the accesses of each.
    pub bursts: u64,
    pub burst: u64,
    /// Lines that were watched.
    pub lines: u64,
}

impl Sampled {
    /// One in this many accesses was looked at.
    pub fn one_in(&self) -> f64 {
        self.accesses as f64 / (self.bursts * self.burst).max(1) as f64
    }

    /// The standard error of a share of accesses all over the run is at most this: the sample consists of bursts, and
    /// the deviation of something between 0 and 1 is at most a half.
    pub fn error(&self) -> f64 {
        0.5 / (self.bursts.max(1) as f64).sqrt()
    }

    /// The same of the used part of a line.
    pub fn line_error(&self) -> f64 {
        0.5 / (self.lines.max(1) as f64).sqrt()
    }
}

/// A line of the source, as far as it accesses one structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The structure, by its place in [`Evidence::structures`].
    pub structure: usize,
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub stall_ns: u64,
    pub tlb_ns: u64,
    pub tlb_misses: u64,
    /// Part of `stall_ns`: for words of locks.
    pub of_locks_ns: u64,
    pub caches: Vec<Misses>,
    /// The frequent steps from access to access, the most frequent first, and how many steps were seen: those of the line's
    /// instruction that waits longest.
    pub steps: Vec<Step>,
    pub steps_seen: u64,
    /// The number that divides nearly all steps, in whatever order they follow; 0: nothing is known.
    pub pitch: u64,
    /// Its distance from the accesses of other places to the same structure just before or after, and the least part of
    /// them for which that holds: the shortest distance that is frequent.
    pub beside: Option<Step>,
    /// The number of accesses at one index of the same structure, this one included.
    pub arrays: u64,
    /// Other structures that are accessed at a constant distance from it, just before or after, by their places in
    /// [`Evidence::structures`].
    pub together: Vec<usize>,
    /// Bytes of its largest access.
    pub access_bytes: u32,
    /// Bytes of a line that were used each time that this place brought it to the nearest cache, and to the outermost.
    pub used_near: Option<f64>,
    pub used_far: Option<f64>,
    /// Bytes of a line that were used while no other place brought it.
    pub used_own: Option<f64>,
    /// The part of a page that was used each time that this place brought it into a TLB.
    pub used_page: Option<f64>,
    /// The source of its addresses, and if that is another load: the line of that, else its function.
    pub addresses: Addresses,
    pub loaded_at: Option<String>,
    /// True if that load walks in order, or never misses.
    pub loaded_in_order: bool,
    /// Its accesses within an element, by offset.
    pub fields: Vec<ElementField>,
}

/// A step, and its share of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    pub bytes: i64,
    pub share: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StructureEvidence {
    pub what: Description,
    /// Bytes of an element: of its blocks, if these are small and of one size, else the smallest frequent step of the
    /// places that wait much.
    pub element: Option<u64>,
    /// True if each element is a block of its own.
    pub blocks: bool,
    /// The accesses of all its places within an element, by offset.
    pub fields: Vec<ElementField>,
    /// Bytes of a line that were ever used.
    pub used_ever: Option<f64>,
    /// The number of reuses after less than this many bytes of other data, by powers of two.
    pub reuses: Vec<(u64, u64)>,
}

/// Bytes that accesses begin at, and their share of the place's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ElementField {
    pub offset: u64,
    pub bytes: u32,
    pub share: f64,
}

impl StructureEvidence {
    /// The bytes of cache within which so large a part of the reuses comes.
    pub fn enough(&self, part: f64) -> Option<u64> {
        let all: u64 = self.reuses.iter().map(|(_, count)| count).sum();
        let mut sum = 0;
        let within = self.reuses.iter().find(|(_, count)| {
            sum += count;
            sum as f64 >= part * all as f64
        });
        within.filter(|_| all > 0).map(|(bytes, _)| *bytes)
    }
}
