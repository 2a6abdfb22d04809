//! The daemon's ledger: colors are one application's across all programs of the machine.
//!
//! A daemon that is started anew knows nothing. Then the slots and data sets that we have are told to it
//! before the next request: pages keep their frames whatever becomes of the daemon. Colors that another program got in
//! between are lost to us in the new ledger, though not our frames; that is logged.

use std::collections::BTreeMap;

use policy::slots::{ColorSet, Kind, Space};

use super::Error;
use super::ledger::{Given, Ledger};
use crate::daemon::wire::Refusal;
use crate::daemon::{Client, ClientError};

pub(super) struct Served {
    client: Client,
    name: String,
    /// The connection that the numbers of the daemon are of.
    connection: u64,
    /// Whether the last request lost the connection.
    lost: bool,
    slots: BTreeMap<u64, Slot>,
    sets: BTreeMap<u64, Set>,
    next: u64,
}

struct Slot {
    bytes: u64,
    kind: Kind,
    /// The daemon's number.
    theirs: u64,
}

struct Set {
    slot: Option<u64>,
    bytes: u64,
    cpus: Vec<u32>,
    colors: ColorSet,
    /// The daemon's number; none where it knows nothing of it.
    theirs: Option<u64>,
}

impl Served {
    pub(super) fn new(client: Client, name: String) -> Served {
        Served {
            connection: client.connections(),
            client,
            name,
            lost: false,
            slots: BTreeMap::new(),
            sets: BTreeMap::new(),
            next: 1,
        }
    }

    /// Asks, and once more where the daemon has gone away and come back.
    fn ask<T>(&mut self, request: impl Fn(&mut Served) -> Result<T, ClientError>) -> Result<T, Error> {
        self.return_to()?;
        match request(self) {
            Err(error) if is_loss(&error) => {
                self.lost = true;
                self.return_to()?;
                request(self).inspect_err(|error| self.lost = is_loss(error))
            }
            answer => answer,
        }
        .map_err(told)
    }

    /// Connects anew where that is needed, and tells the daemon what we have.
    fn return_to(&mut self) -> Result<(), Error> {
        if self.lost {
            self.client.status().map_err(told)?;
            self.lost = false;
        }
        if self.client.connections() == self.connection {
            return Ok(());
        }
        for slot in self.slots.values_mut() {
            slot.theirs = 0;
        }
        let mut numbers: Vec<u64> = self.sets.keys().copied().collect();
        // Where several are in one slot, the first one claims its colors.
        numbers.sort_by_key(|number| self.sets[number].slot);
        for number in numbers {
            self.tell(number).map_err(told)?;
        }
        for slot in self.slots.values_mut().filter(|slot| slot.theirs == 0) {
            slot.theirs = self.client.slot(slot.bytes, slot.kind).map_err(told)?;
        }
        self.connection = self.client.connections();
        Ok(())
    }

    /// Tells the daemon of a data set that has colors.
    fn tell(&mut self, number: u64) -> Result<(), ClientError> {
        let Some(set) = self.sets.get_mut(&number) else {
            return Ok(());
        };
        let slot = set.slot.and_then(|slot| self.slots.get_mut(&slot));
        let answer = match &slot {
            Some(slot) if slot.theirs != 0 => self.client.allocate(Some(slot.theirs), set.bytes, &set.cpus),
            Some(slot) => self.client.claim(slot.kind, &set.cpus, &set.colors),
            None => self.client.claim(Kind::Shared, &set.cpus, &set.colors),
        };
        set.theirs = None;
        match answer {
            Ok(granted) => {
                set.theirs = Some(granted.set);
                if let Some(slot) = slot {
                    slot.theirs = granted.slot;
                }
                Ok(())
            }
            Err(ClientError::Refused { text, .. }) => {
                tracing::warn!(%text, "colors of a data set are somebody else's since the daemon was started anew");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

impl Ledger for Served {
    fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, Error> {
        let theirs = self.ask(|ledger| ledger.client.slot(bytes, kind))?;
        let number = self.number();
        self.slots.insert(number, Slot { bytes, kind, theirs });
        Ok(number)
    }

    fn free_slot(&mut self, slot: u64) -> Result<(), Error> {
        if !self.slots.contains_key(&slot) {
            return Err(policy::slots::Refused::UnknownSlot.into());
        }
        let sets = self.sets.values().filter(|set| set.slot == Some(slot)).count() as u32;
        if sets > 0 {
            return Err(policy::slots::Refused::InUse { sets }.into());
        }
        let outcome = self.ask(|ledger| {
            let theirs = ledger.slots.get(&slot).map_or(0, |slot| slot.theirs);
            ledger.client.close(theirs)
        });
        self.slots.remove(&slot);
        gone_is_freed(outcome)
    }

    fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Given, Error> {
        if slot.is_some_and(|slot| !self.slots.contains_key(&slot)) {
            return Err(policy::slots::Refused::UnknownSlot.into());
        }
        let granted = self.ask(|ledger| {
            let theirs = slot.and_then(|slot| ledger.slots.get(&slot)).map(|slot| slot.theirs);
            ledger.client.allocate(theirs, bytes, cpus)
        })?;
        let number = self.number();
        self.sets.insert(
            number,
            Set {
                slot,
                bytes,
                cpus: cpus.to_vec(),
                colors: granted.colors.clone(),
                theirs: Some(granted.set),
            },
        );
        Ok(Given {
            set: number,
            colors: granted.colors,
            caches: granted.caches,
        })
    }

    fn free(&mut self, set: u64) -> Result<(), Error> {
        if !self.sets.contains_key(&set) {
            return Err(policy::slots::Refused::UnknownSet.into());
        }
        let outcome = self.ask(|ledger| match ledger.sets.get(&set).and_then(|set| set.theirs) {
            Some(theirs) => ledger.client.free(theirs),
            None => Ok(()),
        });
        self.sets.remove(&set);
        gone_is_freed(outcome)
    }

    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error> {
        let (bytes, together) = self.ask(|ledger| ledger.client.available(cpus))?;
        Ok(Space {
            caches: Vec::new(),
            color_bytes: self.client.colors().color_bytes,
            bytes,
            together,
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn is_loss(error: &ClientError) -> bool {
    !matches!(error, ClientError::Refused { .. })
}

/// A daemon that is gone has nothing of ours any more.
fn gone_is_freed(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Live(crate::Error::Unavailable { .. })) => Ok(()),
        outcome => outcome,
    }
}

fn told(error: ClientError) -> Error {
    match error {
        ClientError::Refused { why, text } => Error::Daemon {
            full: why == Refusal::Cache,
            text,
        },
        error => Error::Live(error.into()),
    }
}
