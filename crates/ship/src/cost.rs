//! The cost of a hand-over, measured when the workers start.

use std::time::{Duration, Instant};

/// Times of an empty round trip, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To a polling worker. The median.
    pub awake_ns: u64,
    /// To a sleeping worker. The median.
    pub asleep_ns: u64,
}

const AWAKE: usize = 201;
const ASLEEP: usize = 3;

/// `hand` hands over an empty job; `pause` is long enough for the worker to fall asleep.
pub(crate) fn measured(hand: impl Fn(), pause: Duration) -> Cost {
    let timed = || {
        let began = Instant::now();
        hand();
        began.elapsed()
    };
    // The first ones wake the worker, and fetch its stack and code.
    (0..8).for_each(|_| hand());
    Cost {
        awake_ns: median((0..AWAKE).map(|_| timed())),
        asleep_ns: median((0..ASLEEP).map(|_| {
            std::thread::sleep(pause);
            timed()
        })),
    }
}

fn median(times: impl Iterator<Item = Duration>) -> u64 {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    u64::try_from(times[times.len() / 2].as_nanos()).unwrap_or(u64::MAX)
}
