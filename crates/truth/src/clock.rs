//! Both sides of a pair by the clock, in turn.

use std::time::{Duration, Instant};

use measured::{CoreShare, WHOLE};
use results::{TruthMeasured, TruthRound};

use crate::TruthError;
use crate::pairs::{Clock, Pair};
use crate::programs::{Commands, Run};
use crate::ratio::{interval, median, ratio};

/// The start of a program's report of its work (`timed.c`).
const SAID: &str = "truth: cpu ";

/// How often a run is repeated that had only a part of its core.
const TRIES: u32 = 3;

/// Measures round by round, every second one in reverse order: other load of the machine then falls on both sides. It
/// calls `between` up to three times: after a quarter, a half, and three quarters of the rounds.
///
/// Each run waits for a whole core, and is repeated if the core was shared before or after it. Rounds that were shared
/// all the same are left out where enough others are left.
///
/// Errors: a side fails, the two print other results, or take no longer than their start-up.
pub fn measure(
    pair: &Pair,
    commands: &Commands,
    rounds: u32,
    share: &mut CoreShare,
    between: &mut dyn FnMut() -> Result<(), TruthError>,
) -> Result<TruthMeasured, TruthError> {
    share.try_again();
    let mut of_rounds = Vec::new();
    let mut start_up = vec![Vec::new(); commands.start_up.len()];
    for number in 0..rounds {
        if [1, 2, 3].map(|quarter| rounds * quarter / 4).contains(&number) {
            share.wait_here();
            between()?;
        }
        let (before, after);
        if number % 2 == 0 {
            before = on_a_whole_core(pair, &commands.before, share)?;
            after = on_a_whole_core(pair, &commands.after, share)?;
        } else {
            after = on_a_whole_core(pair, &commands.after, share)?;
            before = on_a_whole_core(pair, &commands.before, share)?;
        }
        for (run, times) in commands.start_up.iter().zip(&mut start_up) {
            times.push(on_a_whole_core(pair, run, share)?.ns);
        }
        if pair.same_output && before.printed != after.printed {
            return Err(TruthError::Pair("before and after print other results".to_string()));
        }
        of_rounds.push(TruthRound {
            before_ns: before.ns,
            after_ns: after.ns,
            core_share: Some(before.core_share.min(after.core_share)),
        });
    }
    // The start-up's median: its own noise would count twice in each round.
    let starts: Vec<f64> = start_up.iter().map(|times| median(times)).collect();
    let before_off = starts.first().copied().unwrap_or(0.0);
    let after_off = starts.last().copied().unwrap_or(0.0);
    let (counted, left_out, shared) = counted(&of_rounds);
    let befores: Vec<f64> = counted.iter().map(|round| round.before_ns - before_off).collect();
    let afters: Vec<f64> = counted.iter().map(|round| round.after_ns - after_off).collect();
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
        left_out,
        shared,
        rounds: of_rounds,
    })
}

/// The rounds on a whole core, if they are at least half of all; otherwise all rounds. Beside them: how many are left
/// out, and how many count although their core was shared.
fn counted(rounds: &[TruthRound]) -> (Vec<TruthRound>, u32, u32) {
    let on_whole = |round: &&TruthRound| round.core_share.is_none_or(|share| share >= WHOLE);
    let whole: Vec<TruthRound> = rounds.iter().filter(on_whole).copied().collect();
    let shared = (rounds.len() - whole.len()) as u32;
    match whole.len() * 2 >= rounds.len() {
        true => (whole, shared, 0),
        false => (rounds.to_vec(), 0, shared),
    }
}

/// The run that had most of its core, of up to three: the first that had all of it is the last.
///
/// One that is measured by processor time has one thread, and stays on one cpu, where the pace is looked at.
fn on_a_whole_core(pair: &Pair, run: &Run, share: &mut CoreShare) -> Result<Once, TruthError> {
    let _pinned = (pair.clock == Clock::Cpu).then(sys::affinity::pin_to_last);
    let look = match pair.clock {
        Clock::Cpu => CoreShare::now,
        Clock::Wall => CoreShare::least,
    };
    let mut best: Option<Once> = None;
    for _ in 0..TRIES {
        let before = share.wait(look);
        let mut one = once(pair, run)?;
        one.core_share = before.min(look(share));
        if best.as_ref().is_none_or(|best| one.core_share > best.core_share) {
            best = Some(one);
        }
        if best.as_ref().is_some_and(|best| best.core_share >= WHOLE) || share.gave_up() {
            break;
        }
    }
    best.ok_or_else(|| TruthError::Pair("was not run".to_string()))
}

struct Once {
    ns: f64,
    /// The least before and after it.
    core_share: f64,
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
        core_share: 1.0,
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
    fn rounds_on_a_shared_core_are_left_out_while_they_are_the_fewer() {
        let round = |core_share| TruthRound {
            core_share,
            ..TruthRound::default()
        };
        let [whole, shared] = [Some(0.95), Some(0.6)].map(round);
        assert_eq!(counted(&[whole, shared, whole]), (vec![whole, whole], 1, 0));
        assert_eq!(counted(&[whole, shared]), (vec![whole], 1, 0));
        assert_eq!(counted(&[whole, shared, shared]), (vec![whole, shared, shared], 0, 2));
        assert_eq!(counted(&[round(None)]), (vec![round(None)], 0, 0), "nobody looked");
    }

    #[test]
    fn the_program_says_what_its_work_took() {
        let errors = "warning: x\ntruth: cpu 1200 ns, wall 3400 ns\n";
        assert_eq!(said(errors, Clock::Cpu), Some(1200.0));
        assert_eq!(said(errors, Clock::Wall), Some(3400.0));
        assert_eq!(said("truth: cpu x ns, wall 1 ns\n", Clock::Cpu), None);
    }
}
