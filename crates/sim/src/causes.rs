//! Why data misses: measurements of how a program walks through it.
//!
//! Everything is measured beside the run and on samples: the steps of each instruction from access to access
//! ([`strides`]), how much of a line or page is used while it is there ([`usage`]), the accessed parts of elements
//! ([`offsets`]), how much other data is used before a line is used again ([`crate::distance`]), and the waiting that
//! belongs to locks ([`locks`]). Accesses are counted by *place*: an instruction and a structure ([`crate::detail`]
//! numbers them). Others interpret it: a run's [`Evidence`] has numbers only.

mod addresses;
mod beside;
mod evidence;
mod locks;
mod measured;
mod offsets;
mod sample;
mod strides;
mod usage;

use rustc_hash::FxHashMap;
use trace::Event;

use crate::clock::Units;
use crate::distance::{Distances, hash};
use crate::layout::Layout;
use crate::pieces::Access;
use crate::structures::{Extent, StructureId};
use beside::Beside;
use locks::Locks;
use offsets::{Offset, Offsets};
use strides::{Frequent, Strides};
use usage::{Lines, Pages, Said, Touch, Used};

pub use addresses::{Addresses, Sources};
pub use evidence::{ElementField, Evidence, Place, Sampled, Step, StructureEvidence};
pub use measured::Sum;

/// Accesses in a row that are all seen, of which steps are known: a power of two.
const BURST: u64 = 1 << 12;
/// One burst in this many is looked at, except for the first ones.
const BURSTS: u64 = 8;
/// The accesses of a long run: its measurements are reported as those of a sample.
const LONG: u64 = 1 << 22;
/// In a burst, one access in this many has its offset in its array or block looked up.
const OFFSETS: u64 = 8;
/// Distances between places that are counted: of four arrays at one index, each distance is a sixth of all that are seen.
const DISTANCES: usize = 16;
/// Places whose steps are counted.
const PLACES: usize = 1 << 14;
/// Once half of them are taken, a place first has to miss this often: the start of an interpreter has tens of thousands
/// of places that miss a few times, and the loop that matters comes after them.
const OFTEN: u32 = 64;
/// Structures whose reuses are counted.
const STRUCTURES: usize = 1 << 13;
/// Lines whose reuse is followed.
const FOLLOWED: usize = 1 << 13;

/// Measurements of a place.
#[derive(Default)]
struct Known {
    walk: Option<Box<Walk>>,
    /// Misses of the nearest cache, up to [`OFTEN`].
    misses: u32,
    near: Used,
    far: Used,
    own: Used,
    pages: Used,
    tlb_misses: u64,
    /// Time spent waiting for translations.
    translation: Units,
    /// Time spent waiting for words of locks.
    of_locks: Units,
}

/// How a place walks through its structure.
struct Walk {
    strides: Strides,
    offsets: Offsets,
    /// Distances from recent accesses of other places to the same structure.
    beside: Frequent<DISTANCES>,
    /// The same of other structures.
    apart: Frequent<DISTANCES, (StructureId, i64)>,
}

/// Measurements of a structure.
struct About {
    ever: Used,
    /// Reuses by their distance: bytes of other data in between, to the next power of two.
    reuses: [u64; 64],
}

/// One run's measurements.
pub struct Causes {
    /// Kinds of the nearest and the outermost cache for data.
    near: u16,
    far: u16,
    line_bits: u32,
    /// True if the current piece missed in the near cache, and in the far one.
    missed: [bool; 2],
    accesses: u64,
    /// The number of the current burst, 0 if it is not looked at.
    burst: u32,
    /// Bursts that were looked at.
    looked: u64,
    /// Everything is looked at.
    exact: bool,
    /// A line that is in no sample, and whose page is in none.
    passed: (u32, u64),
    lines: Lines,
    pages: Pages,
    reuse: Distances,
    beside: Beside,
    locks: Locks,
    places: Vec<Known>,
    /// By site: a number of its line of the source.
    source_lines: Vec<u32>,
    /// Places whose steps are counted.
    walking: usize,
    structures: FxHashMap<StructureId, About>,
}

