//! How many clocks superblocks take where nothing misses: samples of the run, played through.
//!
//! The tool says of each superblock how long the registers that it writes wait for those at its entry (`latency.c`).
//! Played through one after another, with as many instructions under way as a processor keeps, these waits give the
//! moment at which each superblock's last value is there. How much later that is than before it is what the superblock
//! takes: a loop that sums up floating-point numbers takes an addition's clocks each time round, and one that copies
//! takes a clock. A line of code takes a clock to fetch, unless the superblock before ended in it; instructions begin when what is before
//! their superblock was fetched. A processor takes no less than its own width allows; that is the machine's to say, not ours.

use std::collections::{BTreeMap, VecDeque};

/// Parts of the state, as `latency.c` counts them, and what stands for none.
const PARTS: usize = 35;
const NONE: u8 = 0xff;

/// Instructions under way: Intel's Skylake and AMD's Zen have reorder buffers for 224. Later ones have more, which
/// changes little: what is far apart hardly ever waits for each other.
const WINDOW: u64 = 224;

/// One of so many slots of the ring is played through: a slot has thousands of superblocks.
const ONE_IN: u64 = 64;

/// Of a short program the first slots are all there is.
const FIRST: u64 = 16;

/// Whether a slot is a sample.
pub fn is_sample(slot: u64) -> bool {
    slot <= FIRST || crate::sampling::is_sample(slot, ONE_IN)
}

/// A part of the state waits for another: so many clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    to: u8,
    from: u8,
    clocks: u16,
}

impl Way {
    /// A word of `record::LATENCY`; none where it names no part of the state.
    pub fn read(word: u64) -> Option<Way> {
        let way = Way {
            to: word as u8,
            from: (word >> 8) as u8,
            clocks: (word >> 16) as u16,
        };
        let known = |part: u8| usize::from(part) < PARTS;
        (known(way.to) && (known(way.from) || way.from == NONE)).then_some(way)
    }
}

/// What superblocks took, by number.
#[derive(Clone, Debug, Default)]
pub struct Paces {
    ways: Vec<Vec<Way>>,
    codes: Vec<Option<Code>>,
    /// Superblocks with references.
    taken: BTreeMap<usize, Taken>,
}

/// What one superblock took in all samples, and those without references that came before it: their instructions count for its first
/// reference.
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

impl Took {
    fn add(&mut self, other: Took) {
        self.clocks += other.clocks;
        self.instructions += other.instructions;
    }
}

impl Paces {
    pub fn describe(&mut self, block: usize, ways: Vec<Way>) {
        if self.ways.len() <= block {
            self.ways.resize(block + 1, Vec::new());
        }
        self.ways[block] = ways;
    }

    /// The lines of code of a superblock, found the first time that it is asked for.
    pub fn code(&mut self, block: usize, find: impl FnOnce() -> Code) -> Code {
        if self.codes.len() <= block {
            self.codes.resize(block + 1, None);
        }
        *self.codes[block].get_or_insert_with(find)
    }

    /// The same superblocks, of which none has been played.
    pub fn described(&self) -> Paces {
        Paces {
            ways: self.ways.clone(),
            codes: self.codes.clone(),
            taken: BTreeMap::new(),
        }
    }

    /// What superblocks took that some sample has met.
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

/// The lines of code that a superblock takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    begin: u64,
    end: u64,
    /// Aligned lines, one after the other; those that are left and come to again count again.
    lines: u64,
    /// Its first line is also that of the byte before it.
    continues: bool,
}

impl Code {
    /// Of instructions by address and bytes. `line`: a line's bytes; none where lines make no difference.
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
                // Superblocks go on behind jumps.
                pc != code.end || pc % line == 0
            };
            code.lines += u64::from(begins) + (end - 1) / line - pc / line;
            code.end = end;
        }
        code
    }

    /// Clocks to fetch it, after what was carried out before it.
    fn clocks(self, after: Code) -> u64 {
        let fetched = self.continues && self.begin == after.end;
        self.lines - u64::from(fetched && self.lines > 0)
    }
}

/// A processor that nothing keeps waiting but its own instructions: the superblocks of one thread, in a row.
pub struct Play {
    /// When each part of the state is there.
    ready: [u64; PARTS],
    /// When the last value so far is there.
    last: u64,
    instructions: u64,
    /// Instructions before a superblock, and [`Play::last`] after it, for those that may still be under way.
    entered: VecDeque<(u64, u64)>,
    /// No instruction begins before this: those far behind it have ended.
    floor: u64,
    /// When the last line of code so far is there, and the superblock that ends with it.
    fetched: u64,
    code: Code,
    /// Superblocks without references since the last that has some.
    before: Took,
}

impl Play {
    pub fn new() -> Play {
        Play {
            ready: [0; PARTS],
            last: 0,
            instructions: 0,
            entered: VecDeque::new(),
            floor: 0,
            fetched: 0,
            code: Code::default(),
            before: Took::default(),
        }
    }

