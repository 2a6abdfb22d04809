//! The part of a run that does not depend on placement: TLB and first caches of one cpu.
//!
//! Where placement decides neither the order of references nor the sets of the first caches, all
//! policies have the same hits and misses there. They are computed once, and what leaves the first
//! caches goes to each policy's [`crate::back`] as a list of [`Passed`], piece by piece of the trace.

use machine::Machine;
use policy::Page;
use trace::{Op, Ref};

use crate::beyond::{Missed, Start};
use crate::cache::{Cache, DIRTY};
use crate::clock::{Spent, Units, units};
use crate::config::{Config, Order};
use crate::counts::{CacheCounts, Class, CpuCounts};
use crate::engine::{Engine, Traits};
use crate::error::SimError;
use crate::layout::Layout;
use crate::pages::PageTable;
use crate::random::Random;
use crate::recency::{Prior, Recency};
use crate::steps::{Step, Steps};
use crate::tlb::Tlb;

/// What the first caches pass on: one piece that missed, a write that goes through, or a page
/// that is touched for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Number of the piece in the footprint; of the page for [`FIRST_TOUCH`].
    pub piece: u32,
    /// The dirty line that made room ([`VICTIM`]); the thread for [`FIRST_TOUCH`].
    pub other: u32,
    /// Time on the cpu's clock since the entry before, in units.
    pub time: u32,
    pub what: u32,
}

pub const WRITE: u32 = 1;
pub const READS: u32 = 2;
pub const FETCH: u32 = 4;
/// `other` is a dirty line.
pub const VICTIM: u32 = 8;
/// The first cache took the line in.
pub const FILLED: u32 = 16;
/// The first cache keeps the write.
pub const KEPT: u32 = 32;
/// A write that hit and is passed on.
pub const THROUGH: u32 = 64;
pub const FIRST_TOUCH: u32 = 128;
/// Only time: `piece` and `other` are its high and low halves.
pub const TIME: u32 = 256;
/// The class of the miss, from this bit on.
const CLASS_SHIFT: u32 = 16;

impl Passed {
    /// The class of the miss in the first cache.
    #[inline(always)]
    pub fn class(&self) -> Missed {
        match self.what >> CLASS_SHIFT {
            1 => Missed::Classed(Class::Cold),
            2 => Missed::Classed(Class::Capacity),
            3 => Missed::Classed(Class::Conflict),
            _ => Missed::Unclassed,
        }
    }

    #[inline(always)]
    pub fn start(&self) -> Start {
        let victim = (self.what & VICTIM != 0).then_some(self.other);
        Start::second(self.class(), self.what & FILLED != 0, victim)
    }
}

/// Entries in their order, and the pages of those that are first touches.
#[derive(Debug, Default)]
pub struct Chunk {
    pub passed: Vec<Passed>,
    pub pages: Vec<Page>,
}

impl Chunk {
    pub fn clear(&mut self) {
        self.passed.clear();
        self.pages.clear();
    }
}

/// One first cache: for data, or for fetches.
struct First {
    step: Step,
    cache: Cache,
    shadow: Option<Recency>,
    counts: CacheCounts,
}

pub struct Front {
    layout: Layout,
    table: PageTable,
    tlb: Option<Tlb>,
    refill: Units,
    /// For data, then for fetches where they have a cache of their own.
    firsts: Vec<First>,
    clock: Units,
    traits: Traits,
    /// Time since the last entry.
    pending: Units,
    pub spent: Spent,
    pub counts: CpuCounts,
    pub chunk: Chunk,
    pages_max: u64,
}

/// Whether the first caches can be computed once for all policies. `threads`: of the trace.
pub fn can_split(machine: &Machine, order: Order, threads: usize, traits: Traits) -> bool {
    let Ok(layout) = Layout::new(machine) else {
        return false;
    };
    let Some(&data) = layout.data.first() else {
        return false;
    };
    let fetch = layout.fetch.first().copied();
    let apart = fetch.is_some_and(|fetch| fetch == data || !layout.data.contains(&fetch));
    let fixed = |kind: usize| !layout.caches[kind].depends_on_placement(machine.page_bytes);
    let outer = |route: &[usize]| route.iter().skip(1).all(|&kind| !layout.caches[kind].inclusive);
    machine.cpus == 1
        && (threads <= 1 || order == Order::Recorded)
        && fixed(data)
        && (!traits.has_fetches || apart && fetch.is_none_or(fixed))
        && outer(&layout.data)
        && outer(&layout.fetch)
}

