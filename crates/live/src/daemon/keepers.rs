//! Processes that ended their connection and live on with frames they were handed.
//!
//! Those frames are still theirs, so they still count: else a quota would be a matter of connecting again. They count
//! until the address space is gone that they were handed to, or until the process connects again and answers for
//! them itself. Meanwhile the process has the place of a connection among its user's.
//!
//! It may have freed them without a word, which nobody can see; so there is an end to it, late enough that it is no
//! way around the quota worth taking.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sys::peer::Identity;

use super::session::{Account, Session};
use super::users::Users;

/// How long frames are taken to be kept.
const KEPT: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub struct Keepers {
    by_process: HashMap<u32, Kept>,
}

/// What a process keeps.
#[derive(Debug)]
pub struct Kept {
    process: u32,
    user: u32,
    account: Account,
    since: Instant,
}

impl Kept {
    fn is_settled(&self, now: Instant) -> bool {
        self.account.is_settled() || now.saturating_duration_since(self.since) >= KEPT
    }
}

impl Keepers {
    pub fn len(&self) -> usize {
        self.by_process.len()
    }

    /// Settles a connection that has ended: its place is free, and its frames count no more, unless the process has
    /// them still.
    pub fn add(&mut self, session: Session, users: &mut Users, now: Instant) {
        let (process, user) = (session.who.process, session.who.user);
        let account = session.close(users);
        if account.is_settled() {
            return users.disconnect(user, account.charged());
        }
        let earlier = self.by_process.remove(&process);
        let mut kept = Kept {
            process,
            user,
            account,
            since: now,
        };
        match earlier {
            // Two connections of one process: one place is enough.
            Some(earlier) if earlier.user == user && !earlier.is_settled(now) => {
                users.disconnect(user, 0);
                kept.account.add(earlier.account);
            }
            Some(earlier) => users.disconnect(earlier.user, earlier.account.charged()),
            None => {}
        }
        self.by_process.insert(process, kept);
    }

    /// What a process that connects again has kept. Its place is free, its frames still count.
    pub fn take(&mut self, who: &Identity, users: &mut Users, now: Instant) -> Option<Kept> {
        let kept = self.by_process.remove(&who.process)?;
        if kept.is_settled(now) {
            users.disconnect(kept.user, kept.account.charged());
            return None;
        }
        if kept.user != who.user {
            self.by_process.insert(who.process, kept);
            return None;
        }
        users.disconnect(kept.user, 0);
        Some(kept)
    }

    /// Undoes [`Keepers::take`].
    pub fn put_back(&mut self, kept: Option<Kept>, users: &mut Users) {
        if let Some(kept) = kept {
            users.keep_place(kept.user);
            self.by_process.insert(kept.process, kept);
        }
    }

    /// Lets go of those that are gone.
    pub fn look(&mut self, users: &mut Users, now: Instant) {
        self.by_process.retain(|_, kept| {
            let settled = kept.is_settled(now);
            if settled {
                users.disconnect(kept.user, kept.account.charged());
            }
            !settled
        });
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
    use std::process::{Command, Stdio};
    use sys::frames::Pagemap;

    fn users(now: Instant, number: u32) -> Users {
        let mut users = Users::new(Limits {
            frames: 1000,
            connections: 2,
        });
        users.connect(number, now).unwrap();
        users.of(number).unwrap().held = 100;
        users
    }

    fn kept(process: u32, user: u32, map: Pagemap, since: Instant) -> Kept {
        let mut account = Account::new(Some(map));
        account.charge(100);
        Kept {
            process,
            user,
            account,
            since,
        }
    }

    #[test]
    fn who_connects_again_answers_for_what_it_kept() {
        let now = Instant::now();
        let (near, _far) = UnixStream::pair().unwrap();
        let who = Identity::of(&near).unwrap();
        let mut users = users(now, who.user);
        let mut keepers = Keepers::default();
        let mine = kept(who.process, who.user, Pagemap::own().unwrap(), now);
        keepers.by_process.insert(who.process, mine);
        keepers.look(&mut users, now);
        assert_eq!((keepers.len(), users.held()), (1, 100));
        let taken = keepers.take(&who, &mut users, now);
        assert_eq!((keepers.len(), users.of(who.user).unwrap().connections), (0, 0));
        keepers.put_back(taken, &mut users);
        assert_eq!((keepers.len(), users.of(who.user).unwrap().connections), (1, 1));
        // In the long run it is believed to have freed them.
        keepers.look(&mut users, now + KEPT);
        assert_eq!((keepers.len(), users.held()), (0, 0));
        assert_eq!(users.of(who.user).unwrap().connections, 0);
    }

    #[test]
    fn what_a_process_kept_ends_with_it() {
        let now = Instant::now();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let map = Pagemap::of(child.id()).unwrap();
        let mut users = users(now, 7);
        let mut keepers = Keepers::default();
        keepers.by_process.insert(child.id(), kept(child.id(), 7, map, now));
        keepers.look(&mut users, now);
        assert_eq!(users.held(), 100);
        child.kill().unwrap();
        child.wait().unwrap();
        keepers.look(&mut users, now);
        assert_eq!((keepers.len(), users.held()), (0, 0));
    }
}
