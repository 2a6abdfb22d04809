//! A changed program beside the one that an advice is for: the predicted effect of the change, and the measured one.

use std::time::Duration;

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
    /// or, with fewer than six rounds, from the smallest to the largest. Where the kernel's time is left out, it is wider
    /// by the sampling error of the kernel's part.
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

/// The part of the time of all rounds that the kernel works, as Linux samples it.
struct Kernel {
    share: f64,
    /// Half of the interval that holds the true part with 95% confidence.
    error: f64,
}

impl Kernel {
    /// `tick`: nanoseconds between two ticks, at which Linux charges time to the program or to the kernel. One short round
    /// says nothing, and all together say as much as their ticks: the interval is that of Agresti and Coull (1998) for a
    /// share of so many samples.
    fn of(times: impl Iterator<Item = (u64, u64)>, tick: f64) -> Kernel {
        let (mut ticks, mut of_kernel) = (0.0, 0.0);
        for (wall, system) in times {
            let (wall, system) = (wall as f64 / tick, system as f64 / tick);
            ticks += wall;
            // All of a shorter run is charged to whoever the one tick met, and without a tick to the program.
            of_kernel += if wall < 1.0 && system > 0.0 {
                1.0
            } else {
                system.min(wall)
            };
        }
        let of_kernel = of_kernel.min(ticks);
        let share = of_kernel / ticks.max(f64::MIN_POSITIVE);
        let (ticks, middle) = (ticks + 4.0, (of_kernel + 2.0) / (ticks + 4.0));
        let half = 1.96 * (middle * (1.0 - middle) / ticks).sqrt();
        Kernel {
            share,
            error: half + (middle - share).abs(),
        }
    }

    /// The error of the time in the program, as a part of that time.
    fn of_program(&self) -> f64 {
        self.error / (1.0 - self.share).max(self.error)
    }
}

/// Two ratios of times agree that are within this factor of one another.
const CLOSE: f64 = 1.2;

/// Rounds whose range is wider say nothing: a part of the time before.
const WIDE: f64 = 0.3;

/// An error of the time in the program that is named: a part of it.
const VAGUE: f64 = 0.1;
/// A larger one is as good as this.
const MOST_VAGUE: f64 = 0.9;

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

    /// `predicted` is simulated, `rounds` were measured; there is at least one. `tick`: of programs with one thread, the time
    /// between two ticks of the kernel, which separate its time from theirs.
    pub fn new(
        command: String,
        predicted: VerifiedTime,
        rounds: Vec<VerifiedRound>,
        tick: Option<Duration>,
    ) -> Verified {
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
        let kernel = tick.map(|tick| {
            let tick = (tick.as_nanos() as f64).max(1.0);
            [
                Kernel::of(
                    rounds.iter().map(|round| (round.before_ns, round.before_system_ns)),
                    tick,
                ),
                Kernel::of(rounds.iter().map(|round| (round.after_ns, round.after_system_ns)), tick),
            ]
        });
        let without = |wall: u64, kernel: &Kernel| (wall as f64 * (1.0 - kernel.share)).round() as u64;
        let in_program = |round: &VerifiedRound| match &kernel {
            Some([before, after]) => (without(round.before_ns, before), without(round.after_ns, after)),
            None => (round.before_ns, round.after_ns),
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
        // Both errors at once, of a ratio.
        let sampled = kernel.map_or(0.0, |[before, after]| {
            before.of_program().hypot(after.of_program()).min(MOST_VAGUE)
        });
        let low = 1.0 - (1.0 - low) / (1.0 - sampled);
        let high = 1.0 - (1.0 - high) * (1.0 - sampled);
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
        if sampled > VAGUE {
            notes.push(format!(
                "Linux samples at its ticks how much of a run the kernel takes: these runs are too short to know the time in the \
                 program to better than {:.0}%, and the range is wider by that",
                sampled * 100.0
            ));
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

    const TICK: Option<Duration> = Some(Duration::from_millis(4));

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
            None,
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
            before_ns: 10_000_000_000,
            after_ns: 8_000_000_000,
            before_system_ns: 5_000_000_000,
            after_system_ns: 5_000_000_000,
        };
        let of = |tick| {
            let predicted = VerifiedTime::new(50, 30);
            Verified::new("it".to_string(), predicted, vec![round; 3], tick)
        };
        assert!(of(TICK).agrees && (of(TICK).in_program.saved - 0.4).abs() < 1e-9);
        assert!((of(TICK).measured.saved - 0.2).abs() < 1e-9);
        assert!(!of(None).agrees && of(None).in_program == of(None).measured);
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
        let of = |tick| Verified::new("it".to_string(), VerifiedTime::new(70, 40), rounds.clone(), tick);
        assert_eq!(of(TICK).in_program, VerifiedTime::new(7_000_000, 4_000_000));
        // Each round saves the same, but eight ticks and four say little of the kernel's part.
        assert!(of(TICK).saved_low < 0.2 && of(TICK).saved_high > 0.6);
        assert!(of(TICK).notes.iter().any(|note| note.contains("ticks")));
        assert!(of(None).saved_low == of(None).saved_high && !of(None).notes.iter().any(|note| note.contains("ticks")));
    }

    #[test]
    fn a_program_beside_itself_saves_nothing_that_its_range_excludes() {
        // Of 25 ticks each, 10 and 6 fell into the kernel, by chance, and all of those runs are charged to it.
        let rounds: Vec<_> = (0..50)
            .map(|round| VerifiedRound {
                before_ns: 2_000_000,
                after_ns: 2_000_000,
                before_system_ns: if round < 10 { 2_000_000 } else { 0 },
                after_system_ns: if round < 6 { 2_000_000 } else { 0 },
            })
            .collect();
        let it = Verified::new("it".to_string(), VerifiedTime::new(1, 1), rounds, TICK);
        assert_eq!(it.in_program, VerifiedTime::new(1_200_000, 1_520_000));
        assert!(it.in_program.saved < -0.2, "{it:?}");
        assert!(it.saved_low < 0.0 && it.saved_high > 0.0 && it.unsure, "{it:?}");
    }

    #[test]
    fn long_runs_tell_the_kernels_part_well() {
        let rounds = vec![
            VerifiedRound {
                before_ns: 2_000_000_000,
                after_ns: 1_000_000_000,
                before_system_ns: 40_000_000,
                after_system_ns: 40_000_000,
            };
            5
        ];
        let it = Verified::new("it".to_string(), VerifiedTime::new(2, 1), rounds, TICK);
        assert!(it.saved_high - it.saved_low < 0.03 && it.notes.is_empty(), "{it:?}");
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
