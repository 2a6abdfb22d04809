//! Advice on as much of a trace as the time allows.
//!
//! The speed of simulations is known only after some have run: it depends on the machine, its load, and the program. So
//! a small part of the trace comes first, and then as much as the time allows at that pace; the last advice counts.

use std::path::Path;
use std::time::{Duration, Instant};

use capture::Folder;
use machine::Machine;
use results::Advice;

use super::{Advise, trace};
use crate::failure::Failure;

/// References of the first try.
const LITTLE: u64 = 200_000;
/// The most by which each step may grow: larger working sets are slower than the pace predicts.
const GROWTH: u64 = 8;
/// The part of the remaining time that is planned: a step's pace has been up to 1.8 times slower than the previous
/// one's.
const PLANNED: f64 = 0.5;
/// A further step is made only if it covers this many times as many references.
const WORTH: f64 = 1.5;

impl Advise {
    /// The advice on a trace, or on windows of it if only `left` is available.
    pub fn advise_in(
        &self,
        machine: &Machine,
        file: &Path,
        all: &::trace::Trace,
        broke: Option<String>,
        left: Option<Duration>,
    ) -> Result<Advice, Failure> {
        let Some(left) = left else {
            return self.advise(machine, file, all, broke);
        };
        let begun = Instant::now();
        let folder = Folder::make("advise");
        let folder = folder
            .map_err(|error| Failure::work(format!("cannot make a folder for a shorter trace: {error}; set TMPDIR")))?;
        let mut references = LITTLE;
        let mut advice = None;
        for number in 0.. {
            let round = Instant::now();
            let shorter = folder.path().join(format!("{number}.trace"));
            let is_shorter =
                capture::shorten(all, &shorter, references).map_err(|error| trace::explain(file, &error))?;
            if !is_shorter {
                return self.advise(machine, file, all, broke);
            }
            let some = trace::open(&shorter)?;
            advice = Some(self.advise(machine, &shorter, &some, broke.clone())?);
            let remains = left.saturating_sub(begun.elapsed());
            // Warming caches takes time as well, and windows have a minimum length.
            let next = affordable(some.references(), round.elapsed(), remains);
            if (next as f64) < WORTH * some.references() as f64 {
                break;
            }
            references = next;
        }
        advice.ok_or_else(|| Failure::work("there was no time for any advice"))
    }
}

/// How many references fit into the planned part of `left`, if this many took `took`.
fn affordable(references: u64, took: Duration, left: Duration) -> u64 {
    let pace = references as f64 / took.as_secs_f64().max(1e-3);
    let most = references.saturating_mul(GROWTH);
    ((pace * left.as_secs_f64() * PLANNED) as u64).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_decides_how_much_is_simulated() {
        let seconds = Duration::from_secs_f64;
        assert_eq!(affordable(1000, seconds(1.0), seconds(4.0)), 2000);
        assert_eq!(affordable(1000, seconds(0.1), seconds(100.0)), 8000);
        assert_eq!(affordable(1000, seconds(1.0), seconds(0.0)), 0);
        assert_eq!(affordable(1000, seconds(0.0), seconds(1.0)), 8000);
    }
}
