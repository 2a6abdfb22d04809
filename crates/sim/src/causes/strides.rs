//! The steps from each access of an instruction to its next one in the same thread: which are frequent.

/// Steps that are counted apart. The counts of Misra and Gries ("Finding repeated elements", 1982): a step that makes up
/// more than a seventh of all is found, and at most a seventh of all is missing in its count.
const STEPS: usize = 6;
/// Threads whose last accesses are known; others take their places.
const THREADS: usize = 8;

/// Powers of two that steps are counted by.
const POWERS: usize = 32;
/// So large a part of the steps makes a pitch.
const MOST: f64 = 0.8;

/// No thread.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub struct Strides {
    last: [(u32, u64); THREADS],
    /// The burst that the last accesses are of.
    burst: u32,
    counts: Frequent<STEPS>,
    total: u64,
    bytes: u32,
    pitches: Pitches,
}

/// Misra and Gries's counts, of steps by default: those that are more than one in `N + 1` of all are among them.
#[derive(Clone, Copy, Debug)]
pub struct Frequent<const N: usize, T = i64>([(T, u64); N]);

impl<const N: usize, T: Copy + Default> Default for Frequent<N, T> {
    fn default() -> Frequent<N, T> {
        Frequent([(T::default(), 0); N])
    }
}

impl<const N: usize, T: Copy + PartialEq> Frequent<N, T> {
    pub fn count(&mut self, step: T) {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, count)| *known == step && *count > 0) {
            *count += 1;
        } else if let Some(free) = self.0.iter_mut().find(|(_, count)| *count == 0) {
            *free = (step, 1);
        } else {
            self.0.iter_mut().for_each(|(_, count)| *count -= 1);
        }
    }

    /// The frequent steps, and at least how often there were.
    pub fn counts(&self) -> impl Iterator<Item = (T, u64)> + '_ {
        self.0.iter().copied().filter(|(_, count)| *count > 0)
    }
}

/// By the largest power of two that divides them: the number of steps, and the number that divides all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pitches([(u64, u64); POWERS]);

impl Pitches {
    fn count(&mut self, step: i64) {
        let length = step.unsigned_abs();
        let (count, divisor) = &mut self.0[(length.trailing_zeros() as usize).min(POWERS - 1)];
        *count += 1;
        *divisor = divisor_of(*divisor, length);
    }

    /// The number that divides nearly all steps: the greatest common divisor of those that the largest possible power
    /// of two divides; 0 if there are no steps.
    pub fn pitch(&self) -> u64 {
        let total: u64 = self.0.iter().map(|(count, _)| count).sum();
        let (mut sum, mut divisor) = (0, 0);
        for &(count, of) in self.0.iter().rev() {
            sum += count;
            divisor = divisor_of(divisor, of);
            if sum as f64 >= MOST * total as f64 {
                break;
            }
        }
        divisor
    }
}

/// The greatest common divisor; 0 has every number as a divisor.
fn divisor_of(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Strides {
    pub fn new() -> Strides {
        Strides {
            last: [(NOBODY, 0); THREADS],
            burst: 0,
            counts: Frequent::default(),
            total: 0,
            bytes: 0,
            pitches: Pitches::default(),
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
        // A thread that stays at one address does not walk.
        if before == thread && step != 0 {
            self.count(step);
        }
    }

    fn count(&mut self, step: i64) {
        self.total += 1;
        self.pitches.count(step);
        self.counts.count(step);
    }

    /// A thread, and where it was last.
    pub fn last(&self) -> Option<(u32, u64)> {
        self.last.iter().copied().find(|(thread, _)| *thread != NOBODY)
    }

    /// The last address of a thread.
    pub fn last_of(&self, thread: u32) -> Option<u64> {
        let last = self.last.iter().find(|(of, _)| *of == thread);
        last.map(|(_, address)| *address)
    }

    /// All steps that were seen.
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn pitches(&self) -> &Pitches {
        &self.pitches
    }

    /// Bytes of the largest access.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The frequent steps, and at least how often there were.
    pub fn counts(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.counts.counts()
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
        assert_eq!(strides.pitches().pitch(), 64);
    }

    #[test]
    fn rows_in_any_order_have_a_pitch() {
        let mut strides = Strides::new();
        let mut random = policy::Random::new(5);
        for at in 0..10_000u64 {
            // Of rows of 6144 bytes, the next element after each hundred.
            strides.touch(1, 0, u64::from(random.below(500)) * 6144 + at / 100 * 8, 8);
        }
        assert_eq!(strides.pitches().pitch(), 6144);
        assert_eq!(Strides::new().pitches().pitch(), 0);
    }
}
