//! Inputs and outputs of the calls for slots.
#![allow(non_camel_case_types, reason = "these are C's names")]

use crate::error::{Failure, domicile_error::DOMICILE_INVALID};
use crate::sized::Structure;

/// The purpose of a slot.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_slot_kind {
    /// For data with weak locality: the slot may share its colors with other shared slots, even of other programs.
    DOMICILE_SLOT_SHARED = 1,
    /// For data with strong locality: no other slot gets its colors.
    DOMICILE_SLOT_PRIVATE = 2,
}

/// Other users of memory while it gets its colors.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_others {
    /// None: the caller promises that no other thread and no system call reads or writes the ranges meanwhile. Fast,
    /// and any user may do it.
    DOMICILE_OTHERS_ABSENT = 0,
    /// Threads continue to read and write, and wait while a page is being moved. System calls may too, which takes a
    /// privilege (`domicile doctor` reports it); without it the call is refused. Meanwhile, fork, vfork and posix_spawn
    /// may make children; _Fork or a bare clone may do so only with CAP_SYS_PTRACE, else the child may find zeros. A
    /// thread that is created meanwhile, on a stack in the ranges, must not end before the call does. Alternate signal
    /// stacks (sigaltstack) of other threads are moved like other data, since the kernel does not say where they are: a
    /// signal that arrives there meanwhile waits for its page. The caller's own alternate stack stays where it is.
    DOMICILE_OTHERS_RUNNING = 1,
}

/// The source of the color bits of an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_colors_source {
    /// No source is needed: the program is being recorded, or slots are ways of the caches and not colors.
    DOMICILE_COLORS_NONE = 0,
    /// Timing on this machine, since its last boot.
    DOMICILE_COLORS_VALIDATED = 1,
    /// The user or the program, whatever the probe found.
    DOMICILE_COLORS_FORCED = 2,
}

/// The requests of an application. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set size, and then
/// what should differ.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_slots_attributes {
    /// sizeof(domicile_slots_attributes), which tells the library what the program was compiled
    /// with.
    pub size: usize,
    /// The processors that the application will run on, where a processor is everything behind one shared cache. 0, or
    /// more than there are: all that this process may use.
    pub processors: u32,
    /// Not 0: use the colors given here, although the probe did not validate them. The environment variable
    /// DOMICILE_COLORS=force:first_bit:bits:color_bytes does the same.
    pub force: u32,
    /// With force: the lowest bit of the physical address that belongs to the color, at least 12.
    pub first_bit: u32,
    /// With force: how many bits the color has.
    pub bits: u32,
    /// With force: bytes of cache per color.
    pub color_bytes: u64,
    /// Not 0: collect frames in this process even if there is a daemon.
    pub without_daemon: u32,
    /// Not 0: if nobody has looked for colors since the machine started, look now, which takes about two seconds.
    /// Otherwise the call fails and names `domicile probe`.
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

/// The state of an application. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_slots_state {
    /// sizeof(domicile_slots_state), which tells the library what the program was compiled with.
    pub size: usize,
    /// Colors of each shared cache; 0 where slots are ways of the caches.
    pub colors: u32,
    /// The number of shared caches of the application's processors.
    pub caches: u32,
    /// Bytes of cache per color; 0 where slots are ways of the caches.
    pub color_bytes: u64,
    /// Bytes that are still available, in all these caches together.
    pub available: u64,
    /// The source of the colors, a domicile_colors_source.
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

/// The result of an allocation. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_allocation {
    /// sizeof(domicile_allocation), which tells the library what the program was compiled with.
    pub size: usize,
    /// How many colors the data set has now.
    pub colors: u32,
    /// How many shared caches it has them in.
    pub caches: u32,
    /// Pages of the data set.
    pub pages: u64,
    /// Of these: pages whose frame had an allowed color and was kept.
    pub kept: u64,
    /// Untouched pages that got a frame.
    pub filled: u64,
    /// Pages that got another frame, with their contents.
    pub exchanged: u64,
    /// Pages that could not be given an allowed color; their contents are unchanged. domicile_slots_message() explains
    /// the first one.
    pub left: u64,
    /// Bytes of the ranges that lie on pages which the ranges cover only in part: they stay where they are.
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
    /// Pages whose frame this process is not allowed to know.
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
