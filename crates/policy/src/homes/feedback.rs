//! The trigger that adapts: it rises while moving pages takes more than its share of the time, or while cpus wait for each other
//! in the kernel, and falls while there is room.
//!
//! Verghese96 proposes it and has none (section 6.4: "varies it automatically at runtime (through feedback)"; section
//! 8.2: by the contention for kernel resources, which is for one lock over all pages). A policy sees no locks: an
//! action that begins while another cpu's is under way, judged by the costs of actions, is taken to contend.

use std::sync::Arc;

use crate::homes::tree::Thresholds;
use crate::seam::Prices;

/// The trigger is doubled and halved so often at most.
const UP: i32 = 4;
const DOWN: i32 = -3;

pub struct Feedback {
    /// The share of the cpus' time that actions may take, in percent; 0: the trigger stays.
    percent: u64,
    trigger: u32,
    hold: u32,
    prices: Option<Arc<Prices>>,
    level: i32,
    /// The interval that is looked at, and the events in it.
    interval: u64,
    spent_ns: f64,
    actions: u64,
    contended: u64,
    /// Until when some cpu is at its actions.
    busy_until_ns: f64,
    busy_cpu: u32,
}

impl Feedback {
    pub fn new(percent: u64, base: &Thresholds) -> Feedback {
        Feedback {
            percent,
            trigger: base.trigger,
            hold: base.hold,
            prices: None,
            level: 0,
            interval: 0,
            spent_ns: 0.0,
            actions: 0,
            contended: 0,
            busy_until_ns: 0.0,
            busy_cpu: 0,
        }
    }

    pub fn take(&mut self, prices: &Arc<Prices>) {
        self.prices = Some(Arc::clone(prices));
    }

    /// A cpu begins an action.
    pub fn acts(&mut self, cpu: u32, now_ns: u64, cost_ns: impl Fn(&Prices) -> f64) {
        let Some(prices) = self.prices.as_ref().filter(|_| self.percent > 0) else {
            return;
        };
        let (cost, now) = (cost_ns(prices), now_ns as f64);
        self.spent_ns += cost;
        self.actions += 1;
        self.contended += u64::from(now < self.busy_until_ns && cpu != self.busy_cpu);
        self.busy_until_ns = self.busy_until_ns.max(now) + cost;
        self.busy_cpu = cpu;
    }

    /// An interval begins: the events of the last one decide on the thresholds of this one. The clocks of cpus differ;
    /// the first cpu to reach the interval begins it.
    pub fn begins(&mut self, interval: u64, reset_ns: u64, cpus: usize, thresholds: &mut Thresholds) {
        if self.percent == 0 || interval <= self.interval {
            return;
        }
        let time = reset_ns as f64 * (interval - self.interval) as f64 * cpus as f64;
        let (share, allowed) = (self.spent_ns * 100.0, self.percent as f64 * time);
        let change = if share > allowed || 2 * self.contended > self.actions {
            1
        } else if share * 4.0 < allowed {
            -1
        } else {
            0
        };
        self.level = (self.level + change).clamp(DOWN, UP);
        self.interval = interval;
        (self.spent_ns, self.actions, self.contended) = (0.0, 0, 0);
        (thresholds.trigger, thresholds.hold) = (self.scaled(self.trigger).max(1), self.scaled(self.hold));
    }

    fn scaled(&self, threshold: u32) -> u32 {
        match self.level {
            up @ 0.. => threshold.saturating_mul(1 << up),
            down => threshold >> -down,
        }
    }
}
