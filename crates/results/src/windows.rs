//! The windows of a run on which figures rest, and how far off these may be.

use serde::{Deserialize, Serialize};

/// The windows of a run that were counted, each after its caches were warmed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Windows {
    /// References that the program made from where recording began to where it ended; null where that is not known.
    pub of_references: Option<u64>,
    /// In the order of the run.
    pub counted: Vec<CountedWindow>,
    /// Nanoseconds (of `time_ns.wall`) for a reference.
    pub ns_per_reference: Estimate,
    /// Misses for a reference, of each kind of cache in the order of `caches`.
    pub misses_per_reference: Vec<Estimate>,
}

/// The counts of one window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CountedWindow {
    pub references: u64,
    pub wall_ns: u64,
    /// Of each kind of cache.
    pub misses: Vec<u64>,
}

/// A mean over windows, and the interval that holds the mean over the whole run with 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Estimate {
    pub mean: f64,
    /// Both null where there is one window, or none.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl Windows {
    pub fn new(counted: Vec<CountedWindow>, of_references: Option<u64>) -> Windows {
        let kinds = counted.iter().map(|window| window.misses.len()).max().unwrap_or(0);
        let misses = |kind: usize| {
            let pairs = counted
                .iter()
                .map(|window| (window.references, window.misses.get(kind).copied().unwrap_or(0)));
            Estimate::ratio(&pairs.collect::<Vec<_>>())
        };
        let times = counted.iter().map(|window| (window.references, window.wall_ns));
        Windows {
            of_references,
            ns_per_reference: Estimate::ratio(&times.collect::<Vec<_>>()),
            misses_per_reference: (0..kinds).map(misses).collect(),
            counted,
        }
    }

    pub fn references(&self) -> u64 {
        self.counted.iter().map(|window| window.references).sum()
    }

    /// The part of the time that `other` saves, over the same windows, pair by pair: a difference between windows that
    /// both have is no uncertainty. `None` where the windows are not the same.
    pub fn saved_by(&self, other: &Windows) -> Option<Estimate> {
        let pairs = self.counted.iter().zip(&other.counted);
        let same = self.counted.len() == other.counted.len()
            && pairs.clone().all(|(one, other)| one.references == other.references);
        let kept = Estimate::ratio(
            &pairs
                .map(|(one, other)| (one.wall_ns, other.wall_ns))
                .collect::<Vec<_>>(),
        );
        same.then_some(Estimate {
            mean: 1.0 - kept.mean,
            low: kept.high.map(|high| 1.0 - high),
            high: kept.low.map(|low| 1.0 - low),
        })
    }
}

impl Estimate {
    /// Of the sum of the second over the sum of the first, where each pair is one of many (Cochran, *Sampling Techniques*,
    /// 1977, section 2.11): the spread of the second around what the first lets expect, and Student's t.
    pub fn ratio(pairs: &[(u64, u64)]) -> Estimate {
        let count = pairs.len() as f64;
        let (of, sum) = pairs
            .iter()
            .fold((0.0, 0.0), |(of, sum), (x, y)| (of + *x as f64, sum + *y as f64));
        if of == 0.0 {
            return Estimate::default();
        }
        let mean = sum / of;
        if pairs.len() < 2 {
            return Estimate {
                mean,
                ..Estimate::default()
            };
        }
        let off = |(x, y): &(u64, u64)| (*y as f64 - mean * *x as f64).powi(2);
        let spread = (pairs.iter().map(off).sum::<f64>() / (count - 1.0)).sqrt();
        let half = student(pairs.len() - 1) * spread * count.sqrt() / of;
        Estimate {
            mean,
            // Times and misses are never negative.
            low: Some((mean - half).max(0.0)),
            high: Some(mean + half),
        }
    }

    /// Half of the interval, as a part of the mean.
    pub fn relative(&self) -> Option<f64> {
        let half = (self.high? - self.low?) / 2.0;
        (self.mean > 0.0).then(|| half / self.mean)
    }

