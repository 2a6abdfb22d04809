//! Reuse distances of a stream of lines: how many misses it would have in an LRU cache of any size, from one pass.
//!
//! A reuse hits in a fully associative LRU cache if fewer different lines were used in between than the cache holds
//! (Mattson and others: Evaluation techniques for storage hierarchies, 1970). The lines used since are counted by a
//! Fenwick tree over the moments of last uses. For streams with many lines a sample is followed: all lines whose hash
//! is below a threshold that sinks as more lines come (SHARDS with a fixed size: Waldspurger, Park, Garthwaite, Ahmad:
//! Efficient MRC construction with SHARDS, FAST 2015). A distance between sampled lines is scaled up by the ratio of
//! the stream to the sample.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

/// Number of bits of a hash.
pub const HASH_BITS: u32 = 24;

/// The reuse distances of one stream.
pub struct Distances {
    /// Lines of one step of the curve, and steps that are kept apart.
    step_lines: u64,
    /// Weight of the reuses that hit from this many steps on; the last: not within all steps.
    hits_from: Vec<f64>,
    cold: f64,
    total: u64,
    /// Lines whose hash is below this are followed, up to a maximum number.
    threshold: u64,
    most: usize,
    /// When each followed line was used last.
    last: FxHashMap<u64, u32>,
    by_hash: BinaryHeap<(u64, u64)>,
    /// Marks the moments that are a line's last use.
    tree: Fenwick,
    now: u32,
}

impl Distances {
    /// A curve of `steps` steps of `step_lines` lines each, following at most `most` lines.
    pub fn new(steps: u32, step_lines: u64, most: usize) -> Distances {
        Distances {
            step_lines: step_lines.max(1),
            hits_from: vec![0.0; steps as usize + 2],
            cold: 0.0,
            total: 0,
            threshold: 1 << HASH_BITS,
            most,
            last: FxHashMap::default(),
            by_hash: BinaryHeap::new(),
            tree: Fenwick::new(1024),
            now: 0,
        }
    }

    /// The line is used, which counts for nothing but later uses.
    pub fn warm(&mut self, line: u64) -> Option<u64> {
        self.use_of(line, 0.0)
    }

    /// The line is used. Returns how many lines have been used since it was used last, itself included, as far as the sample
    /// shows; `None` where it is not followed, or was not used before.
    pub fn touch(&mut self, line: u64) -> Option<u64> {
        self.total += 1;
        self.use_of(line, 1.0)
    }

    #[inline(always)]
    fn use_of(&mut self, line: u64, counts: f64) -> Option<u64> {
        let hash = hash(line);
        if hash >= self.threshold {
            return None;
        }
        let weight = (1u64 << HASH_BITS) as f64 / self.threshold as f64;
        if self.now == self.tree.len() {
            self.renumber();
        }
        let distance = match self.last.insert(line, self.now) {
            Some(before) => {
                // Lines used after it was.
                let since = self.last.len() as u32 - self.tree.up_to(before);
                let steps = (f64::from(since) * weight / self.step_lines as f64) as usize + 1;
                let beyond = self.hits_from.len() - 1;
                self.hits_from[steps.min(beyond)] += weight * counts;
                self.tree.add(before, -1);
                Some((f64::from(since) * weight) as u64 + 1)
            }
            None => {
                self.cold += weight * counts;
                self.by_hash.push((hash, line));
                None
            }
        };
        self.tree.add(self.now, 1);
        self.now += 1;
        if self.last.len() > self.most {
            self.sink();
        }
        distance
    }

    /// Counts begin here; lines used before are known.
    pub fn restart(&mut self) {
        self.hits_from.fill(0.0);
        self.cold = 0.0;
        self.total = 0;
    }

    /// Follows fewer lines.
    fn sink(&mut self) {
        self.threshold = self.by_hash.peek().map_or(1, |(hash, _)| *hash).max(1);
        while let Some(&(hash, line)) = self.by_hash.peek()
            && hash >= self.threshold
        {
            self.by_hash.pop();
            if let Some(moment) = self.last.remove(&line) {
                self.tree.add(moment, -1);
            }
        }
    }

    /// Starts the moments again, those that are no line's last use left out.
    fn renumber(&mut self) {
        let mut live: Vec<(u32, u64)> = self.last.iter().map(|(line, moment)| (*moment, *line)).collect();
        live.sort_unstable();
        self.tree = Fenwick::new((live.len() as u32 * 4).max(1024));
        self.now = 0;
        for (_, line) in live {
            self.last.insert(line, self.now);
            self.tree.add(self.now, 1);
            self.now += 1;
        }
    }

