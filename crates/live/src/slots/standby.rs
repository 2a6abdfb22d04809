//! The ledger of a process whose daemon is away: its colors from before, and those that it gets until
//! the daemon is back.
//!
//! Colors are then its own only as far as this process goes, as without a daemon.

use std::collections::BTreeMap;

use policy::slots::{Allocator, Caches, ColorSet, DataSet, Grant, Kind, Owner, Refused, SetId, SlotId, Space};

/// See the module's documentation. Slots and data sets go by the numbers that the caller has for them.
pub(super) struct Standby {
    allocator: Allocator,
    owner: Owner,
    slots: BTreeMap<u64, SlotId>,
    sets: BTreeMap<u64, SetId>,
}

impl Standby {
    pub(super) fn new(caches: Caches) -> Result<Standby, super::Error> {
        let mut allocator = Allocator::new(caches)?;
        let owner = allocator.join();
        Ok(Standby {
            allocator,
            owner,
            slots: BTreeMap::new(),
            sets: BTreeMap::new(),
        })
    }

    /// Writes down a data set that has its colors already, and its slot with it. One that has the same colors as
    /// another one in a private slot of its own was given them by different daemons: it keeps its frames, and its
    /// colors are written to the first.
    pub(super) fn hold(&mut self, number: u64, slot: Option<(u64, Kind)>, bytes: u64, cpus: &[u32], colors: &ColorSet) {
        let known = slot.and_then(|(slot, _)| self.slots.get(&slot).copied());
        let held = match known {
            Some(_) => self.granted(known, bytes, cpus).map(|grant| grant.set),
            None => {
                let kind = slot.map_or(Kind::Shared, |(_, kind)| kind);
                let claimed = self.allocator.claim(self.owner, kind, cpus, colors);
                claimed.map(|(id, grant)| {
                    if let Some((slot, _)) = slot {
                        self.slots.insert(slot, id);
                    }
                    grant.set
                })
            }
        };
        match held {
            Ok(set) => drop(self.sets.insert(number, set)),
            Err(refused) => tracing::warn!(%refused, "colors of a data set are another one's of this process"),
        }
    }

    pub(super) fn slot(&mut self, number: u64, bytes: u64, kind: Kind) -> Result<(), Refused> {
        let slot = self.allocator.slot(self.owner, bytes, kind)?;
        self.slots.insert(number, slot);
        Ok(())
    }

    pub(super) fn knows(&self, slot: u64) -> bool {
        self.slots.contains_key(&slot)
    }

    pub(super) fn free_slot(&mut self, number: u64) -> Result<(), Refused> {
        match self.slots.remove(&number) {
            Some(slot) => self.allocator.free_slot(self.owner, slot),
            None => Ok(()),
        }
    }

    /// Colors for a data set that the caller calls by this number.
    pub(super) fn allocate(
        &mut self,
        number: u64,
        slot: Option<u64>,
        bytes: u64,
        cpus: &[u32],
    ) -> Result<Grant, Refused> {
        let slot = match slot {
            Some(slot) => Some(*self.slots.get(&slot).ok_or(Refused::UnknownSlot)?),
            None => None,
        };
        let grant = self.granted(slot, bytes, cpus)?;
        self.sets.insert(number, grant.set);
        Ok(grant)
    }

    fn granted(&mut self, slot: Option<SlotId>, bytes: u64, cpus: &[u32]) -> Result<Grant, Refused> {
        // Frames come from the kernel, any number.
        self.allocator.allocate(self.owner, DataSet { bytes, cpus, slot }, &[])
    }

    pub(super) fn free(&mut self, number: u64) -> Result<(), Refused> {
        match self.sets.remove(&number) {
            Some(set) => self.allocator.free(self.owner, set),
            None => Ok(()),
        }
    }

    pub(super) fn available(&mut self, cpus: &[u32]) -> Result<Space, Refused> {
        self.allocator.available(cpus)
    }
}
