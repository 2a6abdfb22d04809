//! A cache of a machine with one cpu, as a filter: what comes from the cache before goes in, what
//! it cannot serve comes out.
//!
//! With one cpu and no inclusion nothing flows back, so each level can work through a whole piece
//! of the trace before the next begins: short loops over arrays instead of a walk from level to
//! level for each reference. The steps and their order are those of the contract; time travels
//! with the entries, so that memory knows each one's moment.

use crate::cache::{Cache, DIRTY};
use crate::clock::Units;
use crate::counts::{CacheCounts, Class};
use crate::engine::Copy;
use crate::layout::Layout;
use crate::recency::{Prior, Recency};
use crate::steps::Step;

/// An entry of the stream between two levels.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Number of the line's first piece in the footprint (page and place in it).
    pub piece: u32,
    /// Time on the cpu's clock since the entry before, in units.
    pub time: u32,
    pub what: u32,
}

/// A lookup that missed so far.
pub const LOOKUP: u32 = 1;
/// A dirty line was evicted.
pub const WRITE_BACK: u32 = 2;
/// The write of the piece looked up last goes on; it was not kept so far.
pub const WRITE: u32 = 4;
/// Nothing but time: `piece` and the bits of [`Passed::class_bits`] have no meaning.
pub const TIME: u32 = 8;
/// The first entry of a piece: the stall of the piece before has passed.
pub const NEW: u32 = 16;
/// Of a piece that reads (and may write): it fills caches without `allocate_on_write` too.
pub const READS: u32 = 32;
pub const FETCH: u32 = 64;
/// A lookup for a write that was passed on: nobody waits.
pub const PASSED_ON: u32 = 128;
/// Of a lookup: some cache took the line in. Of a write: it goes to memory by a transfer of its own.
pub const FILLED: u32 = 256;
/// The class of the last miss: 0 none, else one more than its number.
const CLASS_SHIFT: u32 = 16;
/// The kind of cache that missed last, plus one.
const KIND_SHIFT: u32 = 20;

impl Passed {
    /// The cache that missed last, and the class.
    pub fn with_miss(what: u32, kind: u16, class: Option<Class>) -> u32 {
        let clear = what & ((1 << CLASS_SHIFT) - 1);
        let class = class.map_or(0, |class| class as u32 + 1);
        clear | class << CLASS_SHIFT | (u32::from(kind) + 1) << KIND_SHIFT
    }

    /// A stall belongs to the cache that missed last.
    #[inline(always)]
    pub fn blame(&self, counts: &mut [CacheCounts], stall: Units) {
        if let Some(kind) = (self.what >> KIND_SHIFT).checked_sub(1) {
            let counts = &mut counts[kind as usize];
            counts.miss_stall += stall;
            if let Some(class) = (self.what >> CLASS_SHIFT & 15).checked_sub(1) {
                counts.class_stall[class as usize] += stall;
            }
        }
    }
}

/// Collects entries, with the time between them.
#[derive(Default)]
pub struct Stream {
    pub entries: Vec<Passed>,
    between: Between,
}

/// What has happened since the last entry.
#[derive(Clone, Copy, Default)]
struct Between {
    pending: Units,
    /// The stall of the piece at hand, which passes when the next begins.
    after: Units,
    /// Whether the piece at hand has had no entry yet.
    fresh: bool,
}

impl Stream {
    #[inline(always)]
    pub fn pass(&mut self, time: Units) {
        self.between.pending += time;
    }

    /// A piece begins.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.between.pending += std::mem::take(&mut self.between.after);
        self.between.fresh = true;
    }

    /// The piece at hand waits.
    #[inline(always)]
    pub fn stall(&mut self, time: Units) {
        self.between.after += time;
    }

    #[inline(always)]
    pub fn push(&mut self, piece: u32, what: u32) {
        if self.between.pending > Units::from(u32::MAX) {
            self.long_time();
        }
        let new = if self.between.fresh { NEW } else { 0 };
        self.entries.push(Passed {
            piece,
            time: self.between.pending as u32,
            what: what & !NEW | new,
        });
        self.between.pending = 0;
        self.between.fresh = false;
    }

    /// A write goes on from a cache that has served its piece: an access of its own to the next
    /// cache, or a transfer to memory.
    /// `reads`: [`READS`] if the piece reads too.
    pub fn pass_on(&mut self, piece: u32, reads: u32, last: bool) {
        if last {
            self.push(piece, WRITE | FILLED);
        } else {
            self.push(piece, LOOKUP | PASSED_ON | reads);
            self.push(piece, WRITE | reads);
        }
    }

    #[cold]
    #[inline(never)]
    fn long_time(&mut self) {
        while self.between.pending > Units::from(u32::MAX) {
            self.between.pending -= Units::from(u32::MAX);
            self.entries.push(Passed {
                piece: 0,
                time: u32::MAX,
                what: TIME,
            });
        }
    }
}