impl Front {
    pub fn new(config: &Config, traits: Traits) -> Result<Self, SimError> {
        let machine = &config.machine;
        let layout = Layout::new(machine)?;
        let steps = Steps::new(&layout);
        let mut firsts: Vec<First> = Vec::new();
        for fetch in [false, true] {
            let (first, levels) = steps.route(0, fetch);
            if levels == 0 || fetch && (!traits.has_fetches || layout.fetch[0] == layout.data[0]) {
                continue;
            }
            let step = steps.get(first);
            let shape = &layout.caches[step.kind as usize];
            let seed = Random::new(config.seed.wrapping_add(u64::from(step.instance))).next();
            firsts.push(First {
                step,
                cache: Cache::new(shape.sets, shape.ways, shape.replacement, seed),
                shadow: config
                    .classes
                    .then(|| Recency::new(shape.lines(), u32::from(step.page_lines))),
                counts: CacheCounts::default(),
            });
        }
        let finest = layout.caches.iter().map(|shape| shape.line_bits).min().unwrap_or(6);
        Ok(Front {
            pages_max: u64::from(crate::cache::LINES_MAX >> (layout.page_bits - finest)),
            layout,
            table: PageTable::new(),
            tlb: machine.tlb.as_ref().map(Tlb::new),
            refill: machine.tlb.as_ref().map_or(0, |tlb| units(tlb.refill_ns)),
            firsts,
            clock: units(1000.0 / machine.clock_mhz),
            traits,
            pending: 0,
            spent: Spent::default(),
            counts: CpuCounts::default(),
            chunk: Chunk::default(),
        })
    }

    /// Carries out references of a thread; what goes on is in [`Front::chunk`].
    pub fn references(&mut self, space: u32, thread: u32, refs: &[Ref]) -> Result<(), SimError> {
        match (self.firsts[0].shadow.is_some(), self.tlb.is_some()) {
            (false, false) => self.run::<false, false>(space, thread, refs),
            (false, true) => self.run::<false, true>(space, thread, refs),
            (true, false) => self.run::<true, false>(space, thread, refs),
            (true, true) => self.run::<true, true>(space, thread, refs),
        }
    }

    pub fn work(&mut self, instructions: u64) {
        self.counts.instructions += instructions;
        self.pending += instructions * self.clock;
        self.spent.busy += instructions * self.clock;
    }

    /// The time since the last entry, at the end.
    pub fn rest(&mut self) -> Units {
        std::mem::take(&mut self.pending)
    }

    /// Adds what happened here to a back's counts.
    pub fn add_to(&self, engine: &mut Engine) {
        for first in &self.firsts {
            engine.counts[first.step.counts as usize].add(&first.counts);
        }
        let cpu = &mut engine.cpus[0];
        cpu.counts.references += self.counts.references;
        cpu.counts.instructions += self.counts.instructions;
        cpu.counts.tlb_accesses += self.counts.tlb_accesses;
        cpu.counts.tlb_misses += self.counts.tlb_misses;
        cpu.spent.busy += self.spent.busy;
        cpu.spent.cache += self.spent.cache;
        cpu.spent.tlb += self.spent.tlb;
    }

    fn run<const CLASSES: bool, const TLB: bool>(
        &mut self,
        space: u32,
        thread: u32,
        refs: &[Ref],
    ) -> Result<(), SimError> {
        let piece_bits = self.layout.piece_bits;
        let mut instructions = 0;
        self.counts.references += refs.len() as u64;
        for r in refs {
            let passed = match self.traits {
                Traits {
                    counts_instructions: true,
                    ..
                } => u64::from(r.insns),
                Traits { has_fetches: true, .. } => u64::from(r.op == Op::Fetch),
                _ => 1,
            };
            instructions += passed;
            self.pending += passed * self.clock;
            let last = r.addr.saturating_add(u64::from(r.size.max(1)) - 1);
            if r.addr >> piece_bits == last >> piece_bits {
                self.piece::<CLASSES, TLB>(space, thread, r.addr, r.op)?;
                continue;
            }
            let mut from = r.addr;
            loop {
                self.piece::<CLASSES, TLB>(space, thread, from, r.op)?;
                let end = from | ((1 << piece_bits) - 1);
                if end >= last {
                    break;
                }
                from = end + 1;
            }
        }
        self.counts.instructions += instructions;
        self.spent.busy += instructions * self.clock;
        Ok(())
    }

