//! Threads that appear while others run: forked inside, or released by the last thread that they waited for.
//!
//! The store of pending threads does not change while workers read it. New threads go here, into bins of the same
//! blocks, under one lock that a worker takes when it has finished a bin, and when it adds something. A bin has exactly
//! one of three states, so that exactly one worker handles each new thread: its worker will come or come back to it; it
//! is queued for another turn; or no worker will look, and then the one that adds something queues it.

use std::collections::VecDeque;

use arrayvec::ArrayVec;
use policy::order::{BinId, Shape};

use crate::Error;
use crate::groups::{Group, Place, group_of};
use crate::store::Store;
use crate::waits::Waits;

pub(crate) struct Turns<T> {
    /// Threads forked inside. Its bins are numbered independently of those of the main store.
    grown: Store<T>,
    /// For each bin of `grown`.
    attention: Vec<Attention>,
    /// For each bin of `grown`, threads of the main store that may run now.
    released: Vec<VecDeque<Place>>,
    queue: VecDeque<BinId>,
    /// For each bin of the main store, whether its turn in the tour is over.
    passed: Vec<bool>,
    /// Workers that may still add something, and those that wait for it.
    active: usize,
    waiting: usize,
    /// Nothing more will appear, or a thread has panicked.
    over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attention {
    /// A worker runs this bin, or will in its tour, and looks here when it has finished.
    Coming,
    Queued,
    Nobody,
}

/// Released threads that a worker takes at a time.
const RELEASED: usize = 16;

/// Something to run for a bin.
pub(crate) enum Extra<T> {
    Released(ArrayVec<Place, RELEASED>),
    /// On loan: must be returned when it has run.
    Forked(u32, Group<T>),
}

/// The next step of an idle worker.
pub(crate) enum Next {
    Bin(BinId),
    /// Wait until something appears, and ask again.
    Wait,
    Over,
}

impl<T> Turns<T> {
    pub fn new(shape: Shape) -> Turns<T> {
        Turns {
            grown: Store::new(shape),
            attention: Vec::new(),
            released: Vec::new(),
            queue: VecDeque::new(),
            passed: Vec::new(),
            active: 0,
            waiting: 0,
            over: false,
        }
    }

    /// Moves the rest of an ended run into the main store, where it consists of ordinary pending threads.
    pub fn absorb_into(&mut self, main: &mut Store<T>) -> Result<(), Error> {
        for bin in 0..self.grown.bins().len() as BinId {
            let block = self.grown.bins().block(bin);
            while let Some((group, mut threads)) = self.grown.lend(bin) {
                while !threads.is_empty() {
                    if let Err((error, thread)) = main.push_at(&block, threads.remove(0)) {
                        threads.insert(0, thread);
                        self.grown.return_loan(group, threads);
                        return Err(error);
                    }
                }
                self.grown.return_loan(group, threads);
            }
        }
        self.grown.reset();
        Ok(())
    }

    /// Prepares a run of these bins. Waiting threads get their room now, so that a release cannot fail.
    pub fn begin(
        &mut self,
        main: &Store<T>,
        tour: &[BinId],
        workers: usize,
        waits: Option<&Waits<'_>>,
    ) -> Result<(), Error> {
        self.active = workers;
        self.waiting = 0;
        self.over = false;
        self.queue.clear();
        self.attention.clear();
        self.released.clear();
        self.passed.clear();
        self.passed.try_reserve(main.bins().len())?;
        self.passed.resize(main.bins().len(), true);
        for &bin in tour {
            self.passed[bin as usize] = false;
        }
        for place in waits.into_iter().flat_map(Waits::waiting) {
            let block = main.bins().block(main.groups.bin(group_of(place)));
            let bin = self.grown.bin_of(&block)?;
            self.know(main)?;
            let released = &mut self.released[bin as usize];
            released.try_reserve(1)?;
            released.push_back(place);
        }
        // Clearing keeps the room that was just reserved.
        self.released.iter_mut().for_each(VecDeque::clear);
        Ok(())
    }

    /// Adds a thread forked inside. It is returned if there is no memory for it. Returns whether to wake a worker for
    /// it.
    pub fn fork(&mut self, main: &Store<T>, hints: &[u64], item: T) -> Result<bool, T> {
        // Room for its bin, which may be new; then nothing fails once the thread is in.
        if self.make_room(1).is_err() {
            return Err(item);
        }
        let place = self.grown.push(hints, item).map_err(|(_, item)| item)?;
        let bin = self.grown.groups.bin(group_of(place));
        // Room was made above, unless an earlier fork found room for its bin and none for its thread.
        if self.know(main).is_err() {
            return self.grown.take_last(place).map_or(Ok(false), Err);
        }
        Ok(self.attend(bin))
    }

