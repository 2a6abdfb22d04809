//! The time that policies are told: that of the program, and a fixed time for each touch.

use std::time::{Duration, Instant};

/// A touch takes much longer than in the paper's system, and not the same each time. So the program's time is that which its process
/// has had of a cpu: it stands still while the program waits for the tracer, as while it sleeps. Code of ours that it runs in stops is
/// left out, and each touch takes as long as the policy believes it does.
///
/// Readings of the process's clock are passed in ([`sys::clock::process_time`]).
pub struct Clock {
    began: Instant,
    /// The program's run time up to the last stop, in ns.
    ran_ns: u64,
    /// The process's clock when the program went on last; `None`: it is stopped.
    since: Option<Duration>,
    /// The program's run time up to this stop, with the kernel's part of it.
    last_ns: u64,
    touches: u64,
    /// The process time of a touch that is spent in the kernel, as measured before the program ran; then the running median of touches in
    /// a row.
    measured_ns: u64,
    around_ns: u64,
    /// The time of a touch in the policy's model.
    pub touch_ns: u64,
    /// The last reading returned: time never falls.
    told_ns: u64,
}

impl Clock {
    pub fn new() -> Clock {
        Clock {
            began: Instant::now(),
            ran_ns: 0,
            since: None,
            last_ns: 0,
            touches: 0,
            measured_ns: 0,
            around_ns: 0,
            touch_ns: 0,
            told_ns: 0,
        }
    }

    /// The kernel's part of a touch was measured.
    pub fn measured(&mut self, around_ns: u64) {
        (self.measured_ns, self.around_ns) = (around_ns, around_ns);
    }

    /// The program begins.
    pub fn begin(&mut self, cpu: Duration) {
        *self = Clock {
            since: Some(cpu),
            measured_ns: self.measured_ns,
            around_ns: self.around_ns,
            touch_ns: self.touch_ns,
            ..Clock::new()
        };
    }

    pub fn stop(&mut self, cpu: Duration) {
        self.last_ns = self.running_ns(cpu);
        self.ran_ns += self.last_ns;
        self.since = None;
    }

    pub fn go_on(&mut self, cpu: Duration) {
        self.since = Some(cpu);
    }

    /// The program is stopped because it touched a closed page.
    pub fn touch(&mut self) {
        self.touches += 1;
        // No more than there was: otherwise many touches in a row would take back time that the program ran before.
        self.ran_ns -= self.around_ns.min(self.last_ns);
        // While regions are being found, one touch follows another, and the program hardly runs between them. An estimate that is too low
        // adds up, until a region seems to have been left for longer than it was. Longer touches are not learned from: the program ran.
        if self.last_ns < self.measured_ns + self.measured_ns / 2 {
            let step_ns = (self.measured_ns / 64).max(1);
            self.around_ns = match self.last_ns > self.around_ns {
                true => self.around_ns + step_ns,
                false => self.around_ns.saturating_sub(step_ns),
            };
        }
    }

    pub fn now_ns(&mut self, cpu: Duration) -> u64 {
        let now = self.ran_ns + self.running_ns(cpu) + self.touches * self.touch_ns;
        self.told_ns = self.told_ns.max(now);
        self.told_ns
    }

    fn running_ns(&self, cpu: Duration) -> u64 {
        let ran = self.since.map(|since| cpu.saturating_sub(since));
        ran.unwrap_or_default().as_nanos() as u64
    }

    pub fn wall_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_take_what_the_policy_believes_and_stops_take_nothing() {
        let us = Duration::from_micros;
        let mut clock = Clock::new();
        clock.measured(3_000);
        clock.touch_ns = 1_500;
        clock.begin(us(100));
        assert_eq!(clock.now_ns(us(110)), 10_000);
        // A touch, of which the kernel had 3 us; then code of ours runs for 40 us.
        clock.stop(us(123));
        clock.touch();
        assert_eq!(clock.now_ns(us(140)), 21_500);
        clock.go_on(us(163));
        assert_eq!(clock.now_ns(us(173)), 31_500);
        // A stop that is no touch.
        clock.stop(us(174));
        clock.go_on(us(175));
        assert_eq!(clock.now_ns(us(175)), 32_500);
    }

    /// Touches in a row take longer than the one that was measured.
    #[test]
    fn the_time_of_touches_is_learned_from_touches_in_a_row() {
        let mut clock = Clock::new();
        clock.measured(20_000);
        clock.begin(Duration::ZERO);
        let mut at = Duration::ZERO;
        let mut touches = |clock: &mut Clock, count: u32, ns: u64| {
            let before = clock.now_ns(at);
            for _ in 0..count {
                at += Duration::from_nanos(ns);
                clock.stop(at);
                clock.touch();
                clock.go_on(at);
            }
            clock.now_ns(at) - before
        };
        assert!(touches(&mut clock, 200, 29_000) > 100_000);
        assert!(touches(&mut clock, 200, 29_000) < 200 * 320);
        // The program runs for 41 us each time, which is not part of the touch.
        let ran = touches(&mut clock, 200, 70_000);
        assert!((200 * 40_000..=200 * 42_000).contains(&ran), "{ran}");
        // Touches become as short as those that were measured, and shorter.
        touches(&mut clock, 200, 15_000);
        let ran = touches(&mut clock, 200, 16_000);
        assert!((1..200 * 1400).contains(&ran), "{ran}");
    }

    #[test]
    fn time_never_falls() {
        let us = Duration::from_micros;
        let mut clock = Clock::new();
        clock.measured(5_000);
        clock.begin(us(0));
        assert_eq!(clock.now_ns(us(10)), 10_000);
        clock.stop(us(11));
        clock.touch();
        assert_eq!(clock.now_ns(us(11)), 10_000);
        clock.go_on(us(12));
        assert_eq!(clock.now_ns(us(17)), 11_000);
    }

    /// A touch that took less than touches do takes nothing of the time before.
    #[test]
    fn touches_take_no_time_back() {
        let us = Duration::from_micros;
        let mut clock = Clock::new();
        clock.measured(5_000);
        clock.begin(us(0));
        clock.stop(us(20));
        clock.go_on(us(20));
        for at in 1..10 {
            clock.stop(us(20 + at));
            clock.touch();
            clock.go_on(us(20 + at));
        }
        assert_eq!(clock.now_ns(us(29)), 20_000);
    }
}
