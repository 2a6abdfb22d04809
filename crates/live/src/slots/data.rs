//! A data set: memory, the threads that use it, and the colors that it was given.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;

use super::Error;
use super::HugePages;
use super::application::{Application, Defined, Shared, Slot, State};
use super::ledger::Given;
use super::ranges::Ranges;
use super::threads::ThreadGroup;
use crate::{Census, Done, Others, PAGE_BYTES, Pages};

/// Data that is used together. Dropping it gives its colors back; the data stays where it is and as it is.
///
/// It borrows its memory for `'m`, except for memory that was added by its address.
pub struct DataSet<'m> {
    application: Arc<Shared>,
    number: u64,
    group: ThreadGroup,
    ranges: Ranges,
    /// The memory lent to it alone, one for each [`Part`].
    lent: Vec<&'m mut [u8]>,
    /// True if it has all of its memory to itself.
    alone: bool,
    placed: Option<Placed>,
}

/// Memory that was lent to a data set, which gives it out again as long as it has it.
pub struct Part<T> {
    set: u64,
    at: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Part<T> {
        *self
    }
}

impl<T> Copy for Part<T> {}

impl<T> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of data set {}", self.at, self.set)
    }
}

struct Placed {
    given: Given,
    done: Done,
    runs: Vec<Pages>,
    /// Keeps the slot as long as the data is in it.
    slot: Option<Arc<Defined>>,
}

impl Application {
    /// A data set without data that the threads of `group` use.
    pub fn data_set<'m>(&self, group: &ThreadGroup) -> Result<DataSet<'m>, Error> {
        self.0.with(|_| Ok(()))?;
        Ok(DataSet::new(Arc::clone(&self.0), self.0.number(), group.clone()))
    }
}

