//! The directory: for each block, which cores may hold it, who owns it, and what was written.
//!
//! Kept in arrays by block number, which is dense. The set of cores is a superset (evictions do
//! not clear it); whoever needs to know exactly looks into the caches of these cores.
//!
//! With classes of misses it also keeps the records of sharing: one for each instance that lost
//! a line to a write of another core, or took it back and has not yet shown whether it needed to
//! (Dubois and others 1993, section 3). Words that the owner writes are gathered in the block and
//! given to the records when the owner changes.

use crate::clock::Units;

pub const NOBODY: u8 = u8::MAX;
const END: u32 = u32::MAX;

/// A block of the footprint.
#[derive(Clone, Copy)]
pub struct Block {
    /// First of its records.
    records: u32,
    /// Groups of cores that may hold a line of it.
    pub cores: u16,
    pub owner: u8,
    /// Whether a cache may hold it dirty though nobody owns it.
    pub dirty: bool,
}

const UNTOUCHED: Block = Block {
    records: END,
    cores: 0,
    owner: NOBODY,
    dirty: false,
};

/// An instance that lost a line to a write of another core.
pub struct Record {
    pub instance: u32,
    pub line: u32,
    next: u32,
    /// Whether the instance has taken the line back by a miss that is not known to be essential.
    pub held: bool,
    /// Words of the line written by cores off the instance since its last essential miss.
    pub words: u64,
}

/// What a record says of a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no record: not a sharing miss.
    Other,
    True,
    False,
    /// It will be told by what is accessed while the line is held.
    Waits,
}

/// A miss whose class, true or false sharing, is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    /// Index of the counts that it belongs to.
    pub counts: u32,
    pub stall: Units,
    pub detail: crate::detail::Key,
}

pub struct Directory {
    pub blocks: Vec<Block>,
    /// For blocks with records: words written since they were given to the records last; bit:
    /// word of the block.
    written: Vec<u64>,
    records: Vec<Record>,
    /// Of each record that is held, the miss.
    pending: Vec<Pending>,
    free: Vec<u32>,
    /// Cores in one bit of [`Block::cores`].
    group: u32,
}

impl Directory {
    pub fn new(cores: u32) -> Self {
        Directory {
            blocks: Vec::new(),
            written: Vec::new(),
            records: Vec::new(),
            pending: Vec::new(),
            free: Vec::new(),
            group: cores.div_ceil(16).max(1),
        }
    }

    /// Makes room for blocks below `count`.
    pub fn grow(&mut self, count: usize) {
        if count > self.blocks.len() {
            self.blocks.resize(count, UNTOUCHED);
            self.written.resize(count, 0);
        }
    }

    /// The bit of a core in [`Block::cores`].
    #[inline(always)]
    pub fn bit(&self, core: u32) -> u16 {
        1 << (core / self.group)
    }

    /// The cores that a bit stands for.
    pub fn cores_of(&self, bit: u32) -> std::ops::Range<u32> {
        bit * self.group..(bit + 1) * self.group
    }

    /// The owner wrote words of a block with records.
    pub fn wrote(&mut self, block: u32, words: u64) {
        self.written[block as usize] |= words;
    }

    /// What was written since this was asked last.
    pub fn take_written(&mut self, block: u32) -> u64 {
        std::mem::take(&mut self.written[block as usize])
    }

    #[inline(always)]
    pub fn has_records(&self, block: u32) -> bool {
        self.blocks[block as usize].records != END
    }

    fn find(&self, block: u32, instance: u32, line: u32) -> Option<usize> {
        let mut at = self.blocks[block as usize].records;
        while at != END {
            let record = &self.records[at as usize];
            if record.instance == instance && record.line == line {
                return Some(at as usize);
            }
            at = record.next;
        }
        None
    }

    /// The miss that waits for the verdict of an instance and line.
    pub fn pending(&mut self, block: u32, instance: u32, line: u32) -> Option<&mut Pending> {
        let at = self.find(block, instance, line)?;
        self.records[at].held.then(|| &mut self.pending[at])
    }

    /// An instance misses a line, accessing `words`. A miss that is essential and `fills` ends
    /// the record; one that waits is `pending`.
    pub fn missed(
        &mut self,
        block: u32,
        (instance, line): (u32, u32),
        words: u64,
        fills: bool,
        pending: impl FnOnce() -> Pending,
    ) -> Verdict {
        let Some(at) = self.find(block, instance, line) else {
            return Verdict::Other;
        };
        let record = &mut self.records[at];
        match (record.words & words != 0, fills) {
            (true, true) => {
                self.retain(block, |record, _| record.instance != instance || record.line != line);
                Verdict::True
            }
            (true, false) => {
                record.words = 0;
                Verdict::True
            }
            (false, false) => Verdict::False,
            (false, true) => {
                record.held = true;
                self.pending[at] = pending();
                Verdict::Waits
            }
        }
    }

    /// An instance lost a line just now to a write; returns the miss that had waited, and was
    /// false sharing.
    pub fn lost(&mut self, block: u32, instance: u32, line: u32) -> Option<Pending> {
        if let Some(at) = self.find(block, instance, line) {
            let held = std::mem::replace(&mut self.records[at].held, false);
            return held.then(|| self.pending[at]);
        }
        let record = Record {
            instance,
            line,
            next: self.blocks[block as usize].records,
            held: false,
            words: 0,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.records[at as usize] = record;
                at
            }
            None => {
                self.records.push(record);
                self.pending.push(Pending::default());
                self.records.len() as u32 - 1
            }
        };
        self.blocks[block as usize].records = at;
        None
    }

    /// Calls `keep` for each record of a block, and removes those for which it says no.
    #[inline]
    pub fn retain(&mut self, block: u32, mut keep: impl FnMut(&mut Record, &Pending) -> bool) {
        let mut before = END;
        let mut at = self.blocks[block as usize].records;
        while at != END {
            let record = &mut self.records[at as usize];
            let next = record.next;
            if keep(record, &self.pending[at as usize]) {
                before = at;
            } else {
                match before {
                    END => self.blocks[block as usize].records = next,
                    _ => self.records[before as usize].next = next,
                }
                self.free.push(at);
            }
            at = next;
        }
    }

    /// A block begins anew: another page is there.
    pub fn reset(&mut self, block: u32) {
        self.retain(block, |_, _| false);
        self.blocks[block as usize] = UNTOUCHED;
        self.written[block as usize] = 0;
    }

    /// The misses that are still undecided, to be decided at the end.
    pub fn undecided(&mut self) -> Vec<Pending> {
        let mut pending = Vec::new();
        for block in 0..self.blocks.len() as u32 {
            self.retain(block, |record, miss| {
                pending.extend(record.held.then_some(*miss));
                false
            });
        }
        pending
    }
}
