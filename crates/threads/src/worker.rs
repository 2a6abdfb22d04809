//! A worker: runs whole bins, first its own part of the tour, then stolen ones, then new work.
//!
//! The code is the same for one worker or several; a single one has no victim to steal from and nothing to wait for.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64 as Word, Ordering::Relaxed};

use policy::order::BinId;

use crate::Inside;
use crate::groups::{Group, Place, at_of, group_of, place};
use crate::inside::Outbox;
use crate::queue::Queue;
use crate::store::Store;
use crate::sync::{AtomicBool, Condvar, Mutex, MutexGuard};
use crate::turns::{Extra, Next, Turns};
use crate::waits::Waits;

/// The shared state of one run's workers.
pub(crate) struct Shared<'a, T> {
    pub store: &'a Store<T>,
    /// For each group, the threads that ran in an earlier run which ended early; empty if there was none.
    pub gone: &'a [u64],
    /// For each group, the threads that have run.
    pub done: &'a [Word],
    pub tour: &'a [BinId],
    /// One for each worker.
    pub queues: Vec<Queue>,
    /// The cache of each worker; empty where it does not matter.
    pub cache_of: Vec<u32>,
    pub waits: Option<Waits<'a>>,
    pub turns: Mutex<&'a mut Turns<T>>,
    pub wake: Condvar,
    /// A thread has panicked: no worker begins another group.
    pub stop: AtomicBool,
}

