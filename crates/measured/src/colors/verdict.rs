//! The evaluation of times for colors: pure arithmetic, no clock.
//!
//! A time is turned into the share of loads that the cache in question did not serve, by the times of loads from it and
//! of loads from the next one. Two kinds of sets are compared round by round, so that a slow moment meets both. Any
//! claimed difference must pass a sign test.

use serde::{Deserialize, Serialize};

/// Times of loads that a cache serves, and of those that it does not, in nanoseconds, without
/// translation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub inside_ns: f64,
    pub outside_ns: f64,
}

impl Times {
    /// The share of loads not served, from times; below 0 and above 1 by noise only.
    pub fn missed(self, ns: f64) -> f64 {
        (ns - self.inside_ns) / (self.outside_ns - self.inside_ns)
    }

    /// Returns whether the two are clearly different: by half, and by more than a clock's tick.
    pub fn differ(self) -> bool {
        self.inside_ns.is_finite() && self.outside_ns > self.inside_ns * 1.5 && self.outside_ns > self.inside_ns + 0.5
    }
}

/// Two kinds of sets of the same number of pages, timed in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub pages: usize,
    /// Nanoseconds a load, a round each: sets of pages that agree in all bits.
    pub same: Vec<f64>,
    /// The same of sets that differ.
    pub other: Vec<f64>,
}

/// More of the loads than this, and a set has outgrown its share of the cache.
const OUTGROWN: f64 = 0.15;
/// A difference above this is an effect of the color, one below is none. Sets that outgrow their share by a half miss a
/// third of their loads at least, under any replacement.
const LIMIT: f64 = 0.15;
/// A claim that chance alone would make more often than this is not made.
const CHANCE_MAX: f64 = 1e-3;

/// The result of comparing two kinds of sets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Effect {
    /// Sets that differ miss clearly less.
    Separates { chance: f64 },
    /// They do not.
    Nothing { chance: f64 },
    /// The rounds contradict each other.
    Unclear,
}

/// Judges all rounds of the trials together.
pub fn effect(trials: &[Trial], times: Times) -> Effect {
    let gaps: Vec<f64> = trials
        .iter()
        .flat_map(|trial| trial.same.iter().zip(&trial.other))
        .map(|(&same, &other)| times.missed(same) - times.missed(other))
        .filter(|gap| gap.is_finite())
        .collect();
    let large = gaps.iter().filter(|&&gap| gap > LIMIT).count();
    let small = gaps.iter().filter(|&&gap| gap < LIMIT).count();
    let (separates, nothing) = (chance(large, gaps.len()), chance(small, gaps.len()));
    if separates <= CHANCE_MAX {
        Effect::Separates { chance: separates }
    } else if nothing <= CHANCE_MAX {
        Effect::Nothing { chance: nothing }
    } else {
        Effect::Unclear
    }
}

/// The probability that a fair coin falls this way at least `times` times of `of` (the sign test).
pub fn chance(times: usize, of: usize) -> f64 {
    let mut likely = 0.0;
    // The probability of none, then that of each next number from the one before.
    let mut exactly = 0.5f64.powi(i32::try_from(of).unwrap_or(i32::MAX));
    for k in 0..=of {
        if k >= times {
            likely += exactly;
        }
        exactly *= (of - k) as f64 / (k + 1) as f64;
    }
    likely.min(1.0)
}

/// The point at which sets of equal pages outgrow their share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knee {
    /// So many pages stay in the cache; the next larger set looked at did not.
    At(usize),
    /// The largest set looked at still stays.
    Never,
    /// The smallest set does not stay.
    AtOnce,
    /// The times contradict each other.
    Noise,
}

