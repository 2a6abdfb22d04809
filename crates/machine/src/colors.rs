//! Page colors: which page frames compete for the same cache sets.
//!
//! Bugnion96 section 2.1: the number of colors of a cache is its size divided by the product of
//! page size and associativity.
//!
//! ```
//! # let text = include_str!("../../../machines/simos-r4400.toml");
//! // The worked example there: 1 MB and 4 KB pages are 256 colors when direct-mapped ...
//! let machine = machine::from_toml(text, "simos-r4400")?;
//! let l2 = machine.caches.iter().find(|cache| cache.name == "L2").unwrap();
//! assert_eq!((l2.bytes, l2.ways, machine.page_bytes), (1 << 20, 1, 4096));
//! assert_eq!(machine.colors(l2), 256);
//! // ... and 128 when two-way set-associative.
//! let two_way = machine::Cache { ways: 2, ..l2.clone() };
//! assert_eq!(machine.colors(&two_way), 128);
//! # Ok::<(), machine::MachineError>(())
//! ```
//!
//! # Where the index is hashed
//!
//! An [`IndexHash`] chooses a slice; within it, the low bits of the line number choose the set.
//! A color counts the sets *of a slice* and leaves the slice out:
//!
//! - Pages of different colors never meet, whatever slices their lines are in, because their set
//!   numbers differ. So placing by color keeps its promise without knowing the hash, which for
//!   most processors is not public.
//! - Pages of one color have the same set numbers and meet only where their lines are also in the
//!   same slice. Masks that reach below the page offset spread the lines of each page over the
//!   slices; masks above it permute that from page to page (or, if no mask reaches below, put whole
//!   pages into one slice). Either way a color holds `ways * slices` pages' worth of lines, spread
//!   as evenly as the hash spreads addresses.
//!
//! Making the slice part of the color would multiply the colors by the slices, would hold only
//! for hashes known to the last bit, and would no longer be a function of a few low frame bits,
//! which is what the order of frames inside a huge page gives an unprivileged program.

use crate::model::{Cache, Index, IndexHash, Machine};

impl Cache {
    /// Slices of one instance: 1 where the index is not hashed.
    pub fn slices(&self) -> u32 {
        self.hash.as_ref().map_or(1, |hash| hash.slices)
    }

    /// Sets of one slice. Not always a power of two (12 MiB in 16 ways).
    pub fn sets_per_slice(&self) -> u64 {
        self.bytes / (u64::from(self.ways) * u64::from(self.line_bytes) * u64::from(self.slices()))
    }

    /// Sets of one instance, over all its slices.
    pub fn sets(&self) -> u64 {
        self.sets_per_slice() * u64::from(self.slices())
    }

    /// The set, below [`Cache::sets`], that `address` goes to: virtual or physical as `index` says.
    pub fn set_of(&self, address: u64) -> u64 {
        let sets = self.sets_per_slice();
        let slice = self.hash.as_ref().map_or(0, |hash| hash.slice_of(address));
        u64::from(slice) * sets + address / u64::from(self.line_bytes) % sets
    }
}

impl IndexHash {
    /// The slice, below `slices`, that `address` goes to.
    pub fn slice_of(&self, address: u64) -> u32 {
        let bits = self
            .masks
            .iter()
            .enumerate()
            .fold(0, |bits, (i, mask)| bits | ((address & mask).count_ones() & 1) << i);
        bits % self.slices
    }
}

impl Machine {
    /// Colors of `cache`: frames that are equal modulo this number use the same sets of a slice.
    ///
    /// That is sets times line over page of one slice. If that is not a whole number of pages (a
    /// slice of 6 KiB a way and pages of 4 KiB), it is the smallest number with this property, and
    /// neighboring colors overlap. 1 if placement decides nothing: when a page covers all sets, and
    /// for caches with a virtual index.
    pub fn colors(&self, cache: &Cache) -> u32 {
        // Checked machines stay far below; a machine made by hand gets the nearest number there is.
        u32::try_from(self.color_period_of(cache)).unwrap_or(u32::MAX)
    }

    /// Colors that page placement must use to decide every physically indexed cache: the least
    /// common multiple of those of the caches, as a rule the largest.
    pub fn color_count(&self) -> u32 {
        u32::try_from(self.color_period()).unwrap_or(u32::MAX)
    }

    /// The color of page frame number `frame`, below [`Machine::color_count`].
    pub fn color_of(&self, frame: u64) -> u32 {
        // The remainder is below color_count, which is a u32.
        (frame % u64::from(self.color_count())) as u32
    }

    pub(crate) fn color_period(&self) -> u64 {
        self.caches.iter().fold(1, |period, cache| {
            let colors = self.color_period_of(cache);
            (period / gcd(period, colors)).saturating_mul(colors)
        })
    }

    fn color_period_of(&self, cache: &Cache) -> u64 {
        if cache.index == Index::Virtual {
            return 1;
        }
        let way_bytes = cache.sets_per_slice() * u64::from(cache.line_bytes);
        (way_bytes / gcd(way_bytes, self.page_bytes)).max(1)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
