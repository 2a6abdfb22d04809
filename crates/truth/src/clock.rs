//! Both sides of a pair by the clock, in turn.

use std::time::{Duration, Instant};

use results::{TruthMeasured, TruthRound};

use crate::TruthError;
use crate::pairs::{Clock, Pair};
use crate::programs::{Commands, Run};
use crate::ratio::{interval, median, ratio};

/// The start of a program's report of its work (`timed.c`).
const SAID: &str = "truth: cpu ";

/// Measures round by round, every second one in reverse order: other load of the machine then falls on both sides. It
/// calls `between` up to three times: after a quarter, a half, and three quarters of the rounds.
///
/// Errors: a side fails, the two print other results, or take no longer than their start-up.
pub fn measure(
    pair: &Pair,
    commands: &Commands,
    rounds: u32,
    between: &mut dyn FnMut() -> Result<(), TruthError>,
) -> Result<TruthMeasured, TruthError> {
    let mut of_rounds = Vec::new();
    let mut start_up = vec![Vec::new(); commands.start_up.len()];
    for number in 0..rounds {
        if [1, 2, 3].map(|quarter| rounds * quarter / 4).contains(&number) {
            between()?;
        }
        let (before, after);
        if number % 2 == 0 {
            before = once(pair, &commands.before)?;
            after = once(pair, &commands.after)?;
        } else {
            after = once(pair, &commands.after)?;
            before = once(pair, &commands.before)?;
        }
        for (run, times) in commands.start_up.iter().zip(&mut start_up) {
            times.push(once(pair, run)?.ns);
        }
        if pair.same_output && before.printed != after.printed {
            return Err(TruthError::Pair("before and after print other results".to_string()));
        }
        of_rounds.push(TruthRound {
            before_ns: before.ns,
            after_ns: after.ns,
        });
    }
    // The start-up's median: its own noise would count twice in each round.
    let starts: Vec<f64> = start_up.iter().map(|times| median(times)).collect();
    let before_off = starts.first().copied().unwrap_or(0.0);
    let after_off = starts.last().copied().unwrap_or(0.0);
    let befores: Vec<f64> = of_rounds.iter().map(|round| round.before_ns - before_off).collect();
    let afters: Vec<f64> = of_rounds.iter().map(|round| round.after_ns - after_off).collect();
    let ratios: Vec<f64> = befores
        .iter()
        .zip(&afters)
        .map(|(before, after)| ratio(*before, *after))
        .collect();
    let (least, most) = interval(&ratios);
    if !(least > 0.0 && most.is_finite()) {
        return Err(TruthError::Pair(
            "too many runs took no longer than their start-up".to_string(),
        ));
    }
    Ok(TruthMeasured {
        ratio: median(&ratios),
        least,
        most,
        before_ns: median(&befores),
        after_ns: median(&afters),
        rounds: of_rounds,
    })
}

struct Once {
    ns: f64,
    printed: Vec<u8>,
}

/// One run. The processor time is that of the children that end meanwhile: nothing else may be run beside it.
fn once(pair: &Pair, run: &Run) -> Result<Once, TruthError> {
    let words = run.words.join(" ");
    let failed = |what: String| TruthError::Command(format!("{words}: {what}"));
    let children = || {
        let time = sys::clock::children_time().map(|(user, system)| user + system);
        time.map_err(|error| failed(format!("cannot read its processor time: {error}")))
    };
    let before = children()?;
    let began = Instant::now();
    let done = run.command().output().map_err(|error| failed(error.to_string()))?;
    let wall = began.elapsed();
    let cpu = children()?.saturating_sub(before);
    let errors = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(failed(format!("{}: {}", done.status, errors.trim())));
    }
    let ns = match (said(&errors, pair.clock), &pair.source) {
        (Some(own), _) => own,
        (None, Some(_)) => return Err(failed("the program does not say what its work took".to_string())),
        (None, None) => nanoseconds(if pair.clock == Clock::Cpu { cpu } else { wall }),
    };
    Ok(Once {
        ns,
        printed: done.stdout,
    })
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

/// The time of its work that a program reports: `truth: cpu N ns, wall N ns`.
fn said(errors: &str, clock: Clock) -> Option<f64> {
    let numbers = errors.lines().find_map(|line| line.strip_prefix(SAID))?;
    let (cpu, wall) = numbers.strip_suffix(" ns")?.split_once(" ns, wall ")?;
    match clock {
        Clock::Cpu => cpu,
        Clock::Wall => wall,
    }
    .parse()
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_says_what_its_work_took() {
        let errors = "warning: x\ntruth: cpu 1200 ns, wall 3400 ns\n";
        assert_eq!(said(errors, Clock::Cpu), Some(1200.0));
        assert_eq!(said(errors, Clock::Wall), Some(3400.0));
        assert_eq!(said("truth: cpu x ns, wall 1 ns\n", Clock::Cpu), None);
    }
}