/// Finds the knee in trials of ascending numbers of pages, by their medians.
pub fn knee(trials: &[Trial], times: Times) -> Knee {
    let outgrown: Vec<bool> = trials
        .iter()
        .map(|trial| times.missed(median(&trial.same)) > OUTGROWN)
        .collect();
    let Some(first) = outgrown.iter().position(|&outgrown| outgrown) else {
        return Knee::Never;
    };
    // One set in the middle that was hit by noise is forgiven, a second one is not.
    let back = outgrown[first..].iter().filter(|&&outgrown| !outgrown).count();
    match back {
        0 if first == 0 => Knee::AtOnce,
        0 => Knee::At(trials[first - 1].pages),
        _ => {
            let lasting = outgrown.iter().rposition(|&outgrown| !outgrown);
            let stray = outgrown[..lasting.unwrap_or(0)]
                .iter()
                .filter(|&&outgrown| outgrown)
                .count();
            match lasting {
                Some(last) if stray == 1 && last + 1 < trials.len() => Knee::At(trials[last].pages),
                Some(_) if stray == 1 => Knee::Never,
                _ => Knee::Noise,
            }
        }
    }
}

/// Numbers of pages at which a flipped bit, which halves the pages of each color, shows the most: those
/// where the share of misses is farthest above that of half as many pages. At most two; none where no number
/// shows more than [`LIMIT`].
pub fn decisive(trials: &[Trial], times: Times) -> Vec<usize> {
    let missed = |trial: &Trial| times.missed(median(&trial.same)).clamp(0.0, 1.0);
    let mut gains: Vec<(f64, usize)> = trials
        .iter()
        .filter_map(|trial| {
            // The larger half, or a little more than that: rather too little is promised.
            let half = trials.iter().find(|half| half.pages >= trial.pages.div_ceil(2))?;
            let gain = missed(trial) - missed(half);
            (gain > LIMIT).then_some((gain, trial.pages))
        })
        .collect();
    // Numbers that show about the same: the one in their middle is the farthest from either edge.
    let most = gains.iter().map(|(gain, _)| *gain).fold(0.0, f64::max);
    gains.retain(|(gain, _)| *gain > most - LIMIT / 2.0);
    let middle = gains.len().saturating_sub(1) / 2;
    gains.iter().skip(middle).take(2).map(|(_, pages)| *pages).collect()
}

