//! The daemon's ledger: colors are one application's across all programs of the machine.
//!
//! A restarted daemon knows nothing. So the client describes its slots and data sets to it before the next request:
//! pages keep their frames whatever happens to the daemon. Colors that another program got in between are lost to us in
//! the new ledger, though not our frames; that is logged.
//!
//! While no daemon answers, this process keeps the ledger for itself ([`Standby`]), and each request first checks if
//! there is one again; but not if the application was started for the daemon alone.

use std::collections::BTreeMap;

use policy::slots::{Caches, ColorSet, Kind, Refused, Space};

use super::Error;
use super::ledger::{Given, Ledger};
use super::standby::Standby;
use crate::daemon::wire::Refusal;
use crate::daemon::{Client, ClientError};

pub(super) struct Served {
    client: Client,
    name: String,
    /// The connection that the numbers of the daemon are of.
    connection: u64,
    /// True if the last request lost the connection.
    lost: bool,
    /// The substitute for the daemon: a ledger with these caches; `None`: none.
    alone: Option<Caches>,
    /// While it is away; and why.
    standby: Option<(Standby, String)>,
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
    /// The daemon's number; none if it knows nothing of it.
    theirs: Option<u64>,
}

impl Served {
    /// `alone`: the caches to go on with while the daemon is away, if the application wants that.
    pub(super) fn new(client: Client, name: String, alone: Option<Caches>) -> Served {
        Served {
            connection: client.connections(),
            client,
            name,
            lost: false,
            alone,
            standby: None,
            slots: BTreeMap::new(),
            sets: BTreeMap::new(),
            next: 1,
        }
    }

