//! What goes in and comes out of the calls for slots.
#![allow(non_camel_case_types, reason = "these are C's names")]

use crate::error::{Failure, domicile_error::DOMICILE_INVALID};
use crate::sized::Structure;

/// What a slot is for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_slot_kind {
    /// For data with weak locality: the slot's colors may be those of other shared slots, also of
    /// other programs.
    DOMICILE_SLOT_SHARED = 1,
    /// For data with strong locality: nobody else is given its colors.
    DOMICILE_SLOT_PRIVATE = 2,
}

/// Who else may use memory while it gets its colors.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_others {
    /// Nobody: the caller promises that no other thread and no system call reads or writes the
    /// ranges meanwhile. Fast, for every user.
    DOMICILE_OTHERS_ABSENT = 0,
    /// Threads go on reading and writing, and wait where a page is on its way. System calls may
    /// too, which takes a privilege (`domicile doctor` tells); without it the call is refused.
    /// Children may be made meanwhile by fork, vfork and posix_spawn; by _Fork or a bare clone only
    /// with CAP_SYS_PTRACE, else such a child may find zeros. A thread that is made meanwhile, on a
    /// stack in the ranges, must not end before the call does. Alternate signal stacks
    /// (sigaltstack) of other threads are moved like other data, since the kernel does not tell
    /// where they are: a signal that arrives there meanwhile waits for its page. The caller's own
    /// one stays where it is.
    DOMICILE_OTHERS_RUNNING = 1,
}

/// Who says which bits of an address are its color.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_colors_source {
    /// Nobody needs to: the program is being recorded, or slots are ways of the caches and not colors.
    DOMICILE_COLORS_NONE = 0,
    /// Timing on this machine, since its last boot.
    DOMICILE_COLORS_VALIDATED = 1,
    /// The user or the program, against or without the word of the probe.
    DOMICILE_COLORS_FORCED = 2,
}

/// What an application asks for. Zeros are the defaults, so fill it with zeros (`= {0}`, memset),
/// set size, and then what you want otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_slots_attributes {
    /// sizeof(domicile_slots_attributes), which tells the library what the program was compiled
    /// with.
    pub size: usize,
    /// Processors that the application will run on, counted as what has a shared cache; 0, and more
    /// than there are: all that this process may use.
    pub processors: u32,
    /// Not 0: take the colors given here, though the probe did not validate them. The environment
    /// variable DOMICILE_COLORS=force:first_bit:bits:color_bytes does the same.
    pub force: u32,
    /// With force: the lowest bit of the physical address that belongs to the color, at least 12.
    pub first_bit: u32,
    /// With force: how many bits the color has.
    pub bits: u32,
    /// With force: bytes of cache that one color stands for.
    pub color_bytes: u64,
    /// Not 0: collect frames in this process even where there is a daemon.
    pub without_daemon: u32,
    /// Not 0: where nobody has looked for colors since the machine started, look now, which takes
    /// some two seconds. Otherwise the call fails and names `domicile probe`.
    pub measure: u32,
}

// SAFETY: it is `repr(C)`, its size comes first, and the rest is numbers.
unsafe impl Structure for domicile_slots_attributes {
    const NAME: &'static str = "domicile_slots_attributes";
}

impl Default for domicile_slots_attributes {
    fn default() -> Self {
        domicile_slots_attributes {
            size: size_of::<Self>(),
            processors: 0,
            force: 0,
            first_bit: 0,
            bits: 0,
            color_bytes: 0,
            without_daemon: 0,
            measure: 0,
        }
    }
}

/// How an application stands. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_slots_state {
    /// sizeof(domicile_slots_state), which tells the library what the program was compiled with.
    pub size: usize,
    /// Colors of each shared cache; 0 where slots are ways of the caches.
    pub colors: u32,
    /// Shared caches of the application's processors.
    pub caches: u32,
    /// Bytes of cache that one color stands for; 0 where slots are ways of the caches.
    pub color_bytes: u64,
    /// Bytes that can still be had, in all these caches together.
    pub available: u64,
    /// Who says what the colors are, a domicile_colors_source.
    pub source: u32,
    /// The lowest bit of the physical address that belongs to the color.
    pub first_bit: u32,
    /// Not 0: the program is being recorded. No frame is changed; slots and data sets go to the
    /// trace.
    pub recording: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: as above.
unsafe impl Structure for domicile_slots_state {
    const NAME: &'static str = "domicile_slots_state";
}

/// What an allocation did. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_allocation {
    /// sizeof(domicile_allocation), which tells the library what the program was compiled with.
    pub size: usize,
    /// Colors that the data set has now.
    pub colors: u32,
    /// Shared caches in which it has them.
    pub caches: u32,
    /// Pages of the data set.
    pub pages: u64,
    /// Of these: pages whose frame had an allowed color and was kept.
    pub kept: u64,
    /// Pages that nobody had touched, and that got a frame.
    pub filled: u64,
    /// Pages that got another frame, with their contents.
    pub exchanged: u64,
    /// Pages that could not be given an allowed color; their contents are what they were.
    /// domicile_slots_message() says why of the first.
    pub left: u64,
    /// Bytes of the ranges that lie on pages which they do not cover whole: they stay where they are.
    pub left_out: u64,
}

// SAFETY: as above.
unsafe impl Structure for domicile_allocation {
    const NAME: &'static str = "domicile_allocation";
}

/// The pages of a data set, counted. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct domicile_census {
    /// sizeof(domicile_census), which tells the library what the program was compiled with.
    pub size: usize,
    /// Pages of the data set.
    pub pages: u64,
    /// Of these: pages whose frame has an allowed color.
    pub allowed: u64,
    /// Pages whose frame has another color.
    pub other: u64,
    /// Pages that have no frame yet, or none in memory.
    pub absent: u64,
    /// Pages whose frame this process may not know.
    pub unknown: u64,
}

// SAFETY: as above.
unsafe impl Structure for domicile_census {
    const NAME: &'static str = "domicile_census";
}

impl domicile_slot_kind {
    /// From C's number.
    pub fn from_number(kind: u32) -> Result<domicile_slot_kind, Failure> {
        match kind {
            1 => Ok(domicile_slot_kind::DOMICILE_SLOT_SHARED),
            2 => Ok(domicile_slot_kind::DOMICILE_SLOT_PRIVATE),
            other => Err(invalid(format!("kind is {other}: use a domicile_slot_kind"))),
        }
    }
}

impl domicile_others {
    /// From C's number.
    pub fn from_number(others: u32) -> Result<domicile_others, Failure> {
        match others {
            0 => Ok(domicile_others::DOMICILE_OTHERS_ABSENT),
            1 => Ok(domicile_others::DOMICILE_OTHERS_RUNNING),
            other => Err(invalid(format!("others is {other}: use a domicile_others"))),
        }
    }
}

fn invalid(text: String) -> Failure {
    Failure::saying(DOMICILE_INVALID, text)
}