impl<'a, T> Shared<'a, T> {
    pub fn turns(&self) -> MutexGuard<'_, &'a mut Turns<T>> {
        // No thread runs under the lock, and nothing panics there, so a poisoned lock guards sound data.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rest that a worker leaves.
pub(crate) struct Ended<T> {
    pub threads: u64,
    pub bins: u64,
    pub turns: u64,
    /// Forked inside, with no memory to put it in its bin.
    pub outbox: Outbox<T>,
    pub panic: Option<Box<dyn Any + Send>>,
}

/// Works until nothing is left, or a thread panics.
pub(crate) fn work<T, F>(shared: &Shared<'_, T>, inside: Inside<T>, body: &mut F) -> Ended<T>
where
    F: FnMut(&T, &mut Inside<T>),
{
    let mut worker = Worker {
        shared,
        inside,
        group: 0,
        first: 0,
        ran: 0,
        loan: None,
        threads: 0,
        bins: 0,
        turns: 0,
    };
    // The remains of a panic are cleaned up right here.
    let panic = catch_unwind(AssertUnwindSafe(|| worker.course(body))).err();
    if panic.is_some() {
        shared.stop.store(true, Relaxed);
        worker.clear_away();
        shared.turns().stop();
        shared.wake.notify_all();
    }
    worker.bring();
    Ended {
        threads: worker.threads,
        bins: worker.bins,
        turns: worker.turns,
        outbox: worker.inside.outbox,
        panic,
    }
}

struct Worker<'s, 'a, T> {
    shared: &'s Shared<'a, T>,
    inside: Inside<T>,
    /// The running group, and which of its threads have begun: the first ones, up to a position, and these.
    group: u32,
    first: usize,
    ran: u64,
    /// A group that was forked inside and is running; `first` counts in it.
    loan: Option<(u32, Group<T>)>,
    threads: u64,
    bins: u64,
    turns: u64,
}

impl<T> Worker<'_, '_, T> {
    fn course<F: FnMut(&T, &mut Inside<T>)>(&mut self, body: &mut F) {
        while !self.stopped() {
            if let Some(position) = self.claim() {
                self.bins += 1;
                self.turn_in_tour(self.shared.tour[position as usize], body);
            } else if !self.bring() {
                // There is no memory for its bin: it runs out of order rather than not at all.
                if let Some(thread) = self.inside.outbox.take() {
                    self.threads += 1;
                    body(&thread, &mut self.inside);
                }
            } else if let Some(bin) = self.another() {
                self.turns += 1;
                self.another_turn(bin, body);
            } else {
                return;
            }
        }
    }

    /// The next position in the tour: from the own queue, or one that another worker would have reached last.
    fn claim(&self) -> Option<u32> {
        let queues = &self.shared.queues;
        let me = self.inside.worker;
        if let Some(position) = queues[me].take() {
            return Some(position);
        }
        let others = || (1..queues.len()).map(|step| (me + step) % queues.len());
        let steal = |victim: usize| {
            let stolen = queues[victim].steal()?;
            queues[me].refill(stolen.start + 1..stolen.end);
            Some(stolen.start)
        };
        // Blocks of workers at the same cache need not be fetched.
        let cache_of = &self.shared.cache_of;
        let is_near = |victim: &usize| !cache_of.is_empty() && cache_of[*victim] == cache_of[me];
        let near = others().filter(is_near).find_map(steal);
        near.or_else(|| others().find_map(steal))
    }

    /// A bin to run again; waits while there may yet be one.
    fn another(&self) -> Option<BinId> {
        let mut turns = self.shared.turns();
        loop {
            match turns.next() {
                Next::Bin(bin) => return Some(bin),
                Next::Over => {
                    drop(turns);
                    self.shared.wake.notify_all();
                    return None;
                }
                Next::Wait => {
                    turns = self.shared.wake.wait(turns).unwrap_or_else(PoisonError::into_inner);
                    turns.back();
                }
            }
        }
    }

    fn turn_in_tour<F: FnMut(&T, &mut Inside<T>)>(&mut self, bin: BinId, body: &mut F) {
        for group in self.shared.store.groups_of(bin) {
            if self.stopped() {
                return;
            }
            self.run_group(group, body);
            self.bring();
        }
        while !self.stopped() {
            let more = self.shared.turns().more_of_tour(self.shared.store, bin);
            match more {
                Some(more) => self.run_extra(more, body),
                None => return,
            }
        }
    }

    fn another_turn<F: FnMut(&T, &mut Inside<T>)>(&mut self, bin: BinId, body: &mut F) {
        while !self.stopped() {
            let more = self.shared.turns().more(bin);
            match more {
                Some(more) => self.run_extra(more, body),
                None => return,
            }
        }
    }

    #[inline]
    fn run_group<F: FnMut(&T, &mut Inside<T>)>(&mut self, group: u32, body: &mut F) {
        let shared = self.shared;
        let threads = shared.store.groups.group(group);
        let gone = shared.gone.get(group as usize).copied().unwrap_or(0);
        let named = shared.waits.as_ref().map_or(0, |waits| waits.named(group));
        self.group = group;
        if gone | named == 0 {
            for thread in threads {
                self.first += 1;
                body(thread, &mut self.inside);
            }
        } else {
            for (at, thread) in threads.iter().enumerate() {
                if gone >> at & 1 == 0 {
                    self.run_or_leave(place(group, at), named >> at & 1 == 1, thread, body);
                }
            }
        }
        self.settle();
    }

    /// Runs a thread unless it still waits.
    fn run_or_leave<F: FnMut(&T, &mut Inside<T>)>(&mut self, at: Place, named: bool, thread: &T, body: &mut F) {
        if named && !self.shared.waits.as_ref().is_none_or(|waits| waits.reach(at)) {
            return;
        }
        self.run_released(at, thread, body);
    }

    /// Runs a thread without remaining dependences, and releases those that waited only for it.
    fn run_released<F: FnMut(&T, &mut Inside<T>)>(&mut self, at: Place, thread: &T, body: &mut F) {
        self.ran |= 1 << at_of(at);
        body(thread, &mut self.inside);
        if let Some(waits) = &self.shared.waits {
            waits.ran(at, |later| {
                if self.shared.turns().release(self.shared.store, later) {
                    self.shared.wake.notify_one();
                }
            });
        }
    }

    fn run_extra<F: FnMut(&T, &mut Inside<T>)>(&mut self, extra: Extra<T>, body: &mut F) {
        match extra {
            Extra::Released(places) => {
                for at in places {
                    self.group = group_of(at);
                    let thread = &self.shared.store.groups.group(self.group)[at_of(at)];
                    self.run_released(at, thread, body);
                    self.settle();
                }
            }
            Extra::Forked(group, threads) => {
                let (_, threads) = self.loan.insert((group, threads));
                for thread in threads.iter() {
                    self.first += 1;
                    body(thread, &mut self.inside);
                }
                self.clear_away();
            }
        }
        self.bring();
    }

    /// Records which threads of a group have run.
    fn settle(&mut self) {
        let first = u64::MAX.checked_shr(64 - self.first as u32).unwrap_or(0);
        let ran = self.ran | first;
        self.shared.done[self.group as usize].fetch_or(ran, Relaxed);
        self.threads += u64::from(ran.count_ones());
        (self.first, self.ran) = (0, 0);
    }

    /// Records which threads of the current group have run, also after a panic; a group on loan is returned with the
    /// rest.
    fn clear_away(&mut self) {
        if let Some((group, mut threads)) = self.loan.take() {
            let ran = std::mem::take(&mut self.first);
            self.threads += ran as u64;
            threads.drain(..ran);
            self.shared.turns().return_loan(group, threads);
        } else if self.first > 0 || self.ran != 0 {
            self.settle();
        }
    }

    /// Brings threads forked inside to their bins. Returns whether all of them found room.
    fn bring(&mut self) -> bool {
        if self.inside.outbox.is_empty() {
            return true;
        }
        let mut wake = false;
        let all = {
            let mut turns = self.shared.turns();
            self.inside.outbox.empty_into(|hints, item| {
                wake |= turns.fork(self.shared.store, hints, item)?;
                Ok(())
            })
        };
        if wake {
            self.shared.wake.notify_all();
        }
        all
    }

    fn stopped(&self) -> bool {
        self.shared.stop.load(Relaxed)
    }
}
