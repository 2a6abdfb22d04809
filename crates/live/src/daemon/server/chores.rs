//! The daemon's chores between requests: it looks at the machine's memory, gives up frames or collects some, and
//! disconnects clients without manners.

use std::time::{Duration, Instant};

use sys::pressure::{Memory, own, stalled};
use sys::ready::Wanted;

use super::{DOOR, LISTENER, MANNERS, REST, Server};
use crate::daemon::broker::Calm;
use crate::daemon::pressure::{PressureAction, Signs, least};

/// Windows of the stock that are checked at a time: 64 Mi pages an hour, for a thousandth of a cpu.
const CHECKED: usize = 32;
/// Frames collected between two looks at memory, at most: 16 MiB.
const UNWATCHED: usize = 4096;
/// Frames given up at a time; some milliseconds.
const GIVEN_UP: usize = 16_384;
const REST_MOST: Duration = Duration::from_secs(300);
/// However busy the daemon is, it looks after the stock this often.
const CHORES: Duration = Duration::from_millis(50);

impl Server {
    /// Looks at the machine's memory, and for clients without manners.
    pub(super) fn look_around(&mut self, now: Instant) {
        self.next_look = now + self.config.every;
        let memory = match Memory::read(&self.config.root) {
            Ok(memory) => memory,
            Err(error) => {
                self.complain(now, &format!("memory cannot be watched, so none is collected: {error}"));
                self.allowance = 0;
                return;
            }
        };
        let groups = sys::groups::left(&self.config.root);
        self.broker.room = least(&groups);
        self.broker.own = own(&self.config.root).unwrap_or(0);
        self.unwatched = UNWATCHED;
        let signs = Signs {
            memory,
            groups,
            stalled: stalled(&self.config.root).unwrap_or(0.0),
            alarm: std::mem::take(&mut self.alarmed),
        };
        let (stalled, alarm) = (signs.stalled, signs.alarm);
        match self.watch.look(now, &signs, self.broker.stock.len()) {
            PressureAction::GiveUp(frames) => {
                if frames > 0 {
                    tracing::warn!(
                        frames,
                        available_bytes = memory.available,
                        left_bytes = self.broker.room.map(|room| room.available),
                        stalled_percent = stalled,
                        alarm,
                        "memory is short: giving up frames"
                    );
                    self.broker.metrics.pressure += 1;
                }
                self.excess = frames;
                self.allowance = 0;
                self.broker.takes_back = false;
                if let Err(error) = self.broker.stock.stop_collecting() {
                    self.complain(now, &format!("frames cannot be let go: {error}"));
                }
            }
            PressureAction::Collect(frames) => {
                self.allowance = frames;
                self.broker.takes_back = frames > 0;
            }
        }
        let released = self.broker.stock.flow().released;
        if released != self.seen_released {
            // Other colors are wanted than those that were not to be had.
            self.seen_released = released;
            self.rest = REST;
            self.collect_from = self.collect_from.min(now + REST);
        }
        if self.deaf && self.ready.watch(&self.listener, LISTENER, Wanted::Read).is_ok() {
            self.deaf = false;
        }
        if self.shut
            && let Some(door) = &self.door
        {
            self.shut = self.ready.watch(door, DOOR, Wanted::Read).is_err();
        }
        self.keepers.look(&mut self.broker.users, now);
        self.look_for_frames(now);
        self.broker.users.forget_the_gone(now);
        let rude: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, session)| !session.greeted && now.saturating_duration_since(session.since) > MANNERS)
            .map(|(name, _)| *name)
            .collect();
        for name in rude {
            self.hang_up(name, "it did not greet");
        }
        self.scrapes
            .retain(|_, scrape| now.saturating_duration_since(scrape.since) < MANNERS);
        if let Err(error) = self.broker.stock.check(CHECKED) {
            self.complain(now, &format!("the stock cannot be checked: {error}"));
        }
    }

    /// A little work on the stock.
    pub(super) fn chore(&mut self, now: Instant) {
        self.next_chore = now + CHORES;
        self.broker.wanderer.rest();
        self.broker.calm = Calm::over(now);
        if self.excess > 0 {
            let some = self.excess.min(GIVEN_UP);
            match self.broker.stock.give_up(some) {
                Ok(went) => {
                    self.broker.pressure_frames += went as u64;
                    self.excess = if went < some { 0 } else { self.excess - some };
                }
                Err(error) => {
                    self.excess = 0;
                    self.complain(now, &format!("frames cannot be given up: {error}"));
                }
            }
        } else if self.may_collect() && now >= self.collect_from {
            match self.broker.stock.collect() {
                Ok((got, over)) => {
                    self.allowance = self.allowance.saturating_sub(got);
                    self.unwatched = self.unwatched.saturating_sub(got);
                    if self.unwatched == 0 {
                        // Others may take memory at the same time.
                        self.next_look = now;
                    }
                    if over && self.broker.stock.hungry() {
                        // The kernel has too few frames of some color: give it time.
                        self.collect_from = now + self.rest;
                        self.rest = (self.rest * 2).min(REST_MOST);
                    } else if over {
                        tracing::debug!(frames = self.broker.stock.len(), "the stock is full");
                        self.rest = REST;
                    }
                }
                Err(error) => {
                    self.allowance = 0;
                    self.collect_from = now + REST;
                    self.complain(now, &format!("no frames can be collected: {error}"));
                }
            }
        }
    }
}
