//! The records of sharing: of each block, the instances that lost a line of it to a write of
//! another core, or took it back and have not yet shown whether they needed to (Dubois and others
//! 1993, section 3).
//!
//! The records of a block lie side by side, in the order in which they were made. Words that the
//! block's owner writes are gathered for the block and given to the records when the owner
//! changes.

use sys::arrays::Array;

use crate::clock::Units;
use crate::detail::Key;

/// A line of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub line: u32,
    pub instance: u32,
    /// The cores that the instance serves, the last one too.
    pub first_core: u8,
    pub last_core: u8,
}

impl Held {
    /// Returns whether the instance is on the path of a core.
    #[inline(always)]
    fn serves(self, core: u32) -> bool {
        u32::from(self.first_core) <= core && core <= u32::from(self.last_core)
    }
}

/// An instance that lost a line to a write of another core.
#[derive(Clone, Copy, Default)]
struct Record {
    of: Held,
    /// The words of the block that the line has.
    all: u64,
    /// Those written by cores off the instance since its last essential miss.
    words: u64,
    /// If the instance has taken the line back by a miss that is not known to be essential: the
    /// miss, an index of [`Records::pending`]; else [`NONE`].
    pending: u32,
}

const NONE: u32 = u32::MAX;

/// The verdict of a record on a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingMiss {
    /// There is no record: not a sharing miss.
    None,
    True,
    False,
    /// The accesses while the line is held will decide.
    Undecided,
}

/// A miss whose class, true or false sharing, is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    /// Index of the counts that it belongs to.
    /// [`DISCARDED`]: to none.
    pub counts: u32,
    pub stall: Units,
    /// Part of `stall`: if no cache on the path served the miss.
    pub beyond: Units,
    pub detail: Key,
}

/// The counts of a miss from before counting began.
pub const DISCARDED: u32 = u32::MAX;

/// Records that a block with any has room for.
const FEWEST: u32 = 4;

/// The place of a block's records.
#[derive(Clone, Copy, Default)]
struct Run {
    start: u32,
    len: u32,
    /// There is room for `FEWEST << size` of them.
    size: u32,
}

pub struct Records {
    /// By block: the words written since they were last given to the records (bit: word of the block), and the block's
    /// [`Run`].
    blocks: Array<[u64; 2]>,
    records: Vec<Record>,
    pending: Vec<Pending>,
    free_pending: Vec<u32>,
    /// Starts of runs that are free, by size.
    free: Vec<Vec<u32>>,
}

