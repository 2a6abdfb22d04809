//! Which colors to use: those that timing has validated here, or those that the user forces.
//!
//! [`discover`] is the one way in. What the kernel says of cache sizes is never enough: a guest's
//! memory may be scattered by its host, and an index may be hashed. So without a validation there
//! are no colors, and the error says why.

use machine::measured::{self, Effort, NotValidated, Validated};

use crate::colors::{ADDRESS_BITS, BITS_MAX, FIRST_BIT_MIN};
use crate::{Colors, Error, Source};

/// Forces colors, without or against the word of the probe: `force:FIRST_BIT:BITS:BYTES`, where
/// BYTES are those of cache that one color stands for.
pub const VARIABLE: &str = "DOMICILE_COLORS";

/// What to do where nothing is known of this machine since its last boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Measure, about two seconds, and keep the outcome for the next time.
    Measure,
    /// Refuse, and name `domicile probe`.
    Refuse,
}

/// The colors to use on this machine: those that `DOMICILE_COLORS` forces, else those that the
/// probe has validated since the last boot.
///
/// Errors: [`Error::Unavailable`] where the probe found no colors (with its reason), where it has
/// not looked and `unknown` says to refuse, and where the variable cannot be read.
pub fn discover(unknown: Unknown) -> Result<Colors, Error> {
    if let Some(value) = std::env::var_os(VARIABLE) {
        return forced(&value.to_string_lossy());
    }
    let outcome = match (measured::kept_colors(Effort::Quick), unknown) {
        (Some(kept), _) => kept,
        (None, Unknown::Measure) => measured::colors(Effort::Quick),
        (None, Unknown::Refuse) => {
            return Err(refusal(
                "nothing is known of this machine since its last boot; run `domicile probe`",
            ));
        }
    };
    validated(outcome)
}

/// The colors that everybody on this machine uses: those that `DOMICILE_COLORS` forces, else those of the daemon, where
/// one serves, else those of [`discover`].
///
/// Errors: those of [`discover`].
pub fn agreed(served: impl FnOnce() -> Option<Colors>, unknown: Unknown) -> Result<Colors, Error> {
    if std::env::var_os(VARIABLE).is_none()
        && let Some(colors) = served()
    {
        return Ok(colors);
    }
    discover(unknown)
}

fn validated(outcome: Result<Validated, NotValidated>) -> Result<Colors, Error> {
    let validated = outcome.map_err(|not| refusal(&not.reason))?;
    Ok(Colors {
        first_bit: validated.first_bit,
        bits: validated.bits,
        color_bytes: validated.color_bytes,
        cache: validated.cache,
        source: Source::Validated,
    })
}

fn refusal(why: &str) -> Error {
    Error::Unavailable {
        what: "page colors".into(),
        why: why.into(),
    }
}

/// What a value of the variable says.
pub fn forced(value: &str) -> Result<Colors, Error> {
    let numbers = value.strip_prefix("force:").filter(|rest| rest.split(':').count() == 3);
    let colors = match numbers {
        Some(numbers) => given(numbers),
        None => Err("not four parts of which the first is `force`".into()),
    };
    colors.map_err(|why| Error::Unavailable {
        what: VARIABLE.into(),
        why: format!("{value:?}: {why}; it is written force:FIRST_BIT:BITS:BYTES, such as force:12:4:65536"),
    })
}

/// What FIRST_BIT:BITS:BYTES says, or what is wrong with it.
pub fn given(numbers: &str) -> Result<Colors, String> {
    let mut parts = numbers.split(':');
    let (Some(first_bit), Some(bits), Some(bytes), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("not three numbers".into());
    };
    let number = |text: &str, what: &str| text.parse::<u64>().map_err(|_| format!("{what} {text:?} is no number"));
    let first_bit = number(first_bit, "the first bit")?;
    let bits = number(bits, "the number of bits")?;
    let color_bytes = number(bytes, "the bytes of a color")?;
    if !(1..=u64::from(BITS_MAX)).contains(&bits) {
        return Err(format!("a color has 1 to {BITS_MAX} bits"));
    }
    if first_bit < u64::from(FIRST_BIT_MIN) || first_bit > u64::from(ADDRESS_BITS) - bits {
        return Err(format!(
            "the bits of a color lie from bit {FIRST_BIT_MIN} to bit {}",
            ADDRESS_BITS - 1
        ));
    }
    if color_bytes == 0 {
        return Err("a color of no bytes holds nothing".into());
    }
    Ok(Colors {
        // Both were found to be small.
        first_bit: first_bit as u32,
        bits: bits as u32,
        color_bytes,
        cache: "forced".into(),
        source: Source::Forced,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_colors_are_what_was_asked_for() {
        let colors = forced("force:12:4:65536").unwrap();
        assert_eq!(
            (colors.first_bit, colors.bits, colors.color_bytes, colors.source),
            (12, 4, 65536, Source::Forced)
        );
        assert_eq!(colors.count(), 16);
        assert_eq!(forced("force:36:16:1").unwrap().first_bit, 36);
    }

    #[test]
    fn what_cannot_be_forced_is_refused_with_a_reason() {
        for (value, about) in [
            ("", "four parts"),
            ("yes", "four parts"),
            ("force:12:4", "four parts"),
            ("force:12:4:65536:1", "four parts"),
            ("force:12:x:65536", "no number"),
            ("force:-1:4:65536", "no number"),
            ("force:12:4:99999999999999999999", "no number"),
            ("force:11:4:65536", "from bit 12"),
            ("force:37:16:65536", "to bit 51"),
            ("force:18446744073709551615:4:65536", "from bit 12"),
            ("force:12:0:65536", "1 to 16"),
            ("force:12:17:65536", "1 to 16"),
            ("force:12:4:0", "holds nothing"),
        ] {
            let error = forced(value).unwrap_err().to_string();
            assert!(
                error.contains(about) && error.contains("force:12:4:65536"),
                "{value}: {error}"
            );
        }
    }

    #[test]
    fn the_reason_of_the_probe_reaches_the_user() {
        let reason = "the host scatters this guest's memory".to_string();
        let error = validated(Err(NotValidated { reason: reason.clone() })).unwrap_err();
        assert!(error.to_string().contains(&reason), "{error}");
    }
}
