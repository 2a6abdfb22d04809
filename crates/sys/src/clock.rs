//! The time that a thread has run, which does not grow while others have its cpu.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of the calling thread since it began (`CLOCK_THREAD_CPUTIME_ID`).
///
/// Ensures: never falls within one thread.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative for a clock that counts from a thread's beginning.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_work() {
        let before = thread_time();
        let mut sum = 0u64;
        for i in 0..2_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        assert!(thread_time() > before);
    }
}
