//! Pages move to the cpus that miss on them, or are copied for them: the common part of `migrate`, `replicate` and
//! `migrate-replicate` (Verghese96, sections 3.2, 6.1 and 8.1).
//!
//! Misses are counted for each page and cpu. A page that becomes hot waits with others of its cpu, as in the paper's
//! directory controller; when the cpu is interrupted, [`tree`](super::tree) decides over each of them by the counts at
//! that time.

use std::sync::Arc;

use crate::homes::counters::Counters;
use crate::homes::feedback::Feedback;
use crate::homes::first_touch::FirstTouch;
use crate::homes::params::{ROUND_ROBIN, TLB_MISSES};
use crate::homes::round_robin::RoundRobin;
use crate::homes::tree::{Decision, Seen, Thresholds, decide};
use crate::homes::worth::Worth;
use crate::page::Page;
use crate::seam::{
    Action, Interest, Miss, MissAt, MissLevel, Observation, Placement, Policy, Pressure, Prices, Touch, Touched, World,
};
use crate::settings::Settings;

pub struct OnMisses {
    thresholds: Thresholds,
    worth: Worth,
    feedback: Feedback,
    /// True if either of them weighs costs.
    weighs: bool,
    level: MissLevel,
    /// One in `sample` misses is reported.
    sample: u32,
    reset_ns: u64,
    /// The number of hot pages that are waited for, and the time.
    batch: usize,
    wait_ns: u64,
    /// A node with fewer free frames is under pressure.
    reserve: u64,
    start: Box<dyn Policy>,
    pages: Counters,
    /// The interval that was last looked for, and where it begins.
    interval: u64,
    interval_begin_ns: u64,
    /// Hot pages that wait, by cpu.
    waiting: Vec<Batch>,
    /// When each cpu is to be interrupted; [`NEVER`] while no page waits for it.
    due_ns: Vec<u64>,
    /// The multiples of the trigger.
    judged: Multiples,
}

const NEVER: u64 = u64::MAX;

/// By name and by the world's number.
type Batch = Vec<(Page, u32)>;

/// Tells multiples of a number without a division, which takes longer than all the rest of a miss (Lemire, Kaser and Kurz,
/// "Faster Remainder by Direct Computation", 2019).
#[derive(Clone, Copy)]
struct Multiples {
    of: u32,
    /// 2^64 / `of`, rounded up, modulo 2^64.
    inverse: u64,
}

impl Multiples {
    /// `of`: at least 1.
    fn new(of: u32) -> Multiples {
        let inverse = (u64::MAX / u64::from(of)).wrapping_add(1);
        Multiples { of, inverse }
    }

    #[inline(always)]
    fn has(self, number: u32) -> bool {
        self.inverse.wrapping_mul(number.into()) <= self.inverse.wrapping_sub(1)
    }
}

impl OnMisses {
    /// `writes` and `moves`: as in [`Thresholds`]; `reserve`: free frames below which a node is under pressure.
    pub fn new(settings: &Settings, writes: Option<u64>, moves: Option<u64>, reserve: u64) -> OnMisses {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let trigger = settings.integer("trigger");
        let hold = match settings.integer("hold") {
            0 => trigger / 4,
            hold => hold,
        };
        let sample = settings.integer("sample");
        // Section 7.2: of one in ten, 13 are as many as 128.
        let scaled = |misses: u64| count(((misses + sample / 2) / sample).max(1));
        let thresholds = Thresholds {
            trigger: scaled(trigger),
            hold: scaled(hold),
            writes: writes.map(count),
            moves: moves.map(count),
        };
        let (gain, adapt) = (settings.integer("gain"), settings.integer("adapt"));
        OnMisses {
            worth: Worth::new(gain, count(sample)),
            feedback: Feedback::new(adapt, &thresholds),
            weighs: gain > 0 || adapt > 0,
            thresholds,
            level: match settings.integer("count") {
                TLB_MISSES => MissLevel::Tlb,
                _ => MissLevel::Cache,
            },
            sample: count(sample),
            reset_ns: settings.integer("reset").saturating_mul(1000),
            batch: settings.integer("batch") as usize,
            wait_ns: settings.integer("wait").saturating_mul(1000),
            reserve,
            start: match settings.integer("start") {
                ROUND_ROBIN => Box::new(RoundRobin::from(0)),
                _ => Box::new(FirstTouch),
            },
            pages: Counters::default(),
            interval: 0,
            interval_begin_ns: 0,
            waiting: Vec::new(),
            due_ns: Vec::new(),
            judged: Multiples::new(thresholds.trigger),
        }
    }

