//! A cache of a machine with one cpu, as a filter: its input comes from the cache before, and its
//! output is what it cannot serve.
//!
//! With one cpu and no inclusion nothing flows back, so each level can work through a whole piece
//! of the trace before the next begins: short loops over arrays instead of a walk from level to
//! level for each reference. The steps and their order are those of the contract; time travels
//! with the entries, so that memory knows each one's moment.

use crate::cache::{Cache, DIRTY};
use crate::clock::Units;
use crate::counts::{CacheCounts, Class};
use crate::layout::Layout;
use crate::lookup::{Lookup, SetLine, class, look_up, take_in};
use crate::recency::{Arena, Recency};
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
/// Only time: `piece` and the bits of [`Passed::class_bits`] have no meaning.
pub const TIME: u32 = 8;
/// The first entry of a piece: the stall of the piece before has passed.
pub const NEW: u32 = 16;
/// Of a piece that reads (and may write): it fills caches without `allocate_on_write` too.
pub const READS: u32 = 32;
pub const FETCH: u32 = 64;
/// A lookup for a write that was passed on: no cpu waits for it.
pub const PASSED_ON: u32 = 128;
/// Of a lookup: some cache took the line in. For a write: it goes to memory by a transfer of its
/// own.
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

    /// The class of that miss, by its number.
    #[inline(always)]
    pub fn class(&self) -> Option<u32> {
        (self.what >> CLASS_SHIFT & 15).checked_sub(1)
    }

    /// A stall belongs to the cache that missed last.
    #[inline(always)]
    pub fn blame(&self, counts: &mut [CacheCounts], stall: Units) {
        if let Some(kind) = (self.what >> KIND_SHIFT).checked_sub(1) {
            let counts = &mut counts[kind as usize];
            counts.miss_stall += stall;
            if let Some(class) = self.class() {
                counts.class_stall[class as usize] += stall;
            }
        }
    }
}

/// Counts since the last entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between {
    pub pending: Units,
    /// The stall of the current piece, which passes when the next begins.
    pub after: Units,
    /// True if the current piece has had no entry yet.
    fresh: bool,
}

impl Between {
    /// A piece begins.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.pending += self.after;
        self.after = 0;
        self.fresh = true;
    }
}

/// Entries on their way from one level to the next.
#[derive(Debug, Default)]
pub struct Stream {
    /// Room for entries, of which the first `count` are there.
    room: Vec<Passed>,
    count: usize,
}

const NOTHING: Passed = Passed {
    piece: 0,
    time: 0,
    what: TIME,
};

