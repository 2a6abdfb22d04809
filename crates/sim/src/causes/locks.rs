//! The memory of the locks that the program has taken so far.

use std::collections::HashMap;

use trace::Event;

/// Bytes of a lock: `pthread_mutex_t` has 40 on 64-bit Linux, and a `pthread_rwlock_t` keeps its changing fields in its
/// first 40.
const LOCK: u64 = 40;
/// Bytes in which locks are looked for at once.
const BLOCK: u64 = 64;
/// An object's number is its address; the bits above this one tell processes apart.
const ADDRESS: u64 = (1 << 48) - 1;

/// The locks that were taken so far.
#[derive(Default)]
pub struct Locks {
    /// The first bytes of those that reach into a block, by process and block.
    blocks: HashMap<(u32, u64), Vec<u64>>,
}

impl Locks {
    pub fn apply(&mut self, space: u32, event: &Event) {
        let Event::Lock { object } = *event else { return };
        let from = object & ADDRESS;
        for block in from / BLOCK..=(from + LOCK - 1) / BLOCK {
            let locks = self.blocks.entry((space, block)).or_default();
            if !locks.contains(&from) {
                locks.push(from);
            }
        }
    }

    pub fn any(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// The lock that an address belongs to.
    pub fn of(&self, space: u32, address: u64) -> Option<u64> {
        let locks = self.blocks.get(&(space, address / BLOCK))?;
        locks.iter().copied().find(|&from| address.wrapping_sub(from) < LOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_its_forty_bytes_and_no_more() {
        let mut locks = Locks::default();
        let object = 7 << 48 | 0x1030;
        locks.apply(2, &Event::Lock { object });
        assert_eq!(locks.of(2, 0x1030), Some(0x1030));
        // In the next block of 64 bytes.
        assert_eq!(locks.of(2, 0x1057), Some(0x1030));
        assert_eq!(locks.of(2, 0x1058), None);
        assert_eq!(locks.of(2, 0x102f), None);
        assert_eq!(locks.of(1, 0x1030), None);
    }
}
