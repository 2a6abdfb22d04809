//! The meaning of each word of the shared pages. All processes that share them agree on it, whatever their programs.

use super::COPIES;

/// Common to all: the kind of the shared pages, and their layout.
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

/// For each process that may be attached, a slot of this many words.
const SLOTS: usize = 256;
const OF_SLOT: usize = 4;

/// Words of a slot.
pub const OWNER: usize = 0;
pub const ACKNOWLEDGED: usize = 1;

pub fn place(slot: usize, word: usize) -> usize {
    SLOTS + slot * OF_SLOT + word
}

/// The word of a slot's owner: a process, and a count of the slot's owners. So the word differs for each new owner of a
/// slot, even if it is the same process again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);

impl Owner {
    /// Numbers of processes are below 2^22 (PID_MAX_LIMIT of Linux).
    const PID: u32 = (1 << 22) - 1;

    /// 0: the slot is free.
    pub fn pid(self) -> u32 {
        self.0 & Owner::PID
    }

    /// Counts, modulo 1024.
    pub fn generation(self) -> u32 {
        self.0 >> 22
    }

    pub fn next(self, pid: u32) -> Owner {
        Owner(self.generation().wrapping_add(1) << 22 | pid & Owner::PID)
    }

    pub fn freed(self) -> Owner {
        Owner(self.0 & !Owner::PID)
    }
}
