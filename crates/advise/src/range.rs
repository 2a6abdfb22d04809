//! How far a predicted gain may be off: by the pairs of programs that `make truth` measured.
//!
//! A ratio `p` of run times was measured as `p^k`; `truth/range.json` has the smallest and the largest `k`, and is written by
//! the command that writes the table of the book.

use std::sync::LazyLock;

use results::Native;

/// The machine that the pairs were measured on.
pub const MEASURED: &str = "host";

static EXPONENTS: LazyLock<[f64; 2]> = LazyLock::new(|| {
    let written: serde_json::Value = serde_json::from_str(include_str!("../../../truth/range.json"))
        .expect("a command wrote it, and a test reads it");
    ["least", "most"].map(|key| written[key].as_f64().expect("a command wrote it, and a test reads it"))
});

/// The least and the most that a change saves of which `gain` is predicted, as parts of the run time. `native`: the clock beside
/// the simulation. Where they are far apart, so is the gain: waiting that does not exist cannot be saved, and time of which
/// the simulation knows nothing may be this waiting or any other.
pub fn range(gain: f64, native: Option<&Native>) -> [f64; 2] {
    let [mut least, mut most] = *EXPONENTS;
    if let Some(native) = native.filter(|native| !native.is_right() && native.user_ns > 0) {
        let ratio = native.ratio();
        least *= ratio.min(1.0 / ratio);
        most *= ratio.max(1.0);
    }
    [least, most].map(|exponent| 1.0 - (1.0 - gain).powf(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_the_gain_and_stays_below_the_whole() {
        for gain in [0.01, 0.1, 0.5, 0.9, 0.999] {
            let [least, most] = range(gain, None);
            assert!(
                0.0 < least && least < gain && gain < most && most < 1.0,
                "{gain}: {least} to {most}"
            );
        }
    }

    #[test]
    fn a_time_that_is_wrong_makes_the_range_wider() {
        let native = |user_ns| Native {
            user_ns,
            simulated_ns: 100,
            ..Native::default()
        };
        let range = |user_ns| range(0.5, Some(&native(user_ns)));
        assert_eq!(range(140), super::range(0.5, None));
        let ([least, most], [right_least, right_most]) = (range(20), range(100));
        assert!(least < 0.3 * right_least && most == right_most, "{least} {most}");
        let [least, most] = range(300);
        assert!(
            least < 0.5 * right_least && most > right_most && most < 1.0,
            "{least} {most}"
        );
    }

    #[test]
    fn the_book_has_the_same_range() {
        let [least, most] = *EXPONENTS;
        let said = format!("- range of gains: a ratio p is measured as p^{least} to p^{most} in ");
        assert!(include_str!("../../../docs/src/truth.md").contains(&said), "{said}");
    }
}