    /// The reset interval of this moment.
    #[inline(always)]
    fn interval(&mut self, now_ns: u64) -> u64 {
        // Nearly always that of the moment before: a division takes longer than all the rest.
        if now_ns.wrapping_sub(self.interval_begin_ns) >= self.reset_ns {
            self.look_for_interval(now_ns);
        }
        self.interval
    }

    #[cold]
    fn look_for_interval(&mut self, now_ns: u64) {
        self.interval_begin_ns = now_ns - now_ns % self.reset_ns;
        self.interval = now_ns / self.reset_ns;
        let cpus = self.waiting.len();
        self.feedback
            .begins(self.interval, self.reset_ns, cpus, &mut self.thresholds);
        if self.judged.of != self.thresholds.trigger {
            self.judged = Multiples::new(self.thresholds.trigger);
        }
    }

    /// Allocates the counts by cpu when the world is first seen.
    #[inline(always)]
    fn meet(&mut self, world: &World) {
        if self.waiting.is_empty() {
            self.make_room(world);
        }
    }

    #[cold]
    fn make_room(&mut self, world: &World) {
        self.waiting = vec![Batch::default(); world.cpus as usize];
        self.due_ns = vec![NEVER; world.cpus as usize];
        self.pages = Counters::new((0..world.cpus).map(|cpu| world.node_of(cpu)).collect());
    }

    /// Returns whether the cpu is to be interrupted.
    #[inline(always)]
    fn missed(&mut self, miss: &Miss, now_ns: u64) -> bool {
        let (interval, here) = (self.interval(now_ns), self.pages.node_of(miss.cpu));
        let misses = match self.pages.count_plain(miss, interval) {
            Some(misses) => misses,
            None => self.look_closer(miss, interval, here),
        };
        // A page that stays is judged again after as many misses more. Both are looked at: each by itself is hard to foresee.
        if (miss.served_by != here) & self.judged.has(misses) {
            self.wait(miss, now_ns);
        }
        self.is_due(miss.cpu, now_ns)
    }

    #[inline(never)]
    fn look_closer(&mut self, miss: &Miss, interval: u64, here: u32) -> u32 {
        self.pages.of(miss.index, interval).count(miss, here)
    }

    /// A hot page waits for others.
    #[inline(never)]
    fn wait(&mut self, miss: &Miss, now_ns: u64) {
        let cpu = miss.cpu as usize;
        let waiting = &mut self.waiting[cpu];
        if waiting.is_empty() {
            self.due_ns[cpu] = now_ns.saturating_add(self.wait_ns);
        }
        if !waiting.iter().any(|&(page, _)| page == miss.page) {
            waiting.push((miss.page, miss.index));
        }
        if waiting.len() >= self.batch {
            self.due_ns[cpu] = 0;
        }
    }

    /// True if enough pages wait for a cpu, or one for long enough.
    #[inline(always)]
    fn is_due(&self, cpu: u32, now_ns: u64) -> bool {
        now_ns >= self.due_ns[cpu as usize]
    }

    #[inline(never)]
    fn interrupt(&mut self, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        self.due_ns[cpu as usize] = NEVER;
        for (page, index) in std::mem::take(&mut self.waiting[cpu as usize]) {
            self.decide(page, index, cpu, world, actions);
        }
    }