/// A cache beyond the first ones.
pub struct Filter {
    step: Step,
    /// Which entries it sees: of data, of fetches.
    data: bool,
    fetches: bool,
    cache: Cache,
    shadow: Option<Recency>,
    /// Bits of a piece's number below its line's.
    finer: u32,
    /// Whether data goes from here to memory.
    last: bool,
    /// The last lookup that came here was served.
    hit: bool,
    /// What has happened since its last entry.
    between: Between,
    pub stall: Units,
}

impl Filter {
    pub fn new(layout: &Layout, step: Step, cache: Cache, shadow: Option<Recency>) -> Self {
        let kind = step.kind as usize;
        Filter {
            data: layout.data.contains(&kind),
            fetches: layout.fetch.contains(&kind),
            finer: u32::from(step.line_bits) - layout.piece_bits,
            last: layout.data.last() == Some(&kind),
            step,
            cache,
            shadow,
            hit: false,
            between: Between::default(),
            stall: 0,
        }
    }

    /// Works through what the level before passed on.
    pub fn run(
        &mut self,
        layout: &Layout,
        copies: &[Copy],
        input: &[Passed],
        output: &mut Stream,
        counts: &mut [CacheCounts],
    ) {
        output.between = self.between;
        match self.shadow.is_some() {
            true => self.each::<true>(layout, copies, input, output, counts),
            false => self.each::<false>(layout, copies, input, output, counts),
        }
        self.between = output.between;
    }

    fn each<const CLASSES: bool>(
        &mut self,
        layout: &Layout,
        copies: &[Copy],
        input: &[Passed],
        output: &mut Stream,
        counts: &mut [CacheCounts],
    ) {
        let kind = self.step.kind as usize;
        let page_pieces = layout.page_bits - layout.piece_bits;
        let mut accesses = 0;
        for entry in input {
            output.pass(Units::from(entry.time));
            if entry.what & NEW != 0 {
                output.begin();
            }
            let fetch = entry.what & FETCH != 0;
            if entry.what & TIME != 0 || !(if fetch { self.fetches } else { self.data }) {
                if entry.what & TIME == 0 {
                    output.push(entry.piece, entry.what);
                }
                continue;
            }
            let line = entry.piece >> self.finer;
            let copy = &copies[(entry.piece >> page_pieces) as usize];
            let frame = if self.step.virtual_index {
                copy.number
            } else {
                copy.frame
            };
            let offset = u64::from(entry.piece & ((1 << page_pieces) - 1)) << layout.piece_bits;
            let set = self.step.set(layout, frame << layout.page_bits | offset);
            if entry.what & LOOKUP != 0 {
                accesses += 1;
                let fills = entry.what & READS != 0 || self.step.allocate_on_write;
                let prior = match &mut self.shadow {
                    Some(shadow) if CLASSES => shadow.touch(line, fills),
                    _ => Prior::Cold,
                };
                if let Some(at) = self.cache.find(set, line) {
                    self.cache.used(set, at);
                    self.hit = true;
                    if entry.what & PASSED_ON == 0 {
                        entry.blame(counts, self.step.hit);
                        output.stall(self.step.hit);
                        self.stall += self.step.hit;
                    }
                    continue;
                }
                self.hit = false;
                self.missed::<CLASSES>(entry, prior, fills, set, line, output, &mut counts[kind]);
            } else {
                self.written(entry, set, line, output);
            }
        }
        counts[kind].accesses += accesses;
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn missed<const CLASSES: bool>(
        &mut self,
        entry: &Passed,
        prior: Prior,
        fills: bool,
        set: usize,
        line: u32,
        output: &mut Stream,
        counts: &mut CacheCounts,
    ) {
        counts.misses += 1;
        let class = CLASSES.then(|| class(prior));
        if let Some(class) = class {
            counts.classes[class as usize] += 1;
        }
        let mut what = Passed::with_miss(entry.what, self.step.kind, class);
        if !fills {
            output.push(entry.piece, what);
            return;
        }
        what |= FILLED;
        output.push(entry.piece, what);
        if let Some(gone) = self.cache.fill(set, line, 0)
            && gone.state & DIRTY != 0
        {
            counts.writebacks += 1;
            output.push(gone.line << self.finer, WRITE_BACK);
        }
    }

    /// A write or a dirty line arrives: it is kept here, or goes on.
    #[inline(always)]
    fn written(&mut self, entry: &Passed, set: usize, line: u32, output: &mut Stream) {
        if self.step.write_back
            && let Some(at) = self.cache.find(set, line)
        {
            self.cache.set_state(at, DIRTY);
            return;
        }
        match entry.what & WRITE != 0 && self.hit {
            true => output.pass_on(entry.piece, entry.what & READS, self.last),
            false => output.push(entry.piece, entry.what),
        }
    }
}

/// The class of a miss on a machine with one cpu.
#[inline(always)]
pub fn class(prior: Prior) -> Class {
    match prior {
        Prior::Cold => Class::Cold,
        Prior::In => Class::Conflict,
        Prior::Out => Class::Capacity,
    }
}
