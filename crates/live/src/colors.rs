//! What a color is on this machine, and who says so.

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
    /// How many colors there are.
    pub fn count(&self) -> u32 {
        1 << self.bits
    }

    /// The color of a frame, by its number (physical address / 4096).
    pub fn of(&self, frame: u64) -> u32 {
        (frame >> (self.first_bit - 12)) as u32 & (self.count() - 1)
    }
}
