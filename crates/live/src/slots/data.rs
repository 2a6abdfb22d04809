//! A data set: addresses, the threads that use them, and the colors that they were given.

use std::sync::Arc;

use super::Error;
use super::application::{Defined, Shared, Slot, State};
use super::ledger::Given;
use super::ranges::Ranges;
use super::threads::ThreadGroup;
use crate::{Census, Done, Others, PAGE_BYTES, Pages};

/// Data that is used together. Dropping it gives its colors back; the data stays where it is and as it is.
///
/// The memory is the program's: it must stay mapped as long as the data set has it. A range that is unmapped
/// and mapped anew meanwhile is somebody else's data; free the data set first.
pub struct DataSet {
    application: Arc<Shared>,
    number: u64,
    group: ThreadGroup,
    ranges: Ranges,
    placed: Option<Placed>,
}

struct Placed {
    given: Given,
    done: Done,
    runs: Vec<Pages>,
    /// Keeps the slot as long as the data is in it.
    slot: Option<Arc<Defined>>,
}

impl DataSet {
    pub(super) fn new(application: Arc<Shared>, number: u64, group: ThreadGroup) -> DataSet {
        DataSet {
            application,
            number,
            group,
            ranges: Ranges::default(),
            placed: None,
        }
    }

    /// Adds `bytes` from `address` on. Data that was placed before is joined by it with the next
    /// [`DataSet::allocate`].
    pub fn add(&mut self, address: usize, bytes: usize) -> Result<(), Error> {
        self.application.with(|_| Ok(()))?;
        self.ranges.add(address, bytes)
    }

    /// Bytes of the ranges, those left out included.
    pub fn bytes(&self) -> u64 {
        self.ranges.bytes()
    }

    /// Bytes on pages that are covered only in part, which stay where they are.
    pub fn left_out(&self) -> u64 {
        self.bytes() - pages_bytes(&self.ranges.pages())
    }

    /// The pages that are placed, or will be.
    pub fn pages(&self) -> Vec<Pages> {
        self.ranges.pages()
    }

    /// The colors that it has, and on which caches; none before it was allocated.
    pub fn given(&self) -> Option<&Given> {
        self.placed.as_ref().map(|placed| &placed.given)
    }

    /// What came of the last allocation: how many pages were moved or filled, and which could not be, and why.
    pub fn done(&self) -> Option<&Done> {
        self.placed.as_ref().map(|placed| &placed.done)
    }

    /// Gives the data the colors of `slot` and moves its pages there; without a slot, as few shared colors as can be:
    /// data that is not worth caching then does the least harm. (Processors keep it in the cache all the same; who
    /// writes it best uses stores that bypass the caches, which is for the program to do.)
    ///
    /// A data set that has colors already gets new ones, and gives the old ones back afterwards. With
    /// [`Others::Absent`] the caller promises that nobody, the kernel included, touches the pages meanwhile.
    ///
    /// What the data holds stays, after any error too. After an error of the engine the data set has the
    /// colors that it had before, if any, though some pages may lie elsewhere.
    pub fn allocate(&mut self, slot: Option<&Slot>, others: Others) -> Result<&Given, Error> {
        let application = Arc::clone(&self.application);
        if slot.is_some_and(|slot| !Arc::ptr_eq(&slot.0.application, &application)) {
            return Err(Error::OtherApplication);
        }
        let runs = self.ranges.pages();
        if runs.is_empty() {
            return Err(Error::NoWholePage {
                ranges: self.ranges.len(),
                bytes: self.bytes(),
            });
        }
        let cpus = self.group.cpus(&application.cpus)?;
        let (given, done) = application.with(|state| {
            state.taken.take(self.number, &runs)?;
            let given = self.give(state, slot, &runs, &cpus, others);
            if given.is_err() {
                // As it was before: that cannot fail, its own pages were not given to anybody.
                state.taken.forget(self.number);
                if let Some(before) = &self.placed {
                    let _ = state.taken.take(self.number, &before.runs);
                }
            }
            given
        })?;
        if application.means.recording {
            self.tell(slot);
        }
        let placed = self.placed.insert(Placed {
            given,
            done,
            runs,
            slot: slot.map(|slot| Arc::clone(&slot.0)),
        });
        Ok(&placed.given)
    }

