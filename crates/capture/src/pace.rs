//! The clocks that superblocks take without misses: a replay of samples of the run.
//!
//! For each superblock the tool states how long the registers and memory words that it writes wait for the registers at
//! its entry and for its loads (`latency.c`). A load waits for a pending store of its word: the addresses show that.
//! Superblocks are replayed one after another, with as many instructions in flight as a processor allows; the waits
//! give the moment at which each superblock's last value is available. A superblock takes the difference to the moment
//! before: a loop that sums up floating-point numbers takes an addition's clocks each time round, and one that copies
//! takes a clock. A line of code takes a clock to fetch, unless the superblock before ended in it; instructions begin
//! when everything before their superblock was fetched. The processor's width sets a further lower bound; the machine's
//! model, not this module, applies it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::RangeInclusive;

use trace::{Op, Ref};

use crate::clocks::Forward;
use crate::wire;

/// Parts of the state, as `latency.c` counts them, and the value that stands for none.
const PARTS: usize = 35;
const NONE: u8 = 0xff;

/// Numbers of a superblock's references begin here: first those that load, then those that store.
const FIRST_REFERENCE: u8 = 64;
const LOADS: usize = 20;
const REFERENCES: usize = 128;

/// A store forwards words of this many bytes: compilers place variables of four bytes side by side.
const WORD: u64 = 4;

/// The size of the largest vector. Of an instruction that saves all registers only these first bytes are followed.
const BYTES_MOST: u64 = 64;

/// Instructions in flight: Intel's Skylake and AMD's Zen have reorder buffers for 224. Later ones have more, which
/// changes little: instructions that are far apart hardly ever wait for each other.
const WINDOW: u64 = 224;

/// One of this many slots of the ring is replayed: a slot has thousands of superblocks.
const ONE_IN: u64 = 64;

/// The first slots are always replayed: a short program has no others.
const FIRST: u64 = 16;

/// True if a slot is a sample.
pub fn is_sample(slot: u64) -> bool {
    slot <= FIRST || crate::sampling::is_sample(slot, ONE_IN)
}

/// A part of the state, or a stored value, waits this many clocks for a part, or for a loaded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    to: u8,
    from: u8,
    clocks: u16,
}

impl Way {
    /// A word of `record::LATENCY`; none if it names no part of the state.
    pub fn read(word: u64) -> Option<Way> {
        let way = Way {
            to: word as u8,
            from: (word >> 8) as u8,
            clocks: (word >> 16) as u16,
        };
        let known = |part: u8, references: usize| {
            usize::from(part) < PARTS || reference(part).is_some_and(|number| number < references)
        };
        (known(way.to, REFERENCES) && (known(way.from, LOADS) || way.from == NONE)).then_some(way)
    }
}

/// The reference that a way begins or ends at.
fn reference(part: u8) -> Option<usize> {
    part.checked_sub(FIRST_REFERENCE).map(usize::from)
}

/// A reference in one run of a superblock.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// None if it was not executed.
    pub address: Option<u64>,
    pub bytes: u64,
    pub loads: bool,
    pub stores: bool,
}

/// The references of a run of a superblock; `words` begins with their addresses.
pub fn references<'a>(templates: &'a [Ref], words: &'a [u64]) -> impl Iterator<Item = Reference> + 'a {
    let ours = |word: &&u64| matches!(wire::kind(**word), 0..=wire::NULL);
    let address = |word: u64| (word & wire::TAGGED == 0).then_some(word);
    let left = templates.len() - words.iter().take(templates.len()).take_while(ours).count();
    let carried_out = words
        .iter()
        .take(templates.len() - left)
        .map(move |word| address(*word));
    let addresses = carried_out.chain(std::iter::repeat_n(None, left));
    templates.iter().zip(addresses).map(|(template, address)| Reference {
        address,
        bytes: u64::from(template.size),
        loads: matches!(template.op, Op::Read | Op::Modify),
        stores: matches!(template.op, Op::Write | Op::Modify),
    })
}

