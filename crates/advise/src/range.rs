//! The likely error of a predicted gain, from measured pairs of programs.
//!
//! A ratio `p` of run times was measured as `p^k`. The smallest and the largest `k` are those that `domicile truth`
//! found on this machine, else those of all the book's tables: `truth/range.json`, written by the command that writes
//! them. Other machines with a core use the same model, and have the same range; a machine without one compares only
//! placements, and has none.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use results::Advice;

/// The machine that the pairs were measured on.
pub const MEASURED: &str = "host";

/// The smallest and the largest exponent of each maker's machine.
static WRITTEN: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| {
    let written: BTreeMap<String, serde_json::Value> = serde_json::from_str(include_str!("../../../truth/range.json"))
        .expect("a command wrote it, and a test reads it");
    let of = |range: &serde_json::Value, key| range[key].as_f64().expect("a command wrote it, and a test reads it");
    let ranges = written.values().map(|range| [of(range, "least"), of(range, "most")]);
    ranges.collect()
});

static EXPONENTS: LazyLock<[f64; 2]> = LazyLock::new(|| {
    let widest = |[least, most]: [f64; 2], range: &[f64; 2]| [least.min(range[0]), most.max(range[1])];
    WRITTEN.iter().fold([f64::INFINITY, f64::NEG_INFINITY], widest)
});

/// The same if the prediction itself lies between two gains.
pub fn of_varied(gains: [f64; 2], advice: &Advice) -> [f64; 2] {
    let [low, high] = gains.map(|gain| range(gain, advice));
    [low[0].min(high[0]), low[1].max(high[1])]
}

/// The least and the most that a change with the predicted `gain` saves, as parts of the run time. The advice contains
/// the clock's time and the simulated one. If they are far apart, so is the gain: waiting that does not exist cannot be
/// saved, and time that the simulation does not explain may be this waiting or any other.
pub fn range(gain: f64, advice: &Advice) -> [f64; 2] {
    let own = advice.truth.map(|truth| [truth.least, truth.most]);
    let [mut least, mut most] = own.unwrap_or(*EXPONENTS);
    if let Some(native) = advice
        .native
        .as_ref()
        .filter(|native| !native.is_right() && native.user_ns > 0)
    {
        let ratio = native.ratio();
        // An exponent below 0 comes from changes with the opposite effect.
        let wider = ratio.max(1.0 / ratio);
        least *= if least > 0.0 { 1.0 / wider } else { wider };
        most *= if most > 0.0 { ratio.max(1.0) } else { 1.0 };
    }
    [least, most].map(|exponent| 1.0 - (1.0 - gain).powf(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Native, TruthRange};

    fn by_book(gain: f64, native: Option<Native>) -> [f64; 2] {
        range(
            gain,
            &Advice {
                native,
                ..Advice::default()
            },
        )
    }

    #[test]
    fn what_was_found_on_this_machine_comes_first() {
        let advice = Advice {
            truth: Some(TruthRange {
                least: 0.5,
                most: 2.0,
                ..TruthRange::default()
            }),
            ..Advice::default()
        };
        // Three quarters less is a ratio of 4: 2 to 16.
        assert_eq!(range(0.75, &advice), [0.5, 0.9375]);
    }

    #[test]
    fn a_range_holds_the_gain_and_stays_below_the_whole() {
        for gain in [0.01, 0.1, 0.5, 0.9, 0.999] {
            let [least, most] = by_book(gain, None);
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
        let range = |user_ns| by_book(0.5, Some(native(user_ns)));
        assert_eq!(range(140), by_book(0.5, None));
        let ([least, most], [right_least, right_most]) = (range(20), range(100));
        assert!(least < 0.3 * right_least && most == right_most, "{least} {most}");
        let [least, most] = range(300);
        assert!(
            least < 0.5 * right_least && most > right_most && most < 1.0,
            "{least} {most}"
        );
    }

    #[test]
    fn the_book_has_the_same_ranges() {
        let book = include_str!("../../../docs/src/truth.md");
        for [least, most] in WRITTEN.iter() {
            let said = format!("- range of gains: a ratio p is measured as p^{least} to p^{most} in ");
            assert!(book.contains(&said), "{said}");
        }
        assert_eq!(book.matches("- range of gains: ").count(), WRITTEN.len());
    }
}
