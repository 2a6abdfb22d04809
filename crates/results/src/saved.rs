//! The schema's version and the tool's, which are written beside each result.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The version of the types here. The minor one grows with fields that older readers can pass over, the major one with
/// everything else.
pub const SCHEMA: Version = Version { major: 1, minor: 0 };

/// The name of the tool that writes.
pub const TOOL: &str = concat!("domicile ", env!("CARGO_PKG_VERSION"));

/// A schema's version, as in `1.0`. Results from before there was one are of version 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Version, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        Ok(Version {
            major: major.parse().map_err(|_| ())?,
            minor: minor.parse().map_err(|_| ())?,
        })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A result with both, as it is written: an object with their fields first.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Saved<'a, T: ?Sized> {
    pub schema: Version,
    pub tool: &'static str,
    #[serde(flatten)]
    pub result: &'a T,
}

/// A result as it is to be written.
pub fn saved<T: Serialize + ?Sized>(result: &T) -> Saved<'_, T> {
    Saved {
        schema: SCHEMA,
        tool: TOOL,
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_they_are_written() {
        for version in [SCHEMA, Version::default(), Version { major: 7, minor: 12 }] {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for wrong in ["", "1", "1.", ".1", "1.x", "-1.0", "1.0.0", "99999999999.0"] {
            assert_eq!(wrong.parse::<Version>(), Err(()), "{wrong}");
        }
    }
}
