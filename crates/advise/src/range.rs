//! How far a predicted gain may be off: by the pairs of programs that `make truth` measured.
//!
//! A ratio `p` of run times was measured as `p^k`; `truth/range.json` has the smallest and the largest `k`, and is written by
//! the command that writes the table of the book.

use std::sync::LazyLock;

/// The machine that the pairs were measured on.
pub const MEASURED: &str = "host";

static EXPONENTS: LazyLock<[f64; 2]> = LazyLock::new(|| {
    let written: serde_json::Value = serde_json::from_str(include_str!("../../../truth/range.json"))
        .expect("a command wrote it, and a test reads it");
    ["least", "most"].map(|key| written[key].as_f64().expect("a command wrote it, and a test reads it"))
});

/// The least and the most that a change saves of which `gain` is predicted, as parts of the run time.
pub fn range(gain: f64) -> [f64; 2] {
    EXPONENTS.map(|exponent| 1.0 - (1.0 - gain).powf(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_gain_and_stays_below_the_whole() {
        for gain in [0.01, 0.1, 0.5, 0.9, 0.999] {
            let [least, most] = range(gain);
            assert!(
                0.0 < least && least < gain && gain < most && most < 1.0,
                "{gain}: {least} to {most}"
            );
        }
    }

    #[test]
    fn the_book_has_the_same_range() {
        let [least, most] = *EXPONENTS;
        let said = format!("- range of gains: a ratio p is measured as p^{least} to p^{most} in ");
        assert!(include_str!("../../../docs/src/truth.md").contains(&said), "{said}");
    }
}
