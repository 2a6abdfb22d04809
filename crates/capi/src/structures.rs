//! The structures of orders that C programs hand in, which may be those of another version.
#![allow(non_camel_case_types, reason = "these are C's names")]

use policy::order::HINTS_MAX;
use threads::Report;

use crate::error::Failure;
use crate::sized::{self, Structure};

/// The most hints that a thread can have, and so the most dimensions of a block.
pub const DOMICILE_HINTS_MAX: usize = 8;
/// The most caches beyond the one that a block is made for.
pub const DOMICILE_LEVELS_MAX: usize = 3;
/// The most workers.
pub const DOMICILE_WORKERS_MAX: usize = 1024;

const _: () = assert!(DOMICILE_HINTS_MAX == HINTS_MAX);

/// In which order bins run.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_tour {
    /// In the order in which their blocks were first used, as in the paper.
    DOMICILE_TOUR_FIRST_FORK = 0,
    /// From each to the nearest that is left.
    DOMICILE_TOUR_NEAREST = 1,
    /// Along a Hilbert curve.
    DOMICILE_TOUR_HILBERT = 2,
}

/// What an order is like. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set
/// size, and then what you want otherwise.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_order_attributes {
    /// sizeof(domicile_order_attributes), which tells the library what the program was compiled
    /// with.
    pub size: usize,
    /// Hints of a thread, 1 to DOMICILE_HINTS_MAX; 0: 2.
    pub hints: u32,
    /// Workers, 1 to DOMICILE_WORKERS_MAX; 0: 1. On one worker, threads run on the caller's stack.
    pub workers: u32,
    /// In which order bins run, a domicile_tour.
    pub tour: u32,
    /// Not 0: threads with the same hints in another order go to the same bin. All sides of the
    /// block must be equal.
    pub fold: u32,
    /// The sides of a block, in the units of the hints (bytes, where they are addresses); 0: the
    /// default, the bytes of the cache that this process really gets divided by the hints, or those
    /// that the TLB reaches where they are fewer.
    pub block: [u64; DOMICILE_HINTS_MAX],
    /// How many further caches to care for, at most DOMICILE_LEVELS_MAX: bins of bins.
    pub levels: u32,
    /// How many bins to be ready for; there may be more.
    pub bins: u32,
    /// The sides of the blocks for each further cache, from the inside out; each is a multiple of
    /// the one inside it.
    pub outer: [[u64; DOMICILE_HINTS_MAX]; DOMICILE_LEVELS_MAX],
    /// For the default block: bytes of cache; 0: as measured on this machine.
    pub cache_bytes: u64,
    /// For the default block: bytes that the TLB reaches; 0: as measured on this machine, or not
    /// known.
    pub tlb_reach_bytes: u64,
    /// Not 0, with several workers on a machine with several caches: a bin runs in each run at the cache that
    /// has its block from the run before, and the workers, the caller too, are kept on the cpus of their caches
    /// during a run. 1: the first runs are timed with and without, and the faster way is kept. 2: always.
    pub at_caches: u64,
}

impl Default for domicile_order_attributes {
    fn default() -> Self {
        domicile_order_attributes {
            size: size_of::<Self>(),
            hints: 0,
            workers: 0,
            tour: 0,
            fold: 0,
            block: [0; DOMICILE_HINTS_MAX],
            levels: 0,
            bins: 0,
            outer: [[0; DOMICILE_HINTS_MAX]; DOMICILE_LEVELS_MAX],
            cache_bytes: 0,
            tlb_reach_bytes: 0,
            at_caches: 0,
        }
    }
}

/// What a run did. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_order_report {
    /// sizeof(domicile_order_report), which tells the library what the program was compiled with.
    pub size: usize,
    /// Threads that ran, those that running threads forked among them.
    pub threads: u64,
    /// Bins that were visited.
    pub bins: u64,
    /// Workers that took part.
    pub workers: u64,
    /// 1 where bins ran at the caches of their blocks, 0 where not.
    pub at_caches: u64,
}

// SAFETY: it is `repr(C)`, its size comes first, and the rest is numbers.
unsafe impl Structure for domicile_order_attributes {
    const NAME: &'static str = "domicile_order_attributes";
    /// Without `at_caches`.
    const FIRST: usize = 304;
}

// SAFETY: as above.
unsafe impl Structure for domicile_order_report {
    const NAME: &'static str = "domicile_order_report";
    /// Without `at_caches`.
    const FIRST: usize = 32;
}

impl domicile_order_attributes {
    /// What C gave; all defaults for null.
    ///
    /// # Safety
    /// `from` is null or points to as many bytes as it says in `size`.
    pub unsafe fn read(from: *const domicile_order_attributes) -> Result<domicile_order_attributes, Failure> {
        // SAFETY: the caller's promise.
        Ok(unsafe { sized::read(from) }?.unwrap_or_default())
    }
}

impl From<&Report> for domicile_order_report {
    fn from(done: &Report) -> domicile_order_report {
        domicile_order_report {
            size: size_of::<domicile_order_report>(),
            threads: done.threads,
            bins: done.bins,
            workers: done.workers as u64,
            at_caches: u64::from(done.at_caches),
        }
    }
}
