//! Frames of connections that have ended.
//!
//! They still count for as long as a process has them: otherwise a new connection, or a fork, would evade the quota.
//! The daemon looks up their holder every now and then ([`super::whereabouts`]): the process that was handed them,
//! which may live on, or a process that it forked. A process that connects again answers for them itself; until then
//! one that lives has the place of a connection among its user's.
//!
//! If the holder cannot be found out, the daemon stops counting them, late enough that this is no way around the quota
//! worth taking.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::peer::Identity;

use super::account::Account;
use super::session::Session;
use super::users::Users;
use super::whereabouts::Whereabouts;

/// The time for which frames with an unknown holder count as kept.
const KEPT: Duration = Duration::from_secs(600);
/// Between two looks for the frames, at first and at most.
const SOON: Duration = Duration::from_millis(500);
const LATE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Keepers {
    by_name: HashMap<u64, Kept>,
    next: u64,
}

/// The frames that a connection left behind.
#[derive(Debug)]
pub struct Kept {
    user: u32,
    account: Account,
    since: Instant,
    /// The process, while it lives; the frames that the user's other processes left are put
    /// together.
    process: Option<Arc<Identity>>,
    /// The time of the next look, and the pause after that. `None` while a look is under way.
    look_at: Option<Instant>,
    wait: Duration,
}

impl Keepers {
    /// The number of entries that have a place.
    pub fn len(&self) -> usize {
        self.by_name.values().filter(|kept| kept.process.is_some()).count()
    }

    /// Settles a connection that has ended: its place is free unless its process lives and may have frames.
    pub fn add(&mut self, session: Session, users: &mut Users, now: Instant) {
        let (who, user) = (Arc::clone(&session.who), session.who.user);
        let account = session.close(users);
        if account.charged() == 0 {
            return users.disconnect(user, 0);
        }
        self.keep(user, account, who.lives().then_some(who), users, now);
    }

    /// Pre: it has a place.
    fn keep(&mut self, user: u32, account: Account, process: Option<Arc<Identity>>, users: &mut Users, now: Instant) {
        let number = |process: &Option<Arc<Identity>>| process.as_ref().map(|who| who.process);
        let mut others = self.by_name.values_mut();
        let same = others.find(|kept| kept.user == user && number(&kept.process) == number(&process));
        if same.is_some() || process.is_none() {
            // Two connections of one process: one place is enough. A process that is gone needs
            // none.
            users.disconnect(user, 0);
        }
        match same {
            Some(kept) => {
                kept.account.add(account);
                kept.wait = SOON;
                kept.look_at = kept.look_at.map(|_| now);
            }
            None => {
                self.next += 1;
                let kept = Kept {
                    user,
                    account,
                    since: now,
                    process,
                    look_at: Some(now),
                    wait: SOON,
                };
                self.by_name.insert(self.next, kept);
            }
        }
    }

    /// Takes the frames that a process which connects again has kept. Its place is free, its frames
    /// still count.
    pub fn take(&mut self, who: &Identity, users: &mut Users) -> Option<Kept> {
        let of_process = |kept: &Kept| {
            let process = kept.process.as_ref();
            kept.user == who.user && process.is_some_and(|process| process.process == who.process && process.lives())
        };
        let name = self
            .by_name
            .iter()
            .find(|(_, kept)| of_process(kept))
            .map(|(name, _)| *name)?;
        users.disconnect(who.user, 0);
        self.by_name.remove(&name)
    }

    /// Undoes [`Keepers::take`].
    pub fn put_back(&mut self, kept: Option<Kept>, users: &mut Users, now: Instant) {
        if let Some(mut kept) = kept {
            users.keep_place(kept.user);
            kept.look_at = Some(now);
            self.next += 1;
            self.by_name.insert(self.next, kept);
        }
    }

    /// Frees the places of those that have ended. Their frames still count until they were looked for.
    pub fn look(&mut self, users: &mut Users, now: Instant) {
        let ended = |kept: &Kept| kept.process.as_ref().is_some_and(|process| !process.lives());
        let names: Vec<u64> = self
            .by_name
            .iter()
            .filter(|(_, kept)| ended(kept))
            .map(|(name, _)| *name)
            .collect();
        for name in names {
            if let Some(kept) = self.by_name.remove(&name) {
                self.keep(kept.user, kept.account, None, users, now);
            }
        }
    }

    /// The next entry to look for, if its time has come, among users who are not `busy`: its name, its user and the
    /// frames. [`Keepers::found`] takes the result.
    pub fn due(&mut self, now: Instant, busy: impl Fn(u32) -> bool) -> Option<(u64, u32, Vec<u64>)> {
        let due = |kept: &Kept| kept.look_at.filter(|at| *at <= now && !busy(kept.user));
        let (name, kept) = self
            .by_name
            .iter_mut()
            .filter_map(|(name, kept)| Some((due(kept)?, name, kept)))
            .min_by_key(|(at, ..)| *at)
            .map(|(_, name, kept)| (*name, kept))?;
        kept.look_at = None;
        Some((name, kept.user, kept.account.frames()))
    }

