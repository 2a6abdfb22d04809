//! The cost of a null thread (Philbin96, section 4.1, Table 1).

use std::hint::black_box;

use sys::clock::thread_time;
use threads::{Keep, Scheduler, Shape, Tour};

use crate::error::ReproduceError;
use crate::times::median;

/// The cost of one thread, in nanoseconds of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    pub fork: f64,
    pub run: f64,
    pub bins: u64,
}

/// A thread of the paper: a procedure and its two arguments.
type Null = (fn(usize, usize), usize, usize);

fn null(_: usize, _: usize) {}

/// Bins in each of the two dimensions.
const BINS: u64 = 32;

/// Forks `count` null threads, spread evenly over a plane of 32 by 32 blocks, and runs them; the medians of `rounds`
/// rounds on one cpu, after one that warms up.
pub fn measure(count: u64, rounds: usize) -> Result<Overhead, ReproduceError> {
    let failed = |error: &dyn std::fmt::Display| ReproduceError::Host(format!("null threads: {error}"));
    let side = (count as f64).sqrt().floor().max(1.0) as u64;
    // Neighbouring threads lie a line of 64 bytes apart in both dimensions.
    let block = (side * 64).div_ceil(BINS).max(1);
    let shape = Shape::new(&[block.next_power_of_two(); 2]).map_err(|error| failed(&error))?;
    let mut scheduler: Scheduler<Null> = Scheduler::new(shape, Tour::FirstFork);
    let pinned = sys::affinity::pin_to_last();
    let (mut forks, mut runs) = (Vec::new(), Vec::new());
    let mut bins = 0;
    for round in 0..=rounds.max(1) {
        let begun = thread_time();
        for i in 0..side {
            for j in 0..side {
                scheduler
                    .fork(&[i * 64, j * 64], (black_box(null as fn(usize, usize)), 0, 0))
                    .map_err(|error| failed(&error))?;
            }
        }
        let forked = thread_time().saturating_sub(begun);
        let begun = thread_time();
        let report = scheduler
            .run(Keep::No, |&(procedure, first, second), _| procedure(first, second))
            .map_err(|error| failed(&error))?;
        let ran = thread_time().saturating_sub(begun);
        if report.threads != side * side {
            return Err(failed(&format!("{} of {} ran", report.threads, side * side)));
        }
        bins = report.bins;
        if round > 0 {
            forks.push(forked.as_nanos() as f64 / (side * side) as f64);
            runs.push(ran.as_nanos() as f64 / (side * side) as f64);
        }
    }
    drop(pinned);
    Ok(Overhead {
        fork: median(&mut forks).unwrap_or_default(),
        run: median(&mut runs).unwrap_or_default(),
        bins,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_run_and_fill_the_plane() {
        let measured = measure(64 * 64, 2).unwrap();
        assert_eq!(measured.bins, 32 * 32);
        assert!(measured.fork > 0.0 && measured.run > 0.0);
    }
}
