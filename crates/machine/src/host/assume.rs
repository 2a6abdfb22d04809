//! Latencies and the TLB, which Linux does not report at all. The figures are usual for servers.
//! Each is marked as assumed, to be replaced by the user's own description.

use sys::caches::CacheReading;

use super::{Notes, Trust};
use crate::model::Tlb;

/// A hit in a cache of `level`, beyond the instruction itself: on servers since 2015 a second level
/// takes 10 to 14 cycles and a shared third one 40 to 70.
pub(super) fn hit_ns(level: u8) -> f64 {
    match level {
        1 => 0.0,
        2 => 4.0,
        3 => 16.0,
        _ => 40.0,
    }
}

/// Memory of the cpu's own node: 80 to 120 ns on servers since 2015.
pub(super) const LOCAL_NS: f64 = 100.0;

/// For several nodes without distances: the usual SLIT of two sockets.
pub(super) const REMOTE_DISTANCE: u32 = 20;

/// If nothing reports the clock.
pub(super) const CLOCK_MHZ: f64 = 2000.0;

/// If nothing reports the page size of a captured tree.
pub(super) const PAGE_BYTES: u64 = 4096;

pub(super) fn tlb(notes: &mut Notes) -> Tlb {
    notes.add(
        Trust::Assumed,
        "tlb",
        "Linux does not describe it: 1536 entries, 12-way, refilled in 10 ns, as x86 servers have since 2015",
    );
    Tlb {
        entries: 1536,
        ways: 12,
        wired: 0,
        refill_ns: 10.0,
        walkers: 0,
        huge_refill_ns: None,
        far: Vec::new(),
    }
}

/// The caches of a cpu for which the kernel has no cache directory.
pub(super) fn caches() -> Vec<CacheReading> {
    let cache = |level, kind: &str| CacheReading {
        level,
        kind: kind.into(),
        bytes: None,
        ways: None,
        line_bytes: None,
        sets: None,
        write_policy: None,
        allocation_policy: None,
        sharers: None,
    };
    vec![cache(1, "Data"), cache(1, "Instruction"), cache(2, "Unified")]
}

/// Size of a cache of which only the level is known: as on small servers and Arm boards.
pub(super) fn bytes(level: u8) -> u64 {
    match level {
        1 => 32 << 10,
        2 => 512 << 10,
        _ => 8 << 20,
    }
}

pub(super) const LINE_BYTES: u32 = 64;

/// The ways, if the kernel does not report them: more for larger caches.
pub(super) fn ways(level: u8) -> u32 {
    if level <= 2 { 8 } else { 16 }
}
