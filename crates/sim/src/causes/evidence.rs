//! What was measured, put together: by line of the source and structure, and by structure.

use std::collections::BTreeMap;

use results::Misses;

use super::addresses::Addresses;
use super::offsets::Offset;
use super::strides::Pitches;
use super::usage::{PARTS, Used, WORD};
use super::{About, Causes, Known};
use crate::clock::{Units, whole_ns};
use crate::structures::{Description, StructureId};

/// Larger blocks hold many elements; smaller ones are one.
const BLOCK: u64 = 4096;
/// Elements beyond this have no fields that people would split.
const ELEMENT: u64 = 1024;
/// So large a part of the accesses makes a distance frequent.
const BESIDE: f64 = 0.5;
/// Fields of an element that are reported.
const FIELDS: usize = 64;

/// Why data misses, in numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Bytes of the machine's longest line, and of a page.
    pub line_bytes: u64,
    pub page_bytes: u64,
    /// What steps, fields and uses were measured on, of a long run; `None`: of a short one, or of all of it.
    pub sampled: Option<Sampled>,
    /// Lines of the source with a structure each, the longest waiting first.
    pub places: Vec<Place>,
    pub structures: Vec<StructureEvidence>,
}

/// What was looked at of a run's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Of so many.
    pub accesses: u64,
    /// Bursts that were looked at, of so many accesses each.
    pub bursts: u64,
    pub burst: u64,
    /// Lines that were watched.
    pub lines: u64,
}

impl Sampled {
    /// One in so many accesses was looked at.
    pub fn one_in(&self) -> f64 {
        self.accesses as f64 / (self.bursts * self.burst).max(1) as f64
    }

    /// The standard error of a share of accesses all over the run is at most this: what is drawn are bursts, and the deviation
    /// of something between 0 and 1 is at most a half.
    pub fn error(&self) -> f64 {
        0.5 / (self.bursts.max(1) as f64).sqrt()
    }

    /// The same of what is used of a line, as a part of it.
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
    /// Of `stall_ns`: for words of locks.
    pub of_locks_ns: u64,
    pub caches: Vec<Misses>,
    /// The frequent steps from access to access, the most frequent first, and how many steps were seen.
    pub steps: Vec<Step>,
    pub steps_seen: u64,
    /// What nearly all steps are a multiple of, however they follow each other; 0: nothing is known.
    pub pitch: u64,
    /// How far its accesses are from those that other places make of the same structure just before or after, and for which
    /// part of them that is so at least: the shortest distance that is frequent.
    pub beside: Option<Step>,
    /// Bytes of its largest access.
    pub access_bytes: u32,
    /// Bytes of a line that were used each time that this place brought it to the nearest cache, and to the outermost.
    pub used_near: Option<f64>,
    pub used_far: Option<f64>,
    /// Bytes of a line that were used while no other place brought it.
    pub used_own: Option<f64>,
    /// The part of a page that was used each time that this place brought it into a TLB.
    pub used_page: Option<f64>,
    /// Where its addresses come from, and if from another load: the line of that, else its function.
    pub addresses: Addresses,
    pub loaded_at: Option<String>,
    /// What it accesses of an element, by offset.
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
    /// Bytes of an element: of its blocks, where these are small and of one size, else the smallest frequent step.
    pub element: Option<u64>,
    /// Whether each element is a block of its own.
    pub blocks: bool,
    /// What all its places access of an element, by offset.
    pub fields: Vec<ElementField>,
    /// Bytes of a line that were ever used.
    pub used_ever: Option<f64>,
    /// How many reuses come after less than so many bytes of other data, by powers of two.
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

/// What places of one line have together.
#[derive(Default)]
pub struct Sum {
    steps: BTreeMap<i64, u64>,
    seen: u64,
    pitches: Pitches,
    beside: BTreeMap<u64, u64>,
    bytes: u32,
    near: Used,
    far: Used,
    own: Used,
    pages: Used,
    tlb_misses: u64,
    translation: Units,
    of_locks: Units,
    /// Accesses, and how many each stands for.
    offsets: Vec<(Offset, f64)>,
}

impl Sum {
    fn add(&mut self, known: &Known) {
        if let Some(walk) = &known.walk {
            for (step, count) in walk.strides.counts() {
                *self.steps.entry(step).or_default() += count;
            }
            self.seen += walk.strides.total();
            self.pitches.add(walk.strides.pitches());
            for (step, count) in walk.beside.counts() {
                // Each of two places is beside the other.
                *self.beside.entry(step.unsigned_abs()).or_default() += count;
            }
            self.bytes = self.bytes.max(walk.strides.bytes());
            let weight = walk.offsets.weight();
            self.offsets
                .extend(walk.offsets.kept().iter().map(|&offset| (offset, weight)));
        }
        self.near = self.near.plus(known.near);
        self.far = self.far.plus(known.far);
        self.own = self.own.plus(known.own);
        self.pages = self.pages.plus(known.pages);
        self.tlb_misses += known.tlb_misses;
        self.translation += known.translation;
        self.of_locks += known.of_locks;
    }