    pub fn found(&mut self, name: u64, frames: Whereabouts, users: &mut Users, now: Instant) {
        // It may have connected again.
        let Some(kept) = self.by_name.get_mut(&name) else {
            return;
        };
        let freed = match frames {
            Whereabouts::Known(frames) => kept.account.keep_only(&frames),
            Whereabouts::Unknown(_) if now.saturating_duration_since(kept.since) >= KEPT => kept.account.keep_only(&[]),
            Whereabouts::Unknown(Some(frames)) => kept.account.keep_only(&frames),
            Whereabouts::Unknown(None) => 0,
        };
        kept.look_at = Some(now + kept.wait);
        kept.wait = (kept.wait * 2).min(LATE);
        users.discharge(kept.user, freed);
        if kept.account.charged() == 0
            && let Some(kept) = self.by_name.remove(&name)
            && kept.process.is_some()
        {
            users.disconnect(kept.user, 0);
        }
    }
}

impl From<Kept> for Account {
    fn from(kept: Kept) -> Account {
        kept.account
    }
}

#[cfg(test)]
mod tests {
    use super::super::users::Limits;
    use super::*;
    use std::os::unix::net::UnixStream;

    fn users(now: Instant, number: u32, connections: u32) -> Users {
        let mut users = Users::new(Limits {
            frames: 1000,
            connections: 8,
        });
        (0..connections).for_each(|_| users.connect(number, now).unwrap());
        users.of(number).unwrap().held = 100 * u64::from(connections);
        users
    }

    fn me() -> (Arc<Identity>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        (Arc::new(Identity::of(&near).unwrap()), far)
    }

    #[test]
    fn who_connects_again_answers_for_what_it_kept() {
        let now = Instant::now();
        let (who, _far) = me();
        let mut users = users(now, who.user, 1);
        let mut keepers = Keepers::default();
        keepers.keep(who.user, Account::of(1..101), Some(Arc::clone(&who)), &mut users, now);
        keepers.look(&mut users, now);
        assert_eq!((keepers.len(), users.held()), (1, 100));
        // Looked for, and a part of it found.
        let (name, user, frames) = keepers.due(now, |_| false).unwrap();
        assert_eq!((user, frames.len()), (who.user, 100));
        assert!(keepers.due(now, |_| false).is_none());
        keepers.found(name, Whereabouts::Known((1..31).collect()), &mut users, now);
        assert_eq!(users.held(), 30);
        let taken = keepers.take(&who, &mut users);
        assert_eq!((keepers.len(), users.of(who.user).unwrap().connections), (0, 0));
        keepers.put_back(taken, &mut users, now);
        assert_eq!((keepers.len(), users.of(who.user).unwrap().connections), (1, 1));
        // No entry is left, and so no place is needed.
        let (name, ..) = keepers.due(now, |_| false).unwrap();
        keepers.found(name, Whereabouts::Known(Vec::new()), &mut users, now);
        assert_eq!((keepers.len(), users.held()), (0, 0));
        assert_eq!(users.of(who.user).unwrap().connections, 0);
    }

    #[test]
    fn what_the_dead_left_counts_for_as_long_as_somebody_has_it_and_takes_no_place() {
        let now = Instant::now();
        let mut users = users(now, 7, 3);
        let mut keepers = Keepers::default();
        for first in [1, 101, 201] {
            keepers.keep(7, Account::of(first..first + 100), None, &mut users, now);
        }
        assert_eq!((keepers.len(), keepers.by_name.len(), users.held()), (0, 1, 300));
        assert_eq!(users.of(7).unwrap().connections, 0);
        // The entry is not forgotten with the connections.
        users.forget_the_gone(now + 2 * KEPT);
        assert!(keepers.due(now, |user| user == 7).is_none());
        let (mut at, mut looks) = (now, 0);
        while at < now + 2 * KEPT {
            let Some((name, user, frames)) = keepers.due(at, |_| false) else {
                at += SOON;
                continue;
            };
            assert_eq!(user, 7);
            looks += 1;
            keepers.found(name, Whereabouts::Known(frames), &mut users, at);
        }
        assert_eq!(users.held(), 300);
        assert!(looks < 60, "{looks}");
        let (name, ..) = keepers.due(at + LATE, |_| false).unwrap();
        keepers.found(name, Whereabouts::Known(vec![5, 105]), &mut users, at);
        assert_eq!(users.held(), 2);
    }

    #[test]
    fn what_cannot_be_found_out_has_an_end() {
        let now = Instant::now();
        let mut users = users(now, 7, 1);
        let mut keepers = Keepers::default();
        keepers.keep(7, Account::of(1..101), None, &mut users, now);
        let mut at = now;
        while let Some((name, ..)) = keepers.due(at, |_| false) {
            // But frames that no process uses no longer count.
            let used = (at > now + KEPT / 2).then(|| (1..51).collect());
            keepers.found(name, Whereabouts::Unknown(used), &mut users, at);
            let held = match at.saturating_duration_since(now) {
                since if since >= KEPT => 0,
                since if since > KEPT / 2 => 50,
                _ => 100,
            };
            assert_eq!(users.held(), held);
            at += LATE;
        }
        assert!(keepers.by_name.is_empty() && at >= now + KEPT);
    }
}
