//! Translation by huge pages: the page that the TLB is asked for, while the rest of the machine has pages as before.

use machine::Machine;

use crate::clock::{Units, units};
use crate::pages::PageTable;

/// Bytes of a huge page: 2^21, or a page of the machine where that is larger.
const HUGE_BITS: u32 = 21;
/// Tells numbers of huge pages from those of others.
const TAG: u64 = 1 << 63;

/// Numbers the pages that a TLB may have an entry for.
pub struct HugePages {
    entries: PageTable,
    /// Pages in a huge one, as a power of two.
    shift: u32,
    /// True if the current data is to be on huge pages, and if the current page is on one.
    pub asked: bool,
    pub here: bool,
    /// The time of a walk if the TLB has an entry for each small page of a huge one; else it has one for all of it.
    split: Option<Units>,
}

impl HugePages {
    pub fn new(machine: &Machine, page_bits: u32) -> HugePages {
        HugePages {
            entries: PageTable::new(),
            shift: HUGE_BITS.saturating_sub(page_bits),
            asked: false,
            here: false,
            split: machine.tlb.as_ref().and_then(|tlb| tlb.huge_refill_ns).map(units),
        }
    }

    /// The time of a walk for the current piece, if it differs from the usual one.
    #[inline]
    pub fn refill(&self) -> Option<Units> {
        self.split.filter(|_| self.here)
    }

    /// Bytes of a huge page on a machine with such pages.
    pub fn bytes(page_bytes: u64) -> u64 {
        page_bytes.max(1 << HUGE_BITS)
    }

    /// The entry for a page: by which the TLB knows it, and by which its set is chosen.
    pub fn entry(&mut self, space: u32, number: u64) -> (u32, u64) {
        match self.here && self.split.is_none() {
            true => {
                let number = number >> self.shift;
                (self.entries.touch(space, number | TAG).0, number)
            }
            false => (self.entries.touch(space, number).0, number),
        }
    }

    /// The entries that may translate a page.
    pub fn both(&mut self, space: u32, number: u64) -> [(u32, u64); 2] {
        let here = self.here;
        let entries = [true, false].map(|huge| {
            self.here = huge;
            self.entry(space, number)
        });
        self.here = here;
        entries
    }
}
