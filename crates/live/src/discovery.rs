//! The colors to use: those that timing has validated here, or those that the user forces.
//!
//! [`discover`] is the one way in. The kernel's cache sizes are never enough: a guest's memory may
//! be scattered by its host, and an index may be hashed. So without a validation there are no
//! colors, and the error says why.

use measured::{self, Effort};

use crate::{Colors, Error};

/// Forces colors, without or against the word of the probe: `force:FIRST_BIT:BITS:BYTES`, where
/// BYTES are those of cache that one color stands for.
pub const VARIABLE: &str = "DOMICILE_COLORS";

/// The action where nothing is known of this machine since its last boot.
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
/// Errors: [`Error::NoColors`] if the probe found none (with its reason), [`Error::Unavailable`] if it has
/// not looked and `unknown` says to refuse, and where the variable cannot be read.
pub fn discover(unknown: Unknown) -> Result<Colors, Error> {
    if let Some(value) = std::env::var_os(VARIABLE) {
        return forced(&value.to_string_lossy());
    }
    let outcome = match (measured::kept_colors(Effort::Quick), unknown) {
        (Some(kept), _) => kept,
        (None, Unknown::Measure) => measured::colors(Effort::Quick),
        (None, Unknown::Refuse) => {
            return Err(Error::Unavailable {
                what: "page colors".into(),
                why: "nothing is known of this machine since its last boot; run `domicile probe`".into(),
            });
        }
    };
    let validated = outcome.map_err(|not| Error::NoColors { why: not.reason })?;
    Ok(validated.into())
}

/// The origin of a program's colors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColorsFrom {
    /// The colors that were validated since the last boot, or that `DOMICILE_COLORS` forces; refused if neither is.
    #[default]
    Found,
    /// The same, but measured now where nobody has measured yet (about two seconds).
    Measured,
    /// These.
    Given(Colors),
}

impl ColorsFrom {
    /// The colors that count: the given ones, else those that `DOMICILE_COLORS` forces, else those of the daemon, where one
    /// serves (its colors are everybody's), else those of [`discover`].
    ///
    /// Errors: those of [`discover`], and [`Error::Unavailable`] for given colors that no frame can have.
    pub fn decide(self, served: impl FnOnce() -> Option<Colors>) -> Result<Colors, Error> {
        let unknown = match self {
            ColorsFrom::Given(colors) => {
                colors.check()?;
                return Ok(colors);
            }
            ColorsFrom::Found => Unknown::Refuse,
            ColorsFrom::Measured => Unknown::Measure,
        };
        let is_forced = std::env::var_os(VARIABLE).is_some();
        match served().filter(|_| !is_forced) {
            Some(colors) => Ok(colors),
            None => discover(unknown),
        }
    }
}

/// The meaning of a value of the variable.
fn forced(value: &str) -> Result<Colors, Error> {
    let colors = match value.strip_prefix("force:") {
        Some(numbers) => Colors::forced(numbers).map_err(|not| not.to_string()),
        None => Err("it does not begin with `force:`".to_string()),
    };
    colors.map_err(|why| Error::Unavailable {
        what: VARIABLE.into(),
        why: format!("{value:?}: {why}; it is written force:FIRST_BIT:BITS:BYTES, such as force:12:4:65536"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_variable_says_is_read_or_refused_with_the_form() {
        assert_eq!(
            forced("force:12:4:65536").unwrap(),
            Colors::forced("12:4:65536").unwrap()
        );
        for (value, about) in [
            ("", "begin with `force:`"),
            ("12:4:65536", "begin with `force:`"),
            ("force:12:4", "three numbers"),
            ("force:11:4:65536", "from bit 12"),
        ] {
            let error = forced(value).unwrap_err().to_string();
            assert!(
                error.contains(about) && error.contains("force:12:4:65536"),
                "{value}: {error}"
            );
        }
    }

    #[test]
    fn given_colors_are_taken_before_all_others_and_looked_at() {
        let given = Colors::forced("13:2:8192").unwrap();
        let nobody = || panic!("nobody else is asked");
        assert_eq!(ColorsFrom::Given(given.clone()).decide(nobody).unwrap(), given);
        let wrong = Colors { bits: 0, ..given };
        assert!(ColorsFrom::Given(wrong).decide(nobody).is_err());
    }
}
