//! Each user's holdings and request rate: quota, connections, pace.
//!
//! A user is a number that the kernel vouches for. Everything here is bounded by the number of users
//! that have connections or had some a moment ago.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A user's limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Frames held at a time.
    pub frames: u64,
    /// Connections at a time.
    pub connections: u32,
}

/// Work that a user may ask for at once, and a second: a message is 1 and what its pages add.
const WORK_AT_ONCE: i64 = 20_000;
const WORK_A_SECOND: i64 = 20_000;
/// The cost of accepting a connection and ending it.
const CONNECTING: u64 = 2;
/// A user who owes more than this may not connect; a smaller debt is made up for by waiting.
const DEBT_MOST: Duration = Duration::from_secs(1);
/// Part of the quota that a user is believed to have lost or freed without it showing, and seconds in which that
/// trust is there again.
const TRUST: u64 = 8;
const TRUST_SECONDS: i64 = 600;
/// A user's frames come back in this time if they were never freed: a client that takes frames and drops them empties
/// the stock no faster.
const REFILL_SECONDS: i64 = 10;

#[derive(Debug)]
pub struct User {
    pub connections: u32,
    /// Frames that count against the quota.
    pub held: u64,
    /// The user's share of the daemon's time.
    pub work: Bucket,
    /// The user's share of the daemon's frames.
    pub frames: Bucket,
    /// Frames that are believed to be gone without proof.
    pub trust: Bucket,
    /// Slots and data sets of all connections.
    pub things: u32,
}

/// Why a user may not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The user has as many connections as it may have.
    Full,
    /// Too much work asked for already.
    Busy,
}

#[derive(Debug)]
pub struct Users {
    limits: Limits,
    by_number: HashMap<u32, User>,
}

