//! One cpu that overlaps: the lead of the entering of its instructions over its clock, and the lines on their way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use machine::Core;

use super::requests::Requests;
use super::sets::Sets;
use crate::clock::{Units, units};

/// One cpu.
pub struct Lane {
    /// Its clock less the time of its instructions, as it should be if nothing else moved it.
    level: Units,
    /// Its delays since something else delayed it.
    held_up: Units,
    /// The same by instruction, for those that may still be under way, and their sum.
    recent: VecDeque<HeldUp>,
    sum: Units,
    /// Instructions that passed since the last reference, or since something else moved the clock.
    pub between: u64,
    requests: Requests,
    /// The same of lines of each bank; any number where one bank may have all.
    banks: [Requests; BANKS],
    /// When the latest page walks are over: as many as may be under way at once; empty where that is any number.
    walks: BinaryHeap<Reverse<Units>>,
    /// When the latest stores leave the buffer: as many as it has room for, or fewer.
    pub stores: VecDeque<Units>,
    /// Between two lines from far away, by where they come from, and up to when one comes.
    lines: Lines,
    taken: Units,
    /// `None` where sets take any number of lines at once.
    pub sets: Option<Sets>,
}

/// Instructions in a row, each of which held the cpu up for so long.
#[derive(Clone, Copy)]
struct HeldUp {
    first: u64,
    count: u64,
    each: Units,
}

impl Lane {
    pub fn new(core: &Core, walkers: usize, sets: Option<Sets>) -> Lane {
        Lane {
            level: 0,
            held_up: 0,
            recent: VecDeque::new(),
            sum: 0,
            between: 0,
            requests: Requests::new(core.outstanding),
            banks: std::array::from_fn(|_| Requests::new(core.outstanding_of_bank)),
            walks: vec![Reverse(0); walkers].into(),
            stores: VecDeque::with_capacity(core.store_buffer as usize),
            lines: Lines::of(core),
            taken: 0,
            sets,
        }
    }

    /// Up to which time the cpu was held up: until then the lane's figures are kept. Returns when the instruction entered.
    #[inline]
    pub fn entered(&mut self, clock: Units, instruction: u64, period: Units, window: u64, ahead: Units) -> Units {
        self.is_as_left(clock, instruction, period);
        self.forget(instruction, window);
        clock - self.held_up.min(self.sum + ahead)
    }

    /// Instructions so far back have ended.
    #[inline]
    pub fn forget(&mut self, instruction: u64, window: u64) {
        while let Some(front) = self.recent.front_mut()
            && front.first + window <= instruction
        {
            let gone = front.count.min(instruction - window - front.first + 1);
            self.sum -= gone * front.each;
            front.first += gone;
            front.count -= gone;
            if front.count > 0 {
                break;
            }
            self.recent.pop_front();
        }
    }

    /// Returns whether nothing else has moved the clock since the lane's figures were kept. If something has, they are
    /// reset.
    #[inline]
    pub fn is_as_left(&mut self, clock: Units, instruction: u64, period: Units) -> bool {
        let level = clock.wrapping_sub(instruction.wrapping_mul(period));
        if level == self.level {
            return true;
        }
        (self.level, self.held_up, self.sum) = (level, 0, 0);
        self.recent.clear();
        false
    }

    #[inline]
    pub fn hold_up(&mut self, instruction: u64, time: Units) {
        match self.recent.back_mut() {
            Some(last) if last.first == instruction && last.count == 1 => {
                last.each += time;
                self.add(time);
            }
            _ => self.hold_up_each(instruction, 1, time),
        }
    }

    /// So many instructions up to `last`.
    #[inline]
    pub fn hold_up_each(&mut self, last: u64, count: u64, each: Units) {
        self.add(count * each);
        self.recent.push_back(HeldUp {
            first: last + 1 - count,
            count,
            each,
        });
    }

    #[inline]
    fn add(&mut self, time: Units) {
        self.level = self.level.wrapping_add(time);
        self.held_up += time;
        self.sum += time;
    }

    /// The lower bound of the time at which the last instruction entered, from the kept data.
    #[inline]
    pub fn entered_at_the_earliest(&self, clock: Units, ahead: Units) -> Units {
        clock.saturating_sub(self.sum + ahead)
    }

    /// The last instruction enters at `at` at the earliest, if it would have entered before. Returns by how much that
    /// moves the clock.
    pub fn enters_at(&mut self, clock: Units, at: Units) -> Units {
        if at < clock {
            self.held_up = clock - at;
            return 0;
        }
        self.level = self.level.wrapping_add(at - clock);
        (self.held_up, self.sum) = (0, 0);
        self.recent.clear();
        at - clock
    }

