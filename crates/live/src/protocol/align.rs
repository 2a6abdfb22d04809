//! The alignment and separation of large blocks of the heap (Bugnion96, section 5.4).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Blocks begin on a line of the on-chip cache, at different places in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alignment {
    /// Bytes of a line: a power of two, at least 16.
    pub line: usize,
    /// Bytes after which places in the cache repeat: a power of two, up to [`Alignment::PLACES`] lines.
    pub way: usize,
    /// Only blocks of at least so many bytes.
    pub at_least: usize,
}

/// The text is no alignment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no alignment: it is yes, no, or LINE:WAY, the bytes of a line and of a way of the on-chip cache, both powers of \
     two, such as 64:4096"
)]
pub struct BadAlignment(pub String);

impl Alignment {
    /// Says how, to a run-time that is loaded without instructions; to `domicile run`, where the option does not.
    pub const ENVIRONMENT: &str = "DOMICILE_ALIGN";
    /// Lines that a way may have.
    pub const PLACES: usize = 1024;
    /// Pages of a block that is worth it.
    const PAGES: usize = 4;

    /// For lines and ways of so many bytes, where there can be such.
    pub fn new(line: usize, way: usize) -> Option<Alignment> {
        let fits = line.is_power_of_two() && way.is_power_of_two() && line >= 16 && line <= way;
        (fits && way / line <= Alignment::PLACES && way <= 1 << 20).then(|| Alignment {
            line,
            way,
            at_least: Alignment::PAGES * way.max(4096),
        })
    }

    /// The alignment that a text asks for: `no` is `None`, `yes` is `usual`.
    pub fn read(text: &str, usual: Alignment) -> Result<Option<Alignment>, BadAlignment> {
        match text {
            "no" => Ok(None),
            "yes" => Ok(Some(usual)),
            other => other.parse().map(Some),
        }
    }
}

impl Default for Alignment {
    /// Lines of 64 bytes, and ways of a page, which is what most processors have.
    fn default() -> Alignment {
        Alignment {
            line: 64,
            way: 4096,
            at_least: 4 * 4096,
        }
    }
}

impl FromStr for Alignment {
    type Err = BadAlignment;

    fn from_str(text: &str) -> Result<Alignment, BadAlignment> {
        let numbers = text
            .split_once(':')
            .and_then(|(line, way)| Some((line.parse().ok()?, way.parse().ok()?)));
        let alignment = numbers.and_then(|(line, way)| Alignment::new(line, way));
        alignment.ok_or_else(|| BadAlignment(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments_are_read() {
        let usual = Alignment::default();
        assert_eq!(Alignment::new(64, 4096), Some(usual));
        assert_eq!(Alignment::read("no", usual), Ok(None));
        assert_eq!(Alignment::read("yes", usual), Ok(Some(usual)));
        let large = Alignment::read("128:16384", usual).unwrap().unwrap();
        assert_eq!((large.line, large.way, large.at_least), (128, 16384, 65536));
        for wrong in [
            "",
            "00:14888888896664661881",
            "maybe",
            "64",
            "64:",
            "8:4096",
            "64:100",
            "96:4096",
            "64:32",
            "16:65536",
            "64:9999999999999999",
        ] {
            assert_eq!(
                Alignment::read(wrong, usual),
                Err(BadAlignment(wrong.into())),
                "{wrong}"
            );
        }
    }
}
