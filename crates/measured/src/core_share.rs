//! The share of a core that this process gets.
//!
//! The threads of a core share its units. Beside a busy one, code that keeps them busy takes up to twice as long, and the
//! kernel of a virtual machine does not see it: the other thread may belong to another guest. Only the pace of such code
//! tells, so it is looked at before and after each run that is to be compared with others.

use std::time::{Duration, Instant};

use sys::affinity::Wanderer;
use sys::clock::thread_time;

/// From this share on the core counts as whole. On a Zen 3 alone it was 0.95 and more, beside threads of other guests
/// 0.72 to 0.91.
pub const WHOLE: f64 = 0.93;

/// The longest wait for a whole core. Neighbors come and go within a second or two on the machines that this was
/// written on.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// Nobody waits again after so many waits in vain.
const WAITS_IN_VAIN: u32 = 3;
/// The time in which the full pace is looked for at first.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// Each cpu is looked at, on machines that have no more than this.
const CPUS: usize = 16;

/// Looks at the pace of straight code.
#[derive(Debug)]
pub struct CoreShare {
    /// The shortest time that the code took.
    full: Duration,
    in_vain: u32,
    /// All waits together end after this.
    patience: Duration,
}

impl CoreShare {
    /// Looks for half a second for the full pace. A faster one that is seen later takes its place.
    pub fn new() -> CoreShare {
        CoreShare::with_patience(Duration::MAX)
    }

    /// The same, with waits that are no longer than this all together.
    pub fn with_patience(patience: Duration) -> CoreShare {
        let mut share = CoreShare {
            full: Duration::MAX,
            in_vain: 0,
            patience,
        };
        let began = Instant::now();
        while began.elapsed() < FIRST_LOOK {
            share.now();
        }
        share
    }

    /// The share of the calling thread's core, 0 to 1, in about half a millisecond.
    pub fn now(&mut self) -> f64 {
        let took = straight_code().max(Duration::from_nanos(1));
        self.full = self.full.min(took);
        self.full.as_secs_f64() / took.as_secs_f64()
    }

    /// The least share of all cores that this thread may run on, on a machine of up to 16 cpus; otherwise that of the
    /// core where it is.
    pub fn least(&mut self) -> f64 {
        let cpus = sys::affinity::allowed(None).unwrap_or_default();
        let wanderer = (cpus.len() <= CPUS).then(Wanderer::new);
        let Some(Ok(mut wanderer)) = wanderer else {
            return self.now();
        };
        let mut least = 1.0f64;
        for cpu in cpus {
            if wanderer.go(cpu as usize).is_ok() {
                least = least.min(self.now());
            }
        }
        wanderer.rest();
        least
    }

    /// Waits again, though waits were in vain: for the next thing that is measured.
    pub fn try_again(&mut self) {
        self.in_vain = 0;
    }

    /// Whether waiting is of no use for now.
    pub fn gave_up(&self) -> bool {
        self.in_vain >= WAITS_IN_VAIN || self.patience.is_zero()
    }

    /// Waits for the core where the calling thread is to be whole, and looks no longer than [`CoreShare::wait`] does.
    pub fn wait_here(&mut self) {
        self.wait(CoreShare::now);
    }

    /// Waits for a whole core by looking with `look`, for three seconds at the longest. After three waits in vain it
    /// only looks.
    ///
    /// Returns: the share at the end.
    pub fn wait(&mut self, look: fn(&mut CoreShare) -> f64) -> f64 {
        let began = Instant::now();
        let mut share = look(self);
        while share < WHOLE && !self.gave_up() && began.elapsed() < LONGEST_WAIT.min(self.patience) {
            share = look(self);
        }
        if share >= WHOLE {
            self.in_vain = 0;
        } else if !self.gave_up() {
            self.in_vain += 1;
        }
        self.patience = self.patience.saturating_sub(began.elapsed());
        share
    }
}

impl Default for CoreShare {
    fn default() -> Self {
        CoreShare::new()
    }
}

/// Looks one after the other: a timer's tick slows one of them, a busy neighbor all.
const LOOKS: usize = 8;

/// Time of this thread for a stretch of code that fills the units of a core, about 50 microseconds. It is not
/// the time on the wall: the kernel tells what else it ran meanwhile.
fn straight_code() -> Duration {
    let look = || {
        let begin = thread_time();
        #[cfg(target_arch = "x86_64")]
        sys::instructions::straight_code(12_500);
        #[cfg(not(target_arch = "x86_64"))]
        independent_sums(25_000);
        thread_time().saturating_sub(begin)
    };
    (0..LOOKS).map(|_| look()).min().unwrap_or_default()
}

/// Four sums that do not wait for each other.
#[cfg(not(target_arch = "x86_64"))]
fn independent_sums(steps: u64) {
    let mut sums = std::hint::black_box([1u64, 2, 3, 4]);
    for step in 0..steps {
        for sum in &mut sums {
            *sum = (*sum >> 1).wrapping_add(step) ^ 0x55;
        }
    }
    std::hint::black_box(sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(_: &mut CoreShare) -> f64 {
        0.5
    }

    fn whole(_: &mut CoreShare) -> f64 {
        1.0
    }

    #[test]
    fn a_share_is_of_the_fastest_pace() {
        let mut share = CoreShare::new();
        // On a machine as fast as none is, nothing is more than a small share.
        share.full = Duration::from_nanos(1);
        assert!(share.now() < WHOLE);
        assert!(share.least() < WHOLE);
        // On one slower than all are, the next look sets the pace.
        share.full = Duration::MAX;
        assert_eq!(share.now(), 1.0);
        assert!(share.full < Duration::MAX);
    }

    #[test]
    fn waits_end_and_are_given_up() {
        let mut share = CoreShare {
            full: Duration::MAX,
            in_vain: WAITS_IN_VAIN,
            patience: Duration::MAX,
        };
        assert_eq!(share.wait(half), 0.5);
        assert_eq!(share.in_vain, WAITS_IN_VAIN, "it only looked");
        assert_eq!(share.wait(whole), 1.0);
        assert_eq!(share.in_vain, 0, "a whole core is worth waiting for again");
        share.patience = Duration::from_millis(1);
        assert_eq!(share.wait(half), 0.5);
        assert!(share.gave_up(), "patience is at its end");
    }
}
