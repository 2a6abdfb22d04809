//! A set of the first cache takes one line after the other, and so does a bank: item 9 of "A processor that overlaps"
//! in the contract.
//!
//! Only lines that compete for a few sets notice. Turns are kept by line; those that have passed by the time at which
//! instructions enter mean nothing any more.

use std::collections::VecDeque;

use machine::{Cache, Core};
use rustc_hash::FxHashMap;

use crate::clock::{Units, units};
use crate::lookup::SetLine;

/// At this many lines, those whose turns have passed are forgotten: at least this many, and twice as many as were left
/// last time. The lines that warm caches before a window come from one instruction, whose turns do not pass before it
/// is over.
const MANY: usize = 1 << 12;

/// Lines whose numbers are the same modulo this are a bank.
const BANKS: usize = 4;

/// The sets and banks of one cpu's first cache for data.
pub struct Sets {
    refill: Units,
    rewrite: Units,
    ways: usize,
    window: u64,
    sets: Vec<Set>,
    bank_refill: Units,
    /// By bank, the time until which it is taken.
    banks: [Units; BANKS],
    /// The instruction from which on no set has had as many requests as ways within the window.
    calm: u64,
    turns: FxHashMap<u32, Turns>,
    /// At this many turns, those that have passed are forgotten.
    many: usize,
}

#[derive(Clone, Default)]
struct Set {
    /// Up to when it is taken.
    taken: Units,
    /// The instructions of its last requests, as many as it has ways.
    requests: VecDeque<u64>,
}

/// When a line was asked for last, and when a store fetched it again.
#[derive(Clone, Copy, Default)]
struct Turns {
    request: Units,
    rewrite: Units,
}

/// An instruction with a piece: its number, and when it entered.
#[derive(Clone, Copy)]
pub struct By {
    pub number: u64,
    pub entered: Units,
}

impl Sets {
    /// `None` where sets take any number of lines at once.
    pub fn new(core: &Core, first: Option<&Cache>) -> Option<Sets> {
        let (refill, bank_refill, cache) = (units(core.set_refill_ns), units(core.bank_refill_ns), first?);
        (refill > 0 || bank_refill > 0).then(|| Sets {
            refill,
            rewrite: units(core.set_rewrite_ns),
            ways: cache.ways as usize,
            window: core.window.into(),
            sets: vec![Set::default(); cache.sets() as usize],
            bank_refill,
            banks: [0; BANKS],
            calm: 0,
            turns: FxHashMap::default(),
            many: MANY,
        })
    }

    /// The turn that a line has already which would be asked for at `asked`.
    #[inline]
    pub fn joins(&self, line: u32, by: By, asked: Units) -> Option<Units> {
        let turn = self.turns.get(&line)?.request;
        (turn > asked.max(by.entered)).then_some(turn)
    }

    /// A request's turn. `number`: of its line.
    #[inline]
    pub fn takes(&mut self, SetLine { set, line }: SetLine, number: u64, by: By, asked: Units) -> Units {
        let set = &mut self.sets[set];
        let bank = &mut self.banks[number as usize % BANKS];
        let turn = asked.max(set.taken).max(*bank);
        set.taken = set.taken.max(by.entered) + self.refill;
        *bank = (*bank).max(by.entered) + self.bank_refill;
        if set.requests.len() == self.ways {
            set.requests.pop_front();
        }
        set.requests.push_back(by.number);
        if self.refill > 0 && set.requests.len() == self.ways {
            self.calm = self.calm.max(set.requests[0] + self.window);
        }
        if self.turns.len() >= self.many {
            self.turns
                .retain(|_, turns| turns.request.max(turns.rewrite) > by.entered);
            self.many = MANY.max(2 * self.turns.len());
        }
        self.turns.entry(line).or_default().request = turn;
        turn
    }

    /// Returns whether a store by this instruction may find its line replaced when it leaves.
    #[inline]
    pub fn may_rewrite(&self, number: u64) -> bool {
        number < self.calm
    }

    /// A line is written.
    #[inline]
    pub fn write(&mut self, SetLine { set, line }: SetLine, by: By) {
        let set = &mut self.sets[set];
        if self.refill == 0 || set.requests.len() < self.ways || set.requests[0] + self.window <= by.number {
            return;
        }
        let turns = self.turns.entry(line).or_default();
        if turns.rewrite <= by.entered {
            turns.rewrite = set.taken.max(by.entered);
            set.taken = turns.rewrite + self.rewrite;
        }
    }
}