    /// Returns whether only a sample is followed.
    pub fn is_sample(&self) -> bool {
        self.threshold < 1 << HASH_BITS
    }

    /// Uses that the followed lines stand for, first ones included: all, except for the sample's error.
    pub fn counted(&self) -> f64 {
        self.hits_from.iter().sum::<f64>() + self.cold
    }

    /// Uses of lines so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// First uses, as far as the sample shows.
    pub fn cold(&self) -> f64 {
        self.cold.min(self.total as f64)
    }

    /// Misses with 0, 1, 2 ... steps of cache.
    pub fn misses(&self) -> Vec<f64> {
        let total = self.total as f64;
        // A sample has too few or too many of the lines used often: the difference goes where those are (SHARDS, section 3.3).
        let counted = self.counted();
        let mut misses = vec![total];
        let mut left = total;
        for (steps, hits) in self.hits_from.iter().enumerate().take(self.hits_from.len() - 1).skip(1) {
            left -= hits;
            if steps == 1 {
                left -= total - counted;
            }
            misses.push(left.clamp(0.0, total));
        }
        misses
    }
}

/// The high bits of a product (Fibonacci hashing, Knuth 6.4), twice, so that strides leave no pattern.
pub fn hash(line: u64) -> u64 {
    let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - HASH_BITS)
}

/// Counts of a range of moments (Fenwick 1994).
struct Fenwick {
    sums: Vec<i32>,
}

impl Fenwick {
    fn new(len: u32) -> Fenwick {
        Fenwick {
            sums: vec![0; len as usize + 1],
        }
    }

    fn len(&self) -> u32 {
        self.sums.len() as u32 - 1
    }

    fn add(&mut self, at: u32, count: i32) {
        let mut at = at as usize + 1;
        while at < self.sums.len() {
            self.sums[at] += count;
            at += at & at.wrapping_neg();
        }
    }

    /// The sum of the moments up to `at`, itself included.
    fn up_to(&self, at: u32) -> u32 {
        let mut at = at as usize + 1;
        let mut sum = 0;
        while at > 0 {
            sum += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        sum as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Random;

    /// Misses of a list in order of use.
    fn by_list(lines: &[u64], capacity: usize) -> f64 {
        let mut list: Vec<u64> = Vec::new();
        let mut misses = 0.0;
        for &line in lines {
            match list.iter().position(|&other| other == line).filter(|&at| at < capacity) {
                Some(_) => {}
                None => misses += 1.0,
            }
            list.retain(|&other| other != line);
            list.insert(0, line);
        }
        misses
    }

    fn mixed(count: usize) -> Vec<u64> {
        let mut random = Random::new(3);
        let one = |at: usize| match random.below(3) {
            0 => u64::from(random.below(40)),
            1 => 1000 + (at as u64 / 3) % 90,
            _ => 5000 + at as u64,
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn without_a_sample_the_misses_are_those_of_lru() {
        let lines = mixed(6000);
        let mut distances = Distances::new(20, 10, 1 << 20);
        for &line in &lines {
            distances.touch(line);
        }
        let misses = distances.misses();
        assert_eq!(misses[0], 6000.0);
        for (steps, misses) in misses.iter().enumerate().skip(1) {
            assert_eq!(*misses, by_list(&lines, steps * 10), "{steps} steps");
        }
        let mut different = lines.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(distances.cold(), different.len() as f64);
    }

    #[test]
    fn a_sample_is_close() {
        let mut random = Random::new(5);
        let lines: Vec<u64> = (0..400_000u64)
            .map(|at| match random.below(2) {
                0 => u64::from(random.below(20_000)),
                _ => 100_000 + at % 30_000,
            })
            .collect();
        let (mut all, mut some) = (Distances::new(50, 1000, 1 << 20), Distances::new(50, 1000, 2000));
        for &line in &lines {
            all.touch(line);
            some.touch(line);
        }
        assert!(some.last.len() <= 2000 && some.threshold < 1 << HASH_BITS);
        let (all, some) = (all.misses(), some.misses());
        let slack = 0.03 * 400_000.0;
        for steps in 0..all.len() {
            // A cliff may be a step away.
            let (above, below) = (all[steps.saturating_sub(1)], all[(steps + 1).min(all.len() - 1)]);
            let here = some[steps];
            assert!(
                here <= above + slack && here >= below - slack,
                "{steps}: {above} {here} {below}"
            );
        }
    }
}