/// The clocks that superblocks took, by number.
#[derive(Clone, Debug, Default)]
pub struct Paces {
    /// Those to stores first, in the order of the stores.
    ways: Vec<Vec<Way>>,
    codes: Vec<Option<Code>>,
    /// Superblocks with references.
    taken: BTreeMap<usize, Taken>,
}

/// The clocks that one superblock took in all samples. Superblocks without references before it are included: their instructions
/// count for its first reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub own: Took,
    pub before: Took,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    pub clocks: u64,
    pub instructions: u64,
}

impl Reference {
    /// Numbers of the words that it loads or stores.
    fn words(&self, address: u64) -> RangeInclusive<u64> {
        let last = address.saturating_add(self.bytes.clamp(1, BYTES_MOST) - 1);
        address / WORD..=last / WORD
    }
}

impl Took {
    fn add(&mut self, other: Took) {
        self.clocks += other.clocks;
        self.instructions += other.instructions;
    }
}

impl Paces {
    pub fn describe(&mut self, block: usize, mut ways: Vec<Way>) {
        ways.sort_by_key(|way| (way.to < FIRST_REFERENCE, way.to));
        if self.ways.len() <= block {
            self.ways.resize(block + 1, Vec::new());
        }
        self.ways[block] = ways;
    }

    /// The lines of code of a superblock, computed at the first request.
    pub fn code(&mut self, block: usize, find: impl FnOnce() -> Code) -> Code {
        if self.codes.len() <= block {
            self.codes.resize(block + 1, None);
        }
        *self.codes[block].get_or_insert_with(find)
    }

    /// The same superblocks, none of them played yet.
    pub fn described(&self) -> Paces {
        Paces {
            ways: self.ways.clone(),
            codes: self.codes.clone(),
            taken: BTreeMap::new(),
        }
    }

    /// The clocks of all superblocks in the samples.
    pub fn all(&self) -> impl Iterator<Item = (usize, Taken)> {
        self.taken
            .iter()
            .map(|(block, taken)| (*block, *taken))
            .filter(|(_, taken)| taken.own.instructions > 0)
    }

    fn ways(&self, block: usize) -> &[Way] {
        self.ways.get(block).map_or(&[], Vec::as_slice)
    }
}

/// The lines of code that a superblock occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    begin: u64,
    end: u64,
    /// Aligned lines, in order; a line that is left and entered again counts again.
    lines: u64,
    /// Its first line also contains the byte before it.
    continues: bool,
}

impl Code {
    /// From instructions by address and bytes. `line`: a line's bytes; none if lines make no difference.
    pub fn of(instructions: impl Iterator<Item = (u64, u8)>, line: Option<u64>) -> Code {
        let mut code = Code::default();
        let Some(line) = line else {
            return code;
        };
        for (pc, bytes) in instructions {
            let end = pc + u64::from(bytes);
            let begins = if code.lines == 0 {
                (code.begin, code.continues) = (pc, pc % line != 0);
                true
            } else {
                // Superblocks continue after jumps.
                pc != code.end || pc % line == 0
            };
            code.lines += u64::from(begins) + (end - 1) / line - pc / line;
            code.end = end;
        }
        code
    }

    /// Clocks to fetch it after the previous code.
    fn clocks(self, after: Code) -> u64 {
        let fetched = self.continues && self.begin == after.end;
        self.lines - u64::from(fetched && self.lines > 0)
    }
}

/// A processor that waits only for its own instructions: the superblocks of one thread, in order.
pub struct Play {
    /// When each part of the state is available.
    ready: [u64; PARTS],
    /// When the last value so far is available.
    last: u64,
    instructions: u64,
    /// Instructions before a superblock, and [`Play::last`] after it, for those that may still be in flight.
    entered: VecDeque<(u64, u64)>,
    /// No instruction begins before this: those far behind it have ended.
    floor: u64,
    /// When the last line of code so far was fetched, and the superblock that ends with it.
    fetched: u64,
    code: Code,
    /// Superblocks without references since the last one with references.
    before: Took,
    /// When each stored word can be loaded.
    stored: HashMap<u64, u64>,
    /// The place that each store of a superblock wrote last.
    places: HashMap<(usize, usize), u64>,
    forward: Forward,
    /// When the value that each reference of the current superblock loads is available.
    loaded: [u64; LOADS],
}

