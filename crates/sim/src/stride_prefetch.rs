//! Stride prefetchers: caches that see an instruction repeat a step, and bring the line some steps ahead.
//!
//! The rules stand in "Prefetching" of the contract. The lines themselves are brought by [`crate::prefetch`].

use std::cmp::Ordering;

use machine::Stride;

/// The instructions that one cache follows.
pub struct Strides {
    limits: Stride,
    /// The one seen most recently comes first.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    thread: u32,
    site: u32,
    last: u64,
    /// 0: none.
    step: i64,
    /// True if lines were brought for this step.
    follows: bool,
}

/// The addresses to be brought: this many steps from the current address, the first and the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    pub step: i64,
    pub first: u32,
    pub last: u32,
}

impl Strides {
    pub fn new(limits: Stride) -> Self {
        Strides {
            limits,
            entries: Vec::with_capacity(limits.entries as usize),
        }
    }

    /// Sees a thread's instruction look an address up.
    #[inline]
    pub fn see(&mut self, thread: u32, site: u32, address: u64) -> Option<Ahead> {
        let at = self
            .entries
            .iter()
            .position(|entry| (entry.thread, entry.site) == (thread, site));
        let Some(at) = at else {
            self.entries.truncate(self.limits.entries as usize - 1);
            let entry = Entry {
                thread,
                site,
                last: address,
                step: 0,
                follows: false,
            };
            self.entries.insert(0, entry);
            return None;
        };
        self.entries[..=at].rotate_right(1);
        let entry = &mut self.entries[0];
        let far = address.abs_diff(entry.last);
        // If it is too far for the cast, there is no step.
        let step = match address.cmp(&entry.last) {
            Ordering::Equal => return None,
            _ if far > self.limits.bytes => 0,
            Ordering::Greater => far as i64,
            Ordering::Less => -(far as i64),
        };
        entry.last = address;
        if step == 0 || step != entry.step {
            (entry.step, entry.follows) = (step, false);
            return None;
        }
        let first = if entry.follows { self.limits.ahead } else { 1 };
        entry.follows = true;
        Some(Ahead {
            step,
            first,
            last: self.limits.ahead,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_step_twice_is_followed_and_another_one_is_not() {
        let mut strides = Strides::new(Stride {
            entries: 1,
            ahead: 3,
            bytes: 100,
        });
        let mut see = |address| {
            strides
                .see(7, 9, address)
                .map(|ahead| (ahead.step, ahead.first, ahead.last))
        };
        assert_eq!([see(1000), see(1100), see(1100)], [None; 3]);
        assert_eq!(see(1200), Some((100, 1, 3)));
        assert_eq!(see(1300), Some((100, 3, 3)));
        assert_eq!([see(1200), see(1401)], [None; 2], "backwards, then too far: no step");
        assert_eq!(see(1301), None, "this step came once");
        assert_eq!(see(1201), Some((-100, 1, 3)));
    }

    #[test]
    fn the_instruction_seen_least_recently_makes_room() {
        let mut strides = Strides::new(Stride {
            entries: 2,
            ..Stride::default()
        });
        for (thread, site, address) in [(0, 1, 0), (0, 2, 0), (0, 1, 64), (1, 1, 0), (0, 2, 64), (0, 1, 128)] {
            assert_eq!(strides.see(thread, site, address), None);
        }
    }
}
