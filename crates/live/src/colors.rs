//! What a color is on this machine, and who says so.

use crate::Error;

/// The lowest bit of a frame's address, and the bits that any physical address has.
pub(crate) const FIRST_BIT_MIN: u32 = 12;
pub(crate) const ADDRESS_BITS: u32 = 52;
/// The number of a color is a `u16`.
pub(crate) const BITS_MAX: u32 = 16;

/// Which bits of a frame's physical address choose among the sets of a cache, and what a color is
/// worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colors {
    /// Lowest bit of the physical address that belongs to the color; at least 12.
    pub first_bit: u32,
    /// How many bits the color has: `1 << bits` colors.
    pub bits: u32,
    /// Bytes of cache that one color stands for.
    pub color_bytes: u64,
    /// The cache concerned, as `L2`.
    pub cache: String,
    pub source: Source,
}

/// Who says that these are the colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Timing on this machine, since its last boot.
    Validated,
    /// The user, against or without the word of the probe.
    Forced,
}

impl Colors {
    /// Whether there can be such colors.
    ///
    /// Errors: [`Error::Unavailable`] for bits that no frame's address has, and for more colors than
    /// a `u16` numbers.
    pub fn check(&self) -> Result<(), Error> {
        let fits = self.bits <= BITS_MAX && (FIRST_BIT_MIN..=ADDRESS_BITS - self.bits).contains(&self.first_bit);
        if fits {
            return Ok(());
        }
        Err(Error::Unavailable {
            what: format!("colors of {} bits from bit {} on", self.bits, self.first_bit),
            why: format!(
                "a color has at most {BITS_MAX} bits of a physical address, from bit {FIRST_BIT_MIN} to bit {}",
                ADDRESS_BITS - 1
            ),
        })
    }

    /// Whether both say the same of every frame, whoever says it.
    pub fn agree(&self, other: &Colors) -> bool {
        let what = |colors: &Colors| (colors.first_bit, colors.bits, colors.color_bytes);
        what(self) == what(other)
    }

    /// How many colors there are. Pre: [`check`](Colors::check) passes, as for all that an engine has.
    pub fn count(&self) -> u32 {
        1 << self.bits
    }

    /// How many pages of one color the cache holds at once; at least 1.
    pub fn ways(&self) -> u32 {
        u32::try_from(self.color_bytes / crate::PAGE_BYTES as u64)
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// The color of a frame, by its number (physical address / 4096).
    pub fn of(&self, frame: u64) -> u32 {
        (frame >> (self.first_bit - 12)) as u32 & (self.count() - 1)
    }
}