impl Play {
    pub fn new(forward: Forward) -> Play {
        Play {
            ready: [0; PARTS],
            last: 0,
            instructions: 0,
            entered: VecDeque::new(),
            floor: 0,
            fetched: 0,
            code: Code::default(),
            before: Took::default(),
            stored: HashMap::new(),
            places: HashMap::new(),
            forward,
            loaded: [0; LOADS],
        }
    }

    /// Plays one run of a superblock of this many instructions, with all of its references.
    pub fn run(
        &mut self,
        paces: &mut Paces,
        (block, described): (usize, usize),
        code: Code,
        instructions: u64,
        references: &[Reference],
    ) {
        while let Some(&(begun, last)) = self.entered.front()
            && begun + WINDOW <= self.instructions
        {
            self.floor = self.floor.max(last);
            self.entered.pop_front();
        }
        let before = self.last;
        // The first line is enough to begin.
        let begins = self.fetched.max(self.floor);
        self.fetched = begins + code.clocks(self.code);
        self.code = code;
        let ways = paces.ways(described);
        let (to_stores, to_parts) = ways.split_at(ways.partition_point(|way| way.to >= FIRST_REFERENCE));
        self.through_memory(described, to_stores, references, begins);
        let mut after: [Option<u64>; PARTS] = [None; PARTS];
        for way in to_parts {
            let there = self.there(way, begins);
            let known = &mut after[usize::from(way.to)];
            *known = Some(known.map_or(there, |known| known.max(there)));
        }
        for (ready, after) in self.ready.iter_mut().zip(after) {
            if let Some(after) = after {
                *ready = after;
                self.last = self.last.max(after);
            }
        }
        self.last = self.last.max(self.fetched);
        self.entered.push_back((self.instructions, self.last));
        self.instructions += instructions;
        let took = Took {
            clocks: self.last - before,
            instructions,
        };
        if references.is_empty() {
            self.before.add(took);
            return;
        }
        let taken = paces.taken.entry(block).or_default();
        taken.own.add(took);
        taken.before.add(std::mem::take(&mut self.before));
    }

    /// The time at which the result of a way is available, by this way alone.
    fn there(&self, way: &Way, begins: u64) -> u64 {
        let from = match (way.from, reference(way.from)) {
            (NONE, _) => 0,
            (_, Some(load)) => self.loaded[load],
            (part, None) => self.ready[usize::from(part)],
        };
        from.max(begins) + u64::from(way.clocks)
    }

    /// Loads and stores pass values on, in order. A store waits only for loads before it.
    fn through_memory(&mut self, block: usize, mut to_stores: &[Way], references: &[Reference], begins: u64) {
        self.loaded = [0; LOADS];
        for (number, of) in references.iter().enumerate() {
            let Some(address) = of.address else {
                continue;
            };
            if let Some(loaded) = self.loaded.get_mut(number).filter(|_| of.loads) {
                let stored = of.words(address).filter_map(|word| self.stored.get(&word));
                *loaded = stored.copied().max().unwrap_or(0);
            }
            if of.stores {
                let before = to_stores.partition_point(|way| reference(way.to) < Some(number));
                to_stores = &to_stores[before..];
                let ours = to_stores.iter().take_while(|way| reference(way.to) == Some(number));
                let value = ours.map(|way| self.there(way, begins)).max();
                self.last = self.last.max(value.unwrap_or(0));
                let again = self.places.insert((block, number), address) == Some(address);
                let forward = if again {
                    self.forward.in_place
                } else {
                    self.forward.elsewhere
                };
                let there = value.map(|value| value + forward);
                for word in of.words(address) {
                    match there {
                        Some(there) => self.stored.insert(word, there),
                        None => self.stored.remove(&word),
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
