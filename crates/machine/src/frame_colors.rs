//! The meaning of a color of page frames on the machine that runs, its source, and the limits of what may be claimed.
//!
//! Another matter than the colors that a description's caches have ([`Machine::colors`](crate::Machine::colors)): these are
//! acted on, so that timing must have validated them, or a user must have forced them.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// Bits of any physical address (Intel SDM volume 3, section 4.1.4: MAXPHYADDR is at most 52).
const ADDRESS_BITS: u32 = 52;

/// The bits of a frame's physical address that choose among the sets of a cache, and what a color is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colors {
    /// Lowest bit of the physical address that belongs to the color.
    pub first_bit: u32,
    /// Number of bits of the color: `1 << bits` colors.
    pub bits: u32,
    /// Bytes of cache that one color stands for.
    pub color_bytes: u64,
    /// The cache concerned, as `L2`.
    pub cache: String,
    pub source: ColorSource,
}

/// The source of the colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorSource {
    /// Timing on this machine, since its last boot.
    Validated,
    /// The user, with or without the probe's confirmation.
    Forced,
}

/// Not colors that frames can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotColors {
    pub why: String,
}

impl Colors {
    /// Lowest bit of an address that the choice of a frame decides: frames have 4 KiB.
    pub const FIRST_BIT: u32 = 12;
    /// Number of bits that a color may have: its number is a `u16`.
    pub const BITS: RangeInclusive<u32> = 1..=16;
    /// The most bytes of one color: more than any cache has, and `color_bytes << bits` is still a number of bytes.
    pub const COLOR_BYTES: RangeInclusive<u64> = 1..=1 << 32;

    /// Checks that such colors can exist. This is the only place that checks it.
    ///
    /// Errors: [`NotColors`] for bits that no frame's address has, for more colors than a `u16` numbers, and for a color
    /// that stands for nothing or for more than [`Colors::COLOR_BYTES`].
    pub fn check(&self) -> Result<(), NotColors> {
        let not = |why: String| Err(NotColors { why });
        if !Colors::BITS.contains(&self.bits) {
            return not(format!("a color has {} bits, not {}", Span(&Colors::BITS), self.bits));
        }
        if !(Colors::FIRST_BIT..=ADDRESS_BITS - self.bits).contains(&self.first_bit) {
            return not(format!(
                "the bits of a color lie from bit {} to bit {}, not {} from bit {} on",
                Colors::FIRST_BIT,
                ADDRESS_BITS - 1,
                self.bits,
                self.first_bit
            ));
        }
        if !Colors::COLOR_BYTES.contains(&self.color_bytes) {
            let span = Span(&Colors::COLOR_BYTES);
            return not(format!(
                "a color stands for {span} bytes of cache, not {}",
                self.color_bytes
            ));
        }
        Ok(())
    }

    /// The forced colors that `FIRST_BIT:BITS:BYTES` means.
    ///
    /// Errors: [`NotColors`] for text that is not three numbers, and for values that [`check`](Colors::check) refuses.
    pub fn forced(numbers: &str) -> Result<Colors, NotColors> {
        let not = |why: String| NotColors { why };
        let parts: Vec<&str> = numbers.split(':').collect();
        let [first_bit, bits, bytes] = parts[..] else {
            return Err(not("not three numbers".to_string()));
        };
        let number = |text: &str, what: &str| {
            let number = results::quantities::count(text);
            number.map_err(|_| not(format!("{what} {text:?} is no number")))
        };
        // A number that does not fit is out of every limit.
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let colors = Colors {
            first_bit: small(number(first_bit, "the first bit")?),
            bits: small(number(bits, "the number of bits")?),
            color_bytes: results::quantities::bytes(bytes)
                .map_err(|wrong| not(format!("the bytes of a color: {wrong}")))?,
            cache: "forced".to_string(),
            source: ColorSource::Forced,
        };
        colors.check()?;
        Ok(colors)
    }

    /// Returns whether both give every frame the same color, whatever their sources.
    pub fn agree(&self, other: &Colors) -> bool {
        let what = |colors: &Colors| (colors.first_bit, colors.bits, colors.color_bytes);
        what(self) == what(other)
    }

    /// The number of colors. Pre: [`check`](Colors::check) passes, as for all that an engine has.
    pub fn count(&self) -> u32 {
        1 << self.bits
    }

    /// The number of pages of one color that the cache holds at once; at least 1.
    pub fn ways(&self) -> u32 {
        u32::try_from(self.color_bytes >> Colors::FIRST_BIT)
            .unwrap_or(u32::MAX)
            .max(1)
    }

    /// The color of a frame, by its number (physical address / 4096).
    pub fn of(&self, frame: u64) -> u32 {
        (frame >> (self.first_bit - Colors::FIRST_BIT)) as u32 & (self.count() - 1)
    }
}

/// `A to B`.
struct Span<'a, T>(&'a RangeInclusive<T>);

impl<T: fmt::Display> fmt::Display for Span<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} to {}", self.0.start(), self.0.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_colors_are_what_was_asked_for() {
        let colors = Colors::forced("12:4:65536").unwrap();
        assert_eq!(Colors::forced("12:4:64KiB"), Ok(colors.clone()));
        let said = (colors.first_bit, colors.bits, colors.color_bytes, colors.source);
        assert_eq!(said, (12, 4, 65536, ColorSource::Forced));
        assert_eq!((colors.count(), colors.ways()), (16, 16));
        assert_eq!((colors.of(0x1f), colors.of(0x10)), (15, 0));
        for most in ["36:16:1", "51:1:4096", "12:1:4294967296"] {
            assert!(Colors::forced(most).is_ok(), "{most}");
        }
    }

    #[test]
    fn what_no_frame_has_is_refused_with_a_reason() {
        for (numbers, about) in [
            ("", "not three numbers"),
            ("12:4", "not three numbers"),
            ("12:4:65536:1", "not three numbers"),
            ("12:x:65536", "the number of bits \"x\" is no number"),
            ("-1:4:65536", "no number"),
            ("12:4:99999999999999999999", "is too large"),
            ("11:4:65536", "from bit 12 to bit 51"),
            ("37:16:65536", "not 16 from bit 37 on"),
            ("18446744073709551615:4:65536", "from bit 12"),
            ("12:0:65536", "1 to 16 bits, not 0"),
            ("12:17:65536", "1 to 16 bits"),
            ("12:4:0", "not 0"),
            ("12:4:4294967297", "1 to 4294967296 bytes"),
        ] {
            let error = Colors::forced(numbers).unwrap_err().to_string();
            assert!(error.contains(about), "{numbers}: {error}");
        }
    }

    #[test]
    fn who_says_it_does_not_matter_to_agreement() {
        let forced = Colors::forced("12:4:65536").unwrap();
        let validated = Colors {
            source: ColorSource::Validated,
            cache: "L2".to_string(),
            ..forced.clone()
        };
        assert!(forced.agree(&validated));
        assert!(!forced.agree(&Colors::forced("13:4:65536").unwrap()));
    }
}
