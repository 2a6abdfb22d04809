//! The state that all connections share, and the requests that concern colors: the ledger.
//!
//! The ledger says which application has which colors of the machine's shared caches. [`policy::slots`] makes
//! the decisions; here each connection is an application, and loses all it had when it ends.

use std::time::{Duration, Instant};

use policy::slots::{Allocator, ColorSet, DataSet, Kind, Owner, SetId, SlotId};
use sys::affinity::Wanderer;
use sys::pressure::Memory;

use super::metrics::{Metrics, Now};
use super::stock::Stock;
use super::users::Users;
use super::wire::{Answer, Refusal, Status};
use crate::PAGE_BYTES;

/// The time after a release of frames in which the daemon does nothing that might take them from
/// the client.
const CALM: Duration = Duration::from_millis(10);

/// The reason why a request is not met, and the text for the client.
pub type Refused = (Refusal, String);

pub struct Broker {
    pub stock: Stock,
    pub users: Users,
    pub metrics: Metrics,
    pub ledger: Allocator,
    pub wanderer: Wanderer,
    pub started: Instant,
    pub clients: u32,
    /// True if frames that clients free are wanted: not while memory is short.
    pub takes_back: bool,
    /// While a client is probably at work on frames that were just released.
    pub calm: Calm,
    /// Frames given up under pressure, for the status.
    pub pressure_frames: u64,
    /// Bytes that the daemon has itself, with all that it holds.
    pub own: u64,
    /// The control group that leaves it least, if one has a limit.
    pub room: Option<Memory>,
}

/// A time in which nothing is done that might take frames from a client. Clients can prolong it only so far: under
/// pressure memory must go, however many ask.
#[derive(Clone, Copy, Debug)]
pub struct Calm {
    since: Instant,
    until: Instant,
}

/// The longest calm.
const CALM_MOST: Duration = Duration::from_millis(200);

impl Calm {
    pub fn over(now: Instant) -> Calm {
        Calm { since: now, until: now }
    }

    /// Frames are released.
    pub fn begin(&mut self, now: Instant) {
        if now >= self.until && !self.used_up() {
            self.since = now;
        }
        self.until = (now + CALM).min(self.since + CALM_MOST);
    }

    /// Returns whether the daemon's own turn comes before another calm period.
    fn used_up(&self) -> bool {
        self.until >= self.since + CALM_MOST
    }

    /// When it is over unless it is prolonged.
    pub fn until(&self) -> Instant {
        self.until
    }
}

impl Broker {
    /// Goes to the client's cpu and stays there for a moment.
    pub fn attend(&mut self, cpu: u32, now: Instant) -> Result<(), Refused> {
        let cpu = cpu as usize;
        if !self.wanderer.may(cpu) {
            return Err((Refusal::Invalid, format!("the daemon may not run on cpu {cpu}")));
        }
        self.calm.begin(now);
        self.wanderer.go(cpu).map_err(failed)
    }

    pub fn status(&self, now: Instant) -> Status {
        Status {
            process: std::process::id(),
            up_seconds: now.saturating_duration_since(self.started).as_secs(),
            clients: self.clients,
            stock: self.stock.len() as u64,
            target: self.stock.target() as u64,
            released: self.stock.flow().released,
            hits: self.metrics.hits,
            misses: self.metrics.misses,
            returned: self.stock.flow().taken_back,
            held: self.users.held(),
            pressure: self.metrics.pressure,
            pressure_frames: self.pressure_frames,
            quota: self.users.limits().frames.saturating_mul(PAGE_BYTES as u64),
            own: self.own,
            limit: self.room.map_or(u64::MAX, |room| room.total),
            left: self.room.map_or(u64::MAX, |room| room.available),
            given_up: self.metrics.given_up,
        }
    }

    /// The page of metrics.
    pub fn page(&self, now: Instant) -> String {
        self.metrics.page(Now {
            by_color: self.stock.by_color().collect(),
            target: self.stock.target() as u64,
            held: self.users.held(),
            clients: self.clients.into(),
            flow: self.stock.flow(),
            most: self.stock.most() as u64,
            own: self.own,
            room: self.room,
            up: now.saturating_duration_since(self.started),
        })
    }

