//! The frames that count against a user's quota for one process, by their numbers.
//!
//! The numbers are kept beyond what a connection needs: a process that has ended may have passed its frames on by a
//! fork, and only their numbers lead to their holder ([`super::whereabouts`]).

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Frames of ours that a process has or may have, and that count against its user's quota.
#[derive(Debug, Default)]
pub struct Account {
    /// Frames that it was seen to have.
    pub(super) held: Frames,
    /// Frames that it claims went elsewhere, which is not believed.
    pub(super) away: Frames,
    /// The number of frames that count.
    pub(super) charged: u64,
}

impl Account {
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// The frames that it may have, in order.
    pub fn frames(&self) -> Vec<u64> {
        let mut frames: Vec<u64> = self.held.union(&self.away).copied().collect();
        frames.sort_unstable();
        frames
    }

    /// Keeps only these of its frames: no process that it could have passed the others to has them any more.
    /// Returns the number of frames that no longer count.
    pub fn keep_only(&mut self, frames: &[u64]) -> u64 {
        let there: Frames = frames.iter().copied().collect();
        self.held.retain(|frame| there.contains(frame));
        self.away.retain(|frame| there.contains(frame));
        let before = self.charged;
        self.charged = before.min(there.len() as u64);
        before - self.charged
    }

    /// Adds the frames of another process of the same user.
    pub fn add(&mut self, other: Account) {
        self.held.extend(other.held);
        self.away.extend(other.away);
        self.charged += other.charged;
    }

    /// With so many frames; for tests.
    #[cfg(test)]
    pub fn of(frames: impl Iterator<Item = u64>) -> Account {
        let held: Frames = frames.collect();
        Account {
            charged: held.len() as u64,
            held,
            away: Frames::default(),
        }
    }
}

/// Numbers of frames. The kernel gives them out, so nobody can choose ones that collide.
pub type Frames = HashSet<u64, BuildHasherDefault<Spread>>;

#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