    /// Asks, and asks once more if the daemon has gone away and come back. `None` if there is no daemon, and this
    /// process goes on by itself.
    fn ask<T>(&mut self, request: impl Fn(&mut Served) -> Result<T, ClientError>) -> Result<Option<T>, Error> {
        match self.try_to_ask(request) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_loss(&error) && self.alone.is_some() => {
                self.stand_by(&error)?;
                Ok(None)
            }
            Err(error) => Err(failure(error)),
        }
    }

    fn try_to_ask<T>(&mut self, request: impl Fn(&mut Served) -> Result<T, ClientError>) -> Result<T, ClientError> {
        self.return_to()?;
        match request(self) {
            Err(error) if is_loss(&error) => {
                self.lost = true;
                self.return_to()?;
                request(self).inspect_err(|error| self.lost = is_loss(error))
            }
            answer => answer,
        }
    }

    /// Goes on without the daemon, with what we have of it.
    fn stand_by(&mut self, why: &ClientError) -> Result<(), Error> {
        self.lost = true;
        if self.standby.is_some() {
            return Ok(());
        }
        let Some(caches) = self.alone.clone() else {
            return Ok(());
        };
        let mut standby = Standby::new(caches)?;
        for (number, set) in &self.sets {
            let slot = set
                .slot
                .and_then(|slot| self.slots.get(&slot).map(|own| (slot, own.kind)));
            standby.hold(*number, slot, set.bytes, &set.cpus, &set.colors);
        }
        for (number, slot) in &self.slots {
            if !standby.knows(*number) {
                standby.slot(*number, slot.bytes, slot.kind)?;
            }
        }
        tracing::warn!(%why, "the daemon is away: colors are this process's own, and it collects frames for itself");
        self.standby = Some((standby, why.to_string()));
        Ok(())
    }

    /// The ledger of this process. Pre: the daemon was just found to be away.
    fn own(&mut self) -> Result<&mut Standby, Refused> {
        self.standby
            .as_mut()
            .map(|(standby, _)| standby)
            .ok_or(Refused::UnknownOwner)
    }

    /// Reconnects if needed, and describes the client's slots and data sets to the daemon.
    fn return_to(&mut self) -> Result<(), ClientError> {
        if self.lost {
            self.client.status()?;
            self.lost = false;
        }
        if self.client.connections() == self.connection {
            return Ok(());
        }
        for slot in self.slots.values_mut() {
            slot.theirs = 0;
        }
        let mut numbers: Vec<u64> = self.sets.keys().copied().collect();
        // If several are in one slot, the first one claims its colors.
        numbers.sort_by_key(|number| self.sets[number].slot);
        for number in numbers {
            self.introduce(number)?;
        }
        for slot in self.slots.values_mut().filter(|slot| slot.theirs == 0) {
            slot.theirs = self.client.slot(slot.bytes, slot.kind)?;
        }
        self.connection = self.client.connections();
        if self.standby.take().is_some() {
            tracing::info!("the daemon is back");
        }
        Ok(())
    }

    /// Reports a data set that has colors to the daemon.
    fn introduce(&mut self, number: u64) -> Result<(), ClientError> {
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
        if theirs.is_none() {
            self.own()?.slot(number, bytes, kind)?;
        }
        let theirs = theirs.unwrap_or(0);
        self.slots.insert(number, Slot { bytes, kind, theirs });
        Ok(number)
    }

    fn free_slot(&mut self, slot: u64) -> Result<(), Error> {
        if !self.slots.contains_key(&slot) {
            return Err(Refused::UnknownSlot.into());
        }
        let sets = self.sets.values().filter(|set| set.slot == Some(slot)).count() as u32;
        if sets > 0 {
            return Err(Refused::InUse { sets }.into());
        }
        let outcome = self.ask(|ledger| {
            let theirs = ledger.slots.get(&slot).map_or(0, |slot| slot.theirs);
            ledger.client.close(theirs)
        });
        self.slots.remove(&slot);
        match outcome {
            Ok(None) => Ok(self.own()?.free_slot(slot)?),
            outcome => gone_is_freed(outcome.map(drop)),
        }
    }

    fn allocate(&mut self, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Given, Error> {
        if slot.is_some_and(|slot| !self.slots.contains_key(&slot)) {
            return Err(Refused::UnknownSlot.into());
        }
        let granted = self.ask(|ledger| {
            let theirs = slot.and_then(|slot| ledger.slots.get(&slot)).map(|slot| slot.theirs);
            ledger.client.allocate(theirs, bytes, cpus)
        })?;
        let number = self.number();
        let (colors, caches, theirs) = match granted {
            Some(granted) => (granted.colors, granted.caches, Some(granted.set)),
            None => {
                let grant = self.own()?.allocate(number, slot, bytes, cpus)?;
                (grant.colors, grant.caches, None)
            }
        };
        self.sets.insert(
            number,
            Set {
                slot,
                bytes,
                cpus: cpus.to_vec(),
                colors: colors.clone(),
                theirs,
            },
        );
        Ok(Given {
            set: number,
            colors,
            caches,
        })
    }

    fn free(&mut self, set: u64) -> Result<(), Error> {
        if !self.sets.contains_key(&set) {
            return Err(Refused::UnknownSet.into());
        }
        let outcome = self.ask(|ledger| match ledger.sets.get(&set).and_then(|set| set.theirs) {
            Some(theirs) => ledger.client.free(theirs),
            None => Ok(()),
        });
        self.sets.remove(&set);
        match outcome {
            Ok(None) => Ok(self.own()?.free(set)?),
            outcome => gone_is_freed(outcome.map(drop)),
        }
    }

    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error> {
        let Some((bytes, together)) = self.ask(|ledger| ledger.client.available(cpus))? else {
            return Ok(self.own()?.available(cpus)?);
        };
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

    fn trouble(&self) -> Option<String> {
        let (_, why) = self.standby.as_ref()?;
        Some(format!(
            "{why}; until it answers, colors and frames are this process's own"
        ))
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

fn failure(error: ClientError) -> Error {
    match error {
        ClientError::Refused { why, text } => Error::Daemon {
            full: why == Refusal::Cache,
            text,
        },
        error => Error::Live(error.into()),
    }
}