    #[inline(always)]
    fn piece<const CLASSES: bool, const TLB: bool>(
        &mut self,
        space: u32,
        thread: u32,
        address: u64,
        op: Op,
    ) -> Result<(), SimError> {
        let page_bits = self.layout.page_bits;
        let number = address >> page_bits;
        let (page, new) = self.table.touch(space, number);
        if TLB && let Some(tlb) = &mut self.tlb {
            self.counts.tlb_accesses += 1;
            if !tlb.touch(page, number) {
                self.counts.tlb_misses += 1;
                self.pending += self.refill;
                self.spent.tlb += self.refill;
            }
        }
        let write = matches!(op, Op::Write | Op::Modify);
        if new {
            self.first_touch(page, thread, write)?;
        }
        if op == Op::Fetch && !self.traits.has_fetches {
            return Err(SimError::UnexpectedFetch);
        }
        let own = usize::from(op == Op::Fetch && self.firsts.len() > 1);
        let first = &mut self.firsts[own];
        let step = first.step;
        // Sets lie within the page, or are chosen by the virtual address: either way this is it.
        let set = step.set(&self.layout, address);
        let page_lines = u32::from(step.page_lines);
        let line = page << page_lines | (address >> step.line_bits) as u32 & ((1 << page_lines) - 1);
        let reads = op != Op::Write;
        let prior = match &mut first.shadow {
            Some(shadow) if CLASSES => shadow.touch(line, reads || step.allocate_on_write),
            _ => Prior::Cold,
        };
        first.counts.accesses += 1;
        if let Some(at) = first.cache.find(set, line) {
            first.cache.used(set, at);
            if step.hit > 0 {
                first.counts.hit_stall += step.hit;
                self.spent.cache += step.hit;
                self.pending += step.hit;
            }
            if write {
                if step.write_back {
                    first.cache.set_state(at, DIRTY);
                } else {
                    // The hit's own time comes after the moment of its transfers.
                    self.pending -= step.hit;
                    self.pass(page, address, THROUGH | WRITE, 0);
                    self.pending += step.hit;
                }
            }
            return Ok(());
        }
        let mut what = u32::from(write) * WRITE | u32::from(reads) * READS | u32::from(op == Op::Fetch) * FETCH;
        let mut other = 0;
        first.counts.misses += 1;
        if CLASSES {
            let (class, bits) = match prior {
                Prior::Cold => (Class::Cold, 1),
                Prior::Out => (Class::Capacity, 2),
                Prior::In => (Class::Conflict, 3),
            };
            first.counts.classes[class as usize] += 1;
            what |= bits << CLASS_SHIFT;
        }
        if reads || step.allocate_on_write {
            what |= FILLED;
            let keeps = write && step.write_back;
            let state = if keeps { DIRTY } else { 0 };
            if let Some(gone) = first.cache.fill(set, line, state)
                && gone.state & DIRTY != 0
            {
                first.counts.writebacks += 1;
                what |= VICTIM;
                other = gone.line;
            }
            if keeps {
                what |= KEPT;
            }
        }
        self.pass(page, address, what, other);
        Ok(())
    }

    #[inline(always)]
    fn pass(&mut self, page: u32, address: u64, what: u32, other: u32) {
        let bits = self.layout.page_bits - self.layout.piece_bits;
        let within = (address >> self.layout.piece_bits) as u32 & ((1 << bits) - 1);
        self.emit(page << bits | within, what, other);
    }

    #[inline(always)]
    fn emit(&mut self, piece: u32, what: u32, other: u32) {
        let time = match u32::try_from(self.pending) {
            Ok(time) => time,
            Err(_) => self.long_time(),
        };
        self.pending = 0;
        self.chunk.passed.push(Passed {
            piece,
            other,
            time,
            what,
        });
    }

    #[cold]
    fn long_time(&mut self) -> u32 {
        self.chunk.passed.push(Passed {
            piece: (self.pending >> 32) as u32,
            other: self.pending as u32,
            time: 0,
            what: TIME,
        });
        0
    }

    #[cold]
    #[inline(never)]
    fn first_touch(&mut self, page: u32, thread: u32, write: bool) -> Result<(), SimError> {
        if u64::from(page) >= self.pages_max {
            return Err(SimError::TooManyPages { pages: self.pages_max });
        }
        self.chunk.pages.push(self.table.page(page));
        self.emit(page, FIRST_TOUCH | u32::from(write) * WRITE, thread);
        Ok(())
    }
}
