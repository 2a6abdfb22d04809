//! Windows of a trace: what is counted, and what only warms caches.

use machine::Machine;
use trace::Event;

use super::instance::Counts;
use super::program::{Item, Program};
use super::schedule::Schedule;
use super::{Counted, CpuResult, Model};

pub struct Windows {
    /// Whether the trace says where windows are counted from; else it is one window, from its start.
    pub warmed: bool,
    pub counts: bool,
    window: Option<u32>,
    pub ended: Vec<Counted>,
}

impl Windows {
    pub fn of(program: &Program) -> Windows {
        let counted = |(_, item): &(u32, Item)| matches!(item, Item::Event(Event::Counted { .. }));
        let warmed = program.items.iter().any(counted);
        Windows {
            warmed,
            counts: !warmed,
            window: None,
            ended: Vec::new(),
        }
    }

    /// A thread has carried out an item. `waits`: cpus without a thread to run wait for one.
    pub fn passes(&mut self, model: &mut Model, schedule: &mut Schedule, cpu: usize, item: &Item, waits: bool) {
        let (Item::Event(Event::Window { index } | Event::Counted { index }), true) = (item, self.warmed) else {
            return;
        };
        if self.window >= Some(*index) {
            return;
        }
        if self.counts {
            self.end(model, schedule, waits);
        }
        if matches!(item, Item::Event(Event::Counted { .. })) {
            (self.counts, self.window) = (true, Some(*index));
            schedule.count_anew(schedule.cpus[cpu].clock, waits);
            model.count_anew();
        }
    }

    /// A window ends as a run does.
    pub fn end(&mut self, model: &mut Model, schedule: &mut Schedule, waits: bool) {
        self.counts = false;
        match waits {
            true => schedule.end(model.active()),
            false => schedule.at_one_moment(model.active()),
        }
        let counted = model.counted(schedule);
        self.ended.push(counted);
    }
}

impl Counted {
    pub fn add(&mut self, other: &Counted) {
        for (sum, cpu) in self.cpus.iter_mut().zip(&other.cpus) {
            sum.add(cpu);
        }
        for (sum, ran) in self.ran.iter_mut().zip(&other.ran) {
            *sum += ran;
        }
        for (sum, occupied) in self.occupied.iter_mut().zip(other.occupied) {
            *sum += occupied;
        }
    }
}

impl CpuResult {
    pub fn nothing(machine: &Machine) -> CpuResult {
        CpuResult {
            caches: vec![Counts::default(); machine.caches.len()],
            ..CpuResult::default()
        }
    }

    fn add(&mut self, other: &CpuResult) {
        for (sum, counts) in self.caches.iter_mut().zip(&other.caches) {
            sum.add(counts);
        }
        self.tlb = (self.tlb.0 + other.tlb.0, self.tlb.1 + other.tlb.1);
        self.local += other.local;
        self.remote += other.remote;
        self.references += other.references;
        self.instructions += other.instructions;
        self.on_chip += other.on_chip;
        self.unclassed += other.unclassed;
        let (sum, time) = (&mut self.time, &other.time);
        sum.busy += time.busy;
        sum.cache += time.cache;
        sum.local += time.local;
        sum.remote += time.remote;
        sum.tlb += time.tlb;
        sum.policy += time.policy;
        sum.prefetch += time.prefetch;
        sum.imbalance += time.imbalance;
        sum.sequential += time.sequential;
        sum.synchronization += time.synchronization;
        let (sum, asked) = (&mut self.prefetches, &other.prefetches);
        sum.issued += asked.issued;
        sum.dropped_tlb += asked.dropped_tlb;
        sum.dropped_unmapped += asked.dropped_unmapped;
        sum.already_present += asked.already_present;
        sum.brought += asked.brought;
        sum.useful += asked.useful;
        sum.late += asked.late;
    }
}
