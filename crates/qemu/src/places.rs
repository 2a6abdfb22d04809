//! The instructions of translated blocks, and the sites of their references in the trace.
//!
//! QEMU's description of a reference (`info`: kind, size and more) is the same each time that a translated instruction
//! makes it. So each instruction remembers the site, and the table of sites is searched only for new ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use trace::{Op, Site};

/// Kinds of references that an instruction remembers; most make one or two.
const REMEMBERED: usize = 4;
/// `info` never has all bits: its size would be 2^15 bytes.
const NOTHING: u64 = u64::MAX;
/// Sizes of references are powers of two, up to 2^7 bytes.
const SIZE_BITS_MOST: u32 = 7;

/// An instruction of a translated block.
pub struct Place {
    pub pc: u64,
    /// Instructions after it in its block.
    pub after: u32,
    /// `info` in the upper half, the site in the lower.
    known: [AtomicU64; REMEMBERED],
}

impl Place {
    fn new(pc: u64, after: u32) -> Place {
        Place {
            pc,
            after,
            known: [const { AtomicU64::new(NOTHING) }; REMEMBERED],
        }
    }

    /// Code in the upper half of the addresses is the kernel's.
    #[inline(always)]
    pub fn is_kernel(&self) -> bool {
        self.pc >> 63 == 1
    }

    /// The site for a QEMU description, if known.
    #[inline(always)]
    pub fn site(&self, info: u32) -> Option<u32> {
        let known = self.known.iter().map(|one| one.load(Ordering::Relaxed));
        known
            .into_iter()
            .find(|one| (one >> 32) as u32 == info && *one != NOTHING)
            .map(|one| one as u32)
    }

    /// Remembers a site. If there is no room, the table will be searched again.
    pub fn learn(&self, info: u32, site: u32) {
        let word = u64::from(info) << 32 | u64::from(site);
        for one in &self.known {
            let found = one.compare_exchange(NOTHING, word, Ordering::Relaxed, Ordering::Relaxed);
            if found.is_ok() || found == Err(word) {
                return;
            }
        }
    }
}

/// All places and all sites.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    /// Places stay for ever: code that QEMU has translated refers to them.
    places: FxHashMap<(u64, u32), &'static Place>,
    numbers: FxHashMap<(u64, bool, u32), u32>,
    sites: Vec<Site>,
}

impl Places {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of an instruction; a block that is translated again has the same.
    pub fn place(&self, pc: u64, after: u32) -> &'static Place {
        let new = || &*Box::leak(Box::new(Place::new(pc, after)));
        self.tables().places.entry((pc, after)).or_insert_with(new)
    }

    /// The number of a site.
    pub fn number(&self, pc: u64, write: bool, size_bits: u32) -> u32 {
        let size_bits = size_bits.min(SIZE_BITS_MOST);
        let Tables { numbers, sites, .. } = &mut *self.tables();
        *numbers.entry((pc, write, size_bits)).or_insert_with(|| {
            let (op, size) = (if write { Op::Write } else { Op::Read }, 1 << size_bits);
            sites.push(Site { pc, op, size });
            sites.len() as u32 - 1
        })
    }

    /// How many sites there are.
    pub fn sites(&self) -> usize {
        self.tables().sites.len()
    }

    /// The sites from one number up to another, exclusive.
    pub fn between(&self, from: usize, to: usize) -> Vec<Site> {
        self.tables()
            .sites
            .get(from..to)
            .map_or_else(Vec::new, <[Site]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_one_number_each_and_places_remember_them() {
        let places = Places::default();
        let place = places.place(0xffff_ffff_8100_0000, 3);
        assert!(std::ptr::eq(place, places.place(0xffff_ffff_8100_0000, 3)));
        assert!(!std::ptr::eq(place, places.place(0xffff_ffff_8100_0000, 2)));
        assert!(place.is_kernel() && !places.place(0x40_1000, 0).is_kernel());
        let read = places.number(place.pc, false, 3);
        let write = places.number(place.pc, true, 3);
        assert_eq!((read, write, places.number(place.pc, false, 3)), (0, 1, 0));
        assert_eq!(place.site(7), None);
        for (info, site) in [(7, read), (9, write), (7, read)] {
            place.learn(info, site);
        }
        assert_eq!(
            (place.site(7), place.site(9), place.site(8)),
            (Some(read), Some(write), None)
        );
        // More than the place remembers.
        (10..20).for_each(|info| place.learn(info, write));
        assert_eq!((place.site(7), place.site(19)), (Some(read), None));
        let sites = places.between(1, places.sites());
        assert_eq!(
            sites,
            [Site {
                pc: place.pc,
                op: Op::Write,
                size: 8
            }]
        );
        assert!(places.between(9, 2).is_empty());
    }
}
