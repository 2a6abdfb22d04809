//! An application, and the slots that it defines.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::slots::{Kind, Space};

use super::Error;
use super::ledger::Ledger;
use super::means::Means;
use super::place::Place;
use super::ranges::Taken;
use super::threads::ThreadGroup;
use crate::resctrl::{WaySlot, Ways};

/// The use of slots in a process. Cloning gives another handle to the same application; when the last handle, slot
/// and data set is dropped, it exits.
#[derive(Clone)]
pub struct Application(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) means: Means,
    pub(super) cpus: Vec<u32>,
    process: u32,
    /// Numbers for slots and data sets, as they stand in the trace.
    next: AtomicU64,
    /// Empty after the exit.
    state: Mutex<Option<State>>,
}

pub(super) struct State {
    pub(super) ledger: Box<dyn Ledger>,
    pub(super) place: Box<dyn Place>,
    pub(super) taken: Taken,
}

impl Application {
    pub(super) fn with(means: Means, cpus: Vec<u32>, ledger: Box<dyn Ledger>, place: Box<dyn Place>) -> Application {
        Application(Arc::new(Shared {
            means,
            cpus,
            process: std::process::id(),
            next: AtomicU64::new(1),
            state: Mutex::new(Some(State {
                ledger,
                place,
                taken: Taken::default(),
            })),
        }))
    }

    /// The means that it runs with.
    pub fn means(&self) -> &Means {
        &self.0.means
    }

    /// The current trouble, though it goes on: a daemon that no longer answers.
    pub fn trouble(&self) -> Option<String> {
        let trouble = |state: &mut State| Ok(state.ledger.trouble().or_else(|| state.place.trouble()));
        self.0.with(trouble).ok().flatten()
    }

    /// The frames that the daemon lacked for the last data set, if any: the process collected it for itself, more
    /// slowly.
    pub fn shortage(&self) -> Option<String> {
        self.0.with(|state| Ok(state.place.shortage())).ok().flatten()
    }

    /// The cpus that it uses.
    pub fn cpus(&self) -> &[u32] {
        &self.0.cpus
    }

    /// Cache that is free for its slots: that of its processors, less the private and shared slots.
    pub fn available(&self) -> Result<Space, Error> {
        self.0.with(|state| state.ledger.available(&self.0.cpus))
    }

    /// The same, on the caches of a group's threads.
    pub fn available_to(&self, group: &ThreadGroup) -> Result<Space, Error> {
        let cpus = group.clone().cpus(&self.0.cpus)?;
        self.0.with(|state| state.ledger.available(&cpus))
    }

    /// Defines a slot of `bytes` in each shared cache that its data sets are used on: rounded down to whole colors, but
    /// at least one. It gets its colors with its first data set.
    pub fn slot(&self, bytes: u64, kind: Kind) -> Result<Slot, Error> {
        let ledgers = self.0.with(|state| state.ledger.slot(bytes, kind))?;
        let number = self.0.number();
        if self.0.means.recording {
            sys::requests::slot(number, bytes, kind == Kind::Private);
        }
        Ok(Slot(Arc::new(Defined {
            application: Arc::clone(&self.0),
            number,
            ledgers,
            bytes,
            kind,
        })))
    }

    /// Gives the threads of a group (of all: those that there are now, and those that they start) a slot's size and kind
    /// in ways of their caches instead of colors, where resctrl is mounted: see [`crate::resctrl`]. `level` says which
    /// caches. Needs no data sets; colors and ways of one slot know nothing of each other.
    pub fn give_ways(&self, slot: &Slot, group: &ThreadGroup, level: u32) -> Result<WaySlot, Error> {
        self.0.with(|_| Ok(()))?;
        let cpus = group.clone().cpus(&self.0.cpus)?;
        let ways = Ways::mounted(level)?.slot(slot.bytes(), slot.kind(), &cpus)?;
        for thread in group.threads_now()? {
            ways.add(thread)?;
        }
        Ok(ways)
    }

    /// Frees all data sets and slots. Data stays where it is and as it is; later uses of the data
    /// sets and slots are refused.
    pub fn exit(&self) -> Result<(), Error> {
        self.0.check_process()?;
        let Some(mut state) = self.0.lock().take() else {
            return Err(Error::Exited);
        };
        let runs: Vec<_> = state.taken.all().collect();
        let mut outcome = Ok(());
        for run in runs {
            // The rest is let go all the same.
            outcome = state.place.release(run).and(outcome);
        }
        Ok(outcome?)
    }
}

impl Shared {
    /// Does something with the ledger and the engine.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut State) -> Result<T, Error>) -> Result<T, Error> {
        self.check_process()?;
        act(self.lock().as_mut().ok_or(Error::Exited)?)
    }

    /// Before the lock is touched: in a child of fork another thread's hold on it would last for ever.
    fn check_process(&self) -> Result<(), Error> {
        if self.process == std::process::id() {
            Ok(())
        } else {
            Err(Error::Forked { parent: self.process })
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }
}

/// A slot. Cloning gives another handle to the same one; it is freed when the last handle and the last data set in it
/// are gone.
#[derive(Clone)]
pub struct Slot(pub(super) Arc<Defined>);

pub(super) struct Defined {
    pub(super) application: Arc<Shared>,
    pub(super) number: u64,
    /// Its number in the ledger.
    pub(super) ledgers: u64,
    bytes: u64,
    kind: Kind,
}

impl Slot {
    /// The size asked for.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }
}

impl Drop for Defined {
    fn drop(&mut self) {
        // After the exit, and in a child of fork, there is nothing left to free.
        let freed = self.application.with(|state| state.ledger.free_slot(self.ledgers));
        if freed.is_ok() && self.application.means.recording {
            sys::requests::slot_free(self.number);
        }
    }
}
