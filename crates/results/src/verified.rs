//! A changed program beside the one that an advice is for: the predicted effect of the change, and the measured one.

use serde::{Deserialize, Serialize};

/// The outcome of a change: predicted by simulation, and measured by running both programs here in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Verified {
    /// The changed program and its arguments, as given.
    pub command: String,
    pub predicted: VerifiedTime,
    /// The medians of the rounds, on the clock.
    pub measured: VerifiedTime,
    /// The same without the time that the kernel worked for the programs (page faults, input and output), of which the
    /// simulation knows little: the prediction, without its page faults, is compared with this. In programs with
    /// several threads the kernel works in parallel, so this is the clock's time.
    pub in_program: VerifiedTime,
    /// The range of the median part of the time in the program that the change saves in a round: with 95% confidence,
    /// or, with fewer than six rounds, from the smallest to the largest.
    pub saved_low: f64,
    pub saved_high: f64,
    /// In the order in which they were measured.
    pub rounds: Vec<VerifiedRound>,
    /// True if the rounds are informative, and the prediction is within their range, or the ratios of the times before
    /// and after are within 20% of each other.
    pub agrees: bool,
    /// True if the rounds differ so much from each other that they neither confirm the prediction nor refute it.
    pub unsure: bool,
    /// The limits of these figures, in sentences.
    pub notes: Vec<String>,
}

/// Nanoseconds of both programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerifiedTime {
    pub before_ns: u64,
    pub after_ns: u64,
    /// The part of the time before that the change saves; below 0 if it takes longer.
    pub saved: f64,
}

/// Nanoseconds on the clock, of one run of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct VerifiedRound {
    pub before_ns: u64,
    pub after_ns: u64,
    /// The kernel's part of that.
    pub before_system_ns: u64,
    pub after_system_ns: u64,
}

/// The part of the time of all rounds that the kernel works. Linux tells it from the program's at ticks of some milliseconds, so
/// that one short round says nothing, and all together do.
fn kernel_share(times: impl Iterator<Item = (u64, u64)>) -> f64 {
    let (mut wall, mut system) = (0, 0);
    for (of_round, of_kernel) in times {
        wall += of_round;
        system += of_kernel.min(of_round);
    }
    system as f64 / wall.max(1) as f64
}

/// Two ratios of times agree that are within this factor of one another.
const CLOSE: f64 = 1.2;

/// Rounds whose range is wider say nothing: a part of the time before.
const WIDE: f64 = 0.3;

/// Of a shorter run, most may be the start of the program: nanoseconds.
const SHORT: u64 = 10_000_000;

impl VerifiedTime {
    pub fn new(before_ns: u64, after_ns: u64) -> VerifiedTime {
        VerifiedTime {
            before_ns,
            after_ns,
            saved: saved(before_ns, after_ns),
        }
    }

    /// How many times as long it took before; nothing of nothing is as long.
    pub fn ratio(&self) -> f64 {
        match (self.before_ns, self.after_ns) {
            (_, 0) => 1.0,
            (before, after) => before as f64 / after as f64,
        }
    }
}

impl Verified {
    /// The times that the prediction is compared with. Older results only have the clock's times.
    pub fn held_against(&self) -> VerifiedTime {
        match self.in_program.before_ns {
            0 => self.measured,
            _ => self.in_program,
        }
    }

    /// `predicted` is simulated, `rounds` were measured; there is at least one. `alone`: of programs with one thread.
    pub fn new(command: String, predicted: VerifiedTime, rounds: Vec<VerifiedRound>, alone: bool) -> Verified {
        let median = |mut times: Vec<u64>| {
            times.sort_unstable();
            let middle = times.len() / 2;
            match times.len() {
                0 => 0,
                length if length % 2 == 1 => times[middle],
                _ => u64::midpoint(times[middle - 1], times[middle]),
            }
        };
        let medians = |times: &dyn Fn(&VerifiedRound) -> (u64, u64)| {
            let (before, after) = rounds.iter().map(times).unzip();
            VerifiedTime::new(median(before), median(after))
        };
        let kernel = [
            kernel_share(rounds.iter().map(|round| (round.before_ns, round.before_system_ns))),
            kernel_share(rounds.iter().map(|round| (round.after_ns, round.after_system_ns))),
        ];
        let without = |wall: u64, kernel: f64| (wall as f64 * (1.0 - kernel)).round() as u64;
        let in_program = |round: &VerifiedRound| match alone {
            true => (without(round.before_ns, kernel[0]), without(round.after_ns, kernel[1])),
            false => (round.before_ns, round.after_ns),
        };
        let measured = medians(&|round| (round.before_ns, round.after_ns));
        let held_against = medians(&in_program);
        let times = rounds.iter().map(in_program);
        let mut each: Vec<f64> = times.map(|(before, after)| saved(before, after)).collect();
        each.sort_by(f64::total_cmp);
        let outside = outside(each.len());
        let low = each.get(outside).copied().unwrap_or_default();
        let high = each.iter().rev().nth(outside).copied().unwrap_or_default();
        // The medians are of different rounds, and may lie outside all of them.
        let (low, high) = (low.min(held_against.saved), high.max(held_against.saved));
        let ratio = predicted.ratio() / held_against.ratio();
        let close = ratio.max(1.0 / ratio) <= CLOSE && (predicted.saved >= 0.0) == (held_against.saved >= 0.0);
        let within = (low..=high).contains(&predicted.saved);
        let unsure = high - low > WIDE && within;
        let agrees = (within || close) && !unsure;
        let mut notes = Vec::new();
        if measured.before_ns.min(measured.after_ns) < SHORT {
            notes.push(
                "a run takes less than 10 ms, so that much of it may be the start of the program: measure with more work"
                    .to_string(),
            );
        }
        Verified {
            command,
            predicted,
            measured,
            in_program: held_against,
            saved_low: low,
            saved_high: high,
            rounds,
            agrees,
            unsure,
            notes,
        }
    }
}

