//! Lines that others bring into a cache which they share with the simulated machine: programs in other virtual machines,
//! or beside the simulated one. The contract's section "Others in a shared cache".
//!
//! Each set has its turn once a round, and gets no line, one, or a few: one on average, as many as chance would have it
//! if every line came to some set. So a line that is not used for a while is lost more and more probably, and not at
//! one moment. A set does not change between two lookups, so the lines that came to it in between are taken in at the
//! second. That costs nothing if there are no others.

use policy::Random;

use crate::cache::OTHERS;
use crate::clock::Units;
use crate::config::Config;
use crate::engine::Engine;
use crate::layout::{Layout, Place};
use crate::lookup::{SetLine, take_in};
use crate::pieces::Access;
use crate::steps::Step;

/// The lines that have come to one instance.
struct Came {
    /// From one set's turn to the next's.
    apart: Units,
    /// Of the instance and the run: the seed of chance.
    key: u64,
    /// Turns that were looked at, by set.
    turns: Vec<u64>,
    /// To the shadow.
    to_shadow: u64,
}

/// By instance; empty where others bring nothing to any cache.
pub struct Others(Vec<Option<Came>>);

impl Others {
    pub fn new(config: &Config, layout: &Layout) -> Others {
        let came = |(number, place): (usize, &Place)| {
            let shape = &layout.caches[place.cache];
            (shape.others > 0).then(|| Came {
                apart: shape.others,
                key: Random::new(config.seed.wrapping_add(number as u64)).number(),
                turns: vec![0; shape.sets],
                to_shadow: 0,
            })
        };
        Others(layout.places.iter().enumerate().map(came).collect())
    }
}

impl Came {
    /// The number of lines that have come to a set by now and were not taken in yet, up to `most`; they are now.
    fn fresh_of_set(&mut self, set: usize, now: Units, most: u64) -> u64 {
        let sets = self.turns.len();
        // Turn number 0 is that of set 0, one distance after the beginning.
        let due = (now / self.apart + (sets - 1 - set) as u64) / sets as u64;
        let fresh = fresh(&mut self.turns[set], due);
        let mut lines = 0;
        // The newest first: after a long time few of them are enough.
        for round in (due - fresh..due).rev() {
            lines += lines_of_turn(self.key, set as u64, round);
            if lines >= most {
                return most;
            }
        }
        lines
    }

    fn fresh_of_shadow(&mut self, now: Units) -> u64 {
        fresh(&mut self.to_shadow, now / self.apart)
    }
}

/// Turns that one number of the generator is enough for: a byte each.
const TURNS: u64 = 8;

/// Of 256 turns, how many bring at most 0, 1, 2, 3 and 4 lines, and all others 5: Poisson's distribution, whose mean is exactly one.
const AT_MOST: [u8; 5] = [95, 188, 235, 251, 255];

/// Lines that come to a set in its turn of a round.
fn lines_of_turn(key: u64, set: u64, round: u64) -> u64 {
    let seed = key.wrapping_add(set << 32).wrapping_add(round / TURNS);
    let byte = Random::new(seed).number().to_le_bytes()[(round % TURNS) as usize];
    AT_MOST.iter().filter(|&&most| byte >= most).count() as u64
}

/// Another cpu's clock may be ahead of this one's.
fn fresh(taken: &mut u64, due: u64) -> u64 {
    let fresh = due.saturating_sub(*taken);
    *taken += fresh;
    fresh
}

impl Engine {
    /// The lines of others that came to a piece's set since it was looked at last are taken in.
    #[inline(always)]
    pub fn others_come(&mut self, a: &Access, step: &Step) {
        if step.others {
            self.take_in_others(a, step);
        }
    }

    #[inline(never)]
    fn take_in_others(&mut self, a: &Access, step: &Step) {
        let instance = step.instance as usize;
        let SetLine { set, .. } = self.set_line(a, step);
        let Some(came) = &mut self.others.0[instance] else {
            return;
        };
        // More than there are ways find nothing but lines of others.
        let ways = self.layout.caches[step.kind as usize].ways as u64;
        let (to_set, to_shadow) = (came.fresh_of_set(set, a.now, ways), came.fresh_of_shadow(a.now));
        if let Some(shadow) = self.shadows.get_mut(instance) {
            shadow.others(&mut self.arenas[usize::from(step.arena)], to_shadow);
        }
        for _ in 0..to_set {
            let place = SetLine { set, line: OTHERS };
            let counts = &mut self.counts[step.counts as usize];
            let gone = take_in::<0>(&mut self.caches[instance], counts, place, 0);
            self.made_room(a, step, gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turns of one set after the other, each with the lines that chance gives it.
    #[test]
    fn sets_have_their_turn_one_after_the_other() {
        let mut came = Came {
            apart: 10,
            key: 7,
            turns: vec![0; 4],
            to_shadow: 0,
        };
        let lines = |set, rounds: std::ops::Range<u64>| rounds.map(|round| lines_of_turn(7, set, round)).sum::<u64>();
        // At 65 there were six turns: those of the sets 0, 1, 2, 3, 0 and 1.
        let fresh: Vec<u64> = (0..4).map(|set| came.fresh_of_set(set, 65, 100)).collect();
        assert_eq!(fresh, [lines(0, 0..2), lines(1, 0..2), lines(2, 0..1), lines(3, 0..1)]);
        assert_eq!(came.fresh_of_set(0, 65, 100), 0);
        // A clock before the latest takes nothing back.
        assert_eq!(came.fresh_of_set(0, 10, 100), 0);
        assert_eq!(came.fresh_of_set(0, 4010, 1000), lines(0, 2..101));
        // No more than asked for, for any number of turns.
        assert_eq!((came.fresh_of_set(3, 4010, 16), came.turns[3]), (16, 100));
        assert_eq!((came.fresh_of_shadow(65), came.fresh_of_shadow(109)), (6, 4));
    }

    #[test]
    fn turns_bring_one_line_on_average_and_as_many_as_chance_has_it() {
        let rounds = 1 << 16;
        let mut counts = [0u64; 6];
        for (set, round) in (0..4).flat_map(|set| (0..rounds).map(move |round| (set, round))) {
            counts[lines_of_turn(3, set, round) as usize] += 1;
        }
        for (lines, of_256) in [95, 93, 47, 16, 4, 1].into_iter().enumerate() {
            let expected = (4 * rounds * of_256 / 256) as f64;
            let spread = 5.0 * expected.sqrt();
            assert!((counts[lines] as f64 - expected).abs() < spread, "{counts:?}");
        }
    }
}