impl Causes {
    /// `source_lines`: by site, a number that sites of one line of the source have together.
    pub fn new(layout: &Layout, source_lines: Vec<u32>, exact: bool) -> Option<Causes> {
        let (&near, &far) = (layout.data.first()?, layout.data.last()?);
        let line_bits = layout.block_bits.min(8);
        Some(Causes {
            near: near as u16,
            far: far as u16,
            line_bits,
            missed: [false; 2],
            accesses: 0,
            burst: 0,
            looked: 0,
            exact,
            passed: (u32::MAX, 0),
            lines: Lines::new(line_bits, layout.caches[near].line_bits.min(line_bits), exact),
            pages: Pages::new(layout.page_bits, exact),
            reuse: Distances::new(1, 1, if exact { usize::MAX } else { FOLLOWED }),
            beside: Beside::default(),
            locks: Locks::default(),
            places: Vec::new(),
            source_lines,
            walking: 0,
            structures: FxHashMap::default(),
        })
    }

    /// A cache was looked up for the current piece.
    #[inline(always)]
    pub fn looked_up(&mut self, kind: u16, hit: bool) {
        if !hit {
            self.missed[0] |= kind == self.near;
            self.missed[1] |= kind == self.far;
        }
    }

    /// The sample on which a long run's measurements rest.
    fn sampled(&self) -> Option<Sampled> {
        (!self.exact && self.accesses > LONG).then(|| Sampled {
            accesses: self.accesses,
            bursts: self.looked,
            burst: BURST,
            lines: self.lines.watched() as u64,
        })
    }

    /// A piece is done. Returns whether the structure it belongs to has to be looked up.
    #[inline(always)]
    pub fn wants(&mut self, a: &Access, tlb_missed: bool, stall: Units) -> bool {
        self.look_at_burst();
        self.looked += u64::from(self.burst != 0 && self.accesses.is_multiple_of(BURST));
        self.accesses += 1;
        let (space, address) = (a.who.space, a.virtual_address);
        tlb_missed
            || self.missed != [false; 2]
            || self.burst != 0
            || (stall > 0 && self.locks.any())
            || self.lines.watches(space, address)
            || self.pages.watches(space, address)
    }

    /// A piece was served at once by caches and TLB. Returns whether its structure need not be looked up: then it is
    /// counted. Otherwise it goes to [`Causes::wants`].
    #[inline(always)]
    pub fn passes(&mut self, space: u32, address: u64, bytes: u32) -> bool {
        self.look_at_burst();
        if self.burst != 0 {
            return false;
        }
        self.accesses += 1;
        // The samples only shrink: a line that was in none is in none ever after.
        let line = (space, address >> self.line_bits);
        if self.passed != line {
            let lines = self.lines.uses(space, address, bytes);
            let pages = self.pages.uses(space, address);
            if !lines && !pages {
                self.passed = line;
            }
        }
        true
    }

    /// Finds the burst of the current piece.
    #[inline(always)]
    fn look_at_burst(&mut self) {
        if self.accesses.is_multiple_of(BURST) {
            let burst = self.accesses / BURST;
            let looks = burst < BURSTS || hash(burst).is_multiple_of(BURSTS);
            self.burst = match (self.exact, looks) {
                (true, _) => 1,
                (false, true) => burst as u32 + 1,
                (false, false) => 0,
            };
        }
    }

