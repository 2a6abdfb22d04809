//! The simulator once more, slow and plain: written from `crates/sim/README.md` and nothing else.
//!
//! Caches are sets of ways with time stamps, coherence looks through all of them, word sets are
//! sets of words. It shares no code with the engine; only placement policies are the real ones,
//! since they are inputs to both.

pub mod cdpc;
pub mod changes;
pub mod classes;
pub mod faults;
pub mod hierarchy;
pub mod homes;
pub mod instance;
pub mod memory;
pub mod outcome;
pub mod overlap;
pub mod pages;
pub mod program;
pub mod random;
pub mod schedule;
pub mod slots;
pub mod software_prefetch;
pub mod streams;
mod strides;
mod summary_homes;
pub mod tlb;
pub mod windows;

use std::sync::Arc;

use machine::Machine;
use policy::{HomesFrom, Page, Policy};
use results::ProgramChange;
use serde_json::{Value, json};
use sim::Scheduling;
use trace::{Event, Op};

pub use program::{Item, Program};

use changes::{Changes, Part};
use faults::Faults;
use hierarchy::{Beside, Hierarchy, Piece};
use homes::{Moments, Seen};
use instance::Counts;
use pages::{OutOfFrames, Pages};
use schedule::Schedule;
use strides::Instruction;
use tlb::Tlb;
use windows::Windows;

/// Units of 2^-20 ns.
pub fn units(ns: f64) -> u64 {
    (ns * 1_048_576.0).round() as u64
}

/// The choices of the simulator's user, beyond machine, program and policy.
#[derive(Clone, Debug)]
pub struct Choices {
    pub seed: u64,
    pub classes: bool,
    /// The order of the trace instead of that of the clocks.
    pub recorded: bool,
    pub slice_ns: u64,
    /// The cpus that threads are given.
    pub schedule: Scheduling,
    /// The first cpu of each thread; threads beyond take the cpus in their order.
    pub placement: Option<Vec<u32>>,
    /// The time of the code of a barrier.
    pub barrier_ns: u64,
    /// Phases between which is counted.
    pub from_phase: Option<String>,
    pub to_phase: Option<String>,
    /// The changes of the program.
    pub changes: Vec<ProgramChange>,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices {
            seed: 1,
            classes: true,
            recorded: false,
            slice_ns: 10_000_000,
            schedule: Scheduling::Stay,
            placement: None,
            barrier_ns: 0,
            from_phase: None,
            to_phase: None,
            changes: Vec::new(),
        }
    }
}

/// How a cpu's time was spent, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    pub busy: u64,
    pub cache: u64,
    pub local: u64,
    pub remote: u64,
    pub tlb: u64,
    pub policy: u64,
    pub faults: u64,
    pub prefetch: u64,
    pub imbalance: u64,
    pub sequential: u64,
    pub synchronization: u64,
}

#[derive(Clone, Debug, Default)]
pub struct CpuResult {
    /// By position of the cache in `machine.caches`.
    pub caches: Vec<Counts>,
    pub tlb: (u64, u64),
    /// Page faults, of pages never touched and of others.
    pub faults: (u64, u64),
    pub local: u64,
    pub remote: u64,
    pub time: Time,
    pub references: u64,
    pub instructions: u64,
    pub prefetches: software_prefetch::Prefetches,
    /// Its waits for caches of its path, and for lines that no cache has.
    pub on_chip: u64,
    pub unclassed: u64,
}

/// The counts of one window, or of all of the run.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    cpus: Vec<CpuResult>,
    /// The time that each cpu ran.
    ran: Vec<u64>,
    occupied: [u64; 3],
}

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub cpus: Vec<CpuResult>,
    pub pages: u64,
    /// The most frames in use at once.
    pub pages_max: u64,
    /// Pages moved to another node, copied, collapsed.
    pub moved: u64,
    pub copied: u64,
    pub collapsed: u64,
    pub wall: u64,
    /// References, time and misses of each window of the trace, if they are counted.
    pub windows: Option<Vec<(u64, u64, Vec<u64>)>>,
    /// The time that memory was occupied by data, by write-backs, by upgrades.
    pub occupied: [u64; 3],
    /// True if page faults take time.
    pub faults: bool,
    /// True if the program says how many instructions it executed.
    pub knows_instructions: bool,
    /// The report of hints, if the policy takes them.
    pub hints: Option<Value>,
}

