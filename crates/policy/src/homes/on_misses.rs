//! Pages move to the cpus that miss on them, or are copied for them: what `migrate`, `replicate` and
//! `migrate-replicate` have in common (Verghese96, sections 3.2, 6.1 and 8.1).
//!
//! Misses are counted for each page and cpu. A page that becomes hot waits with others of its cpu, as in the paper's
//! directory controller; when the cpu is interrupted, [`tree`](super::tree) decides over each of them by what has been
//! counted by then.

use rustc_hash::FxHashMap;

use crate::homes::counters::Counters;
use crate::homes::first_touch::FirstTouch;
use crate::homes::params::{ROUND_ROBIN, TLB_MISSES};
use crate::homes::round_robin::RoundRobin;
use crate::homes::tree::{Decision, Seen, Thresholds, decide};
use crate::page::Page;
use crate::seam::{Action, Interest, Miss, MissLevel, Observation, Placement, Policy, Pressure, Touch, Touched, World};
use crate::settings::Settings;

pub struct OnMisses {
    thresholds: Thresholds,
    level: MissLevel,
    /// One in so many misses is reported.
    sample: u32,
    reset_ns: u64,
    /// So many hot pages are waited for, and so long.
    batch: usize,
    wait_ns: u64,
    /// A node with fewer free frames is under pressure.
    reserve: u64,
    start: Box<dyn Policy>,
    pages: FxHashMap<Page, Counters>,
    /// Hot pages that wait, by cpu.
    waiting: Vec<Batch>,
}

#[derive(Clone, Default)]
struct Batch {
    pages: Vec<Page>,
    /// When the first of them came.
    since_ns: u64,
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
        OnMisses {
            thresholds: Thresholds {
                trigger: scaled(trigger),
                hold: scaled(hold),
                writes: writes.map(count),
                moves: moves.map(count),
            },
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
            pages: FxHashMap::default(),
            waiting: Vec::new(),
        }
    }

    fn interval(&self, world: &World) -> u64 {
        world.now_ns / self.reset_ns
    }

    fn missed(&mut self, miss: &Miss, world: &World) {
        let (interval, here) = (self.interval(world), world.node_of(miss.cpu));
        let page = self.pages.entry(miss.page);
        let page = page.or_insert_with(|| Counters::new(world.cpus, miss.served_by));
        page.begin(interval);
        page.count(miss, here);
        if miss.served_by != here && page.misses_of(miss.cpu) >= self.thresholds.trigger {
            if self.waiting.is_empty() {
                self.waiting = vec![Batch::default(); world.cpus as usize];
            }
            let batch = &mut self.waiting[miss.cpu as usize];
            if batch.pages.is_empty() {
                batch.since_ns = world.now_ns;
            }
            if !batch.pages.contains(&miss.page) {
                batch.pages.push(miss.page);
            }
        }
    }

    /// Interrupts a cpu, if enough pages wait for it, or one for long enough.
    fn interrupt(&mut self, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        let Some(batch) = self.waiting.get_mut(cpu as usize) else {
            return;
        };
        let waits = world.now_ns.saturating_sub(batch.since_ns) < self.wait_ns;
        if batch.pages.is_empty() || waits && batch.pages.len() < self.batch {
            return;
        }
        for page in std::mem::take(&mut batch.pages) {
            self.decide(page, cpu, world, actions);
        }
    }

    fn decide(&mut self, page: Page, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        let (interval, here) = (self.interval(world), world.node_of(cpu));
        let free = world.free_frames[here as usize];
        let Some(counters) = self.pages.get_mut(&page) else {
            return;
        };
        counters.begin(interval);
        let seen = Seen {
            misses: counters.misses_of(cpu),
            local: counters.is_on(here),
            by_holder: counters.by_holder(cpu, world),
            writes: counters.writes,
            moves: counters.moves,
            pressure: free < self.reserve,
        };
        if free == 0 {
            // What cannot be carried out does not count as a move either.
            return;
        }
        match decide(&self.thresholds, &seen) {
            Decision::Stay(_) => {}
            Decision::Replicate => {
                counters.copy_to(here);
                actions.push(Action::Copy { page, node: here });
            }
            Decision::Migrate => {
                counters.move_to(here);
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
        let interval = self.interval(world);
        let Some(counters) = self.pages.get_mut(&touched.page) else {
            return;
        };
        let node = world.node_of(touched.cpu);
        counters.begin(interval);
        counters.written(touched.thread, node);
        actions.push(Action::Collapse {
            page: touched.page,
            node: Some(node),
        });
    }

    /// Gives up what was replicated to a node and has not been used lately (section 6.2.2, memory pressure).
    fn reclaim(&mut self, pressure: &Pressure, world: &World, actions: &mut Vec<Action>) {
        let interval = self.interval(world);
        let idle = self.pages.iter_mut();
        let mut idle: Vec<_> = idle
            .filter(|(_, counters)| counters.is_idle_on(pressure.node, interval))
            .collect();
        idle.sort_by_key(|(page, _)| **page);
        for (&page, counters) in idle {
            counters.collapse();
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
        match observation {
            Observation::Miss(miss) if miss.level == self.level => {
                self.missed(miss, world);
                self.interrupt(miss.cpu, world, actions);
            }
            Observation::Tick(tick) => self.interrupt(tick.cpu, world, actions),
            Observation::ReplicaWritten(touched) => self.written(touched, world, actions),
            Observation::Pressure(pressure) => self.reclaim(pressure, world, actions),
            _ => {}
        }
    }
}
