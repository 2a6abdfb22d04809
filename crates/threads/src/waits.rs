//! What waits for what during one run: counters that workers count down.
//!
//! Every thread that waits, or that others wait for, has a count of what must happen before it may run: each thread that it waits
//! for, and that a worker reaches it in its bin. Whoever brings the count to zero decides: the worker that reaches it
//! runs it there; a worker that ran the last thread it waited for releases it, and its bin gets another turn. So it runs
//! exactly once, and nobody waits for it.
//!
//! Whether a thread is in the graph is one bit of its group, and the bits before it number the counter. Groups without such threads
//! are run as if there were no dependencies.

use std::sync::atomic::Ordering::AcqRel;

use crate::Error;
use crate::dependencies::Dependencies;
use crate::groups::{Place, at_of, group_of};
use crate::sync::AtomicU32;

pub(crate) struct Waits {
    groups: Vec<Named>,
    counts: Vec<AtomicU32>,
    /// The threads that wait for the n-th: `later[from[n]..from[n + 1]]`.
    from: Vec<usize>,
    later: Vec<Place>,
}

/// The threads of a group that are in the graph, and the number of the first.
#[derive(Clone, Copy, Default)]
struct Named {
    mask: u64,
    base: u32,
}

impl Waits {
    /// `has_run` tells of threads of a run that ended early: nobody waits for them any more.
    pub fn new(graph: &Dependencies, groups: usize, has_run: impl Fn(Place) -> bool) -> Result<Waits, Error> {
        let mut waits = Waits {
            groups: Vec::new(),
            counts: Vec::new(),
            from: Vec::new(),
            later: Vec::new(),
        };
        waits.groups.try_reserve_exact(groups)?;
        waits.groups.resize(groups, Named::default());
        let mut threads = Vec::new();
        threads.try_reserve_exact(graph.threads().len())?;
        threads.extend(graph.threads().filter(|(place, _)| !has_run(*place)));
        threads.sort_unstable_by_key(|(place, _)| *place);
        for (place, _) in &threads {
            waits.groups[group_of(*place) as usize].mask |= 1 << at_of(*place);
        }
        let mut base = 0;
        for named in &mut waits.groups {
            named.base = base;
            base += named.mask.count_ones();
        }
        let mut counts = Vec::new();
        counts.try_reserve_exact(threads.len())?;
        counts.resize(threads.len(), 1u32);
        waits.from.try_reserve_exact(threads.len() + 1)?;
        waits.from.push(0);
        for (_, later) in threads {
            for later in later {
                if let Some(number) = waits.number(later) {
                    counts[number] = counts[number].checked_add(1).ok_or(Error::TooMany)?;
                    waits.later.try_reserve(1)?;
                    waits.later.push(later);
                }
            }
            waits.from.push(waits.later.len());
        }
        waits.counts.try_reserve_exact(counts.len())?;
        waits.counts.extend(counts.into_iter().map(AtomicU32::new));
        Ok(waits)
    }

    /// The threads of a group that are in the graph.
    pub fn named(&self, group: u32) -> u64 {
        self.groups[group as usize].mask
    }

    /// Every thread in the graph.
    pub fn threads(&self) -> impl Iterator<Item = Place> + '_ {
        self.groups.iter().zip(0..).flat_map(|(named, group)| {
            (0..64)
                .filter(|at| named.mask >> at & 1 == 1)
                .map(move |at| crate::groups::place(group, at))
        })
    }

    /// A worker has reached this thread in its bin: may it run?
    pub fn reach(&self, place: Place) -> bool {
        self.number(place).is_none_or(|number| self.count_down(number))
    }

    /// This thread has run. Calls `release` with every thread that has been reached and now may run.
    pub fn ran(&self, place: Place, mut release: impl FnMut(Place)) {
        let Some(number) = self.number(place) else { return };
        for &later in &self.later[self.from[number]..self.from[number + 1]] {
            if self.number(later).is_some_and(|number| self.count_down(number)) {
                release(later);
            }
        }
    }

    /// What earlier threads wrote is seen by whoever brings the count to zero: each step releases, the last acquires.
    fn count_down(&self, number: usize) -> bool {
        self.counts[number].fetch_sub(1, AcqRel) == 1
    }

    fn number(&self, place: Place) -> Option<usize> {
        let named = self.groups.get(group_of(place) as usize)?;
        let bit = 1u64 << at_of(place);
        (named.mask & bit != 0).then(|| named.base as usize + (named.mask & (bit - 1)).count_ones() as usize)
    }
}