    fn decide(&mut self, page: Page, index: u32, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        let (interval, here) = (self.interval(world.now_ns), self.pages.node_of(cpu));
        let free = world.free_frames[here as usize];
        let mut counts = self.pages.of(index, interval);
        let seen = Seen {
            misses: counts.misses_of(cpu),
            local: counts.is_on(here),
            by_holder: counts.by_holder(cpu),
            writes: counts.writes(),
            moves: counts.moves(),
            pressure: free < self.reserve,
        };
        if free == 0 {
            // An action that cannot be carried out does not count as a move either.
            return;
        }
        match decide(&self.thresholds, &seen) {
            Decision::Stay(_) => {}
            Decision::Replicate if !self.worth.copying(&counts, here) => {}
            Decision::Migrate if !self.worth.moving(&counts, here) => {}
            Decision::Replicate => {
                counts.copy_to(here);
                self.feedback.acts(cpu, world.now_ns, |prices| prices.cost.copy_page_ns);
                actions.push(Action::Copy { page, node: here });
            }
            Decision::Migrate => {
                counts.move_to(here);
                self.feedback.acts(cpu, world.now_ns, |prices| prices.cost.move_page_ns);
                let to = Placement {
                    color: None,
                    node: Some(here),
                };
                actions.push(Action::Move { page, to });
            }
        }
    }

    /// A write finds replicas: the writer's node keeps its copy (section 8.1).
    fn written(&mut self, touched: &Touched, world: &World, actions: &mut Vec<Action>) {
        let (interval, node) = (self.interval(world.now_ns), self.pages.node_of(touched.cpu));
        self.pages.of(touched.index, interval).written(touched.thread, node);
        self.feedback
            .acts(touched.cpu, world.now_ns, |prices| prices.cost.collapse_ns);
        actions.push(Action::Collapse {
            page: touched.page,
            node: Some(node),
        });
    }

    /// Gives up replicas on a node that have not been used lately (section 6.2.2, memory pressure).
    fn reclaim(&mut self, pressure: &Pressure, world: &World, actions: &mut Vec<Action>) {
        let interval = self.interval(world.now_ns);
        for (page, index) in self.pages.idle_on(pressure.node, interval) {
            self.pages.of(index, interval).collapse();
            actions.push(Action::Collapse { page, node: None });
        }
    }
}

impl Policy for OnMisses {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        self.start.place(touch, world)
    }

    fn interest(&self) -> Interest {
        let of = |level: MissLevel| if self.level == level { self.sample } else { 0 };
        Interest {
            cache_misses: of(MissLevel::Cache),
            tlb_misses: of(MissLevel::Tlb),
            tick_ns: if self.batch > 1 { self.wait_ns } else { 0 },
            pressure_frames: self.reserve,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        self.meet(world);
        match observation {
            Observation::Miss(miss) if miss.level == self.level && self.missed(miss, world.now_ns) => {
                self.interrupt(miss.cpu, world, actions);
            }
            Observation::Tick(tick) if self.is_due(tick.cpu, world.now_ns) => self.interrupt(tick.cpu, world, actions),
            Observation::ReplicaWritten(touched) => self.written(touched, world, actions),
            Observation::Pressure(pressure) => self.reclaim(pressure, world, actions),
            _ => {}
        }
    }

    fn observe_misses(&mut self, misses: &[MissAt], world: &mut World, actions: &mut Vec<Action>) -> usize {
        self.meet(world);
        for (heard, MissAt { now_ns, miss }) in (1..).zip(misses) {
            if miss.level == self.level && self.missed(miss, *now_ns) {
                world.now_ns = *now_ns;
                self.interrupt(miss.cpu, world, actions);
                if !actions.is_empty() {
                    return heard;
                }
            }
        }
        misses.len()
    }

    fn wants_prices(&self) -> bool {
        self.weighs
    }

    fn take_prices(&mut self, prices: &Arc<Prices>) {
        self.worth.take(prices);
        self.feedback.take(prices);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_told_as_a_division_would() {
        for of in (1..300).chain([1000, 65_535, 65_536, 1 << 31, u32::MAX - 1, u32::MAX]) {
            let multiples = Multiples::new(of);
            for number in (1..2000).chain((u32::MAX - 2000)..=u32::MAX) {
                assert_eq!(multiples.has(number), number.is_multiple_of(of), "{number} of {of}");
            }
        }
    }
}