    /// A piece that is wanted. `translation`: the time it waited for translation, if the TLB missed; `extent`: looks up
    /// its array or block.
    pub fn touch(
        &mut self,
        a: &Access,
        [place, structure]: [u32; 2],
        translation: Option<Units>,
        stall: Units,
        extent: impl FnOnce() -> Extent,
    ) {
        let [near, far] = std::mem::take(&mut self.missed);
        let touch = Touch {
            space: a.who.space,
            address: a.virtual_address,
            bytes: a.bytes,
            place,
            source_line: self.source_lines.get(a.pc_site as usize).copied().unwrap_or(a.pc_site),
            structure,
            near,
            far,
        };
        let at = place as usize;
        if self.places.len() <= at {
            self.places.resize_with(at + 1, Known::default);
        }
        if near {
            self.missed(&touch);
        }
        if let Some(waited) = translation {
            self.places[at].tlb_misses += 1;
            self.places[at].translation += waited;
        }
        if stall > 0 && self.locks.any() && self.locks.of(touch.space, touch.address).is_some() {
            self.places[at].of_locks += stall;
        }
        let Causes {
            lines,
            places,
            structures,
            ..
        } = self;
        if lines.watches(touch.space, touch.address) {
            lines.touch(&touch, |said| say(places, structures, said));
        }
        if self.pages.watches(touch.space, touch.address) {
            self.pages.touch(&touch, translation.is_some(), |place, parts| {
                places[place as usize].pages.add(parts)
            });
        }
        if self.burst == 0 {
            return;
        }
        let Causes { beside, places, .. } = self;
        if places[at].walk.is_some() {
            // Both are beside each other.
            beside.touch(self.burst, a.who.thread, &touch, |other, of, step| {
                let same = of == structure;
                let ends = [(at, of, step), (other as usize, structure, step.wrapping_neg())];
                for (place, of, step) in ends {
                    match &mut places[place].walk {
                        Some(walk) if same => walk.beside.count(step),
                        Some(walk) => walk.apart.count((of, step)),
                        None => {}
                    }
                }
            });
        }
        if let Some(walk) = &mut self.places[at].walk {
            walk.strides.touch(self.burst, a.who.thread, touch.address, touch.bytes);
            // Not each eighth: a loop's own period must not choose.
            if self.exact || hash(self.accesses).is_multiple_of(OFFSETS) {
                let extent = extent();
                walk.offsets.add(Offset {
                    offset: touch.address.saturating_sub(extent.start),
                    block: extent.end - extent.start,
                    bytes: touch.bytes,
                });
            }
        }
    }

    /// Looks more closely at an access that misses.
    fn missed(&mut self, touch: &Touch) {
        let known = &mut self.places[touch.place as usize];
        known.misses = OFTEN.min(known.misses + 1);
        let room = self.walking < PLACES / 2 || (self.walking < PLACES && known.misses == OFTEN);
        if known.walk.is_none() && room {
            self.walking += 1;
            known.walk = Some(Box::new(Walk::new()));
        }
        let line = touch.address >> self.line_bits ^ u64::from(touch.space) << 44;
        let distance = self.reuse.touch(line);
        let room = self.structures.len() < STRUCTURES;
        let about = match self.structures.get_mut(&touch.structure) {
            Some(about) => about,
            None if room => self.structures.entry(touch.structure).or_insert_with(About::new),
            None => return,
        };
        if let Some(lines) = distance {
            let bytes = lines << self.line_bits;
            about.reuses[(64 - bytes.leading_zeros()).min(63) as usize] += 1;
        }
    }

    /// The program took a lock, or gave memory another name.
    pub fn apply(&mut self, space: u32, event: &Event) {
        self.locks.apply(space, event);
    }

    /// Returns whether two addresses are words of one lock.
    pub fn of_one_lock(&self, space: u32, [a, b]: [u64; 2]) -> bool {
        let lock = self.locks.of(space, a);
        lock.is_some() && lock == self.locks.of(space, b)
    }

    /// Counts begin here; the places of locks and the last uses stay known.
    pub fn restart(&mut self) {
        self.places.fill_with(Known::default);
        self.walking = 0;
        self.structures.clear();
        self.lines.restart();
        self.pages.restart();
    }

    /// Counts the lines and pages still in caches and TLBs.
    fn end(&mut self) {
        let Causes {
            lines,
            pages,
            places,
            structures,
            ..
        } = self;
        lines.end(|said| say(places, structures, said));
        pages.end(|place, parts| places[place as usize].pages.add(parts));
    }
}

fn say(places: &mut [Known], structures: &mut FxHashMap<StructureId, About>, said: Said) {
    match said {
        Said::Near { place, words } => places[place as usize].near.add(words),
        Said::Far { place, words } => places[place as usize].far.add(words),
        Said::Own { place, words } => places[place as usize].own.add(words),
        Said::Ever { structure, words } => {
            if let Some(about) = structures.get_mut(&structure) {
                about.ever.add(words);
            }
        }
    }
}

impl Walk {
    fn new() -> Walk {
        Walk {
            strides: Strides::new(),
            offsets: Offsets::new(),
            beside: Frequent::default(),
            apart: Frequent::default(),
        }
    }
}

impl About {
    fn new() -> About {
        About {
            ever: Used::default(),
            reuses: [0; 64],
        }
    }
}
