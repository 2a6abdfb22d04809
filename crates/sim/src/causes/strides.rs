//! The steps from each access of an instruction to its next one in the same thread: which are frequent.

/// Steps that are counted apart. The counts of Misra and Gries ("Finding repeated elements", 1982): a step that makes up
/// more than a seventh of all is found, and at most a seventh of all is missing in its count.
const STEPS: usize = 6;
/// Threads whose last accesses are known; others take their places.
const THREADS: usize = 8;

/// No thread.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub struct Strides {
    last: [(u32, u64); THREADS],
    /// The burst that the last accesses are of.
    burst: u32,
    counts: [(i64, u64); STEPS],
    total: u64,
    bytes: u32,
}

impl Strides {
    pub fn new() -> Strides {
        Strides {
            last: [(NOBODY, 0); THREADS],
            burst: 0,
            counts: [(0, 0); STEPS],
            total: 0,
            bytes: 0,
        }
    }

    /// The thread accesses an address, in a burst of accesses that are all seen.
    pub fn touch(&mut self, burst: u32, thread: u32, address: u64, bytes: u32) {
        if self.burst != burst {
            self.last = [(NOBODY, 0); THREADS];
            self.burst = burst;
        }
        self.bytes = self.bytes.max(bytes);
        let last = &mut self.last[thread as usize % THREADS];
        let (before, from) = std::mem::replace(last, (thread, address));
        let step = address.wrapping_sub(from) as i64;
        // Who stays where he is does not walk.
        if before == thread && step != 0 {
            self.count(step);
        }
    }

    fn count(&mut self, step: i64) {
        self.total += 1;
        if let Some((_, count)) = self
            .counts
            .iter_mut()
            .find(|(known, count)| *known == step && *count > 0)
        {
            *count += 1;
        } else if let Some(free) = self.counts.iter_mut().find(|(_, count)| *count == 0) {
            *free = (step, 1);
        } else {
            self.counts.iter_mut().for_each(|(_, count)| *count -= 1);
        }
    }

    /// All steps that were seen.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of the largest access.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The frequent steps, and at least how often there were.
    pub fn counts(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.counts.iter().copied().filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(strides: &Strides) -> (i64, f64) {
        let (step, count) = strides.counts().max_by_key(|(_, count)| *count).unwrap();
        (step, count as f64 / strides.total() as f64)
    }

    #[test]
    fn the_step_of_a_walk_is_found_among_jumps() {
        let mut strides = Strides::new();
        // Rows of 9 elements, with a jump after each.
        for row in 0..100u64 {
            for column in 0..9 {
                strides.touch(1, 0, row * 977 * row + column * 8192, 8);
            }
        }
        let (step, share) = largest(&strides);
        assert_eq!(step, 8192);
        assert!(share > 0.75 && share < 0.95, "{share}");
        assert_eq!(strides.total(), 899);
    }

    #[test]
    fn threads_and_bursts_do_not_mix_and_backwards_is_a_direction() {
        let mut strides = Strides::new();
        for at in 0..100u64 {
            strides.touch(1, 0, 100_000 - at * 24, 8);
            strides.touch(1, 1, 900_000 - at * 24, 8);
        }
        strides.touch(2, 0, 5, 8);
        assert_eq!(largest(&strides), (-24, 1.0));
    }

    #[test]
    fn without_a_pattern_there_is_no_frequent_step() {
        let mut strides = Strides::new();
        let mut random = policy::Random::new(3);
        for _ in 0..10_000 {
            strides.touch(1, 0, u64::from(random.below(1 << 20)) * 64, 8);
        }
        assert!(strides.counts().all(|(_, count)| count < 1500));
    }
}