    /// What was waited for translations.
    pub fn translation(&self) -> Units {
        self.translation
    }

    /// The length of the step that is at least half of all.
    fn frequent(&self) -> Option<u64> {
        let (step, count) = self.steps.iter().max_by_key(|(_, count)| **count)?;
        (count * 2 >= self.seen).then_some(step.unsigned_abs())
    }

    fn beside(&self) -> Option<Step> {
        let share = |count: u64| count as f64 / self.seen.max(1) as f64;
        // What is at one place is one array.
        let frequent = self
            .beside
            .iter()
            .filter(|(bytes, count)| **bytes > 0 && share(**count) >= BESIDE);
        let (&bytes, &count) = frequent.min_by_key(|(bytes, _)| **bytes)?;
        Some(Step {
            bytes: bytes as i64,
            share: share(count).min(1.0),
        })
    }

    /// What is accessed of elements of so many bytes.
    pub fn fields(&self, element: Option<u64>) -> Vec<ElementField> {
        element.map_or_else(Vec::new, |element| fields(&self.offsets, element))
    }

    /// The place's measurements; who and where it is, and its misses, are not known here.
    pub fn place(&self) -> Place {
        let bytes = |used: Used| used.mean().map(|words| words * f64::from(WORD));
        let mut steps: Vec<Step> = self
            .steps
            .iter()
            .map(|(&bytes, &count)| Step {
                bytes,
                share: count as f64 / self.seen.max(1) as f64,
            })
            .collect();
        steps.sort_by(|a, b| b.share.total_cmp(&a.share));
        steps.truncate(4);
        Place {
            tlb_ns: whole_ns(self.translation),
            tlb_misses: self.tlb_misses,
            of_locks_ns: whole_ns(self.of_locks),
            steps,
            steps_seen: self.seen,
            pitch: self.pitches.pitch(),
            beside: self.beside(),
            access_bytes: self.bytes,
            used_near: bytes(self.near),
            used_far: bytes(self.far),
            used_own: bytes(self.own),
            used_page: self.pages.mean().map(|parts| parts / f64::from(PARTS)),
            ..Place::default()
        }
    }
}

impl Causes {
    /// All that is known, when the run has ended.
    pub fn ended(mut self) -> Measured {
        let sampled = self.sampled();
        self.end();
        Measured { causes: self, sampled }
    }
}

/// The measurements of a run that has ended.
pub struct Measured {
    causes: Causes,
    pub sampled: Option<Sampled>,
}

impl Measured {
    /// Whether anything is known of a place, by its number.
    pub fn add(&self, place: u32, sum: &mut Sum) {
        if let Some(known) = self.causes.places.get(place as usize) {
            sum.add(known);
        }
    }