    /// When a request of a line that begins at `begins` has room; its instruction entered at `entered`. If it begins before that, room at
    /// that time is enough.
    #[inline]
    pub fn room(&mut self, line: u64, begins: Units, entered: Units) -> Units {
        let bank = &mut self.banks[bank(line)];
        self.requests.forget(entered);
        bank.forget(entered);
        let first = begins.max(entered);
        let mut at = first;
        loop {
            let next = bank.room(self.requests.room(at));
            if next == at {
                break;
            }
            at = next;
        }
        if at == first { begins } else { at }
    }

    /// The time of a page walk that begins at `begins`, the wait for a walker included.
    #[inline]
    pub fn walk(&mut self, begins: Units, refill: Units) -> Units {
        let Some(mut first) = self.walks.peek_mut().filter(|_| refill > 0) else {
            return refill;
        };
        first.0 = begins.max(first.0) + refill;
        first.0 - begins
    }

    /// The delay of a line that is asked for at `asked`, by an instruction that entered at `entered`.
    #[inline]
    pub fn line_turn(&mut self, whence: Whence, asked: Units, entered: Units) -> Units {
        let line = match whence {
            Whence::Near => return 0,
            Whence::LastLevel => self.lines.last_level,
            Whence::Memory => self.lines.memory,
            Whence::HugeMemory => self.lines.huge_memory,
        };
        if self.lines.none() {
            return 0;
        }
        let turn = asked.max(self.taken);
        self.taken = self.taken.max(entered) + line;
        turn - asked
    }

    #[inline]
    pub fn request(&mut self, line: u64, asked: Units, done: Units) {
        self.requests.add(asked, done);
        self.banks[bank(line)].add(asked, done);
    }
}

/// The place that a line comes to a core from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whence {
    /// Its first or second level.
    Near,
    LastLevel,
    Memory,
    /// Memory of a page that is on a huge one.
    HugeMemory,
}

/// Between two lines, by where the first one comes from.
struct Lines {
    last_level: Units,
    memory: Units,
    huge_memory: Units,
}

impl Lines {
    fn of(core: &Core) -> Lines {
        let or = |ns: f64, other: Units| if ns > 0.0 { units(ns) } else { other };
        let last_level = units(core.line_ns);
        let memory = or(core.memory_line_ns, last_level);
        Lines {
            last_level,
            memory,
            huge_memory: or(core.huge_memory_line_ns, memory),
        }
    }

    fn none(&self) -> bool {
        self.last_level == 0 && self.memory == 0 && self.huge_memory == 0
    }
}

/// Lines belong to this many banks, one after the other.
const BANKS: usize = 4;

fn bank(line: u64) -> usize {
    (line % BANKS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 100;

    fn lane() -> Lane {
        let core = Core {
            instructions_per_clock: 1.0,
            window: WINDOW as u32,
            outstanding: 1,
            outstanding_of_bank: 0,
            line_ns: 0.0,
            memory_line_ns: 0.0,
            huge_memory_line_ns: 0.0,
            store_buffer: 1,
            set_refill_ns: 0.0,
            bank_refill_ns: 0.0,
            set_rewrite_ns: 0.0,
            misprediction_ns: 0.0,
        };
        Lane::new(&core, 0, None)
    }

    /// A load may begin before its instruction entered, but it needs room only from then on.
    #[test]
    fn loads_that_begin_early_need_room_when_they_have_entered() {
        let mut lane = lane();
        lane.request(0, 100, 150);
        lane.request(1, 140, 170);
        assert_eq!(
            [149, 150, 170].map(|entered| lane.room(1, 120, entered)),
            [170, 170, 120]
        );
    }

    /// Runs of instructions that have ended are forgotten one by one, and no more are kept than are under way.
    #[test]
    fn what_has_ended_is_forgotten() {
        let (mut lane, mut clock) = (lane(), 0);
        for number in 1..=1000u64 {
            let instruction = 7 * number;
            clock += 7;
            assert!(lane.is_as_left(clock, instruction, 1));
            lane.forget(instruction, WINDOW);
            lane.hold_up_each(instruction, 7, 2);
            clock += 14;
            assert!(lane.recent.len() as u64 <= WINDOW / 7 + 2);
        }
        // The window's instructions but the first took 1 and 2 more each.
        let entered = lane.entered(clock, 7000, 1, WINDOW, WINDOW - 1);
        assert_eq!(clock - entered, (WINDOW - 1) + 2 * WINDOW);
    }
}
