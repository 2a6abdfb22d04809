//! The basis of an advice on windows of a run, and its certainty.

use results::{Advice, Estimate, Outcome, count, percent};

use crate::words::{NOTHING, saved};

/// The part of the time that a policy saves, as shown by the windows of both simulations: a gain that may be zero is
/// not claimed.
pub fn gain(base: &Outcome, other: &Outcome) -> f64 {
    let gain = saved(base.time_ns.wall, other.time_ns.wall);
    match saved_over_windows(base, other) {
        Some(estimate) if gain > 0.0 && estimate.may_be_none() => 0.0,
        _ => gain,
    }
}

/// True if a policy that saves time over all windows together may save none over the whole run.
pub fn may_be_chance(advice: &Advice, policy: &str) -> bool {
    let other = advice.policies.iter().find(|outcome| outcome.policy == policy);
    let estimate = advice
        .base()
        .zip(other)
        .and_then(|(base, other)| saved_over_windows(base, other));
    estimate.is_some_and(|estimate| estimate.may_be_none())
}

fn saved_over_windows(base: &Outcome, other: &Outcome) -> Option<Estimate> {
    base.windows.as_ref()?.saved_by(other.windows.as_ref()?)
}

/// The basis of the figures, in a sentence or two; `None` if they cover everything.
pub fn in_words(advice: &Advice) -> Option<String> {
    let base = advice.base()?;
    let windows = base.windows.as_ref()?;
    let (counted, references) = (windows.counted.len(), windows.references());
    if counted == 0 {
        return Some("Nothing was counted: the trace ends before its first window has warmed up.".to_string());
    }
    let of = windows.of_references.map_or(String::new(), |all| {
        let part = references as f64 / all.max(1) as f64;
        format!(
            ", {} of the {} that the program made while it was recorded",
            percent(part),
            count(all)
        )
    });
    let mut text = match counted {
        1 => format!("Rests on one window of {} references{of}.", count(references)),
        _ => format!("Rests on {counted} windows with {} references{of}", count(references)),
    };
    if counted > 1 {
        text += &match windows.ns_per_reference.relative() {
            Some(half) => format!(
                ": the time of all of it is that of the windows ± {}, with 95% confidence.",
                percent(half)
            ),
            None => ".".to_string(),
        };
    }
    text += &gains(advice, base).unwrap_or_default();
    Some(text)
}

/// The bounds of the best gain, or a note that there may be none.
fn gains(advice: &Advice, base: &Outcome) -> Option<String> {
    let others = advice.policies.iter().filter(|outcome| outcome.policy != base.policy);
    let best = others.min_by_key(|outcome| outcome.time_ns.wall)?;
    let estimate = saved_over_windows(base, best)?;
    let (low, high) = estimate.low.zip(estimate.high)?;
    let gain = saved(base.time_ns.wall, best.time_ns.wall);
    if gain < NOTHING {
        return None;
    }
    Some(match estimate.is_sure() {
        true => format!(
            " What `{}` saves lies between {} and {}.",
            best.policy,
            percent(low),
            percent(high)
        ),
        false => format!(
            " Under `{}` the windows together take {} less time, but one of them differs so much from another that this may be \
             chance: more windows would show.",
            best.policy,
            percent(gain)
        ),
    })
}

#[cfg(test)]
mod tests {
    use results::{CountedWindow, Time, Windows};

    use super::*;

    fn outcome(policy: &str, times: [u64; 4]) -> Outcome {
        let window = |wall_ns| CountedWindow {
            references: 1_000_000,
            wall_ns,
            misses: Vec::new(),
        };
        Outcome {
            policy: policy.to_string(),
            time_ns: Time {
                wall: times.iter().sum(),
                ..Time::default()
            },
            windows: Some(Windows::new(times.map(window).to_vec(), Some(400_000_000))),
            ..Outcome::default()
        }
    }

    fn advice(other: [u64; 4]) -> Advice {
        Advice {
            baseline: "random".to_string(),
            policies: vec![
                outcome("page-coloring", other),
                outcome("random", [1000, 2000, 3000, 4000]),
            ],
            ..Advice::default()
        }
    }

    #[test]
    fn a_gain_in_every_window_is_claimed_with_its_interval() {
        let advice = advice([900, 1800, 2700, 3600]);
        assert!((gain(&advice.policies[1], &advice.policies[0]) - 0.1).abs() < 1e-9);
        let text = in_words(&advice).unwrap();
        assert!(
            text.starts_with("Rests on 4 windows with 4.00 M references, 1.0% of the 400 M"),
            "{text}"
        );
        assert!(text.contains("± 82.2%, with 95% confidence"), "{text}");
        assert!(
            text.ends_with("What `page-coloring` saves lies between 10.0% and 10.0%."),
            "{text}"
        );
    }

    #[test]
    fn a_gain_that_may_be_chance_is_not_claimed() {
        let advice = advice([1100, 2100, 3100, 2000]);
        assert_eq!(gain(&advice.policies[1], &advice.policies[0]), 0.0);
        assert!(in_words(&advice).unwrap().contains("may be chance"));
        assert!(may_be_chance(&advice, "page-coloring"));
        assert!(!may_be_chance(&advice, "bin-hopping"));
    }

    #[test]
    fn what_rests_on_all_of_the_run_says_nothing() {
        let mut advice = advice([1; 4]);
        advice.policies.iter_mut().for_each(|outcome| outcome.windows = None);
        assert_eq!(in_words(&advice), None);
        assert!(gain(&advice.policies[1], &advice.policies[0]) > 0.9);
    }
}