impl Records {
    pub fn new() -> Self {
        Records {
            blocks: Array::new(0),
            records: Vec::new(),
            pending: Vec::new(),
            free_pending: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Makes room for blocks below `count`.
    pub fn grow(&mut self, count: usize) {
        self.blocks.grow(count);
    }

    #[inline(always)]
    fn run(&self, block: u32) -> Run {
        let [_, run] = self.blocks[block as usize];
        Run {
            start: run as u32,
            len: (run >> 32) as u32 & 0xff_ffff,
            size: (run >> 56) as u32,
        }
    }

    #[inline(always)]
    fn set_run(&mut self, block: u32, run: Run) {
        self.blocks[block as usize][1] = u64::from(run.start) | u64::from(run.len) << 32 | u64::from(run.size) << 56;
    }

    #[inline(always)]
    fn of(&mut self, block: u32) -> &mut [Record] {
        let run = self.run(block);
        &mut self.records[run.start as usize..][..run.len as usize]
    }

    #[inline(always)]
    pub fn is_empty(&self, block: u32) -> bool {
        self.run(block).len == 0
    }

    /// The owner wrote words of a block with records.
    #[inline(always)]
    pub fn wrote(&mut self, block: u32, words: u64) {
        self.blocks[block as usize][0] |= words;
    }

    /// Forgets the words that were written and not given to the records.
    #[inline(always)]
    pub fn forget_written(&mut self, block: u32) {
        self.blocks[block as usize][0] = 0;
    }

    /// Gives the words that the owner wrote to the records of instances off its path.
    #[inline]
    pub fn give_written(&mut self, block: u32, owner: Option<u32>) {
        let written = std::mem::take(&mut self.blocks[block as usize][0]);
        if written == 0 {
            return;
        }
        for record in self.of(block) {
            let own = owner.is_some_and(|owner| record.of.serves(owner));
            record.words |= if own { 0 } else { written & record.all };
        }
    }

    #[inline(always)]
    fn find(&mut self, block: u32, instance: u32, line: u32) -> Option<&mut Record> {
        let same = |record: &&mut Record| record.of.line == line && record.of.instance == instance;
        self.of(block).iter_mut().find(same)
    }

    /// The miss of an instance and line that is not decided yet.
    pub fn pending(&mut self, block: u32, instance: u32, line: u32) -> Option<&mut Pending> {
        let pending = self.find(block, instance, line)?.pending;
        self.pending.get_mut(pending as usize)
    }

    /// An instance misses a line, accessing `words`. A miss that is essential and `fills` ends the record; one that
    /// waits is kept with its counts and its owner.
    #[inline]
    pub fn missed(
        &mut self,
        block: u32,
        (instance, line): (u32, u32),
        words: u64,
        fills: bool,
        counts: u32,
        detail: impl FnOnce() -> Option<Key>,
    ) -> SharingMiss {
        let Some(record) = self.find(block, instance, line) else {
            return SharingMiss::None;
        };
        match (record.words & words != 0, fills) {
            (true, true) => {
                self.retain(block, |record| record.of.line != line || record.of.instance != instance);
                SharingMiss::True
            }
            (true, false) => {
                record.words = 0;
                SharingMiss::True
            }
            (false, false) => SharingMiss::False,
            (false, true) => {
                let before = record.pending;
                let at = match self.free_pending.pop() {
                    _ if before != NONE => before,
                    Some(at) => at,
                    None => {
                        self.pending.push(Pending::default());
                        self.pending.len() as u32 - 1
                    }
                };
                // Written part by part: put together first, it would be copied from halves that
                // the host has not yet stored.
                let miss = &mut self.pending[at as usize];
                miss.counts = counts;
                miss.stall = 0;
                miss.beyond = 0;
                if let Some(key) = detail() {
                    miss.detail = key;
                }
                if let Some(record) = self.find(block, instance, line) {
                    record.pending = at;
                }
                SharingMiss::Undecided
            }
        }
    }

    /// An instance takes a line, or misses it, in a case where losing it to a write does not matter. `takes`: it holds
    /// the line afterwards.
    pub fn forgive(&mut self, block: u32, instance: u32, line: u32, takes: bool) {
        if takes {
            self.retain(block, |record| record.of.line != line || record.of.instance != instance);
        } else if let Some(record) = self.find(block, instance, line) {
            record.words = 0;
        }
    }

    /// An instance lost a line, which has the words `all`, just now to a write; returns the miss
    /// that had waited, and was false sharing.
    #[inline]
    pub fn lost(&mut self, block: u32, of: Held, all: u64) -> Option<Pending> {
        if let Some(record) = self.find(block, of.instance, of.line) {
            let pending = std::mem::replace(&mut record.pending, NONE);
            return self.take_pending(pending);
        }
        self.add(
            block,
            Record {
                of,
                all,
                words: 0,
                pending: NONE,
            },
        );
        None
    }

    #[inline(always)]
    fn take_pending(&mut self, pending: u32) -> Option<Pending> {
        let miss = *self.pending.get(pending as usize)?;
        self.free_pending.push(pending);
        Some(miss)
    }

    fn add(&mut self, block: u32, record: Record) {
        let mut run = self.run(block);
        if run.len == 0 {
            run = Run {
                size: 0,
                len: 0,
                start: self.room(0),
            };
        } else if run.len == FEWEST << run.size {
            let start = self.room(run.size + 1);
            let old = run.start as usize;
            self.records.copy_within(old..old + run.len as usize, start as usize);
            self.free[run.size as usize].push(run.start);
            (run.start, run.size) = (start, run.size + 1);
        }
        self.records[(run.start + run.len) as usize] = record;
        run.len += 1;
        self.set_run(block, run);
    }

    /// Room for `FEWEST << size` records.
    fn room(&mut self, size: u32) -> u32 {
        let size = size as usize;
        if self.free.len() <= size {
            self.free.resize(size + 1, Vec::new());
        }
        self.free[size].pop().unwrap_or_else(|| {
            let start = self.records.len();
            self.records
                .resize(start + ((FEWEST as usize) << size), Record::default());
            start as u32
        })
    }

    /// Returns whether a miss of an instance on the core's path is still undecided.
    pub fn waits(&mut self, block: u32, core: u32) -> bool {
        let undecided = |record: &Record| record.pending != NONE && record.of.serves(core);
        self.of(block).iter().any(undecided)
    }

    /// A core accesses words: misses of instances on its path that turn out essential are
    /// appended to `essential`, the latest record's first, and their records end. Returns whether
    /// some are still undecided.
    #[inline]
    pub fn seen(&mut self, block: u32, core: u32, words: u64, essential: &mut Vec<Pending>) -> bool {
        let mut waits = false;
        let mut some = false;
        for record in self.of(block) {
            let open = record.pending != NONE && record.of.serves(core);
            let needed = record.words & words != 0;
            waits |= open & !needed;
            some |= open & needed;
        }
        if some {
            let from = essential.len();
            let run = self.run(block);
            for at in (run.start..run.start + run.len).rev() {
                let record = &self.records[at as usize];
                if record.pending != NONE && record.of.serves(core) && record.words & words != 0 {
                    essential.push(self.pending[record.pending as usize]);
                }
            }
            debug_assert!(essential.len() > from);
            self.retain(block, |record| {
                record.pending == NONE || !record.of.serves(core) || record.words & words == 0
            });
        }
        waits
    }

    /// An instance lost a line, not to a write: a miss that was undecided, and is returned, was
    /// false sharing.
    #[inline]
    pub fn unheld(&mut self, block: u32, instance: u32, line: u32) -> Option<Pending> {
        let pending = self.find(block, instance, line)?.pending;
        let miss = *self.pending.get(pending as usize)?;
        self.retain(block, |record| record.pending != pending);
        Some(miss)
    }

    /// Undecided misses will count for nothing.
    pub fn discard(&mut self) {
        for miss in &mut self.pending {
            miss.counts = DISCARDED;
        }
    }

    /// Ends the records of a block for which `keep` says no.
    #[inline]
    fn retain(&mut self, block: u32, keep: impl Fn(&Record) -> bool) {
        let mut run = self.run(block);
        let mut kept = 0;
        for at in 0..run.len as usize {
            let record = self.records[run.start as usize + at];
            if keep(&record) {
                self.records[run.start as usize + kept] = record;
                kept += 1;
            } else if record.pending != NONE {
                self.free_pending.push(record.pending);
            }
        }
        if kept == 0 && run.len > 0 {
            self.free[run.size as usize].push(run.start);
            run = Run::default();
        }
        run.len = kept as u32;
        self.set_run(block, run);
    }

    /// Forgets all about a block.
    pub fn clear(&mut self, block: u32) {
        self.retain(block, |_| false);
        self.forget_written(block);
    }

    /// The misses that are still undecided, to be decided at the end.
    pub fn undecided(&mut self) -> Vec<Pending> {
        let mut misses = Vec::new();
        for block in 0..self.blocks.len() as u32 {
            let run = self.run(block);
            for at in (run.start..run.start + run.len).rev() {
                let pending = self.records[at as usize].pending;
                misses.extend(self.pending.get(pending as usize));
            }
        }
        misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(instance: u32) -> Held {
        Held {
            line: 3,
            instance,
            first_core: instance as u8,
            last_core: instance as u8,
        }
    }

    #[test]
    fn more_records_than_there_was_room_for() {
        let mut records = Records::new();
        records.grow(8);
        for instance in 0..3 * FEWEST {
            assert!(records.lost(3, held(instance), u64::MAX).is_none());
            assert!(records.lost(4, held(instance), u64::MAX).is_none());
        }
        records.wrote(3, 0b110);
        records.give_written(3, Some(1));
        for instance in 0..3 * FEWEST {
            let missed =
                |records: &mut Records, words| records.missed(3, (instance, 3), words, true, instance, || None);
            assert_eq!(missed(&mut records, 1), SharingMiss::Undecided);
            if instance == 1 {
                assert_eq!(
                    missed(&mut records, 0b110),
                    SharingMiss::Undecided,
                    "its own core wrote"
                );
            } else {
                assert_eq!(missed(&mut records, 0b010), SharingMiss::True);
            }
        }
        assert_eq!(records.unheld(3, 1, 3).map(|miss| miss.counts), Some(1));
        assert!(records.is_empty(3));
        assert!(!records.is_empty(4));
        assert!(records.lost(5, held(9), 1).is_none());
        assert_eq!(
            records.records.len() as u32,
            2 * 7 * FEWEST,
            "room that was given back is used again"
        );
    }

    #[test]
    fn what_is_accessed_decides() {
        let mut records = Records::new();
        records.grow(1);
        for core in 0..2 {
            records.lost(0, held(core), 0xff);
            assert_eq!(
                records.missed(0, (core, 3), 1, true, core, || None),
                SharingMiss::Undecided
            );
        }
        records.wrote(0, 0xf00);
        records.give_written(0, Some(2));
        let mut essential = Vec::new();
        assert!(
            records.seen(0, 0, 0xf00, &mut essential),
            "the line has none of these words"
        );
        records.wrote(0, 0x4);
        records.give_written(0, Some(2));
        assert!(!records.seen(0, 0, 0xc, &mut essential));
        assert_eq!(essential.iter().map(|miss| miss.counts).collect::<Vec<_>>(), [0]);
        assert_eq!(
            records.undecided().iter().map(|miss| miss.counts).collect::<Vec<_>>(),
            [1]
        );
        records.clear(0);
        assert!(records.is_empty(0));
    }
}
