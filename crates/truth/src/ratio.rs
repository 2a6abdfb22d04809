//! Arithmetic on ratios of times: the interval of a median, and how far predictions are off.

use results::{TruthPair, TruthRange};

/// A smaller predicted change says nothing of how large changes are predicted: its exponent is mostly the noise of the clock.
const LEAST_CHANGE: f64 = 1.1;
/// A ratio that prints as 1.00 predicts no change.
const NO_CHANGE: f64 = 1.005;

pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// A run that took no longer than its start-up is the shortest there is; its rank among the others still counts.
pub fn ratio(before: f64, after: f64) -> f64 {
    match after > 0.0 {
        true => before.max(0.0) / after,
        false => f64::INFINITY,
    }
}

/// The innermost pair of values that holds the median with 95% (order statistics: the number of values below it is binomial). With fewer
/// than six values not even the outermost pair does; it is what there is. Values: at least one.
pub fn interval(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    // The chance that all of so many values are on one side of the median.
    let mut term = 0.5f64.powi(count as i32 - 1);
    let (mut outside, mut skipped) = (0.0, 0);
    while skipped < count / 2 {
        outside += term;
        if outside > 0.05 {
            break;
        }
        skipped += 1;
        term *= (count + 1 - skipped) as f64 / skipped as f64;
    }
    let first = skipped.saturating_sub(1);
    (values[first], values[count - 1 - first])
}

/// Says of a pair whether its prediction is on the right side of 1, and how far it is off.
pub fn judge(pair: &mut TruthPair) {
    let Some(predicted) = pair.predicted.map(|predicted| predicted.ratio) else {
        return;
    };
    let measured = &pair.measured;
    pair.sign_right = match measured {
        measured if measured.least > 1.0 => Some(predicted >= NO_CHANGE),
        measured if measured.most < 1.0 => Some(predicted <= 1.0 / NO_CHANGE),
        _ => None,
    };
    pair.off = Some(off(predicted, measured.ratio));
}

/// The larger of two figures over the other.
pub fn off(one: f64, other: f64) -> f64 {
    (one / other).max(other / one)
}

/// The error range of predictions, from the pairs that are `used`; the others test it.
pub fn range(pairs: &[TruthPair], used: impl Fn(&TruthPair) -> bool) -> Option<TruthRange> {
    let predicted = |pair: &TruthPair| pair.predicted.map_or(1.0, |predicted| predicted.ratio);
    let changed = |pair: &&TruthPair| {
        let ratio = predicted(pair);
        ratio.max(1.0 / ratio) >= LEAST_CHANGE
    };
    let built = pairs.iter().filter(changed).filter(|pair| used(pair));
    // If the measured interval holds 1, the measurement gives no range.
    let exponents: Vec<f64> = built
        .filter(|pair| pair.measured.least > 1.0 || pair.measured.most < 1.0)
        .map(|pair| pair.measured.ratio.ln() / predicted(pair).ln())
        .collect();
    let least = exponents.iter().copied().reduce(f64::min)?;
    let most = exponents.iter().copied().reduce(f64::max)?;
    let within = |pair: &&TruthPair| {
        let ends = [least, most].map(|exponent| predicted(pair).powf(exponent));
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        pair.measured.least.max(low) <= pair.measured.most.min(high)
    };
    let held: Vec<&TruthPair> = pairs.iter().filter(changed).filter(|pair| !used(pair)).collect();
    let thousandths = |value: f64| (value * 1000.0).round() / 1000.0;
    Some(TruthRange {
        least: thousandths(least),
        most: thousandths(most),
        pairs: exponents.len() as u32,
        held: held.len() as u32,
        held_within: held.into_iter().filter(within).count() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{TruthMeasured, TruthPredicted};

    fn pair(half: &str, measured: (f64, f64, f64), predicted: f64) -> TruthPair {
        let (least, ratio, most) = measured;
        TruthPair {
            half: half.to_string(),
            measured: TruthMeasured {
                ratio,
                least,
                most,
                ..TruthMeasured::default()
            },
            predicted: Some(TruthPredicted {
                ratio: predicted,
                ..TruthPredicted::default()
            }),
            ..TruthPair::default()
        }
    }

    /// Tables of order statistics: of 5 the outermost, of 6 to 8 the outermost, of 9 to 11 the second, of 20 the sixth.
    #[test]
    fn the_interval_is_that_of_the_tables() {
        let of = |count: i32| interval(&(1..=count).rev().map(f64::from).collect::<Vec<_>>());
        assert_eq!(of(1), (1.0, 1.0));
        assert_eq!(of(2), (1.0, 2.0));
        assert_eq!(of(5), (1.0, 5.0));
        assert_eq!(of(6), (1.0, 6.0));
        assert_eq!(of(8), (1.0, 8.0));
        assert_eq!(of(9), (2.0, 8.0));
        assert_eq!(of(20), (6.0, 15.0));
    }

    #[test]
    fn medians_and_ratios() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 3.0, 2.0])), (2.0, 2.5));
        assert_eq!(
            (ratio(4.0, 2.0), ratio(-1.0, 2.0), ratio(1.0, 0.0)),
            (2.0, 0.0, f64::INFINITY)
        );
    }

    #[test]
    fn signs_are_of_intervals_that_do_not_hold_1() {
        let judged = |measured, predicted| {
            let mut pair = pair("build", measured, predicted);
            judge(&mut pair);
            (pair.sign_right, pair.off.unwrap())
        };
        assert_eq!(judged((1.5, 2.0, 2.5), 1.0), (Some(false), 2.0));
        assert_eq!(judged((1.5, 2.0, 2.5), 4.0), (Some(true), 2.0));
        assert_eq!(judged((0.4, 0.5, 0.6), 0.25), (Some(true), 2.0));
        assert_eq!(judged((0.9, 1.0, 1.1), 2.0), (None, 2.0));
    }

    #[test]
    fn the_range_is_of_one_half_and_tested_by_the_other() {
        let pairs = [
            pair("build", (1.9, 2.0, 2.1), 4.0),
            pair("build", (7.0, 8.0, 9.0), 4.0),
            // Neither gives a range.
            pair("build", (0.9, 1.1, 1.3), 2.0),
            pair("build", (3.0, 3.0, 3.0), 1.01),
            pair("held", (2.8, 2.9, 3.0), 2.0),
            pair("held", (2.7, 2.9, 3.0), 2.0),
            // Half as fast is predicted, and a quarter measured.
            pair("held", (0.2, 0.25, 0.3), 0.5),
        ];
        let is_build = |pair: &TruthPair| pair.half == "build";
        let found = range(&pairs, is_build).unwrap();
        assert_eq!((found.least, found.most, found.pairs), (0.5, 1.5, 2));
        // 2^1.5 is 2.83; 0.5^1.5 is 0.35.
        assert_eq!((found.held, found.held_within), (3, 2));
        assert_eq!(range(&pairs[4..], is_build), None);
    }
}
