//! Sums over places when the run has ended, and the results for lines of the source and structures.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{ElementField, Place, Sampled, Step, StructureEvidence};
use super::offsets::Offset;
use super::strides::Strides;
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
/// Each pair of several arrays is at least this part of it.
const SOME: f64 = 0.2;
/// A walk needs this part of an instruction's steps, out of at least `SEEN`.
const STEADY: f64 = 0.6;
const SEEN: u64 = 32;
/// A place waits much if it waits a quarter of the time of the worst.
const MUCH: Units = 4;
/// Fields of an element that are reported.
const FIELDS: usize = 64;

/// The sum over the places of one line.
#[derive(Default)]
pub struct Sum {
    walks: Vec<Walked>,
    beside: BTreeMap<u64, u64>,
    apart: BTreeMap<(StructureId, i64), u64>,
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

/// How one instruction walks. The steps of several instructions are not mixed: two walks through two arrays would look
/// like none.
struct Walked {
    /// The time that it waits.
    waits: Units,
    strides: Strides,
}

impl Walked {
    /// The step that is so large a part of all.
    fn frequent(&self, part: f64) -> Option<i64> {
        let (step, count) = self.strides.counts().max_by_key(|(_, count)| *count)?;
        (count as f64 >= part * self.strides.total() as f64).then_some(step)
    }
}

impl Sum {
    fn add(&mut self, known: &Known, waits: Units) {
        if let Some(walk) = &known.walk {
            self.walks.push(Walked {
                waits: waits + known.translation,
                strides: walk.strides.clone(),
            });
            for (step, count) in walk.beside.counts() {
                // Each of two places is beside the other.
                *self.beside.entry(step.unsigned_abs()).or_default() += count;
            }
            for (from, count) in walk.apart.counts() {
                *self.apart.entry(from).or_default() += count;
            }
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

    /// The time that its instructions waited, if they walk.
    fn waits(&self) -> Units {
        self.walks.iter().map(|walk| walk.waits).sum()
    }

    /// The time spent waiting for translations.
    pub fn translation(&self) -> Units {
        self.translation
    }

    /// The instruction that waits longest.
    fn worst(&self) -> Option<&Walked> {
        self.walks.iter().max_by_key(|walk| (walk.waits, walk.strides.total()))
    }

    /// The length of the step that is at least half of all.
    fn frequent(&self) -> Option<u64> {
        let walk = self.worst()?;
        let step = walk.frequent(0.5)?;
        Some(step.unsigned_abs() / self.instructions_of_a_step(walk, step))
    }

    /// A loop that the compiler unrolled has several instructions for one access of the source, each with a multiple of
    /// the loop's step. Returns 1, or the number of such instructions. Their places repeat themselves within the step.
    fn instructions_of_a_step(&self, worst: &Walked, step: i64) -> u64 {
        let length = step.unsigned_abs();
        let alike = self.walks.iter().filter(|walk| walk.frequent(STEADY) == Some(step));
        let places: BTreeSet<u64> = alike
            .filter_map(|walk| Some(walk.strides.last_of(worst.strides.last()?.0)? % length.max(1)))
            .collect();
        let repeats = |times: &u64| {
            let shifted = |place: &u64| (place + length / times) % length;
            length.is_multiple_of(*times) && places.iter().all(|place| places.contains(&shifted(place)))
        };
        let most = places.len() as u64;
        (2..=most)
            .rev()
            .filter(|times| most.is_multiple_of(*times))
            .find(repeats)
            .unwrap_or(1)
    }

    /// The part of the accesses that is so often beside another.
    fn share(&self, count: u64) -> f64 {
        let seen: u64 = self.walks.iter().map(|walk| walk.strides.total()).sum();
        count as f64 / seen.max(1) as f64
    }

    /// The structures that are accessed at a constant distance from these accesses.
    pub fn together(&self) -> Vec<StructureId> {
        let mut counts: BTreeMap<StructureId, u64> = BTreeMap::new();
        for ((structure, _), count) in &self.apart {
            let most = counts.entry(*structure).or_default();
            *most = (*most).max(*count);
        }
        let frequent = counts.into_iter().filter(|(_, count)| self.share(*count) >= BESIDE);
        frequent.map(|(structure, _)| structure).collect()
    }

    /// The number of accesses at one index: each is beside each of the others.
    fn arrays(&self) -> u64 {
        let apart = self.beside.iter().filter(|(bytes, _)| **bytes > 0);
        let shares = apart.map(|(_, count)| self.share(*count));
        1 + shares.filter(|share| *share >= SOME).sum::<f64>().round() as u64
    }

    fn beside(&self) -> Option<Step> {
        let share = |count: u64| self.share(count);
        // Accesses at one place belong to one array.
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

    /// The accessed parts of elements of `element` bytes.
    pub fn fields(&self, element: Option<u64>) -> Vec<ElementField> {
        element.map_or_else(Vec::new, |element| fields(&self.offsets, element))
    }

    /// The place's measurements; its identity and its misses are not known here.
    pub fn place(&self) -> Place {
        let bytes = |used: Used| used.mean().map(|words| words * f64::from(WORD));
        let worst = self.worst();
        let strides = worst.map(|walk| &walk.strides);
        let seen = strides.map_or(0, Strides::total);
        let unrolled = worst.and_then(|walk| Some(self.instructions_of_a_step(walk, walk.frequent(0.0)?)));
        let unrolled = unrolled.unwrap_or(1);
        let step = |(bytes, count): (i64, u64)| Step {
            bytes: bytes / unrolled as i64,
            share: count as f64 / seen.max(1) as f64,
        };
        let mut steps: Vec<Step> = strides.iter().flat_map(|strides| strides.counts()).map(step).collect();
        steps.sort_by(|a, b| b.share.total_cmp(&a.share));
        steps.truncate(4);
        Place {
            tlb_ns: whole_ns(self.translation),
            tlb_misses: self.tlb_misses,
            of_locks_ns: whole_ns(self.of_locks),
            steps,
            steps_seen: seen,
            pitch: strides.map_or(0, |strides| strides.pitches().pitch()) / unrolled,
            beside: self.beside(),
            arrays: self.arrays(),
            access_bytes: strides.map_or(0, Strides::bytes),
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
    /// Adds the measurements of a place, by its number, which waits this long for caches and memory.
    pub fn add(&self, place: u32, waits: Units, sum: &mut Sum) {
        if let Some(known) = self.causes.places.get(place as usize) {
            sum.add(known, waits);
        }
    }

    /// Returns whether a place walks in no order, as far as steps were seen.
    pub fn is_irregular(&self, place: u32) -> bool {
        let known = self.causes.places.get(place as usize);
        let walk = known.and_then(|known| known.walk.as_ref());
        walk.is_some_and(|walk| {
            let most = walk.strides.counts().map(|(_, count)| count).max().unwrap_or(0);
            walk.strides.total() >= SEEN && (most as f64) < STEADY * walk.strides.total() as f64
        })
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
        // Whoever hardly waits may go byte by byte, to fill or to copy.
        let most = sums.iter().map(|sum| sum.waits()).max().unwrap_or(0);
        let steps = sums
            .iter()
            .filter(|sum| sum.waits() >= most / MUCH)
            .filter_map(|sum| sum.frequent());
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

/// The size of the blocks, if nine of ten accesses are to small ones of one size.
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

    /// An instruction that accesses these addresses.
    fn instruction(waits: Units, addresses: impl Iterator<Item = u64>) -> Walked {
        let mut strides = Strides::new();
        addresses.for_each(|address| strides.touch(1, 0, address, 8));
        Walked { waits, strides }
    }

    fn line(walks: Vec<Walked>) -> Place {
        let sum = Sum {
            walks,
            ..Sum::default()
        };
        sum.place()
    }

    #[test]
    fn instructions_of_an_unrolled_loop_have_the_loops_step() {
        // Down a column of rows of 4096 bytes, four rows at a time; the last round was cut short.
        let rows = |first: u64, rounds: u64| (0..rounds).map(move |round| 0x10_0000 + (round * 4 + first) * 4096);
        let unrolled = (0..4).map(|row| instruction(10 - row, rows(row, if row < 2 { 60 } else { 59 })));
        let place = line(unrolled.collect());
        assert_eq!(
            (place.steps[0].bytes, place.steps[0].share, place.pitch),
            (4096, 1.0, 4096)
        );
        // Two neighbours of each row, unrolled twice.
        let pairs = (0..2).flat_map(|row| [0, 8].map(|offset| (row, offset)));
        let two = |first: u64, offset| (0..60).map(move |round| 0x10_0000 + (round * 2 + first) * 4096 + offset);
        let place = line(pairs.map(|(row, offset)| instruction(10, two(row, offset))).collect());
        assert_eq!(place.steps[0].bytes, 4096);
        // Two neighbours of each row, and nothing unrolled.
        let place = line(
            [0, 8]
                .map(|offset| instruction(10, rows(0, 60).map(move |at| at + offset)))
                .into(),
        );
        assert_eq!(place.steps[0].bytes, 4 * 4096);
    }

    #[test]
    fn the_walk_that_waits_longest_is_the_lines() {
        let mut random = policy::Random::new(7);
        let anywhere: Vec<u64> = (0..500).map(|_| u64::from(random.below(1 << 20)) * 4096).collect();
        let indices = || instruction(10, (0..500).map(|at| 0x900_0000 + at * 4));
        let place = line(vec![indices(), instruction(1000, anywhere.iter().copied())]);
        assert!(place.steps.iter().all(|step| step.share < 0.2), "{:?}", place.steps);
        assert_eq!(place.pitch, 4096);
        let place = line(vec![indices(), instruction(1, anywhere.into_iter())]);
        assert_eq!((place.steps[0].bytes, place.steps[0].share), (4, 1.0));
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