pub struct Model<'a> {
    machine: &'a Machine,
    program: &'a Program,
    hierarchy: Hierarchy,
    pages: Pages,
    tlbs: Vec<Tlb>,
    faults: Option<Faults>,
    changes: Changes,
    clocks_period: u64,
    cut: u64,
    cpus: Vec<CpuResult>,
    moments: Moments,
    /// Pages moved to another node, copied and collapsed.
    moved: u64,
    copied: u64,
    collapsed: u64,
}

fn first_cpus(machine: &Machine, program: &Program, choices: &Choices) -> Vec<usize> {
    let placed = choices.placement.as_deref().unwrap_or_default();
    let first = |thread: usize| placed.get(thread).map_or(thread, |cpu| *cpu as usize);
    let threads = 0..program.spaces.len();
    threads.map(|thread| first(thread) % machine.cpus as usize).collect()
}

/// Simulates a program on a machine under one policy.
pub fn simulate(
    machine: &Machine,
    program: &Program,
    policy: Box<dyn Policy>,
    choices: &Choices,
) -> Result<Outcome, OutOfFrames> {
    let mut policy = policy;
    let hints = policy.hints_wanted().map(|wanted| {
        let cdpc::Made { colors, reported } = cdpc::make(wanted, program, machine, choices);
        let colors = Arc::new(colors);
        policy.take_hints(&colors);
        (colors, reported)
    });
    if policy.wants_best_homes() == Some(HomesFrom::Summaries) {
        policy.take_best_homes(&Arc::new(summary_homes::make(program, machine)));
    }
    policy.take_prices(&memory::prices(machine));
    let innermost = machine.caches.iter().filter(|cache| cache.level == 1);
    let mut model = Model {
        moments: Moments::new(policy.interest(), machine.cpus),
        moved: 0,
        copied: 0,
        collapsed: 0,
        machine,
        program,
        hierarchy: Hierarchy::new(
            machine,
            choices.seed,
            choices.classes,
            &program.dependences,
            &program.paces,
            &program.mispredictions,
            &choices.changes,
        ),
        pages: Pages::new(machine, policy),
        tlbs: (0..machine.cpus)
            .filter_map(|_| machine.tlb.as_ref().map(Tlb::new))
            .collect(),
        faults: Faults::new(machine),
        changes: Changes::new(machine, &program.arrays, &choices.changes),
        clocks_period: match machine.core {
            None => units(1000.0 / machine.clock_mhz),
            Some(core) => units(1000.0 / machine.clock_mhz / core.instructions_per_clock),
        },
        cut: innermost.map(|cache| cache.line_bytes).min().unwrap_or(64).into(),
        cpus: vec![CpuResult::default(); machine.cpus as usize],
    };
    let first_cpus = first_cpus(machine, program, choices);
    let mut schedule = Schedule::new(
        program,
        machine.cpus,
        first_cpus.clone(),
        choices.slice_ns << 20,
        if choices.recorded {
            Scheduling::Stay
        } else {
            choices.schedule
        },
        choices.barrier_ns << 20,
    );
    let mut counting = choices.from_phase.is_none();
    // Returns whether the window ends with an item.
    let mut passes = |model: &mut Model,
                      schedule: &mut Schedule,
                      windows: &mut Windows,
                      cpu: usize,
                      item: &Item,
                      waits: bool|
     -> bool {
        let Item::Event(Event::Phase { name }) = item else {
            return false;
        };
        if !counting && choices.from_phase.as_ref() == Some(name) {
            counting = true;
            schedule.count_anew(schedule.cpus[cpu].clock, waits);
            model.count_anew();
            windows.ended.clear();
            return false;
        }
        counting && choices.to_phase.as_ref() == Some(name)
    };
    let mut windows = Windows::of(program);
    model.hierarchy.take_all(windows.warmed);
    if choices.recorded {
        for (thread, item) in &program.items {
            let cpu = first_cpus[*thread as usize];
            schedule.cpus[cpu].clock += model.carry_out(cpu, *thread, item, schedule.cpus[cpu].clock)?;
            if passes(&mut model, &mut schedule, &mut windows, cpu, item, false) {
                break;
            }
            windows.passes(&mut model, &mut schedule, cpu, item);
        }
    } else {
        loop {
            if schedule.nobody_runs() && windows.give_up(&mut model, &mut schedule) {
                continue;
            }
            let Some((cpu, thread, item)) = schedule.next() else {
                break;
            };
            let mut place = None;
            let mut moved = false;
            if let Some(item) = &item {
                model.pages.runnable = schedule.runnable();
                schedule.cpus[cpu].clock += model.carry_out(cpu, thread, item, schedule.cpus[cpu].clock)?;
                if let Item::Event(event) = item {
                    let cost = schedule.cost(event);
                    schedule.cpus[cpu].clock += cost;
                    schedule.cpus[cpu].synchronization += cost;
                }
                if passes(&mut model, &mut schedule, &mut windows, cpu, item, true) {
                    break;
                }
                place = windows.comes(&mut model, &mut schedule, cpu, thread, item);
                if matches!(item, Item::Ref { .. }) {
                    for (other, to, at) in std::mem::take(&mut model.moments.moves) {
                        moved |= schedule.move_thread(other, to as usize, at) && other == thread;
                    }
                    let allowed = std::mem::take(&mut model.moments.allowed);
                    let mut places = Vec::new();
                    for (by, other, to) in schedule.keep(&allowed) {
                        schedule.cpus[by].clock += model.charge_move(by);
                        places.push((other, to, schedule.cpus[by].clock));
                    }
                    for (other, to, at) in places {
                        moved |= schedule.move_thread(other, to, at) && other == thread;
                    }
                }
            }
            match moved {
                true => schedule.slice(cpu),
                false => schedule.after(cpu, thread, item.as_ref(), place),
            }
            if item.is_none() {
                windows.meet(&mut model, &mut schedule, cpu, None);
            }
        }
    }
    if windows.counts {
        windows.end(&mut model, &mut schedule, !choices.recorded);
    }
    let hints = hints.map(|(colors, mut reported)| {
        let (asked, honoured) = model.pages.followed(&colors);
        reported["asked"] = json!(asked);
        reported["honoured"] = json!(honoured);
        reported
    });
    Ok(Outcome {
        hints,
        ..model.finish(windows)
    })
}

