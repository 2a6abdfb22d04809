//! The time that policies are told: that of the program, and a fixed time for each touch.

use std::time::{Duration, Instant};

/// A touch takes much longer than in the paper's system, and not the same each time. So the time of stops is left out, and each touch
/// takes as long as the policy believes it does.
pub struct Clock {
    began: Instant,
    stopped: Option<Instant>,
    paused: Duration,
    touches: u64,
    /// Beside the tracer's own work, a touch takes so long in the kernel.
    pub around_ns: u64,
    /// So long it takes as the policy has it.
    pub touch_ns: u64,
}

impl Clock {
    pub fn new() -> Clock {
        Clock {
            began: Instant::now(),
            stopped: None,
            paused: Duration::ZERO,
            touches: 0,
            around_ns: 0,
            touch_ns: 0,
        }
    }

    /// The program begins.
    pub fn begin(&mut self) {
        let (around_ns, touch_ns) = (self.around_ns, self.touch_ns);
        *self = Clock {
            around_ns,
            touch_ns,
            ..Clock::new()
        };
    }

    pub fn stop(&mut self) {
        self.stopped = Some(Instant::now());
    }

    pub fn go_on(&mut self) {
        self.paused += self.stopped.take().map_or(Duration::ZERO, |at| at.elapsed());
    }

    /// A closed page was touched.
    pub fn touch(&mut self) {
        self.touches += 1;
    }

    pub fn now_ns(&self) -> u64 {
        let until = self.stopped.unwrap_or_else(Instant::now);
        let ran = (until - self.began).saturating_sub(self.paused).as_nanos() as u64;
        ran.saturating_sub(self.touches * self.around_ns) + self.touches * self.touch_ns
    }

    pub fn wall_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}
