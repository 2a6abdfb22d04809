//! Which word of the shared pages says what. All processes that share them agree on it, of whatever program they are.

use super::COPIES;

/// Of all: what it is, and of which layout.
pub const KIND: usize = 0;
pub const EPOCH: usize = 1;
pub const LOCK: usize = 2;
pub const WRITES: usize = 3;
/// Two words.
pub const LENGTH: usize = 4;
/// Two words.
pub const ADDRESS: usize = 6;
pub const NAMESPACE: usize = 8;
/// How many copies there are.
pub const COUNT: usize = 9;

/// For each copy its node, and then for each whether it is filled.
pub const NODE_OF: usize = 64;
pub const FILLED: usize = NODE_OF + COPIES;

/// For each process that may be attached, a slot of so many words.
const SLOTS: usize = 256;
const OF_SLOT: usize = 4;

/// Words of a slot.
pub const PID: usize = 0;
pub const ACKNOWLEDGED: usize = 1;
pub const GENERATION: usize = 2;

pub fn place(slot: usize, word: usize) -> usize {
    SLOTS + slot * OF_SLOT + word
}