    /// Plays one run of a superblock of so many instructions, which makes references or does not.
    pub fn run(
        &mut self,
        paces: &mut Paces,
        (block, described): (usize, usize),
        code: Code,
        instructions: u64,
        references: bool,
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
        let mut after: [Option<u64>; PARTS] = [None; PARTS];
        for way in paces.ways(described) {
            let from = match way.from {
                NONE => begins,
                part => self.ready[usize::from(part)].max(begins),
            };
            let there = from + u64::from(way.clocks);
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
        if !references {
            self.before.add(took);
            return;
        }
        let taken = paces.taken.entry(block).or_default();
        taken.own.add(took);
        taken.before.add(std::mem::take(&mut self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER: u8 = 0;
    const SUM: u8 = 17;

    fn way(to: u8, from: u8, clocks: u16) -> Way {
        Way { to, from, clocks }
    }

    fn played(ways: Vec<Way>, instructions: u64) -> f64 {
        let mut paces = Paces::default();
        paces.describe(3, ways);
        let mut play = Play::new();
        for _ in 0..1000 {
            play.run(&mut paces, (3, 3), Code::default(), instructions, true);
        }
        let taken = paces.taken[&3];
        assert_eq!(
            (taken.own.instructions, taken.before),
            (1000 * instructions, Took::default())
        );
        taken.own.clocks as f64 / 1000.0
    }

    /// A loop of 100 rounds of a multiplication that waits for the one before makes no reference; a load follows.
    #[test]
    fn loops_without_references_count_for_the_next_one() {
        let mut paces = Paces::default();
        paces.describe(3, vec![way(SUM, SUM, 4)]);
        paces.describe(5, vec![way(1, COUNTER, 4)]);
        let mut play = Play::new();
        for _ in 0..10 {
            for _ in 0..100 {
                play.run(&mut paces, (3, 3), Code::default(), 5, false);
            }
            play.run(&mut paces, (5, 5), Code::default(), 2, true);
        }
        let all: Vec<(usize, Taken)> = paces.all().collect();
        let [(5, taken)] = all[..] else { panic!("{all:?}") };
        assert_eq!((taken.own.instructions, taken.before.instructions), (20, 5000));
        assert_eq!(taken.before.clocks, 4000);
        assert!(taken.own.clocks <= 10, "{taken:?}");
    }

    #[test]
    fn a_loop_takes_as_long_as_what_it_carries_round() {
        // for (...) sum += a[i]: an addition of 3 clocks waits for the one before, the counter for its own.
        let summing = vec![way(COUNTER, COUNTER, 1), way(SUM, SUM, 3), way(SUM, COUNTER, 7)];
        let taken = played(summing, 4);
        assert!((3.0..3.1).contains(&taken), "{taken}");
        // for (...) a[i] = b[i]
        let copying = vec![way(COUNTER, COUNTER, 1), way(2, COUNTER, 4)];
        let taken = played(copying, 4);
        assert!((1.0..1.1).contains(&taken), "{taken}");
        // Chains through one register of four clocks a step.
        let chasing = vec![way(5, 5, 4)];
        assert!((4.0..4.1).contains(&played(chasing, 3)));
    }

    /// A loop of four instructions of four bytes, of which none waits for another.
    #[test]
    fn a_loop_takes_a_clock_for_each_line_of_its_code() {
        let clocks = |begin: u64, line: Option<u64>| {
            let mut paces = Paces::default();
            paces.describe(3, vec![way(1, NONE, 1)]);
            let mut play = Play::new();
            let code = Code::of((0..4).map(|at| (begin + 4 * at, 4)), line);
            for _ in 0..1000 {
                play.run(&mut paces, (3, 3), code, 4, true);
            }
            let taken = paces.taken[&3].own.clocks;
            // The window's end adds a clock here and there.
            assert!(taken % 1000 <= 50, "{taken}");
            taken / 1000
        };
        assert_eq!(
            [0x100, 0x130, 0x138, 0x13e].map(|begin| clocks(begin, Some(64))),
            [1, 1, 2, 2]
        );
        assert_eq!([0x110, 0x118].map(|begin| clocks(begin, Some(32))), [1, 2]);
        assert_eq!(clocks(0x138, None), 0);
    }

    #[test]
    fn lines_count_once_while_code_goes_on_in_them() {
        let of = |pcs: &[u64]| Code::of(pcs.iter().map(|pc| (*pc, 4)), Some(64));
        // From 0x138 over 0x140 into the same line behind a jump.
        assert_eq!(of(&[0x138, 0x13c, 0x140, 0x150]).lines, 3);
        let (first, second) = (of(&[0x100, 0x104]), of(&[0x108, 0x10c]));
        assert_eq!(
            [second.clocks(first), second.clocks(second), first.clocks(second)],
            [0, 1, 1]
        );
        let aligned = of(&[0x140]);
        assert_eq!(aligned.clocks(of(&[0x13c])), 1);
        assert_eq!(Code::of(std::iter::empty(), Some(64)).clocks(first), 0);
    }

    #[test]
    fn what_waits_for_nothing_is_bounded_by_the_window() {
        // A long chain that begins anew each time: 100 instructions of which each waits for the one before.
        let chain = vec![way(1, NONE, 100)];
        let taken = played(chain.clone(), 100);
        // Two or three of them are under way at a time.
        assert!((33.0..51.0).contains(&taken), "{taken}");
        assert!(played(chain, 224) >= 99.0);
    }

    #[test]
    fn words_that_name_no_part_are_refused() {
        assert_eq!(Way::read(5 | 6 << 8 | 7 << 16), Some(way(5, 6, 7)));
        assert_eq!(Way::read(5 | 0xff << 8), Some(way(5, NONE, 0)));
        assert_eq!(Way::read(35), None);
        assert_eq!(Way::read(1 | 40 << 8), None);
    }
}
