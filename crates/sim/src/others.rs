//! Lines that others bring into a cache which they share with the simulated machine: programs in other virtual machines,
//! or beside the simulated one. The contract's section "Others in a shared cache".
//!
//! They come one after the other at the same distance in time, to one set after the other. Nobody looks at a set between two
//! lookups, so the lines that came to it in between are taken in at the second. That costs nothing where no others are.

use crate::cache::OTHERS;
use crate::clock::Units;
use crate::engine::Engine;
use crate::layout::{Layout, Place};
use crate::lookup::{SetLine, take_in};
use crate::pieces::Access;
use crate::steps::Step;

/// What has come to one instance.
struct Came {
    /// From one line to the next.
    apart: Units,
    /// By set.
    to_set: Vec<u64>,
    /// To the shadow.
    to_shadow: u64,
}

/// By instance; empty where others bring nothing to any cache.
pub struct Others(Vec<Option<Came>>);

impl Others {
    pub fn new(layout: &Layout) -> Others {
        let came = |place: &Place| {
            let shape = &layout.caches[place.cache];
            (shape.others > 0).then(|| Came {
                apart: shape.others,
                to_set: vec![0; shape.sets],
                to_shadow: 0,
            })
        };
        Others(layout.places.iter().map(came).collect())
    }
}

impl Came {
    /// How many lines have come to a set by now and were not taken in yet; they are now.
    fn fresh_of_set(&mut self, set: usize, now: Units) -> u64 {
        let sets = self.to_set.len();
        // Line number 0 goes to set 0, one distance after the beginning.
        let due = (now / self.apart + (sets - 1 - set) as u64) / sets as u64;
        fresh(&mut self.to_set[set], due)
    }

    fn fresh_of_shadow(&mut self, now: Units) -> u64 {
        fresh(&mut self.to_shadow, now / self.apart)
    }
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
        let (to_set, to_shadow) = (came.fresh_of_set(set, a.now), came.fresh_of_shadow(a.now));
        if let Some(shadow) = self.shadows.get_mut(instance) {
            shadow.others(&mut self.arenas[usize::from(step.arena)], to_shadow);
        }
        // More than there are ways find nothing but lines of others.
        let ways = self.layout.caches[step.kind as usize].ways as u64;
        for _ in 0..to_set.min(ways) {
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

    #[test]
    fn lines_come_to_one_set_after_the_other() {
        let mut came = Came {
            apart: 10,
            to_set: vec![0; 4],
            to_shadow: 0,
        };
        // At 65 six have come: to the sets 0, 1, 2, 3, 0 and 1.
        let fresh: Vec<u64> = (0..4).map(|set| came.fresh_of_set(set, 65)).collect();
        assert_eq!(fresh, [2, 2, 1, 1]);
        assert_eq!(came.fresh_of_set(0, 65), 0);
        // A clock behind the latest takes nothing back.
        assert_eq!(came.fresh_of_set(0, 10), 0);
        assert_eq!((came.fresh_of_set(0, 100), came.fresh_of_set(2, 109)), (1, 1));
        assert_eq!((came.fresh_of_shadow(65), came.fresh_of_shadow(109)), (6, 4));
    }
}
