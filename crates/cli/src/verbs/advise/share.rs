//! The advice on this machine as it is at the moment.
//!
//! A probe's figures are kept until the next boot, but what neighbors leave of a shared cache changes within minutes. Where the simulated time
//! of a run is far from the measured one, the last level is timed again. If it has become another one, the advice is given on that,
//! and the one whose time is nearer to the clock counts.

use std::path::Path;
use std::time::{Duration, Instant};

use machine::Machine;
use results::{Advice, Native};

use super::Advise;
use crate::failure::Failure;
use crate::verbs::model::HOST;

/// The last level is another one where it holds so many times as much, or as little.
const OTHER: f64 = 4.0 / 3.0;

impl Advise {
    /// The advice, and the machine that it is of.
    pub fn advise_now(
        &self,
        machine: &Machine,
        file: &Path,
        all: &::trace::Trace,
        broke: Option<String>,
        left: Option<Duration>,
    ) -> Result<(Advice, Machine), Failure> {
        let begun = Instant::now();
        let before = self.advise_in(machine, file, all, broke.clone(), left)?;
        let took = begun.elapsed();
        let time = left.is_none_or(|left| left > took * 2);
        let doubtful = before.native.as_ref().is_some_and(|native| !native.is_right());
        if !time || !doubtful || ::measured::last_level_again().is_none() {
            return Ok((before, machine.clone()));
        }
        let now = self.model.machine(HOST)?;
        let [was, is] = [machine, &now].map(last_level_bytes);
        if !is_other(was, is) {
            return Ok((before, machine.clone()));
        }
        let left = left.map(|left| left.saturating_sub(took));
        let mut after = self.advise_in(&now, file, all, broke, left)?;
        if off(&after) >= off(&before) {
            return Ok((before, machine.clone()));
        }
        after.notes.push(format!(
            "the last level of the caches held {} for this process when it was probed, and holds {} now: the advice rests on that, and it is kept",
            results::bytes(was),
            results::bytes(is)
        ));
        Ok((after, now))
    }
}

fn last_level_bytes(machine: &Machine) -> u64 {
    machine.outermost().map_or(0, |cache| cache.bytes)
}

fn is_other(was: u64, is: u64) -> bool {
    let times = is as f64 / was.max(1) as f64;
    !(1.0 / OTHER..=OTHER).contains(&times)
}

/// How far the simulated time is from the measured one; infinitely, where none was measured.
fn off(advice: &Advice) -> f64 {
    advice.native.as_ref().map_or(f64::INFINITY, Native::off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_a_little_larger_is_the_same_one() {
        assert!(!is_other(9 << 20, 10 << 20) && !is_other(10 << 20, 9 << 20));
        assert!(is_other(4 << 20, 11 << 20) && is_other(11 << 20, 4 << 20));
    }

    #[test]
    fn half_as_long_is_as_far_off_as_twice_as_long() {
        let of = |user_ns, simulated_ns| Advice {
            native: Some(Native {
                user_ns,
                simulated_ns,
                ..Native::default()
            }),
            ..Advice::default()
        };
        assert_eq!(off(&of(100, 200)), off(&of(200, 100)));
        assert!(off(&of(100, 110)) < off(&of(100, 200)));
        assert_eq!(off(&Advice::default()), f64::INFINITY);
    }
}
