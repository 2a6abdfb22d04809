//! The windows that are kept in a run of unknown length: one of each stretch, at a random place.
//!
//! At first, consecutive windows of N references are taken. When twice as many are kept as were requested, one of each
//! pair is dropped, and the following ones are twice as far apart. So at any time the kept windows are one for each
//! part of the run so far, all parts of equal length, and each window of a part is equally likely to be the kept one
//! (stratified sampling).

use std::ops::Range;

pub struct Schedule {
    skip: u64,
    references: u64,
    count: u64,
    seed: u64,
    /// One of each 2^level windows is kept.
    level: u32,
    /// The next window to keep, or the current one.
    next: u64,
}

/// SplitMix64's output function (Steele, Lea and Flood 2014).
pub(crate) fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Schedule {
    /// After `skip` references, `count` windows of `references` each.
    pub fn new(skip: u64, references: u64, count: u32, seed: u64) -> Schedule {
        Schedule {
            skip,
            references,
            count: u64::from(count),
            seed,
            level: 0,
            next: 0,
        }
    }

    fn chance(&self, level: u32, part: u64) -> u64 {
        mixed(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mixed(part << 6 | u64::from(level)))
    }

    /// The window of a part that is kept: one of its two halves' windows.
    fn of_part(&self, part: u64) -> u64 {
        (1..=self.level)
            .rev()
            .fold(part, |part, level| part << 1 | self.chance(level, part) & 1)
    }

    pub fn start(&self, number: u64) -> u64 {
        self.skip.saturating_add(number.saturating_mul(self.references))
    }

    /// The number of the window to be kept that contains any of the references `[from, to)`, `to` above `from`; the
    /// last of several. The numbers only grow.
    pub fn wants(&mut self, from: u64, to: u64) -> Option<u64> {
        if to <= self.start(self.next) {
            return None;
        }
        loop {
            // Skips windows that ended earlier.
            while self.start(self.next + 1) <= from {
                self.next = self.of_part((self.next >> self.level) + 1);
            }
            if to <= self.start(self.next) {
                return None;
            }
            if self.next >> self.level >= 2 * self.count {
                self.level += 1;
                self.next = self.of_part(self.next >> self.level);
                continue;
            }
            let after = self.of_part((self.next >> self.level) + 1);
            if to <= self.start(after) {
                return Some(self.next);
            }
            self.next = after;
        }
    }

    pub fn holds(&self, number: u64) -> bool {
        self.of_part(number >> self.level) == number
    }

    /// All of a run of `seen` references, if the windows together are as long: nothing was dropped.
    pub fn whole(&self, seen: u64) -> Option<Range<u64>> {
        let most = self.count.saturating_mul(self.references);
        let run = self.skip..seen;
        (self.level == 0 && !run.is_empty() && run.end - run.start <= most).then_some(run)
    }

    /// The windows to use of a run of `seen` references: `count` of those kept, as evenly as possible, from a random
    /// first one.
    pub fn choose(&self, seen: u64) -> Vec<(u64, Range<u64>)> {
        let complete = seen.saturating_sub(self.skip) / self.references;
        let parts = 0..complete.div_ceil(1 << self.level);
        let held: Vec<u64> = parts
            .map(|part| self.of_part(part))
            .filter(|number| *number < complete)
            .collect();
        let window = |number: u64| (number, self.start(number)..self.start(number + 1));
        if complete == 0 {
            // Shorter than one window: returns everything.
            return if seen > self.skip { vec![window(0)] } else { Vec::new() };
        }
        let (have, want) = (held.len() as u64, self.count.min(held.len() as u64));
        let from = if want == 0 { 0 } else { self.chance(0, 0) % have };
        let pick = |number: u64| held[((number * have + from) / want) as usize % have as usize];
        let mut picked: Vec<u64> = (0..want).map(pick).collect();
        picked.sort_unstable();
        picked.into_iter().map(window).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_spread_over_the_run() {
        for (run, seed) in [(100u64, 1), (1000, 2), (12_345, 3), (100_000, 4), (100_000, 5)] {
            let mut schedule = Schedule::new(50, 10, 4, seed);
            let kept: Vec<u64> = (0..run).filter(|at| schedule.wants(*at, at + 1).is_some()).collect();
            let chosen = schedule.choose(run);
            assert!(
                chosen.len() == 4 || run == 100 && chosen.len() <= 5,
                "{run}: {chosen:?}"
            );
            for (number, window) in &chosen {
                assert_eq!(window.end - window.start, 10);
                assert!(schedule.holds(*number));
                let mut references = window.clone();
                assert!(
                    references.all(|at| kept.binary_search(&at).is_ok()),
                    "{run}: {window:?}"
                );
            }
            assert!(chosen.windows(2).all(|pair| pair[0].1.end <= pair[1].1.start));
            if run > 1000 {
                // One in each quarter, within half of one.
                for (quarter, (_, window)) in chosen.iter().enumerate() {
                    let at = (window.start - 50) as f64 / (run - 50) as f64 * 4.0;
                    assert!((at - quarter as f64 - 0.5).abs() < 1.3, "{run}: {chosen:?}");
                }
            }
            let logs = 64 - (run / 40).leading_zeros() as usize;
            assert!(kept.len() <= 10 * 4 * (3 + 2 * logs), "{run}: {}", kept.len());
        }
    }

    /// Each place of a run is in the windows of about as many seeds.
    #[test]
    fn all_of_the_run_is_as_likely() {
        let mut tenths = [0; 10];
        for seed in 0..400 {
            let mut schedule = Schedule::new(0, 10, 8, seed);
            (0..6400).step_by(5).for_each(|at| {
                schedule.wants(at, at + 5);
            });
            let chosen = schedule.choose(6400);
            assert_eq!(chosen.len(), 8);
            for (_, window) in chosen {
                tenths[(window.start / 640) as usize] += 1;
            }
        }
        // 320 each; the standard deviation of a binomial distribution would be 17.
        assert!(tenths.iter().all(|tenth| (250..390).contains(tenth)), "{tenths:?}");
    }

    #[test]
    fn short_runs_give_fewer_windows() {
        let schedule = Schedule::new(0, 10, 4, 1);
        assert_eq!(schedule.choose(35).len(), 3);
        assert_eq!(schedule.choose(5), [(0, 0..10)]);
        assert!(Schedule::new(50, 10, 4, 1).choose(50).is_empty());
    }

    #[test]
    fn a_run_that_the_windows_would_cover_is_taken_whole() {
        let mut schedule = Schedule::new(50, 10, 4, 1);
        (0..200).for_each(|at| {
            schedule.wants(at, at + 1);
            let whole = (at + 1 > 50 && at < 90).then(|| 50..at + 1);
            assert_eq!(schedule.whole(at + 1), whole, "{at}");
        });
    }

    #[test]
    fn runs_that_straddle_windows_are_wanted() {
        let mut schedule = Schedule::new(0, 10, 1, 1);
        schedule.level = 2;
        schedule.next = schedule.of_part(0);
        let held = schedule.next;
        assert_eq!(schedule.wants(10 * held + 9, 10 * held + 10), Some(held));
        assert_eq!(schedule.wants(10 * held + 10, 10 * held + 11), None);
        let after = schedule.of_part(1);
        assert_eq!(schedule.wants(10 * held + 20, 10 * after + 1), Some(after));
        // The later of two is kept, so it is announced before any of its references come.
        let mut all = Schedule::new(0, 10, 4, 1);
        assert_eq!(all.wants(8, 10), Some(0));
        assert_eq!(all.wants(8, 11), Some(1));
    }
}
