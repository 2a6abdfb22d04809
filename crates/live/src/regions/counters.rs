//! Instructions of processes that are watched, by the processor's counters.
//!
//! Each thread has a counter of its own from the first interval in which it is seen. It counts while the thread runs in user
//! mode, on whichever cpu. A counter says for how much of the thread's time it counted, so that paces stay right where other
//! programs use the processor's counters too.

use std::collections::BTreeMap;

use sys::perf::{self, Counter, Event};
use sys::tasks::Demand;

use super::log::Counted;

/// Threads that are counted at a time: each takes a file descriptor. The pace of others is taken to be that of these.
const MOST: usize = 256;

#[derive(Debug, Default)]
pub struct Counters {
    /// The counters, by process and thread.
    of: BTreeMap<(u32, u32), Counting>,
    /// The reason why nothing can be counted here, once that was tried.
    refused: std::cell::OnceCell<Option<String>>,
}

#[derive(Debug)]
struct Counting {
    began: u64,
    counter: Counter,
    /// Up to the last reading.
    read: perf::Counted,
}

impl Counters {
    pub fn refused(&self) -> Option<String> {
        self.refused.get_or_init(|| perf::try_instructions().err()).clone()
    }

    /// The work of a process's threads since the last call. `None` if none of them was counted then.
    pub fn counted(&mut self, process: u32, threads: &[Demand]) -> Option<Counted> {
        if self.refused().is_some() {
            return None;
        }
        let there = |thread: u32, began: u64| {
            let mut all = threads.iter();
            all.any(|one| one.number == thread && one.began == began)
        };
        self.of
            .retain(|&(of, thread), counting| of != process || there(thread, counting.began));
        let mut sum: Option<Counted> = None;
        for (_, counting) in self.of.range_mut((process, 0)..=(process, u32::MAX)) {
            let Ok(now) = counting.counter.read() else { continue };
            let sum = sum.get_or_insert_default();
            sum.instructions += now.count.saturating_sub(counting.read.count);
            sum.ns += now.ran_ns.saturating_sub(counting.read.ran_ns);
            counting.read = now;
        }
        for thread in threads {
            if self.of.len() < MOST && !self.of.contains_key(&(process, thread.number)) {
                self.begin(process, thread);
            }
        }
        sum
    }

    /// A thread that may not be counted is left out.
    fn begin(&mut self, process: u32, thread: &Demand) {
        if let Ok(counter) = Counter::of_thread(Event::Instructions, thread.number) {
            let counting = Counting {
                began: thread.began,
                counter,
                read: perf::Counted::default(),
            };
            self.of.insert((process, thread.number), counting);
        }
    }

    pub fn end(&mut self, process: u32) {
        self.of.retain(|&(of, _), _| of != process);
    }
}