    /// Adds a thread of the main store that may run now. Returns whether to wake a worker for it.
    pub fn release(&mut self, main: &Store<T>, place: Place) -> bool {
        let block = main.bins().block(main.groups.bin(group_of(place)));
        let Some(bin) = self.grown.bins().find(&block) else {
            debug_assert!(false, "every bin with waiting threads is known since the run began");
            return false;
        };
        self.released[bin as usize].push_back(place);
        self.attend(bin)
    }

    /// New work for a bin of the tour whose own threads have run. If there is none, the bin has been passed.
    pub fn more_of_tour(&mut self, main: &Store<T>, bin: BinId) -> Option<Extra<T>> {
        if self.grown.bins().is_empty() {
            self.passed[bin as usize] = true;
            return None;
        }
        let known = self.grown.bins().find(&main.bins().block(bin));
        let more = known.and_then(|known| self.more(known));
        if more.is_none() {
            self.passed[bin as usize] = true;
        }
        more
    }

    /// New work for a bin that has another turn. If there is none, no worker looks any more.
    pub fn more(&mut self, bin: BinId) -> Option<Extra<T>> {
        let released = &mut self.released[bin as usize];
        if !released.is_empty() {
            let some = released.len().min(RELEASED);
            return Some(Extra::Released(released.drain(..some).collect()));
        }
        let forked = self
            .grown
            .lend(bin)
            .map(|(group, threads)| Extra::Forked(group, threads));
        if forked.is_none() {
            self.attention[bin as usize] = Attention::Nobody;
        }
        forked
    }

    /// Takes a group back, with the threads that did not run.
    pub fn return_loan(&mut self, group: u32, left: Group<T>) {
        self.grown.return_loan(group, left);
    }

    /// For a worker without work. A worker that must wait must call [`Turns::back`] when it wakes.
    pub fn next(&mut self) -> Next {
        if self.over {
            return Next::Over;
        }
        if let Some(bin) = self.queue.pop_front() {
            self.attention[bin as usize] = Attention::Coming;
            return Next::Bin(bin);
        }
        self.active -= 1;
        if self.active == 0 {
            self.over = true;
            return Next::Over;
        }
        self.waiting += 1;
        Next::Wait
    }

    /// A worker has stopped waiting.
    pub fn back(&mut self) {
        self.waiting -= 1;
        self.active += 1;
    }

    /// A worker never came.
    pub fn lost_worker(&mut self) {
        self.active -= 1;
    }

    /// Ends the run early.
    pub fn stop(&mut self) {
        self.over = true;
    }

    /// Threads that have not run.
    pub fn threads(&self) -> usize {
        self.grown.threads()
    }

    pub fn reset(&mut self) {
        self.grown.reset();
    }

    pub fn shrink(&mut self) {
        self.grown.shrink();
    }

    pub fn memory_bytes(&self) -> usize {
        self.grown.memory_bytes() + self.passed.capacity()
    }

    fn make_room(&mut self, more: usize) -> Result<(), Error> {
        self.attention.try_reserve(more)?;
        self.released.try_reserve(more)?;
        self.queue
            .try_reserve((self.attention.len() + more).saturating_sub(self.queue.len()))?;
        Ok(())
    }

    /// Adds the new bins of `grown`.
    fn know(&mut self, main: &Store<T>) -> Result<(), Error> {
        let new = self.grown.bins().len() - self.attention.len();
        if new == 0 {
            return Ok(());
        }
        self.make_room(new)?;
        while self.attention.len() < self.grown.bins().len() {
            let block = self.grown.bins().block(self.attention.len() as BinId);
            let coming = main.bins().find(&block).is_some_and(|bin| !self.passed[bin as usize]);
            self.attention
                .push(if coming { Attention::Coming } else { Attention::Nobody });
            self.released.push(VecDeque::new());
        }
        Ok(())
    }

    /// Makes a worker handle a bin. Returns whether a waiting worker could do so.
    fn attend(&mut self, bin: BinId) -> bool {
        if self.attention[bin as usize] != Attention::Nobody {
            return false;
        }
        self.attention[bin as usize] = Attention::Queued;
        self.queue.push_back(bin);
        // Waking without a waiting worker would still cost a system call.
        self.waiting > 0
    }
}