impl Stream {
    pub fn entries(&self) -> &[Passed] {
        &self.room[..self.count]
    }

    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Makes room for `more` further entries.
    #[inline(always)]
    pub fn reserve(&mut self, more: usize) {
        if self.room.len() < self.count + more + 8 {
            self.grow(more);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        self.room.resize(2 * (self.count + more + 8), NOTHING);
    }

    #[inline(always)]
    pub fn push(&mut self, between: &mut Between, piece: u32, what: u32) {
        if between.pending > Units::from(u32::MAX) {
            self.long_time(between);
        }
        self.reserve(1);
        let new = if between.fresh { NEW } else { 0 };
        self.room[self.count] = Passed {
            piece,
            time: between.pending as u32,
            what: what & !NEW | new,
        };
        self.count += 1;
        between.pending = 0;
        between.fresh = false;
    }

    /// Adds an entry of a piece that has had one, right after it; without a branch, because a dirty
    /// victim is unpredictable.
    #[inline(always)]
    pub fn push_if(&mut self, really: bool, piece: u32, what: u32) {
        if let Some(room) = self.room.get_mut(self.count) {
            *room = Passed { piece, time: 0, what };
            self.count += usize::from(really);
        }
    }

    /// A write goes on from a cache that has served its piece: an access of its own to the next
    /// cache, or a transfer to memory. If the piece reads too, that has been served.
    pub fn pass_on(&mut self, between: &mut Between, piece: u32, last: bool) {
        if last {
            self.push(between, piece, WRITE | FILLED);
        } else {
            self.push(between, piece, LOOKUP | PASSED_ON);
            self.push(between, piece, WRITE);
        }
    }

    #[cold]
    #[inline(never)]
    fn long_time(&mut self, between: &mut Between) {
        while between.pending > Units::from(u32::MAX) {
            between.pending -= Units::from(u32::MAX);
            self.reserve(1);
            self.room[self.count] = Passed {
                time: u32::MAX,
                ..NOTHING
            };
            self.count += 1;
        }
    }
}

/// A cache beyond the first ones.
pub struct Filter {
    step: Step,
    /// The entries it sees: of data, of fetches.
    data: bool,
    fetches: bool,
    cache: Cache,
    shadow: Option<(Recency, Arena)>,
    /// Bits of a piece's number below its line's.
    finer: u32,
    /// True if data goes from here to memory.
    last: bool,
    /// The last lookup that came here was served.
    hit: bool,
    /// Counts since its last entry.
    between: Between,
    pub stall: Units,
}

impl Filter {
    pub fn new(layout: &Layout, step: Step, cache: Cache, shadow: Option<(Recency, Arena)>) -> Self {
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

    /// Works through the output of the level before.
    pub fn run(&mut self, world: &Frames, input: &[Passed], output: &mut Stream, counts: &mut [CacheCounts]) {
        match (self.shadow.is_some(), self.cache.fixed_ways()) {
            (false, 1) => self.each::<false, 1>(world, input, output, counts),
            (false, 4) => self.each::<false, 4>(world, input, output, counts),
            (false, 8) => self.each::<false, 8>(world, input, output, counts),
            (false, 16) => self.each::<false, 16>(world, input, output, counts),
            (false, _) => self.each::<false, 0>(world, input, output, counts),
            (true, 1) => self.each::<true, 1>(world, input, output, counts),
            (true, 4) => self.each::<true, 4>(world, input, output, counts),
            (true, 8) => self.each::<true, 8>(world, input, output, counts),
            (true, 16) => self.each::<true, 16>(world, input, output, counts),
            (true, _) => self.each::<true, 0>(world, input, output, counts),
        }
    }

    fn each<const CLASSES: bool, const WAYS: usize>(
        &mut self,
        world: &Frames,
        input: &[Passed],
        output: &mut Stream,
        counts: &mut [CacheCounts],
    ) {
        let step = self.step;
        let layout = world.layout;
        let (page_bits, piece_bits) = (layout.page_bits, layout.piece_bits);
        let page_pieces = page_bits - piece_bits;
        let frames = if step.virtual_index {
            world.virtual_pages
        } else {
            world.frames
        };
        let cache = &mut self.cache;
        // Counted here, in the host's registers, and added at the end.
        let mut own = CacheCounts::default();
        let mut between = self.between;
        output.reserve(2 * input.len());
        for entry in input {
            between.pending += Units::from(entry.time);
            if entry.what & NEW != 0 {
                between.begin();
            }
            let fetch = entry.what & FETCH != 0;
            if entry.what & TIME != 0 || !(if fetch { self.fetches } else { self.data }) {
                if entry.what & TIME == 0 {
                    output.push(&mut between, entry.piece, entry.what);
                }
                continue;
            }
            let frame = frames[(entry.piece >> page_pieces) as usize];
            let offset = u64::from(entry.piece & ((1 << page_pieces) - 1)) << piece_bits;
            let place = SetLine {
                set: step.set(layout, frame << page_bits | offset),
                line: entry.piece >> self.finer,
            };
            if entry.what & LOOKUP == 0 {
                // A write or a dirty line arrives: it is kept here, or goes on.
                if step.write_back
                    && let Some(at) = cache.find(place.set, place.line)
                {
                    cache.set_state(at, DIRTY);
                } else if entry.what & WRITE != 0 && self.hit {
                    // The piece went no further: from here on the write is an access of its own.
                    output.pass_on(&mut between, entry.piece, self.last);
                } else {
                    output.push(&mut between, entry.piece, entry.what);
                }
                continue;
            }
            let shadow = match &mut self.shadow {
                Some((shadow, arena)) if CLASSES => Some((shadow, arena)),
                _ => None,
            };
            let reads = entry.what & READS != 0;
            let found = look_up::<WAYS>(&step, cache, shadow, &mut own, place, reads);
            self.hit = matches!(found, Lookup::Hit(_));
            let Lookup::Miss(prior) = found else {
                if entry.what & PASSED_ON == 0 {
                    entry.blame(counts, step.hit);
                    between.after += step.hit;
                    self.stall += step.hit;
                }
                continue;
            };
            let class = CLASSES.then(|| class(prior));
            if let Some(class) = class {
                own.classes[class as usize] += 1;
            }
            let fills = step.fills(reads);
            let filled = if fills { FILLED } else { 0 };
            let what = Passed::with_miss(entry.what | filled, step.kind, class);
            output.push(&mut between, entry.piece, what);
            if fills {
                let gone = take_in::<WAYS>(cache, &mut own, place, 0);
                output.push_if(gone.is_dirty(), gone.line().unwrap_or(0) << self.finer, WRITE_BACK);
            }
        }
        self.between = between;
        counts[step.kind as usize].add(&own);
    }
}

/// The places of the pages.
pub struct Frames<'a> {
    pub layout: &'a Layout,
    /// The frame of each page, and its number in its address space.
    pub frames: &'a [u64],
    pub virtual_pages: &'a [u64],
}