    /// Cache that is free on these cpus, or on all.
    pub fn available(&mut self, cpus: &[u32]) -> Result<Answer, Refused> {
        let all;
        let cpus = if cpus.is_empty() {
            all = self.ledger.caches().cpus.concat();
            &all
        } else {
            cpus
        };
        let space = self.ledger.available(cpus).map_err(no_cache)?;
        Ok(Answer::Free {
            bytes: space.bytes,
            together: space.together,
        })
    }

    pub fn slot(&mut self, owner: Owner, bytes: u64, private: bool) -> Result<Answer, Refused> {
        let slot = self.ledger.slot(owner, bytes, kind(private)).map_err(no_cache)?;
        Ok(Answer::Slot { slot: slot.number() })
    }

    pub fn allocate(&mut self, owner: Owner, slot: Option<u64>, bytes: u64, cpus: &[u32]) -> Result<Answer, Refused> {
        let frames = self.frames_to_count_on();
        let data = DataSet {
            bytes,
            cpus,
            slot: slot.map(SlotId::from_number),
        };
        let grant = match self.ledger.allocate(owner, data, &frames) {
            // There are colors, but no stock of this size has the frames: clients collect the missing
            // ones.
            Err(policy::slots::Refused::Frames { .. }) => self.ledger.allocate(owner, data, &[]),
            grant => grant,
        };
        Ok(granted(grant.map_err(no_cache)?, slot.unwrap_or(0)))
    }

    /// The allocator prefers colors of which enough frames are at hand. If the whole stock is low, after a start or
    /// under pressure, this tells nothing about colors, and clients collect for themselves.
    fn frames_to_count_on(&self) -> Vec<u64> {
        if self.stock.len() < self.stock.target() / 2 {
            return Vec::new();
        }
        self.stock.by_color().collect()
    }

    /// Gives an application exactly these colors, which it had before the daemon was restarted.
    pub fn claim(&mut self, owner: Owner, private: bool, cpus: &[u32], colors: &[u16]) -> Result<Answer, Refused> {
        let caches = self.ledger.caches();
        if colors.is_empty() || colors.iter().any(|color| u32::from(*color) >= caches.colors) {
            return Err((Refusal::Invalid, "no colors, or colors that there are not".into()));
        }
        let colors: ColorSet = colors.iter().copied().map(u32::from).collect();
        let claimed = self.ledger.claim(owner, kind(private), cpus, &colors);
        let (slot, grant) = claimed.map_err(no_cache)?;
        Ok(granted(grant, slot.number()))
    }

    pub fn free(&mut self, owner: Owner, set: u64) -> Result<Answer, Refused> {
        self.ledger.free(owner, SetId::from_number(set)).map_err(no_cache)?;
        Ok(Answer::Done)
    }

    pub fn close(&mut self, owner: Owner, slot: u64) -> Result<Answer, Refused> {
        self.ledger
            .free_slot(owner, SlotId::from_number(slot))
            .map_err(no_cache)?;
        Ok(Answer::Done)
    }
}

fn kind(private: bool) -> Kind {
    if private { Kind::Private } else { Kind::Shared }
}

fn granted(grant: policy::slots::Grant, slot: u64) -> Answer {
    Answer::Granted {
        set: grant.set.number(),
        slot,
        colors: grant.colors.iter().map(|color| color as u16).collect(),
        caches: grant.caches.iter().map(|cache| *cache as u32).collect(),
    }
}

fn no_cache(refused: policy::slots::Refused) -> Refused {
    (Refusal::Cache, refused.to_string())
}

pub fn failed(error: std::io::Error) -> Refused {
    (Refusal::Failed, format!("the daemon could not do it: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_cannot_keep_the_daemon_from_its_chores() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut calm = Calm::over(start);
        assert_eq!(calm.until(), start);
        // A client that asks every five milliseconds.
        let chores: Vec<u64> = (0..1000)
            .step_by(5)
            .filter(|&time| {
                // The order of the daemon's turns: clients first, then chores.
                calm.begin(at(time));
                let over = at(time) >= calm.until();
                if over {
                    calm = Calm::over(at(time));
                }
                over
            })
            .collect();
        assert_eq!(chores, [200, 405, 610, 815]);
        // A client that asks once is left alone for a while.
        calm.begin(at(2000));
        assert_eq!(calm.until(), at(2010));
    }
}