impl Users {
    pub fn new(limits: Limits) -> Users {
        Users {
            limits,
            by_number: HashMap::new(),
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// A connection more.
    pub fn connect(&mut self, number: u32, now: Instant) -> Result<(), Closed> {
        let frames = i64::try_from(self.limits.frames).unwrap_or(i64::MAX);
        let trust = frames / TRUST as i64;
        let user = self.by_number.entry(number).or_insert_with(|| User {
            connections: 0,
            held: 0,
            work: Bucket::full(WORK_AT_ONCE, WORK_A_SECOND, now),
            frames: Bucket::full(frames, (frames / REFILL_SECONDS).max(1), now),
            trust: Bucket::full(trust, (trust / TRUST_SECONDS).max(1), now),
            things: 0,
        });
        // A user who connects again and again pays for it as for any other work.
        if user.work.owe(CONNECTING, now) > DEBT_MOST {
            return Err(Closed::Busy);
        }
        if user.connections >= self.limits.connections {
            return Err(Closed::Full);
        }
        user.connections += 1;
        Ok(())
    }

    /// A connection less, that held so many frames.
    pub fn disconnect(&mut self, number: u32, held: u64) {
        if let Some(user) = self.by_number.get_mut(&number) {
            user.connections = user.connections.saturating_sub(1);
            user.held = user.held.saturating_sub(held);
        }
    }

    /// Takes so many frames off the account.
    pub fn discharge(&mut self, number: u32, frames: u64) {
        if let Some(user) = self.by_number.get_mut(&number) {
            user.held = user.held.saturating_sub(frames);
        }
    }

    /// Keeps a place for a user's frames besides its connections, even without any connection.
    pub fn keep_place(&mut self, number: u32) {
        if let Some(user) = self.by_number.get_mut(&number) {
            user.connections += 1;
        }
    }

    /// The user of a connection.
    pub fn of(&mut self, number: u32) -> Option<&mut User> {
        self.by_number.get_mut(&number)
    }

    /// Frames that all users hold.
    pub fn held(&self) -> u64 {
        self.by_number.values().map(|user| user.held).sum()
    }

    /// Forgets users who are gone and have nothing to answer for.
    pub fn forget_the_gone(&mut self, now: Instant) {
        self.by_number.retain(|_, user| {
            let in_use = user.connections > 0 || user.held > 0;
            in_use || !user.work.is_full(now) || !user.frames.is_full(now) || !user.trust.is_full(now)
        });
    }
}

/// A limit: so much at once, and so much a second in the long run.
#[derive(Debug)]
pub struct Bucket {
    most: i64,
    a_second: i64,
    left: i64,
    at: Instant,
}

impl Bucket {
    pub fn full(most: i64, a_second: i64, now: Instant) -> Bucket {
        Bucket {
            most,
            a_second,
            left: most,
            at: now,
        }
    }

    fn flow(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.at);
        let came = i128::from(self.a_second) * since.as_micros() as i128 / 1_000_000;
        if came > 0 {
            self.left = (i128::from(self.left) + came).min(i128::from(self.most)) as i64;
            self.at = now;
        }
    }

    /// Takes so much, if it is there.
    pub fn take(&mut self, amount: u64, now: Instant) -> bool {
        self.flow(now);
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        let there = self.left >= amount;
        if there {
            self.left -= amount;
        }
        there
    }

    /// Takes so much, or all there is; returns the amount taken.
    pub fn take_some(&mut self, amount: u64, now: Instant) -> u64 {
        self.flow(now);
        let taken = i64::try_from(amount).unwrap_or(i64::MAX).min(self.left.max(0));
        self.left -= taken;
        taken.unsigned_abs()
    }

    /// Takes so much, and returns how long it takes until that is there.
    pub fn owe(&mut self, amount: u64, now: Instant) -> Duration {
        self.flow(now);
        self.left = self.left.saturating_sub(i64::try_from(amount).unwrap_or(i64::MAX));
        let lacking = self.left.min(0).unsigned_abs();
        Duration::from_micros(lacking.saturating_mul(1_000_000) / self.a_second.unsigned_abs().max(1))
    }

    /// Puts back an amount taken.
    pub fn put(&mut self, amount: u64) {
        let amount = i64::try_from(amount).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(amount).min(self.most);
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.flow(now);
        self.left == self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_has_and_fills_with_time() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut bucket = Bucket::full(100, 10, start);
        assert!(bucket.take(60, start) && !bucket.take(60, start) && bucket.take(40, start));
        assert!(!bucket.take(1, at(90)) && bucket.take(1, at(100)));
        assert_eq!(bucket.owe(20, at(100)), Duration::from_secs(2));
        assert_eq!(bucket.owe(0, at(1100)), Duration::from_secs(1));
        bucket.put(1000);
        assert!(bucket.is_full(at(1100)));
        // Small steps of time add up.
        assert!(bucket.take(100, at(1100)));
        for step in 1..=100 {
            bucket.flow(at(1100 + step * 10));
        }
        assert!(bucket.take(10, at(2100)));
    }

    #[test]
    fn users_are_counted_and_forgotten() {
        let now = Instant::now();
        let mut users = Users::new(Limits {
            frames: 1000,
            connections: 2,
        });
        assert!(users.connect(7, now).is_ok() && users.connect(7, now).is_ok());
        assert_eq!(users.connect(7, now), Err(Closed::Full));
        assert!(users.connect(8, now).is_ok());
        let user = users.of(7).unwrap();
        user.held = 500;
        assert!(user.frames.take(500, now));
        users.disconnect(7, 200);
        assert_eq!(users.held(), 300);
        users.disconnect(7, 300);
        users.disconnect(8, 0);
        users.forget_the_gone(now + Duration::from_millis(1));
        // A user who has just emptied the stock is remembered for a while.
        assert_eq!(users.by_number.len(), 1);
        users.forget_the_gone(now + Duration::from_secs(10));
        assert!(users.by_number.is_empty());
    }

    #[test]
    fn connecting_again_and_again_is_work() {
        let now = Instant::now();
        let mut users = Users::new(Limits {
            frames: 1000,
            connections: 2,
        });
        let mut turns = 0;
        while users.connect(7, now) != Err(Closed::Busy) {
            users.disconnect(7, 0);
            turns += 1;
            assert!(turns <= 2 * WORK_AT_ONCE);
        }
        assert_eq!(turns, (WORK_AT_ONCE + WORK_A_SECOND) / CONNECTING as i64);
        // Others are not concerned, and it has an end.
        assert!(users.connect(8, now).is_ok());
        assert!(users.connect(7, now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn trust_has_an_end_and_comes_back() {
        let start = Instant::now();
        let mut bucket = Bucket::full(100, 10, start);
        assert_eq!(bucket.take_some(60, start), 60);
        assert_eq!(bucket.take_some(60, start), 40);
        assert_eq!(bucket.take_some(u64::MAX, start), 0);
        assert_eq!(bucket.take_some(60, start + Duration::from_secs(2)), 20);
        bucket.owe(50, start + Duration::from_secs(2));
        assert_eq!(bucket.take_some(1, start + Duration::from_secs(2)), 0);
    }
}
