//! Containers in a slot: an allocator for those that take one (hashbrown's tables, allocator-api2's `Vec` and `Box`).

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sys::containers::{Containers, Keeper};
use sys::memory::Span;

use super::{Application, DataSet, Error, Slot, ThreadGroup};
use crate::Others;

/// An allocator whose memory is in a slot; see [`Application::containers`].
pub type InSlot = Containers<Keeping>;

/// An [`InSlot`]'s record of its containers: each block of memory is a data set.
pub struct Keeping {
    application: Application,
    slot: Option<Slot>,
    group: ThreadGroup,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The data sets of blocks, by address.
    blocks: HashMap<usize, DataSet<'static>>,
    error: Option<Error>,
}

impl Application {
    /// An allocator for containers whose memory is to be in a slot (without one: to take as little cache as can be),
    /// used by the threads of `group`.
    ///
    /// Each block of a container has whole pages of its own: for few large containers, not for many small ones. All
    /// blocks are data sets of one slot, so they use it in turn. If a block cannot get its colors, the allocation
    /// fails, and [`Keeping::trouble`] says why. In a child of fork, and after the application's exit, a block is
    /// memory like any other.
    ///
    /// ```no_run
    /// use allocator_api2::vec::Vec;
    /// use live::slots::{Application, Kind, Start, ThreadGroup};
    ///
    /// let program = Application::start(Start::default())?;
    /// let slot = program.slot(512 << 10, Kind::Private)?;
    /// let here = program.containers(Some(&slot), &ThreadGroup::all());
    /// let mut table: Vec<f64, _> = Vec::with_capacity_in(50_000, here);
    /// table.resize(50_000, 0.0);
    /// # Ok::<(), live::slots::Error>(())
    /// ```
    pub fn containers(&self, slot: Option<&Slot>, group: &ThreadGroup) -> InSlot {
        Containers::new(Keeping {
            application: self.clone(),
            slot: slot.cloned(),
            group: group.clone(),
            state: Mutex::default(),
        })
    }
}

impl Keeping {
    /// Why the last block that was refused was refused.
    pub fn trouble(&self) -> Option<Error> {
        self.lock().error.take()
    }

    /// Bytes of all blocks.
    pub fn bytes(&self) -> u64 {
        self.lock().blocks.values().map(DataSet::bytes).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Safety
    /// The pages are mapped, private and anonymous, until [`Keeper::leave`], and nobody knows of them yet.
    unsafe fn place(&self, pages: Span) -> Result<DataSet<'static>, Error> {
        let mut set = self.application.data_set(&self.group)?;
        // SAFETY: the caller's promise; the data set is gone when the pages are.
        unsafe { set.add_raw(pages.start, pages.bytes) }?;
        // SAFETY: nobody knows of these pages yet.
        unsafe { set.allocate_among(self.slot.as_ref(), Others::Absent) }?;
        Ok(set)
    }
}

// SAFETY: the engine gives the pages other frames and leaves addresses and content as they are; only `leave`, when the
// container needs them no more, empties them.
unsafe impl Keeper for Keeping {
    fn keep(&self, pages: Span) -> bool {
        // SAFETY: they were just mapped, and the container gets them only after this.
        let placed = unsafe { self.place(pages) };
        let mut state = self.lock();
        match placed {
            Ok(set) => {
                state.blocks.insert(pages.start, set);
                true
            }
            // A copy of the container in a child of fork can still grow, and so can one that outlives the application.
            Err(Error::Forked { .. } | Error::Exited) => true,
            Err(error) => {
                state.error = Some(error);
                false
            }
        }
    }

    fn leave(&self, pages: Span) {
        let set = self.lock().blocks.remove(&pages.start);
        if let Some(mut set) = set {
            // Frames that cannot be given back go with the pages.
            // SAFETY: their content is no longer needed.
            let _ = unsafe { set.discard_raw() };
        }
    }
}
