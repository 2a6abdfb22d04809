//! The cost of a hand-over, measured when the workers start.

use std::time::{Duration, Instant};

use crate::caches::Caches;

/// Times, in nanoseconds: there and back, with nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To a worker that looks for work. The median.
    pub awake_ns: u64,
    /// To a worker that sleeps. The median.
    pub asleep_ns: u64,
}

const AWAKE: usize = 201;
const ASLEEP: usize = 5;

/// Hands over nothing, to the worker of another cache than the caller's.
pub(crate) fn measured(caches: &Caches) -> Cost {
    let other = caches.other();
    let round = |pause: Duration| {
        std::thread::sleep(pause);
        let began = Instant::now();
        caches.hand(other, || ());
        began.elapsed()
    };
    // The first ones wake the worker, and bring its stack and code.
    (0..8).for_each(|_| caches.hand(other, || ()));
    Cost {
        awake_ns: median((0..AWAKE).map(|_| {
            let began = Instant::now();
            caches.hand(other, || ());
            began.elapsed()
        })),
        asleep_ns: median((0..ASLEEP).map(|_| round(4 * caches.spin()))),
    }
}

fn median(times: impl Iterator<Item = Duration>) -> u64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    u64::try_from(times[times.len() / 2].as_nanos()).unwrap_or(u64::MAX)
}
