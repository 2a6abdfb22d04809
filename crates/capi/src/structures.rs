//! The structures of orders that C programs pass in, which may be those of another version.
#![allow(non_camel_case_types, reason = "these are C's names")]

use policy::order::HINTS_MAX;
use threads::Report;

use crate::error::Failure;
use crate::sized::{self, Structure};

/// The most hints of a thread, and so the most dimensions of a block.
pub const DOMICILE_HINTS_MAX: usize = 8;
/// The most caches beyond the one that a block is made for.
pub const DOMICILE_LEVELS_MAX: usize = 3;
/// The most workers.
pub const DOMICILE_WORKERS_MAX: usize = 1024;

const _: () = assert!(DOMICILE_HINTS_MAX == HINTS_MAX);

/// The order in which bins run.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum domicile_tour {
    /// In the order in which their blocks were first used, as in the paper.
    DOMICILE_TOUR_FIRST_FORK = 0,
    /// From each bin to the nearest remaining one.
    DOMICILE_TOUR_NEAREST = 1,
    /// Along a Hilbert curve.
    DOMICILE_TOUR_HILBERT = 2,
}

/// The attributes of an order. Zeros are the defaults, so fill it with zeros (`= {0}`, memset), set size, and then what
/// should differ.
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
    /// The order in which bins run, a domicile_tour.
    pub tour: u32,
    /// Not 0: threads with the same hints in another order go to the same bin. All sides of the
    /// block must be equal.
    pub fold: u32,
    /// The sides of a block, in the units of the hints (bytes, if they are addresses); 0: the default, which is the
    /// cache that this process actually gets, or the TLB's reach if that is smaller, in bytes divided by the number of
    /// hints.
    pub block: [u64; DOMICILE_HINTS_MAX],
    /// How many further caches to optimize for, at most DOMICILE_LEVELS_MAX: bins of bins.
    pub levels: u32,
    /// The expected number of bins; there may be more.
    pub bins: u32,
    /// The sides of the blocks for each further cache, from the inside out; each is a multiple of the next inner one.
    pub outer: [[u64; DOMICILE_HINTS_MAX]; DOMICILE_LEVELS_MAX],
    /// For the default block: bytes of cache; 0: as measured on this machine.
    pub cache_bytes: u64,
    /// For the default block: bytes that the TLB reaches; 0: as measured on this machine, or unknown.
    pub tlb_reach_bytes: u64,
    /// Not 0, with several workers on a machine with several caches: in each run, a bin runs at the cache that has its
    /// block from the run before, and the workers, including the caller, are pinned to the cpus of their caches during
    /// a run. 1: the first runs are timed with and without, and the faster way is kept. 2: always.
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

/// The result of a run. Set size before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domicile_order_report {
    /// sizeof(domicile_order_report), which tells the library what the program was compiled with.
    pub size: usize,
    /// Threads that ran, including those that running threads forked.
    pub threads: u64,
    /// Bins that were visited.
    pub bins: u64,
    /// Workers that took part.
    pub workers: u64,
    /// 1 if bins ran at the caches of their blocks, otherwise 0.
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
    /// Reads the attributes from C; all defaults for null.
    ///
    /// # Safety
    /// `from` is null or points to as many bytes as its `size` says.
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