    /// Returns true if the interval holds a value; false if there is no interval.
    pub fn holds(&self, value: f64) -> bool {
        let above = self.low.is_some_and(|low| low <= value);
        above && self.high.is_some_and(|high| value <= high)
    }

    /// Returns true if the interval reaches down to 0; false for a single window, which has none.
    pub fn may_be_none(&self) -> bool {
        self.low.is_some_and(|low| low <= 0.0)
    }

    /// Returns true if the whole interval lies above 0.
    pub fn is_sure(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0)
    }
}

/// Student's t, by degrees of freedom from 1 on: 95 % lie between minus this and this.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same for a normal distribution.
const NORMAL: f64 = 1.959_964;

fn student(freedom: usize) -> f64 {
    match STUDENT.get(freedom.wrapping_sub(1)) {
        Some(t) => *t,
        // Abramowitz and Stegun 26.7.5, whose first terms are right to three digits here.
        None => {
            let (z, freedom) = (NORMAL, freedom as f64);
            let second = 5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z;
            z + (z.powi(3) + z) / (4.0 * freedom) + second / (96.0 * freedom * freedom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(references: u64, wall_ns: u64) -> CountedWindow {
        CountedWindow {
            references,
            wall_ns,
            misses: vec![wall_ns / 10],
        }
    }

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // Of 4, 6, 8: mean 6, standard deviation 2, so 6 ± 4.303 * 2 / sqrt(3).
        let windows = Windows::new(vec![window(1, 4), window(1, 6), window(1, 8)], Some(100));
        let Estimate { mean, low, high } = windows.ns_per_reference;
        let half = 4.303 * 2.0 / 3f64.sqrt();
        assert_eq!(mean, 6.0);
        assert!((low.unwrap() - (6.0 - half)).abs() < 1e-9 && (high.unwrap() - (6.0 + half)).abs() < 1e-9);
        assert!((windows.ns_per_reference.relative().unwrap() - half / 6.0).abs() < 1e-9);
        assert!(windows.ns_per_reference.holds(2.0) && !windows.ns_per_reference.holds(0.9));
    }

    #[test]
    fn one_window_knows_nothing_of_others() {
        let windows = Windows::new(vec![window(10, 40)], None);
        assert_eq!(windows.ns_per_reference.mean, 4.0);
        assert_eq!(windows.ns_per_reference.low, None);
        assert!(!windows.ns_per_reference.holds(4.0));
        assert_eq!(Windows::new(Vec::new(), None).ns_per_reference, Estimate::default());
    }

    /// Windows differ by a factor of 100, and one policy takes 9 tenths of the other's time in each: that is sure.
    #[test]
    fn what_is_the_same_in_each_window_is_sure() {
        let times = [100, 10_000, 1000, 300];
        let slow = Windows::new(times.map(|time| window(10, time)).to_vec(), None);
        let fast = Windows::new(times.map(|time| window(10, time * 9 / 10)).to_vec(), None);
        let saved = slow.saved_by(&fast).unwrap();
        assert!((saved.mean - 0.1).abs() < 1e-9 && saved.low.unwrap() > 0.0999 && saved.is_sure());
        // A gain that only one window of four shows is not sure.
        let even = Windows::new([100, 110, 90, 100].map(|time| window(10, time)).to_vec(), None);
        let lucky = Windows::new([50, 110, 90, 100].map(|time| window(10, time)).to_vec(), None);
        assert!(!even.saved_by(&lucky).unwrap().is_sure());
        let fewer = Windows::new(vec![window(10, 90)], None);
        assert_eq!(slow.saved_by(&fewer), None);
    }

    #[test]
    fn more_windows_than_in_the_table() {
        assert!((student(31) - 2.0395).abs() < 0.001 && (student(1000) - 1.962).abs() < 0.001);
        assert!(student(30) > student(31));
    }
}