impl Model<'_> {
    /// Resets all counts.
    fn count_anew(&mut self) {
        self.cpus.fill(CpuResult::default());
        self.hierarchy.count_anew();
        for tlb in &mut self.tlbs {
            (tlb.accesses, tlb.misses) = (0, 0);
        }
    }

    /// A prefetch; how long it stalls the cpu.
    fn prefetch(&mut self, cpu: usize, thread: u32, part: Part, clock: u64) -> u64 {
        let address = part.from;
        let space = self.program.spaces[thread as usize];
        let page = self.translated(space, address, self.is_huge(space, part));
        let Some(prefetches) = &mut self.hierarchy.software_prefetch else {
            if let Some(physical_address) = self.pages.find(space, address, cpu as u32) {
                let piece = Piece {
                    cpu: cpu as u32,
                    op: Op::Read,
                    virtual_address: address,
                    physical_address,
                    size: 1,
                    asked: clock,
                    refill: 0,
                    huge: self.is_huge(space, part),
                };
                self.hierarchy.prefetch_overlapping(&piece, clock);
            }
            return 0;
        };
        let counts = &mut prefetches.counts[cpu];
        counts.issued += 1;
        if self.tlbs.get(cpu).is_some_and(|tlb| !tlb.holds(page)) {
            counts.dropped_tlb += 1;
            return 0;
        }
        let Some(physical) = self.pages.find(space, address, cpu as u32) else {
            counts.dropped_unmapped += 1;
            return 0;
        };
        let stall = self.hierarchy.prefetch_ahead(cpu as u32, address, physical, clock);
        self.cpus[cpu].time.prefetch += stall;
        stall
    }

    /// Pages with a color of their own stay small.
    fn is_huge(&self, space: u32, part: Part) -> bool {
        let number = part.from / self.machine.page_bytes;
        part.huge && !self.pages.colors(Page { space, number })
    }

    /// The page by which the TLB translates an address; huge pages are told from others by a space that no program has.
    fn translated(&self, space: u32, address: u64, huge: bool) -> Page {
        let split = self
            .machine
            .tlb
            .as_ref()
            .is_some_and(|tlb| tlb.huge_refill_ns.is_some());
        match huge && !split {
            true => Page {
                space: space | 1 << 31,
                number: self.changes.huge_page(address),
            },
            false => Page {
                space,
                number: address / self.machine.page_bytes,
            },
        }
    }

    fn passes(&mut self, cpu: usize, instructions: u64) {
        self.cpus[cpu].instructions += instructions;
        if let Some(faults) = &mut self.faults {
            faults.passed[cpu] += instructions;
        }
    }

    /// The time of the item.
    fn carry_out(&mut self, cpu: usize, thread: u32, item: &Item, clock: u64) -> Result<u64, OutOfFrames> {
        match item {
            Item::Event(Event::Work { instructions }) => {
                self.passes(cpu, *instructions);
                if let Some(overlap) = &mut self.hierarchy.overlap {
                    overlap.instructions(cpu, *instructions, clock);
                    overlap.no_reference(cpu, *instructions);
                }
                let busy = instructions * self.clocks_period;
                self.cpus[cpu].time.busy += busy;
                Ok(busy)
            }
            Item::Event(event) => {
                let space = self.program.spaces[thread as usize];
                self.changes.event(space, event);
                if matches!(event, Event::Window { .. } | Event::Counted { .. }) {
                    self.faults = None;
                }
                if let Some(faults) = &mut self.faults {
                    for page in faults.event(cpu, space, thread, event) {
                        self.untranslate(page);
                    }
                }
                Ok(self.slots(cpu, thread, event, clock))
            }
            Item::Ref {
                op,
                addr,
                size,
                insns,
                site,
            } => {
                let instructions = match (self.program.counts_instructions, self.program.has_fetches) {
                    (true, _) => u64::from(*insns),
                    (false, true) => u64::from(*op == Op::Fetch),
                    (false, false) => 1,
                };
                self.passes(cpu, instructions);
                if let Some(overlap) = &mut self.hierarchy.overlap {
                    overlap.instructions(cpu, instructions, clock);
                    overlap.reference(thread, *site);
                }
                let mut took = instructions * self.clocks_period;
                if let Some(overlap) = &mut self.hierarchy.overlap {
                    took += overlap.wait_for_each_other(cpu, *site, instructions);
                    took += overlap.mispredict(cpu, thread, *site);
                }
                self.cpus[cpu].time.busy += took;
                let space = self.program.spaces[thread as usize];
                let parts = self.changes.parts(space, *addr, u64::from(*size));
                if *op == Op::Prefetch {
                    return Ok(took + self.prefetch(cpu, thread, parts[0], clock + took));
                }
                self.cpus[cpu].references += 1;
                for part in parts {
                    let mut rest = part.bytes;
                    let mut address = part.from;
                    while rest > 0 {
                        let here = rest.min(self.cut - address % self.cut);
                        let piece = Part {
                            from: address,
                            bytes: here,
                            ..part
                        };
                        took += self.piece(cpu, (thread, *site), *op, piece, clock + took)?;
                        rest -= here;
                        address = address.wrapping_add(here);
                    }
                }
                Ok(took)
            }
        }
    }

    fn piece(
        &mut self,
        cpu: usize,
        (thread, site): Instruction,
        op: Op,
        part: Part,
        clock: u64,
    ) -> Result<u64, OutOfFrames> {
        let space = self.program.spaces[thread as usize];
        let (address, size) = (part.from, part.bytes);
        let huge = self.is_huge(space, part);
        let page = self.translated(space, address, huge);
        let (mut refill, mut tlb_missed) = (0, false);
        if let Some(tlb) = self.tlbs.get_mut(cpu)
            && !tlb.look_up(page)
        {
            tlb_missed = true;
            refill = units(self.machine.tlb.as_ref().map_or(0.0, |of| {
                let takes = if huge { of.huge_refill_ns } else { tlb.walk(page) };
                takes.unwrap_or(of.refill_ns)
            }));
        }
        let faulted = self
            .faults
            .as_mut()
            .and_then(|faults| faults.touch(space, address, huge));
        let took_to_fault = faulted.as_ref().map_or(0, |touch| touch.takes);
        if let Some(touch) = faulted {
            let counts = &mut self.cpus[cpu].faults;
            match touch.again {
                true => counts.1 += 1,
                false => counts.0 += 1,
            }
        }
        self.cpus[cpu].time.faults += took_to_fault;
        let clock = clock + took_to_fault;
        let writes = matches!(op, Op::Write | Op::Modify);
        let now = (clock + refill) >> 20;
        self.pages.translate(space, address, thread, cpu as u32, writes, now)?;
        let number = address / self.machine.page_bytes;
        let seen = Seen {
            cpu,
            thread,
            page: Page { space, number },
            write: writes,
            fetch: op == Op::Fetch,
        };
        let acted = self.before(seen, clock + refill);
        let clock = clock + acted;
        let physical = self.pages.translate(space, address, thread, cpu as u32, writes, now)?;
        let page_bytes = self.machine.page_bytes;
        let piece = Piece {
            cpu: cpu as u32,
            op,
            virtual_address: address,
            physical_address: physical,
            size,
            asked: clock + refill,
            refill,
            huge,
        };
        let beside = Beside {
            instruction: (thread, site),
            frames: &|number| self.pages.find(space, number.checked_mul(page_bytes)?, cpu as u32),
        };
        let (wait, refill, reached) = self.hierarchy.piece(&piece, &beside);
        let time = &mut self.cpus[cpu].time;
        time.tlb += refill;
        time.cache += wait.cache;
        time.local += wait.local;
        time.remote += wait.remote;
        let took = refill + wait.sum();
        let node = self.pages.node_of(physical);
        let after = self.after(seen, tlb_missed, reached, node, clock + took);
        Ok(took_to_fault + acted + took + after)
    }

    /// The counts since counting began; cpus have waited for the last.
    fn counted(&mut self, schedule: &Schedule) -> Counted {
        for instance in &mut self.hierarchy.instances {
            instance.end();
        }
        let mut cpus = self.cpus.clone();
        for (number, cpu) in cpus.iter_mut().enumerate() {
            cpu.caches = vec![Counts::default(); self.machine.caches.len()];
            for instance in &self.hierarchy.instances {
                cpu.caches[instance.kind].add(&instance.counts[number]);
            }
            cpu.tlb = self.tlbs.get(number).map_or((0, 0), |tlb| (tlb.accesses, tlb.misses));
            let served = self.hierarchy.memory.served[number];
            (cpu.local, cpu.remote) = (served.local, served.remote);
            if schedule.used[number] {
                let run = &schedule.cpus[number];
                cpu.time.imbalance = run.imbalance;
                cpu.time.sequential = run.sequential;
                cpu.time.synchronization = run.synchronization;
            }
            if let Some(prefetches) = &self.hierarchy.software_prefetch {
                cpu.prefetches = prefetches.counts[number];
            }
            cpu.on_chip = self.hierarchy.on_chip[number];
            cpu.unclassed = self.hierarchy.unclassed[number];
        }
        Counted {
            cpus,
            ran: schedule
                .cpus
                .iter()
                .zip(&schedule.used)
                .map(|(cpu, used)| if *used { cpu.clock - cpu.begin } else { 0 })
                .collect(),
            occupied: self.hierarchy.memory.occupied,
        }
    }

    fn finish(self, windows: Windows) -> Outcome {
        let mut all = Counted {
            cpus: self.cpus.iter().map(|_| CpuResult::nothing(self.machine)).collect(),
            ran: vec![0; self.cpus.len()],
            occupied: [0; 3],
        };
        for window in &windows.ended {
            all.add(window);
        }
        let each = windows.ended.iter().map(|window| {
            let misses = |kind: usize| window.cpus.iter().map(|cpu| cpu.caches[kind].misses).sum();
            (
                window.cpus.iter().map(|cpu| cpu.references).sum(),
                window.ran.iter().copied().max().unwrap_or(0),
                (0..self.machine.caches.len()).map(misses).collect(),
            )
        });
        Outcome {
            windows: windows.warmed.then(|| each.collect()),
            cpus: all.cpus,
            pages: self.pages.count(),
            pages_max: self.pages.most_used(),
            moved: self.moved,
            copied: self.copied,
            collapsed: self.collapsed,
            wall: all.ran.iter().copied().max().unwrap_or(0),
            occupied: all.occupied,
            faults: self.faults.is_some(),
            knows_instructions: self.program.counts_instructions || self.program.has_fetches,
            hints: None,
        }
    }
}
