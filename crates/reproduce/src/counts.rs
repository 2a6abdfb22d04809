//! The counts of a simulation, as the rows of the paper's tables of cache misses.

use serde::{Deserialize, Serialize};

use crate::paper::Measure;
use crate::programs::Said;

/// Counts of one program on a machine with two levels of caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub instructions: Option<u64>,
    /// Loads and stores; one of several words is one.
    pub references: u64,
    pub l1_misses: u64,
    /// Misses and passed-on stores of the first level.
    pub l2_accesses: u64,
    pub l2_misses: u64,
    pub compulsory: u64,
    pub capacity: u64,
    pub conflict: u64,
    pub threads: u64,
    pub bins: Option<u64>,
}

/// How much of `before` is gone, in percent.
pub fn percent_saved(before: f64, after: f64) -> f64 {
    100.0 * (before - after) / before
}

/// Tables 3, 5, 7 and 9 are in thousands.
const THOUSAND: f64 = 1000.0;

impl Counts {
    /// From a simulation with classes, and the program's own report of its threads.
    pub fn of(outcome: &results::Outcome, said: &Said) -> Result<Counts, String> {
        let level = |level: u8| outcome.caches.iter().filter(move |cache| cache.level == level);
        let l1_misses = level(1).map(|cache| cache.misses).sum();
        let l2 = level(2).next().ok_or("the machine has no second-level cache")?;
        let class = |count: Option<u64>| count.ok_or("the simulation did not class its misses");
        Ok(Counts {
            instructions: outcome.instructions,
            references: outcome.references,
            l1_misses,
            l2_accesses: l2.accesses,
            l2_misses: l2.misses,
            compulsory: class(l2.cold)?,
            capacity: class(l2.capacity)?,
            conflict: class(l2.conflict)?,
            threads: said.threads,
            bins: said.bins,
        })
    }

    /// One row of a table. Rates are in percent: of the first level, of all fetches and data references; of the second,
    /// of its accesses (the paper does not say so, but its rates fit this: README of `papers/philbin96`). Savings are
    /// relative to the misses of `first`.
    pub fn measure(&self, measure: Measure, first: &Counts) -> Result<f64, String> {
        let fetches = || {
            self.instructions
                .ok_or_else(|| "the trace does not count instructions".to_string())
        };
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
        Ok(match measure {
            Measure::Instructions => fetches()? as f64 / THOUSAND,
            Measure::References => self.references as f64 / THOUSAND,
            Measure::L1Misses => self.l1_misses as f64 / THOUSAND,
            Measure::L1Rate => percent(self.l1_misses, fetches()? + self.references),
            Measure::L2Misses => self.l2_misses as f64 / THOUSAND,
            Measure::L2Rate => percent(self.l2_misses, self.l2_accesses),
            Measure::L2Compulsory => self.compulsory as f64 / THOUSAND,
            Measure::L2Capacity => self.capacity as f64 / THOUSAND,
            Measure::L2Conflict => self.conflict as f64 / THOUSAND,
            Measure::ReferencesSaved => percent_saved(first.references as f64, self.references as f64),
            Measure::L1Saved => percent_saved(first.l1_misses as f64, self.l1_misses as f64),
            Measure::L2Saved => percent_saved(first.l2_misses as f64, self.l2_misses as f64),
            Measure::CapacitySaved => percent_saved(first.capacity as f64, self.capacity as f64),
            Measure::Threads => self.threads as f64,
            Measure::Bins => self.bins.ok_or("the program did not report its bins")? as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_the_paper_calls_them() {
        let counts = Counts {
            instructions: Some(7_500_000),
            references: 2_500_000,
            l1_misses: 400_000,
            l2_accesses: 1_000_000,
            l2_misses: 60_000,
            compulsory: 10_000,
            capacity: 45_000,
            conflict: 5_000,
            threads: 8,
            bins: None,
        };
        let twice = Counts {
            l2_misses: 120_000,
            capacity: 180_000,
            ..counts
        };
        let is = |measure, value: f64| assert_eq!(counts.measure(measure, &twice).unwrap(), value, "{measure:?}");
        is(Measure::Instructions, 7500.0);
        is(Measure::References, 2500.0);
        is(Measure::L1Misses, 400.0);
        is(Measure::L1Rate, 4.0);
        is(Measure::L2Misses, 60.0);
        is(Measure::L2Rate, 6.0);
        is(Measure::L2Compulsory, 10.0);
        is(Measure::L2Capacity, 45.0);
        is(Measure::L2Conflict, 5.0);
        is(Measure::L2Saved, 50.0);
        is(Measure::CapacitySaved, 75.0);
        is(Measure::Threads, 8.0);
        assert!(counts.measure(Measure::Bins, &counts).unwrap_err().contains("bins"));
        let without = Counts {
            instructions: None,
            ..counts
        };
        assert!(without.measure(Measure::L1Rate, &counts).is_err());
    }
}
