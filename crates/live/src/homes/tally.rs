//! Counts of events, for the report.

use std::collections::BTreeMap;
use std::time::Duration;

use results::{HomesFailed, HomesInterval, HomesMoves, HomesSamples};

use super::carry::Left;

/// Intervals that are kept; twice as many are summed by twos.
const INTERVALS: usize = 64;

#[derive(Debug, Default)]
pub struct Tally {
    pub samples: HomesSamples,
    pub moves: HomesMoves,
    failed: BTreeMap<Left, u64>,
    intervals: Vec<HomesInterval>,
    /// The number of the host's intervals that each kept one stands for, and the number for the last
    /// one.
    each: u64,
    last: u64,
}

impl Tally {
    pub fn failed(&mut self, why: Left, pages: u64) {
        *self.failed.entry(why).or_default() += pages;
    }

    /// An interval has ended.
    pub fn interval(&mut self, interval: HomesInterval) {
        self.each = self.each.max(1);
        match self.intervals.last_mut().filter(|_| self.last < self.each) {
            Some(last) if self.last > 0 => {
                add(last, &interval);
                self.last += 1;
            }
            _ => {
                self.intervals.push(interval);
                self.last = 1;
            }
        }
        if self.intervals.len() == 2 * INTERVALS && self.last == self.each {
            let pairs = self.intervals.chunks_exact(2).map(|pair| {
                let mut sum = pair[0].clone();
                add(&mut sum, &pair[1]);
                sum
            });
            self.intervals = pairs.collect();
            self.each *= 2;
            self.last = self.each;
        }
    }

    pub fn moves(&self, time: Duration) -> HomesMoves {
        let mut moves = self.moves.clone();
        moves.ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        moves.failed = self
            .failed
            .iter()
            .map(|(left, &pages)| HomesFailed { why: left.why(), pages })
            .collect();
        moves
    }

    pub fn intervals(&self) -> &[HomesInterval] {
        &self.intervals
    }
}

fn add(sum: &mut HomesInterval, next: &HomesInterval) {
    sum.to_ns = next.to_ns;
    sum.local += next.local;
    sum.remote += next.remote;
    sum.moved += next.moved;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_its_sums_and_few_intervals() {
        let mut tally = Tally::default();
        for number in 0..10_000 {
            tally.interval(HomesInterval {
                from_ns: number * 10,
                to_ns: number * 10 + 10,
                local: 1,
                remote: 2,
                moved: 3,
            });
            let kept = tally.intervals();
            assert!(kept.len() <= 2 * INTERVALS);
            assert_eq!(kept.iter().map(|one| one.local).sum::<u64>(), number + 1);
            assert!(kept.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        }
        let kept = tally.intervals();
        assert_eq!((kept[0].from_ns, kept[kept.len() - 1].to_ns), (0, 100_000));
        assert_eq!(kept.iter().map(|one| one.moved).sum::<u64>(), 30_000);
    }

    #[test]
    fn reasons_are_summed() {
        let mut tally = Tally::default();
        tally.failed(Left::Busy, 2);
        tally.failed(Left::Gone, 1);
        tally.failed(Left::Busy, 512);
        let failed = tally.moves(Duration::ZERO).failed;
        assert_eq!(failed.iter().map(|one| one.pages).collect::<Vec<_>>(), [1, 514]);
        assert!(failed[1].why.contains("EBUSY"));
    }
}
