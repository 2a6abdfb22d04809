//! Processes that ended their connection and live on with frames they were handed.
//!
//! Those frames are still theirs, so they still count: else a quota would be a matter of connecting again. They count
//! until the address space is gone that they were handed to, or until the process connects again and answers for
//! them itself. Meanwhile the process has the place of a connection among its user's.

use std::collections::HashMap;

use sys::peer::Identity;

use super::session::{Account, Session};
use super::users::Users;

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
}

impl Keepers {
    pub fn len(&self) -> usize {
        self.by_process.len()
    }

    /// Settles a connection that has ended: its place is free, and its frames count no more, unless the process has
    /// them still.
    pub fn add(&mut self, session: Session, users: &mut Users) {
        let (process, user) = (session.who.process, session.who.user);
        let account = session.close(users);
        if account.is_settled() {
            return users.disconnect(user, account.charged());
        }
        let earlier = self.by_process.remove(&process);
        let mut kept = Kept { process, user, account };
        match earlier {
            // Two connections of one process: one place is enough.
            Some(earlier) if earlier.user == user && !earlier.account.is_settled() => {
                users.disconnect(user, 0);
                kept.account.add(earlier.account);
            }
            Some(earlier) => users.disconnect(earlier.user, earlier.account.charged()),
            None => {}
        }
        self.by_process.insert(process, kept);
    }

    /// What a process that connects again has kept. Its place is free, its frames still count.
    pub fn take(&mut self, who: &Identity, users: &mut Users) -> Option<Kept> {
        let kept = self.by_process.remove(&who.process)?;
        if kept.account.is_settled() {
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
    pub fn look(&mut self, users: &mut Users) {
        self.by_process.retain(|_, kept| {
            let settled = kept.account.is_settled();
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
