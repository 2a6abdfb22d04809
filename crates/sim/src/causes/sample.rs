//! A sample of lines, or pages: those whose hash is below a threshold that sinks as more come.
//!
//! The number alone decides what is sampled, so that all uses of a sampled number are seen, and no pattern of addresses
//! affects it (SHARDS: Waldspurger and others, FAST 2015).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::distance::{HASH_BITS, hash};

/// Data kept for some of all numbers.
pub struct Sample<T> {
    kept: HashMap<u64, T, BuildHasherDefault<Mixed>>,
    threshold: u64,
    most: usize,
}

/// One in this many of all numbers is taken at first.
const RATE: u64 = 4;

impl<T> Sample<T> {
    /// A sample of at most `most`.
    pub fn new(most: usize) -> Sample<T> {
        Sample {
            kept: HashMap::default(),
            threshold: (1 << HASH_BITS) / RATE,
            most,
        }
    }

    /// No sample: everything.
    pub fn of_all() -> Sample<T> {
        Sample {
            kept: HashMap::default(),
            threshold: 1 << HASH_BITS,
            most: usize::MAX,
        }
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns whether a number belongs to the sample.
    #[inline(always)]
    pub fn takes(&self, number: u64) -> bool {
        hash(number) < self.threshold
    }

    pub fn get(&mut self, number: u64) -> Option<&mut T> {
        self.kept.get_mut(&number)
    }

    /// Keeps data of a number that the sample takes.
    pub fn keep(&mut self, number: u64, what: T) {
        self.kept.insert(number, what);
        while self.kept.len() > self.most {
            self.threshold /= 2;
            let threshold = self.threshold;
            self.kept.retain(|&number, _| hash(number) < threshold);
        }
    }

    pub fn drain(&mut self) -> impl Iterator<Item = (u64, T)> + '_ {
        let mut all: Vec<(u64, T)> = self.kept.drain().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter()
    }

    pub fn values(&mut self) -> impl Iterator<Item = &mut T> {
        self.kept.values_mut()
    }
}

/// The numbers are mixed already when they are chosen; a table needs no better.
#[derive(Default)]
pub struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stays_small_and_keeps_whole_numbers() {
        let mut sample = Sample::new(100);
        for number in 0..100_000u64 {
            if sample.takes(number) {
                sample.keep(number, number);
            }
        }
        let kept: Vec<_> = sample.drain().collect();
        assert!(kept.len() > 30 && kept.len() <= 100, "{}", kept.len());
        assert!(kept.iter().all(|(number, what)| number == what));
    }
}
