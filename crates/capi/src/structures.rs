//! The structures that C programs hand in, which may be those of another version.
//!
//! Each begins with its size in the program. A program that is older than the library has fewer
//! fields (what is missing is 0, the default), one that is newer has more (they must be 0, since
//! the library does not know what they ask for).
#![allow(non_camel_case_types, reason = "these are C's names")]

use std::ptr::NonNull;
use std::slice;

use policy::order::HINTS_MAX;
use threads::Report;

use crate::error::{Failure, domicile_error::DOMICILE_INVALID};

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
}

/// Sizes beyond this are not sizes of structures but memory that nobody has written.
const SIZE_MAX: usize = 4096;

fn wrong_size(name: &str, size: usize, known: usize) -> Failure {
    let text = format!("size is {size}: set it to sizeof({name}), which is {known}");
    Failure::saying(DOMICILE_INVALID, text)
}

impl domicile_order_attributes {
    /// What C gave; all defaults for null.
    ///
    /// # Safety
    /// `from` is null or points to as many bytes as it says in `size`.
    pub unsafe fn read(from: *const domicile_order_attributes) -> Result<domicile_order_attributes, Failure> {
        if from.is_null() {
            return Ok(domicile_order_attributes::default());
        }
        // SAFETY: the size comes first, so it is within what the caller points to.
        let size = unsafe { (&raw const (*from).size).read_unaligned() };
        let known = size_of::<domicile_order_attributes>();
        // There is no older version with fewer fields.
        if !(known..=SIZE_MAX).contains(&size) {
            return Err(wrong_size("domicile_order_attributes", size, known));
        }
        // SAFETY: the caller points to `size` bytes, which are at least those known here.
        let beyond = unsafe { slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
        if beyond.iter().any(|&byte| byte != 0) {
            let message = c"an attribute is set that this version of the library does not know";
            return Err(Failure::new(DOMICILE_INVALID, message));
        }
        // SAFETY: there are at least that many bytes, and any bytes are numbers.
        Ok(unsafe { from.read_unaligned() })
    }
}

/// Where a report goes: checked before the run, filled after it.
pub struct Destination(Option<NonNull<domicile_order_report>>);

impl Destination {
    /// # Safety
    /// `to` is null or points to as many bytes as it says in `size`, until the report is filled.
    pub unsafe fn new(to: *mut domicile_order_report) -> Result<Destination, Failure> {
        let to = NonNull::new(to);
        if let Some(to) = to {
            // SAFETY: the size comes first, so it is within what the caller points to.
            let size = unsafe { (&raw const (*to.as_ptr()).size).read_unaligned() };
            let known = size_of::<domicile_order_report>();
            if !(known..=SIZE_MAX).contains(&size) {
                return Err(wrong_size("domicile_order_report", size, known));
            }
        }
        Ok(Destination(to))
    }

    /// Writes what was done; what the library does not know of stays as it is.
    pub fn fill(self, done: &Report) {
        let Some(to) = self.0 else {
            return;
        };
        // SAFETY: `new` was promised that many bytes, and checked it.
        unsafe {
            let to = to.as_ptr();
            (&raw mut (*to).threads).write_unaligned(done.threads);
            (&raw mut (*to).bins).write_unaligned(done.bins);
            (&raw mut (*to).workers).write_unaligned(done.workers as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a newer program has it.
    #[repr(C)]
    struct Newer {
        known: domicile_order_attributes,
        beyond: u64,
    }

    fn read(newer: &mut Newer) -> Result<domicile_order_attributes, Failure> {
        newer.known.size = size_of::<Newer>();
        // SAFETY: it is as large as it says.
        unsafe { domicile_order_attributes::read((&raw const *newer).cast()) }
    }

    #[test]
    fn a_newer_program_may_leave_out_what_is_new() {
        let mut newer = Newer {
            known: domicile_order_attributes::default(),
            beyond: 0,
        };
        newer.known.hints = 5;
        assert_eq!(read(&mut newer).unwrap().hints, 5);
        newer.beyond = 1;
        assert_eq!(read(&mut newer).unwrap_err().code, DOMICILE_INVALID);
    }

    #[test]
    fn a_size_that_was_forgotten_is_refused() {
        let mut attributes = domicile_order_attributes::default();
        for size in [0, 8, usize::MAX] {
            attributes.size = size;
            // SAFETY: what is beyond the size itself is not read for these sizes.
            let read = unsafe { domicile_order_attributes::read(&raw const attributes) };
            assert!(read.unwrap_err().message.to_str().unwrap().contains("sizeof"));
        }
    }

    #[test]
    fn a_report_of_the_wrong_size_is_refused_before_anything_runs() {
        let mut report = domicile_order_report {
            size: 8,
            threads: 7,
            bins: 7,
            workers: 7,
        };
        // SAFETY: what is beyond the size itself is not touched for this size.
        assert!(unsafe { Destination::new(&raw mut report) }.is_err());
        report.size = size_of::<domicile_order_report>();
        // SAFETY: it is as large as it says.
        unsafe { Destination::new(&raw mut report) }
            .unwrap()
            .fill(&Report::default());
        assert_eq!((report.threads, report.bins, report.workers), (0, 0, 0));
    }
}