/// The middle of some values; not a number where there are none.
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The longest run of bits that all separate: its first bit and its length.
pub fn run(separates: &[bool]) -> Option<(usize, usize)> {
    let mut best = None;
    let mut begin = 0;
    for (at, &yes) in separates.iter().enumerate() {
        if !yes {
            begin = at + 1;
            continue;
        }
        let length = at + 1 - begin;
        if best.is_none_or(|(_, longest)| length > longest) {
            best = Some((begin, length));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        inside_ns: 3.0,
        outside_ns: 13.0,
    };

    fn trial(pages: usize, same: &[f64], other: &[f64]) -> Trial {
        Trial {
            pages,
            same: same.to_vec(),
            other: other.to_vec(),
        }
    }

    #[test]
    fn the_sign_test_is_the_binomial_tail() {
        assert_eq!(chance(0, 10), 1.0);
        assert!((chance(10, 10) - 1.0 / 1024.0).abs() < 1e-12);
        assert!((chance(9, 10) - 11.0 / 1024.0).abs() < 1e-12);
        assert!((chance(24, 48) - 0.5573).abs() < 1e-3);
        assert_eq!(chance(0, 0), 1.0);
    }

    #[test]
    fn an_effect_is_claimed_only_where_the_rounds_agree() {
        let clear = trial(24, &[13.0; 12], &[3.2; 12]);
        assert!(matches!(effect(&[clear], TIMES), Effect::Separates { chance } if chance < 1e-3));
        let none = trial(24, &[3.1; 12], &[3.2; 12]);
        assert!(matches!(effect(&[none], TIMES), Effect::Nothing { .. }));
        // Both thrash alike.
        let both = trial(24, &[13.0; 12], &[12.7; 12]);
        assert!(matches!(effect(&[both], TIMES), Effect::Nothing { .. }));
        // Now a little more than the limit, now a little less.
        let middling: Vec<f64> = (0..12).map(|round| 4.3 + f64::from(round % 2) * 0.4).collect();
        assert_eq!(effect(&[trial(24, &middling, &[3.0; 12])], TIMES), Effect::Unclear);
        // Half of the rounds say one thing, half the other.
        let torn: Vec<f64> = (0..12).map(|round| if round % 2 == 0 { 13.0 } else { 3.0 }).collect();
        assert_eq!(effect(&[trial(24, &torn, &[3.0; 12])], TIMES), Effect::Unclear);
        // Too few rounds to say anything, however clear they are.
        assert_eq!(effect(&[trial(24, &[13.0; 6], &[3.0; 6])], TIMES), Effect::Unclear);
        assert_eq!(effect(&[], TIMES), Effect::Unclear);
    }

    #[test]
    fn the_effect_of_sets_that_differ_the_wrong_way_is_none() {
        let odd = trial(24, &[3.0; 12], &[13.0; 12]);
        assert!(matches!(effect(&[odd], TIMES), Effect::Nothing { .. }));
    }

    fn sweep(times: &[(usize, f64)]) -> Vec<Trial> {
        times
            .iter()
            .map(|&(pages, ns)| trial(pages, &[ns; 5], &[3.0; 5]))
            .collect()
    }

    #[test]
    fn the_knee_of_a_sweep() {
        let rising = sweep(&[(8, 3.0), (12, 3.0), (16, 3.3), (20, 9.0), (24, 12.5)]);
        assert_eq!(knee(&rising, TIMES), Knee::At(16));
        assert_eq!(knee(&rising[..3], TIMES), Knee::Never);
        assert_eq!(knee(&rising[3..], TIMES), Knee::AtOnce);
        let spike = sweep(&[(8, 3.0), (12, 9.0), (16, 3.3), (20, 9.0), (24, 12.5)]);
        assert_eq!(knee(&spike, TIMES), Knee::At(16));
        let spike = sweep(&[(8, 3.0), (12, 9.0), (16, 3.3)]);
        assert_eq!(knee(&spike, TIMES), Knee::Never);
        let wild = sweep(&[(8, 9.0), (12, 3.0), (16, 9.0), (20, 3.0), (24, 9.0), (28, 3.0)]);
        assert_eq!(knee(&wild, TIMES), Knee::Noise);
        assert_eq!(knee(&[], TIMES), Knee::Never);
    }

    #[test]
    fn the_sets_that_tell_the_most_fill_one_color_and_not_two() {
        let rising = sweep(&[
            (8, 3.0),
            (12, 3.0),
            (16, 3.3),
            (20, 12.0),
            (24, 12.5),
            (28, 12.8),
            (32, 13.0),
            (48, 13.0),
        ]);
        let counts = decisive(&rising, TIMES);
        assert_eq!(counts, [24, 28]);
        // Replacement at random: slow to rise.
        let slow = sweep(&[(4, 3.2), (6, 5.0), (8, 7.0), (12, 10.0), (16, 12.0), (24, 13.0)]);
        assert!(decisive(&slow, TIMES).iter().all(|count| (8..=16).contains(count)));
        assert!(decisive(&sweep(&[(8, 3.0), (16, 3.1), (24, 3.0)]), TIMES).is_empty());
        assert!(decisive(&[], TIMES).is_empty());
    }

    #[test]
    fn levels_that_cannot_be_distinguished() {
        assert!(TIMES.differ());
        let near = Times {
            inside_ns: 12.0,
            outside_ns: 14.0,
        };
        assert!(!near.differ());
        let odd = Times {
            inside_ns: f64::NAN,
            outside_ns: 14.0,
        };
        assert!(!odd.differ());
    }

    #[test]
    fn runs_of_bits() {
        assert_eq!(run(&[true, true, false, true]), Some((0, 2)));
        assert_eq!(run(&[false, true, true, true]), Some((1, 3)));
        assert_eq!(run(&[false, false]), None);
        assert_eq!(run(&[]), None);
    }
}
