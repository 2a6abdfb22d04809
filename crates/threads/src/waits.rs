//! The dependences during one run: counters that workers decrement.
//!
//! Every thread that waits, or that others wait for, has a count of the steps before it may run: each thread that it
//! waits for, and a worker's arrival in its bin. The worker that brings the count to zero decides: if it has just
//! reached the thread, it runs it there; if it ran the last thread that was waited for, it releases the waiting one,
//! whose bin gets another turn. So it runs exactly once, and no worker waits for it.

use std::sync::atomic::Ordering::AcqRel;

use crate::Error;
use crate::dependencies::Dependencies;
use crate::groups::Place;
use crate::sync::AtomicU32;

pub(crate) struct Waits<'a> {
    graph: &'a Dependencies,
    /// By number of the thread in the graph.
    counts: Vec<AtomicU32>,
}

impl<'a> Waits<'a> {
    /// `has_run` identifies threads of a run that ended early: nothing waits for them any more.
    pub fn new(graph: &'a Dependencies, has_run: impl Fn(Place) -> bool) -> Result<Waits<'a>, Error> {
        let mut left = Vec::new();
        left.try_reserve_exact(graph.threads().len())?;
        for (_, waits_for) in graph.threads() {
            left.push(waits_for.checked_add(1).ok_or(Error::TooMany)?);
        }
        for (number, (place, _)) in graph.threads().enumerate() {
            if has_run(place) {
                graph.waiting_for(number).for_each(|(_, later)| left[later] -= 1);
            }
        }
        let mut counts = Vec::new();
        counts.try_reserve_exact(left.len())?;
        counts.extend(left.into_iter().map(AtomicU32::new));
        Ok(Waits { graph, counts })
    }

    /// The threads of a group that are in the graph.
    #[inline]
    pub fn named(&self, group: u32) -> u64 {
        self.graph.named(group)
    }

    /// The threads that wait for others.
    pub fn waiting(&self) -> impl Iterator<Item = Place> + '_ {
        self.graph
            .threads()
            .filter(|&(_, waits_for)| waits_for > 0)
            .map(|(place, _)| place)
    }

    /// A worker has reached this thread in its bin. Returns whether it may run.
    pub fn reach(&self, place: Place) -> bool {
        self.graph.number(place).is_none_or(|number| self.count_down(number))
    }

    /// This thread has run. Calls `release` with every thread that has been reached and now may run.
    pub fn ran(&self, place: Place, mut release: impl FnMut(Place)) {
        let Some(number) = self.graph.number(place) else { return };
        for (later, number) in self.graph.waiting_for(number) {
            if self.count_down(number) {
                release(later);
            }
        }
    }

    /// The worker that brings the count to zero sees the writes of earlier threads: each step releases, the last
    /// acquires.
    fn count_down(&self, number: usize) -> bool {
        self.counts[number].fetch_sub(1, AcqRel) == 1
    }
}