    pub fn tlb_misses(&self, place: u32) -> u64 {
        self.causes
            .places
            .get(place as usize)
            .map_or(0, |known| known.tlb_misses)
    }

    /// `sums`: of all its places.
    pub fn structure(&self, id: StructureId, what: Description, sums: &[&Sum]) -> StructureEvidence {
        let offsets = || sums.iter().flat_map(|sum| &sum.offsets);
        let block = one_block(offsets()).filter(|_| what.blocks > 1);
        let steps = sums.iter().filter_map(|sum| sum.frequent());
        let about = self.causes.structures.get(&id);
        let ever = about.and_then(|about| about.ever.mean());
        let element = block.or(steps.min());
        let all: Vec<(Offset, f64)> = offsets().copied().collect();
        StructureEvidence {
            what,
            fields: element.map_or_else(Vec::new, |element| fields(&all, element)),
            element,
            blocks: block.is_some(),
            used_ever: ever.map(|words| words * f64::from(WORD)),
            reuses: about.map_or_else(Vec::new, reuses),
        }
    }
}

fn reuses(about: &About) -> Vec<(u64, u64)> {
    let reuses = about.reuses.iter().enumerate();
    reuses
        .filter(|(_, count)| **count > 0)
        .map(|(bits, count)| (1 << bits, *count))
        .collect()
}

/// The size of the blocks, where nine of ten accesses are to small ones of one size.
fn one_block<'a>(offsets: impl Iterator<Item = &'a (Offset, f64)>) -> Option<u64> {
    let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
    let mut all = 0.0;
    for (offset, weight) in offsets {
        *sizes.entry(offset.block).or_default() += weight;
        all += weight;
    }
    let (&size, &most) = sizes.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    (size <= BLOCK && size > 0 && most >= 0.9 * all).then_some(size)
}

fn fields(offsets: &[(Offset, f64)], element: u64) -> Vec<ElementField> {
    if element == 0 || element > ELEMENT {
        return Vec::new();
    }
    let mut counts: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for (offset, weight) in offsets {
        *counts.entry((offset.offset % element, offset.bytes)).or_default() += weight;
    }
    let all: f64 = counts.values().sum();
    let fields = counts.into_iter().map(|((offset, bytes), count)| ElementField {
        offset,
        bytes,
        share: count / all,
    });
    fields.take(FIELDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_offset_in_the_element() {
        let offset = |offset| Offset {
            offset,
            block: 1 << 20,
            bytes: 8,
        };
        let offsets = (0..300).map(|at| (offset(at / 3 * 64 + [0, 0, 24][at as usize % 3]), 2.0));
        let offsets: Vec<(Offset, f64)> = offsets.collect();
        let fields = fields(&offsets, 64);
        let found: Vec<_> = fields.iter().map(|field| (field.offset, field.bytes)).collect();
        assert_eq!(found, [(0, 8), (24, 8)]);
        assert!((fields[0].share - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(one_block(offsets.iter()), None);
        let nodes = (0..20).map(|at| {
            (
                Offset {
                    block: 48,
                    ..offset(at % 2 * 8)
                },
                1.0,
            )
        });
        assert_eq!(one_block(nodes.collect::<Vec<_>>().iter()), Some(48));
    }

    #[test]
    fn enough_cache_is_where_nine_of_ten_reuses_are_within() {
        let structure = StructureEvidence {
            what: Description {
                name: String::new(),
                kind: results::StructureKind::Heap,
                file: None,
                line: None,
                bytes: 0,
                blocks: 0,
            },
            element: None,
            blocks: false,
            fields: Vec::new(),
            used_ever: None,
            reuses: vec![(64, 50), (4096, 45), (1 << 20, 5)],
        };
        assert_eq!(structure.enough(0.5), Some(64));
        assert_eq!(structure.enough(0.9), Some(4096));
        assert_eq!(structure.enough(1.0), Some(1 << 20));
    }
}
