//! Windows of a trace: the counted part, and the part that only warms caches.

use machine::Machine;
use trace::Event;

use super::instance::Counts;
use super::program::{Item, Program};
use super::schedule::Schedule;
use super::{Counted, CpuResult, Model};

pub struct Windows {
    /// True if the trace says where windows are counted from; else it is one window, from its
    /// start.
    pub warmed: bool,
    pub counts: bool,
    window: Option<u32>,
    pub ended: Vec<Counted>,
    /// The last place that each thread came to, and the last that had its effect; 0: none.
    come: Vec<u64>,
    met: u64,
}

/// Places in their order: the beginning of a window and the point from which it is counted, by
/// turns.
fn place(item: &Item) -> Option<u64> {
    match item {
        Item::Event(Event::Window { index }) => Some(2 * u64::from(*index) + 1),
        Item::Event(Event::Counted { index }) => Some(2 * u64::from(*index) + 2),
        _ => None,
    }
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
            come: vec![0; program.spaces.len()],
            met: 0,
        }
    }

    /// In recorded order, a thread has carried out an item.
    pub fn passes(&mut self, model: &mut Model, schedule: &mut Schedule, cpu: usize, item: &Item) {
        if let (Some(place), true) = (place(item), self.warmed) {
            self.take_effect(model, schedule, cpu, place, false);
        }
    }

    /// By the clocks, a thread has carried out an item: the place where it is held now.
    pub fn comes(
        &mut self,
        model: &mut Model,
        schedule: &mut Schedule,
        cpu: usize,
        thread: u32,
        item: &Item,
    ) -> Option<u64> {
        let place = place(item).filter(|_| self.warmed)?;
        let come = &mut self.come[thread as usize];
        *come = place.max(*come);
        self.meet(model, schedule, cpu, Some(place));
        (place > self.met).then_some(place)
    }

    /// Places that a thread waits at, or reached right now, and that all living threads have
    /// reached.
    pub fn meet(&mut self, model: &mut Model, schedule: &mut Schedule, cpu: usize, came: Option<u64>) {
        loop {
            let mut waited = schedule.places();
            waited.extend(came);
            waited.retain(|place| *place > self.met);
            let Some(first) = waited.into_iter().min() else { return };
            let behind = |(thread, come): (usize, &u64)| *come < first && schedule.lives(thread as u32);
            if self.come.iter().enumerate().any(behind) {
                return;
            }
            self.go_on_from(model, schedule, cpu, first);
        }
    }

    /// No thread can run: those that wait at the first place go on. False if none waits at one.
    pub fn give_up(&mut self, model: &mut Model, schedule: &mut Schedule) -> bool {
        let Some(first) = schedule.places().into_iter().min() else {
            return false;
        };
        let cpus = 0..schedule.cpus.len();
        let last = cpus.max_by_key(|&cpu| schedule.cpus[cpu].clock).unwrap_or(0);
        self.go_on_from(model, schedule, last, first);
        true
    }

    fn go_on_from(&mut self, model: &mut Model, schedule: &mut Schedule, cpu: usize, place: u64) {
        self.met = place;
        self.take_effect(model, schedule, cpu, place, true);
        schedule.leave(place, schedule.cpus[cpu].clock);
    }

    /// `waits`: cpus without a thread to run wait for one.
    fn take_effect(&mut self, model: &mut Model, schedule: &mut Schedule, cpu: usize, place: u64, waits: bool) {
        let (index, counted) = (((place - 1) / 2) as u32, place.is_multiple_of(2));
        if self.window >= Some(index) {
            return;
        }
        if self.counts {
            self.end(model, schedule, waits);
        }
        model.hierarchy.take_all(!counted);
        if counted {
            (self.counts, self.window) = (true, Some(index));
            schedule.count_anew(schedule.cpus[cpu].clock, waits);
            model.count_anew();
        }
    }

    /// A window ends as a run does.
    pub fn end(&mut self, model: &mut Model, schedule: &mut Schedule, waits: bool) {
        self.counts = false;
        match waits {
            true => schedule.end(),
            false => schedule.at_one_moment(),
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
        self.faults = (self.faults.0 + other.faults.0, self.faults.1 + other.faults.1);
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
        sum.faults += time.faults;
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