    fn give(
        &self,
        state: &mut State,
        slot: Option<&Slot>,
        runs: &[Pages],
        cpus: &[u32],
        others: Others,
    ) -> Result<(Given, Done), Error> {
        let slot = slot.map(|slot| slot.0.ledgers);
        let given = state.ledger.allocate(slot, pages_bytes(runs), cpus)?;
        let done = match state.place.color(runs, &given.colors, others) {
            Ok(done) => done,
            Err(error) => {
                match &self.placed {
                    Some(before) => {
                        // Where the engine does not manage this either, pages stay where they are.
                        let _ = state.place.color(&before.runs, &before.given.colors, others);
                    }
                    None => runs.iter().for_each(|run| {
                        let _ = state.place.release(*run);
                    }),
                }
                let _ = state.ledger.free(given.set);
                return Err(error.into());
            }
        };
        if let Some(before) = &self.placed {
            state.ledger.free(before.given.set)?;
        }
        Ok((given, done))
    }

    fn tell(&self, slot: Option<&Slot>) {
        for (start, end) in self.ranges.iter() {
            sys::requests::data_range(self.number, start, end - start);
        }
        for thread in self.group.threads().unwrap_or_default() {
            sys::requests::data_thread(self.number, thread);
        }
        sys::requests::allocate(self.number, slot.map(|slot| slot.0.number));
    }

    /// Which of its pages have frames of its colors now; the kernel moves some, now and then. None before it was
    /// allocated.
    pub fn census(&self) -> Result<Census, Error> {
        let Some(placed) = &self.placed else {
            return Ok(Census::default());
        };
        let census = |state: &mut State| Ok(state.place.census(&placed.runs, &placed.given.colors)?);
        self.application.with(census)
    }

    /// Gives those of its pages anew that the kernel has moved; how many those were, and what was done.
    pub fn repair(&mut self, others: Others) -> Result<(usize, Done), Error> {
        let Some(placed) = &self.placed else {
            return Ok((0, Done::default()));
        };
        let repair = |state: &mut State| Ok(state.place.repair(&placed.runs, &placed.given.colors, others)?);
        self.application.with(repair)
    }

    /// Gives the colors back; the data stays as it is, in the frames that it has. A data set without colors is left
    /// alone.
    pub fn free(&mut self) -> Result<(), Error> {
        self.leave(|state, run| state.place.release(run))
    }

    /// Gives the colors back, and the frames too: what the data set holds is needed no more, and reads as zeros
    /// afterwards.
    pub fn discard(&mut self) -> Result<(), Error> {
        self.leave(|state, run| state.place.empty(run))
    }

    fn leave(&mut self, mut part: impl FnMut(&mut State, Pages) -> Result<(), crate::Error>) -> Result<(), Error> {
        let Some(placed) = self.placed.take() else {
            return Ok(());
        };
        if self.application.means.recording {
            sys::requests::data_free(self.number);
        }
        let outcome = self.application.with(|state| {
            state.taken.forget(self.number);
            let mut released = Ok(());
            for run in &placed.runs {
                released = part(state, *run).and(released);
            }
            // Whatever became of the pages, the colors are free for others.
            state.ledger.free(placed.given.set)?;
            Ok(released?)
        });
        // The slot may go now, which takes the application's lock.
        drop(placed.slot);
        outcome
    }
}

impl Drop for DataSet {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.free();
    }
}

fn pages_bytes(runs: &[Pages]) -> u64 {
    runs.iter().map(|run| run.count as u64 * PAGE_BYTES as u64).sum()
}
