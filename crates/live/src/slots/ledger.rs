//! The owners of colors: the ledger of this process, or one elsewhere.

use policy::slots::{Allocator, Caches, ColorSet, DataSet, Kind, Owner, SetId, SlotId, Space};

use super::Error;
use super::threads::ThreadGroup;

/// Colors that a ledger has given to a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The ledger's number for it.
    pub set: u64,
    /// The same ones on all its caches.
    pub colors: ColorSet,
    /// Places in [`Caches::cpus`].
    pub caches: Vec<usize>,
}

/// Keeps the colors of all caches, for one application or for all; requests of one application come this way.
pub trait Ledger: Send {
    /// Defines a slot of `bytes` in each cache that it will be used on; the ledger's number for it.
    fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, Error>;
    /// Takes a slot without data sets back.
    fn free_slot(&mut self, slot: u64) -> Result<(), Error>;
    /// Sets the users of the data sets allocated from now on. Ledgers of colors ignore it: colors belong to
    /// the data.
    fn used_by(&mut self, _group: &ThreadGroup) -> Result<(), Error> {
        Ok(())
    }
    /// Colors for a data set of `bytes` used on `cpus`; without a slot, as few shared ones as can be.
    fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Given, Error>;
    /// Takes a data set's colors back.
    fn free(&mut self, set: u64) -> Result<(), Error>;
    /// The free space on the caches of these cpus.
    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error>;
    /// Its name, for people: `the daemon at /run/...`, `this process's own`.
    fn name(&self) -> String;
    /// The current trouble, if it goes on all the same.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// The ledger of this process alone. Frames come from the kernel, any number, so none are asked for.
pub(super) struct Own {
    allocator: Allocator,
    owner: Owner,
}

impl Own {
    pub(super) fn new(caches: Caches) -> Result<Own, Error> {
        let mut allocator = Allocator::new(caches)?;
        let owner = allocator.join();
        Ok(Own { allocator, owner })
    }
}

impl Ledger for Own {
    fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, Error> {
        Ok(self.allocator.slot(self.owner, bytes, kind)?.number())
    }

    fn free_slot(&mut self, slot: u64) -> Result<(), Error> {
        Ok(self.allocator.free_slot(self.owner, SlotId::from_number(slot))?)
    }

    fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Given, Error> {
        let slot = slot.map(SlotId::from_number);
        let grant = self
            .allocator
            .allocate(self.owner, DataSet { bytes, cpus, slot }, &[])?;
        Ok(Given {
            set: grant.set.number(),
            colors: grant.colors,
            caches: grant.caches,
        })
    }

    fn free(&mut self, set: u64) -> Result<(), Error> {
        Ok(self.allocator.free(self.owner, SetId::from_number(set))?)
    }

    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error> {
        Ok(self.allocator.available(cpus)?)
    }

    fn name(&self) -> String {
        "this process's own".to_string()
    }
}

/// Under `domicile record`: the trace keeps a program's requests, and the simulated machine judges them. So
/// nothing is refused here for want of colors on this machine.
pub(super) struct Recorded(pub(super) Own);

impl Ledger for Recorded {
    fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, Error> {
        let most = u64::from(self.0.allocator.caches().colors) * self.0.allocator.caches().color_bytes;
        self.0.slot(bytes.min(most), kind)
    }

    fn free_slot(&mut self, slot: u64) -> Result<(), Error> {
        self.0.free_slot(slot)
    }

    fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Given, Error> {
        match self.0.allocate(slot, bytes, cpus) {
            Err(refused) if refused.is_full() => Ok(Given {
                set: 0,
                colors: ColorSet::new(),
                caches: Vec::new(),
            }),
            answer => answer,
        }
    }

    fn free(&mut self, set: u64) -> Result<(), Error> {
        // Number 0 is no data set's.
        if set == 0 { Ok(()) } else { self.0.free(set) }
    }

    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error> {
        self.0.available(cpus)
    }

    fn name(&self) -> String {
        "the trace that is recorded".to_string()
    }
}
