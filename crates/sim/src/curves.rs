//! The number of misses of the outermost cache that each data structure would have alone in a part of it.
//!
//! The lookups of that cache are those that the caches before it let through, in the order of the simulated clocks;
//! each structure's part of that stream, instance by instance of the cache, is a stream of its own
//! ([`crate::distance`]). Parts are counted in colors, as cache slots are.
//!
//! Structures here are the data that a slot can be given: variables, and blocks of some pages by the place that asked
//! for them (the caller too, if one place of the program allocates for several) and by their size. Smaller blocks share
//! their pages with others, and arrays that the program declared lie in one of the former.

mod blocks;

use std::collections::HashMap;

use policy::slots::Caches;
use results::StructureKind;
use rustc_hash::FxHashMap;
use trace::{Allocation, Event};

use crate::distance::Distances;
use crate::pieces::Access;
use crate::structures::{Description, Structures, Tables};
use blocks::Blocks;

/// Pages that a block or variable must have to have a curve of its own.
pub const CURVE_PAGES: u64 = 4;
/// Lines of a structure that are followed; of more, a sample.
const FOLLOWED: usize = 1 << 16;
/// Structures of one instance that are followed.
const ROWS: usize = 4096;

/// The curves of a run's structures.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvesOutcome {
    /// The caches that they are of.
    pub caches: Caches,
    pub line_bytes: u64,
    /// All lookups of the caches, and all misses.
    pub accesses: u64,
    pub misses: u64,
    /// If lines of a structure were sampled: the part of its uses by which the sample has too few or too many, before
    /// correction, for the structure with the largest such part.
    pub error: Option<f64>,
    /// Those that have a name and [`CURVE_PAGES`] pages, the most misses first.
    pub structures: Vec<CurveOutcome>,
}

/// One structure.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveOutcome {
    pub what: Description,
    /// Of blocks: the sizes by which they differ from others of the same name, both included.
    pub sizes: Option<(u64, u64)>,
    /// Times it was looked up in the outermost caches, and missed there in this run.
    pub accesses: u64,
    pub misses: u64,
    /// First uses of a line (in each cache).
    pub cold: u64,
    /// Misses with 0, 1, 2 ... colors of each cache for itself, with LRU.
    pub alone: Vec<u64>,
}

pub struct Curves {
    caches: Caches,
    structures: Structures,
    blocks: Blocks,
    /// The kind of cache, by its place in the machine's list.
    kind: u16,
    line_bits: u8,
    /// Lines of a structure that are followed; of more, a sample.
    followed: usize,
    rows: FxHashMap<(Owner, u32), Row>,
    accesses: u64,
    misses: u64,
}

/// A structure, or a class of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    Structure(u32),
    Blocks(u32),
}

struct Row {
    distances: Distances,
    misses: u64,
}

impl Curves {
    pub fn new(caches: Caches, kind: u16, line_bits: u8, tables: &Tables, exact: bool) -> Curves {
        let tables = Tables { arrays: &[], ..*tables };
        Curves {
            structures: Structures::new(&tables),
            blocks: Blocks::new(&tables),
            caches,
            kind,
            line_bits,
            followed: if exact { usize::MAX } else { FOLLOWED },
            rows: FxHashMap::default(),
            accesses: 0,
            misses: 0,
        }
    }

    /// Returns whether they are of this kind of cache.
    #[inline(always)]
    pub fn are_of(&self, kind: u16) -> bool {
        self.kind == kind
    }

    /// A cache was looked up for a piece, which `counts` or only warms it.
    pub fn looked_up(&mut self, a: &Access, kind: u16, instance: u32, hit: bool, counts: bool) {
        if kind != self.kind {
            return;
        }
        self.accesses += u64::from(counts);
        self.misses += u64::from(!hit && counts);
        let owner = match self.blocks.find(a.who.space, a.named_address) {
            Some(class) => Owner::Blocks(class),
            None => Owner::Structure(self.structures.lookup(a.who.space, a.named_address)),
        };
        let key = (owner, instance);
        if self.rows.len() >= ROWS && !self.rows.contains_key(&key) {
            return;
        }
        let Curves {
            caches,
            line_bits,
            followed,
            ..
        } = self;
        let row = self.rows.entry(key).or_insert_with(|| Row {
            distances: Distances::new(caches.colors, caches.color_bytes >> *line_bits, *followed),
            misses: 0,
        });
        row.misses += u64::from(!hit && counts);
        let line = (a.virtual_address >> self.line_bits) ^ u64::from(a.who.space) << 40;
        match counts {
            true => row.distances.touch(line),
            false => row.distances.warm(line),
        };
    }

    /// Counts begin here; last uses stay known.
    pub fn restart(&mut self) {
        (self.accesses, self.misses) = (0, 0);
        for row in self.rows.values_mut() {
            row.misses = 0;
            row.distances.restart();
        }
    }

    /// Memory was allocated or freed, or a process began.
    pub fn apply(&mut self, space: u32, thread: u32, event: &Event) {
        let small = CURVE_PAGES * self.caches.page_bytes;
        match *event {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind: kind @ (Allocation::Heap | Allocation::Map),
            } if bytes >= small => self.blocks.alloc(space, addr, bytes, stack, kind),
            Event::Alloc { .. } => {}
            Event::Free { addr } => self.blocks.free(space, addr),
            _ => self.structures.apply(space, thread, event),
        }
    }

    pub fn report(self) -> CurvesOutcome {
        let small = CURVE_PAGES * self.caches.page_bytes;
        let mut sums: HashMap<Owner, CurveOutcome> = HashMap::new();
        let mut error: Option<f64> = None;
        for ((owner, _), row) in self.rows {
            let alone = row.distances.misses();
            if row.distances.is_sample() {
                let total = row.distances.total().max(1) as f64;
                let off = (row.distances.counted() - total).abs() / total;
                error = Some(error.map_or(off, |most| most.max(off)));
            }
            let (what, sizes) = match owner {
                Owner::Structure(structure) => (self.structures.describe(structure), None),
                Owner::Blocks(class) => {
                    let (what, from, to) = self.blocks.describe(class, small);
                    (what, Some((from, to)))
                }
            };
            let sum = sums.entry(owner).or_insert_with(|| CurveOutcome {
                what,
                sizes,
                accesses: 0,
                misses: 0,
                cold: 0,
                alone: vec![0; alone.len()],
            });
            sum.accesses += row.distances.total();
            sum.misses += row.misses;
            sum.cold += row.distances.cold().round() as u64;
            for (sum, misses) in sum.alone.iter_mut().zip(alone) {
                *sum += misses.round() as u64;
            }
        }
        let named = |curve: &CurveOutcome| {
            matches!(curve.what.kind, StructureKind::Symbol | StructureKind::Heap) && curve.what.bytes >= small
        };
        let mut structures: Vec<_> = sums.into_values().filter(named).collect();
        structures.sort_by(|a, b| {
            let names = || (&a.what.name, a.sizes).cmp(&(&b.what.name, b.sizes));
            b.misses.cmp(&a.misses).then_with(names)
        });
        CurvesOutcome {
            line_bytes: 1 << self.line_bits,
            caches: self.caches,
            accesses: self.accesses,
            misses: self.misses,
            error,
            structures,
        }
    }
}
