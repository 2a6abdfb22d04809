//! The advice for the current state of this machine.
//!
//! A probe's figures are kept until the next boot, but the share that others leave of a shared cache changes within
//! minutes. If the simulated time of a run is far from the measured one, the last level is timed again. If it has
//! changed, a second advice is made for it, and the advice whose time is nearer to the clock counts.

use std::path::Path;
use std::time::{Duration, Instant};

use machine::Machine;
use results::{Advice, Native};

use super::Advise;
use crate::failure::Failure;
use crate::verbs::model::HOST;

/// The last level has changed if it holds this many times as much, or as little.
const OTHER: f64 = 4.0 / 3.0;

/// Beside other programs it has changed if it keeps lines this many times as long, or holds this many times as much.
const LONGER: f64 = 2.0;

/// The approximate duration of [`::measured::last_level_again`].
const TIMING: Duration = Duration::from_secs(4);

/// A process's share of the last level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    bytes: u64,
    others_gbps: f64,
}

impl Advise {
    /// The advice, and the machine that it is for.
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
        // The same time again, plus the timing.
        let time = left.is_none_or(|left| left > begun.elapsed() * 2 + TIMING);
        let doubtful = before.native.as_ref().is_some_and(|native| !native.is_right());
        if !time || !doubtful || ::measured::last_level_again().is_none() {
            return Ok((before, machine.clone()));
        }
        let now = self.model.machine(HOST)?;
        let [was, is] = [machine, &now].map(Share::of);
        if !is.is_other(was) {
            return Ok((before, machine.clone()));
        }
        let left = left.map(|left| left.saturating_sub(begun.elapsed()));
        let mut after = self.advise_in(&now, file, all, broke, left)?;
        if off(&after) >= off(&before) {
            return Ok((before, machine.clone()));
        }
        after.notes.push(format!(
            "the last level of the caches held {} when it was probed, and holds {} now: the advice rests on that, and it is kept",
            was.says(),
            is.says()
        ));
        Ok((after, now))
    }
}

impl Share {
    fn of(machine: &Machine) -> Share {
        machine.outermost().map_or(
            Share {
                bytes: 0,
                others_gbps: 0.0,
            },
            |cache| Share {
                bytes: cache.bytes,
                others_gbps: cache.others_gbps,
            },
        )
    }

    /// How long a line is kept, in nanoseconds.
    fn kept_ns(self) -> f64 {
        self.bytes as f64 / self.others_gbps
    }

    fn is_other(self, was: Share) -> bool {
        let differs = |times: f64, most: f64| !(1.0 / most..=most).contains(&times);
        match (self.others_gbps > 0.0, was.others_gbps > 0.0) {
            (false, false) => differs(self.bytes as f64 / was.bytes.max(1) as f64, OTHER),
            (true, true) => {
                let bytes = self.bytes as f64 / was.bytes.max(1) as f64;
                differs(self.kept_ns() / was.kept_ns(), LONGER) || differs(bytes, LONGER)
            }
            _ => true,
        }
    }

    fn says(self) -> String {
        let bytes = results::bytes(self.bytes);
        match self.others_gbps > 0.0 {
            true => format!("{bytes}, into which others brought {:.1} GB/s", self.others_gbps),
            false => format!("{bytes} for this process"),
        }
    }
}

/// How far the simulated time is from the measured one; infinite if none was measured.
fn off(advice: &Advice) -> f64 {
    advice.native.as_ref().map_or(f64::INFINITY, Native::off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_a_little_larger_is_the_same_one() {
        let share = |bytes: u64, others_gbps| Share {
            bytes: bytes << 20,
            others_gbps,
        };
        assert!(!share(9, 0.0).is_other(share(10, 0.0)) && !share(10, 0.0).is_other(share(9, 0.0)));
        assert!(share(4, 0.0).is_other(share(11, 0.0)) && share(11, 0.0).is_other(share(4, 0.0)));
        // The same time, with a quarter of the bytes.
        assert!(share(8, 1.0).is_other(share(32, 4.0)));
        // With other programs, the rate counts as well as the bytes.
        assert!(!share(32, 2.0).is_other(share(24, 2.0)) && !share(32, 2.0).is_other(share(32, 3.0)));
        assert!(share(32, 2.0).is_other(share(32, 5.0)) && share(32, 2.0).is_other(share(32, 0.0)));
        assert_eq!(share(32, 2.5).says(), "32.0 MB, into which others brought 2.5 GB/s");
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