impl<'m> DataSet<'m> {
    pub(super) fn new(application: Arc<Shared>, number: u64, group: ThreadGroup) -> DataSet<'m> {
        DataSet {
            application,
            number,
            group,
            ranges: Ranges::default(),
            lent: Vec::new(),
            alone: true,
            placed: None,
        }
    }

    /// Adds memory, for the data set alone; [`DataSet::part`] and [`DataSet::part_mut`] are the way to it meanwhile. Data
    /// that was placed before is joined by it with the next [`DataSet::allocate`].
    pub fn add<T: Pod>(&mut self, memory: &'m mut [T]) -> Result<Part<T>, Error> {
        // The kernel knows memory by its address alone.
        let address = memory.as_mut_ptr().expose_provenance();
        self.add_range(address, size_of_val(memory))?;
        self.lent.push(bytemuck::cast_slice_mut(memory));
        Ok(Part {
            set: self.number,
            at: self.lent.len() - 1,
            of: PhantomData,
        })
    }

    /// Adds memory that others use meanwhile, as far as `&` lets them. Its pages change their frames under their hands,
    /// which [`Others::Running`] names the needs of.
    pub fn add_shared<T>(&mut self, memory: &'m [T]) -> Result<(), Error> {
        self.add_range(memory.as_ptr().expose_provenance(), size_of_val(memory))?;
        self.alone = false;
        Ok(())
    }

    /// Adds `bytes` from `address` on, whosever they are.
    ///
    /// # Safety
    /// The memory is the caller's, or of an owner who agreed, and stays mapped as it is as long as the data set lives:
    /// memory that is unmapped and mapped again meanwhile belongs to somebody else. As long as it lives no process is
    /// made from this one by anything that the C library's handlers of `fork` do not see, while [`DataSet::allocate`]
    /// or [`DataSet::repair`] run.
    pub unsafe fn add_raw(&mut self, address: usize, bytes: usize) -> Result<(), Error> {
        self.add_range(address, bytes)?;
        self.alone = false;
        Ok(())
    }

    fn add_range(&mut self, address: usize, bytes: usize) -> Result<(), Error> {
        self.application.with(|_| Ok(()))?;
        self.ranges.add(address, bytes)
    }

    /// Memory that was lent.
    ///
    /// Pre: to this data set (else it panics, as for all three).
    pub fn part<T: Pod>(&self, part: Part<T>) -> &[T] {
        self.check(&part);
        bytemuck::cast_slice(self.lent[part.at])
    }

    /// Memory that was lent, to be written.
    pub fn part_mut<T: Pod>(&mut self, part: Part<T>) -> &mut [T] {
        let [memory] = self.parts_mut([part]);
        memory
    }

    /// Several of them at once, no two the same.
    pub fn parts_mut<T: Pod, const N: usize>(&mut self, parts: [Part<T>; N]) -> [&mut [T]; N] {
        parts.iter().for_each(|part| self.check(part));
        let memory = self.lent.get_disjoint_mut(parts.map(|part| part.at));
        let memory = memory.unwrap_or_else(|error| panic!("parts of a data set: {error}"));
        memory.map(|memory| bytemuck::cast_slice_mut(memory))
    }

    fn check<T>(&self, part: &Part<T>) {
        assert_eq!(part.set, self.number, "the part is another data set's");
    }

    /// Bytes of the ranges, those left out included.
    pub fn bytes(&self) -> u64 {
        self.ranges.bytes()
    }

    /// Bytes on pages that are covered only in part, which stay where they are.
    pub fn left_out(&self) -> u64 {
        self.bytes() - pages_bytes(&self.ranges.pages())
    }

    /// Bytes of the placed data that would be on huge pages without its colors; 0 if the system gives it none.
    pub fn huge_pages_lost(&self) -> u64 {
        match &self.placed {
            Some(placed) if !self.application.means.recording && self.application.means.colors.is_some() => {
                // The pages that malloc gave it are not known here.
                HugePages::here().lost(pages_bytes(&placed.runs), false)
            }
            _ => 0,
        }
    }

    /// The pages that are placed, or will be.
    pub fn pages(&self) -> Vec<Pages> {
        self.ranges.pages()
    }

    /// The colors that it has, and on which caches; none before it was allocated.
    pub fn given(&self) -> Option<&Given> {
        self.placed.as_ref().map(|placed| &placed.given)
    }

    /// The outcome of the last allocation: the number of pages moved or filled, and the pages that could not
    /// be, and why.
    pub fn done(&self) -> Option<&Done> {
        self.placed.as_ref().map(|placed| &placed.done)
    }

    /// Gives the data the colors of `slot` and moves its pages there; without a slot, as few shared colors as can be:
    /// data that is not worth caching then does the least harm. (Processors keep it in the cache all the same; it is
    /// best written by stores that bypass the caches, which only the program can do.)
    ///
    /// A data set that has colors already gets new ones, and gives the old ones back afterwards. Memory that it does not
    /// have to itself may be used meanwhile, as with [`Others::Running`].
    ///
    /// The data keeps its content, after any error too. After an error of the engine the data set has the colors that
    /// it had before, if any, though some pages may lie elsewhere.
    pub fn allocate(&mut self, slot: Option<&Slot>) -> Result<&Given, Error> {
        let others = self.others();
        // SAFETY: who is said to be absent is: what is lent by `&mut` nobody else can touch.
        unsafe { self.allocate_among(slot, others) }
    }

    /// The others that may touch the memory, as far as known.
    fn others(&self) -> Others {
        if self.alone { Others::Absent } else { Others::Running }
    }

    /// As [`DataSet::allocate`], if the caller knows the users of the memory.
    ///
    /// # Safety
    /// With [`Others::Absent`] nobody touches the memory until this returns, neither a thread nor the kernel for one.
    pub unsafe fn allocate_among(&mut self, slot: Option<&Slot>, others: Others) -> Result<&Given, Error> {
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
            // SAFETY: the caller's promise; the memory is lent, or its owner agreed (`add_raw`).
            let given = unsafe { self.give(state, slot, &runs, &cpus, others) };
            if given.is_err() {
                // The earlier state comes back. This cannot fail: its own pages were not given to
                // anybody.
                state.taken.forget(self.number);
                if let Some(before) = &self.placed {
                    let _ = state.taken.take(self.number, &before.runs);
                }
            }
            given
        })?;
        if application.means.recording {
            self.record(slot);
        }
        let placed = self.placed.insert(Placed {
            given,
            done,
            runs,
            slot: slot.map(|slot| Arc::clone(&slot.0)),
        });
        Ok(&placed.given)
    }

    /// # Safety
    /// As for [`allocate_among`](DataSet::allocate_among); `runs` are pages of this data set.
    unsafe fn give(
        &self,
        state: &mut State,
        slot: Option<&Slot>,
        runs: &[Pages],
        cpus: &[u32],
        others: Others,
    ) -> Result<(Given, Done), Error> {
        let slot = slot.map(|slot| slot.0.ledgers);
        state.ledger.used_by(&self.group)?;
        let given = state.ledger.allocate(slot, pages_bytes(runs), cpus)?;
        // SAFETY: the caller's promise.
        let done = match unsafe { state.place.color(runs, &given.colors, others) } {
            Ok(done) => done,
            Err(error) => {
                match &self.placed {
                    Some(before) => {
                        // If the engine does not manage this either, pages stay where they are.
                        // SAFETY: as above.
                        let _ = unsafe { state.place.color(&before.runs, &before.given.colors, others) };
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

    fn record(&self, slot: Option<&Slot>) {
        for (start, end) in self.ranges.iter() {
            sys::requests::data_range(self.number, start, end - start);
        }
        for thread in self.group.threads().unwrap_or_default() {
            sys::requests::data_thread(self.number, thread);
        }
        sys::requests::allocate(self.number, slot.map(|slot| slot.0.number));
    }

    /// A count of its pages that have frames of its colors now; the kernel moves some, now and then. All counts
    /// are 0 before the first allocation.
    pub fn census(&self) -> Result<Census, Error> {
        let Some(placed) = &self.placed else {
            return Ok(Census::default());
        };
        let census = |state: &mut State| Ok(state.place.census(&placed.runs, &placed.given.colors)?);
        self.application.with(census)
    }

    /// Restores the colors of its pages that the kernel has moved. Returns their number, and the work
    /// done.
    pub fn repair(&mut self) -> Result<(usize, Done), Error> {
        let others = self.others();
        // SAFETY: as for `allocate`.
        unsafe { self.repair_among(others) }
    }

    /// As [`DataSet::repair`], if the caller knows the users of the memory.
    ///
    /// # Safety
    /// As for [`DataSet::allocate_among`].
    pub unsafe fn repair_among(&mut self, others: Others) -> Result<(usize, Done), Error> {
        let Some(placed) = &self.placed else {
            return Ok((0, Done::default()));
        };
        self.application.with(|state| {
            // SAFETY: the caller's promise; the memory is lent, or its owner agreed (`add_raw`).
            let repaired = unsafe { state.place.repair(&placed.runs, &placed.given.colors, others) };
            Ok(repaired?)
        })
    }

    /// Gives the colors back; the data stays as it is, in the frames that it has. A data set without colors is left
    /// alone.
    pub fn free(&mut self) -> Result<(), Error> {
        self.leave(|state, run| state.place.release(run))
    }

    /// Gives the colors back, and the frames too: the content of the data set is no longer needed, and its whole pages
    /// read as zeros afterwards.
    ///
    /// Errors: [`Error::NotLent`] if it does not have all of its memory to itself.
    pub fn discard(&mut self) -> Result<(), Error> {
        if !self.alone {
            return Err(Error::NotLent);
        }
        // SAFETY: it was lent for this data set alone, as plain data.
        unsafe { self.discard_raw() }
    }

    /// As [`DataSet::discard`], whosever the memory is.
    ///
    /// # Safety
    /// The memory holds plain data, for which zeros are a value, or nothing that is ever used again, and nobody else
    /// touches it meanwhile.
    pub unsafe fn discard_raw(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.leave(|state, run| unsafe { state.place.empty(run) })
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
            // The colors are free for others, even if the pages could not be released.
            state.ledger.free(placed.given.set)?;
            Ok(released?)
        });
        // The slot may go now, which takes the application's lock.
        drop(placed.slot);
        outcome
    }
}

impl Drop for DataSet<'_> {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.free();
    }
}

fn pages_bytes(runs: &[Pages]) -> u64 {
    runs.iter().map(|run| run.count as u64 * PAGE_BYTES as u64).sum()
}