/// How many of this many sorted values lie below an interval that holds the population's median with 95% confidence,
/// and as many above it: a value is below the median as often as a coin shows heads.
fn outside(values: usize) -> usize {
    let mut left = 0.025 * 2f64.powi(i32::try_from(values).unwrap_or(i32::MAX));
    let mut ways = 1.0;
    for below in 0..values {
        left -= ways;
        if left < 0.0 {
            return below.saturating_sub(1);
        }
        ways *= (values - below) as f64 / (below + 1) as f64;
    }
    0
}

fn saved(before: u64, after: u64) -> f64 {
    match before {
        0 => 0.0,
        before => 1.0 - after as f64 / before as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of milliseconds.
    fn verified(predicted: (u64, u64), rounds: &[(u64, u64)]) -> Verified {
        let ms = |(before, after): (u64, u64)| VerifiedRound {
            before_ns: before * 1_000_000,
            after_ns: after * 1_000_000,
            ..VerifiedRound::default()
        };
        let rounds = rounds.iter().map(|round| ms(*round)).collect();
        Verified::new(
            "it".to_string(),
            VerifiedTime::new(predicted.0, predicted.1),
            rounds,
            true,
        )
    }

    #[test]
    fn medians_are_measured_and_rounds_give_the_range() {
        let it = verified((100, 70), &[(100, 80), (110, 66), (90, 81), (100, 80), (400, 80)]);
        assert_eq!(it.measured, VerifiedTime::new(100_000_000, 80_000_000));
        assert!((it.measured.saved - 0.2).abs() < 1e-9);
        assert!((it.saved_low - 0.1).abs() < 1e-9 && (it.saved_high - 0.8).abs() < 1e-9);
        // So wide a range holds any prediction.
        assert!(it.unsure && !it.agrees && it.notes.is_empty());
    }

    #[test]
    fn what_the_kernel_works_is_no_part_of_the_prediction() {
        let round = VerifiedRound {
            before_ns: 100_000_000,
            after_ns: 80_000_000,
            before_system_ns: 50_000_000,
            after_system_ns: 50_000_000,
        };
        let of = |alone| {
            let predicted = VerifiedTime::new(50, 30);
            Verified::new("it".to_string(), predicted, vec![round; 3], alone)
        };
        assert!(of(true).agrees && (of(true).in_program.saved - 0.4).abs() < 1e-9);
        assert!((of(true).measured.saved - 0.2).abs() < 1e-9);
        assert!(!of(false).agrees && of(false).in_program == of(false).measured);
    }

    #[test]
    fn the_kernels_part_is_that_of_all_rounds() {
        // A tick falls into the kernel in one round of four.
        let round = |tick: u64| VerifiedRound {
            before_ns: 8_000_000,
            after_ns: 4_000_000,
            before_system_ns: 4_000_000 * tick,
            after_system_ns: 0,
        };
        let rounds = [0, 1, 0, 0].map(round).to_vec();
        let it = Verified::new("it".to_string(), VerifiedTime::new(70, 40), rounds, true);
        assert_eq!(it.in_program, VerifiedTime::new(7_000_000, 4_000_000));
        assert_eq!(it.saved_low, it.saved_high);
    }

    #[test]
    fn a_prediction_agrees_within_the_range_or_a_fifth() {
        let rounds = [(100, 80), (100, 81), (100, 79)];
        assert!(verified((100, 68), &rounds).agrees);
        assert!(!verified((100, 60), &rounds).agrees);
        assert!(!verified((100, 100), &rounds).agrees);
        assert!(verified((100, 95), &rounds).agrees);
        assert!(verified((0, 0), &[(0, 0)]).agrees);
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table A3: ranks 1 and 6 of 6, 2 and 9 of 10, 6 and 15 of 20.
        assert_eq!([0, 3, 5, 6, 10, 20, 51].map(outside), [0, 0, 0, 0, 1, 5, 18]);
    }

    #[test]
    fn short_runs_are_named() {
        let it = verified((100, 80), &[(9, 8), (9, 8)]);
        assert!(it.notes[0].contains("10 ms"), "{:?}", it.notes);
    }
}
