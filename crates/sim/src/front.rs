//! The part of a run that does not depend on placement: TLB and first caches of one cpu.
//!
//! If placement decides neither the order of references nor the sets of the first caches, all
//! policies have the same hits and misses there. They are computed once. The output of the first
//! caches goes to each policy's [`crate::back`] as a stream of entries, piece by piece of the trace.

use machine::Machine;
use policy::Page;
use trace::{Op, Ref};

use crate::cache::{Cache, DIRTY};
use crate::clock::{Spent, Units, units};
use crate::config::{Config, Order};
use crate::counts::{CacheCounts, CpuCounts};
use crate::engine::{Cpu, Traits};
use crate::error::SimError;
use crate::filter::{Between, FETCH, FILLED, LOOKUP, Passed, READS, Stream, WRITE, WRITE_BACK};
use crate::layout::Layout;
use crate::lookup::{Lookup, alone, class, look_up, take_in};
use crate::pages::PageTable;
use crate::recency::{Arena, Recency};
use crate::steps::{Step, Steps};
use crate::tlb::Tlb;

/// The output of a piece of the trace for the backs: the pages that it touches first, and the
/// entries that the first caches pass on.
#[derive(Debug, Default)]
pub struct Chunk {
    pub passed: Stream,
    pub pages: Vec<NewPage>,
}

/// The first touch of a page.
#[derive(Clone, Copy, Debug)]
pub struct NewPage {
    pub page: Page,
    pub thread: u32,
    pub write: bool,
}

/// One first cache: for data, or for fetches.
struct First {
    step: Step,
    cache: Cache,
    shadow: Option<(Recency, Arena)>,
    counts: CacheCounts,
}

pub struct Front {
    layout: Layout,
    table: PageTable,
    tlb: Option<Tlb>,
    refill: Units,
    /// For data, then for fetches where they have a cache of their own.
    firsts: Vec<First>,
    /// True if fetches have a first cache of their own.
    own_fetch: bool,
    /// True if the first cache for data is the only one.
    last: bool,
    clock: Units,
    traits: Traits,
    spent: Spent,
    pub counts: CpuCounts,
    stream: Stream,
    between: Between,
    pages: Vec<NewPage>,
    pages_max: u64,
}

/// Returns whether the first caches can be computed once for all policies. `threads`: of the trace.
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
        // A piece's time decides which lines others have left in a cache.
        && machine.caches.iter().all(|cache| cache.others_gbps == 0.0)
        // The contents of an outer cache decide where a prefetcher's lines come from.
        && machine.caches.iter().all(|cache| cache.prefetch.is_none())
        && machine.prefetch.is_none()
        // The wait for a piece depends on those before it, wherever they were found.
        && machine.core.is_none()
        // A page that is not there takes time.
        && machine.memory.fault_ns == 0.0
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
            let (cache, shadow) = alone(config, shape, &step);
            firsts.push(First {
                step,
                cache,
                shadow,
                counts: CacheCounts::default(),
            });
        }
        let finest = layout.caches.iter().map(|shape| shape.line_bits).min().unwrap_or(6);
        Ok(Front {
            pages_max: u64::from(crate::cache::LINES_MAX >> (layout.page_bits - finest)),
            table: PageTable::new(),
            tlb: machine.tlb.as_ref().map(Tlb::new),
            refill: machine.tlb.as_ref().map_or(0, |tlb| units(tlb.refill_ns)),
            own_fetch: firsts.len() > 1,
            last: layout.data.len() == 1,
            firsts,
            clock: units(1000.0 / machine.clock_mhz),
            traits,
            spent: Spent::default(),
            counts: CpuCounts::default(),
            stream: Stream::default(),
            between: Between::default(),
            pages: Vec::new(),
            layout,
        })
    }

    /// Carries out references of a thread; [`Front::take`] fetches the output.
    pub fn references(&mut self, space: u32, thread: u32, refs: &[Ref]) -> Result<(), SimError> {
        // All first caches are made for the same number of ways, or for none.
        let ways = self.firsts.iter().map(|first| first.cache.fixed_ways());
        let ways = ways.reduce(|a, b| if a == b { a } else { 0 }).unwrap_or(0);
        match (self.firsts[0].shadow.is_some(), ways) {
            (false, 1) => self.run::<false, 1>(space, thread, refs),
            (false, 2) => self.run::<false, 2>(space, thread, refs),
            (false, 4) => self.run::<false, 4>(space, thread, refs),
            (false, 8) => self.run::<false, 8>(space, thread, refs),
            (false, _) => self.run::<false, 0>(space, thread, refs),
            (true, 1) => self.run::<true, 1>(space, thread, refs),
            (true, 2) => self.run::<true, 2>(space, thread, refs),
            (true, 4) => self.run::<true, 4>(space, thread, refs),
            (true, 8) => self.run::<true, 8>(space, thread, refs),
            (true, _) => self.run::<true, 0>(space, thread, refs),
        }
    }

    pub fn work(&mut self, instructions: u64) {
        self.counts.instructions += instructions;
        self.between.pending += instructions * self.clock;
        self.spent.busy += instructions * self.clock;
    }

    /// Replaces a chunk by the output since the last time.
    pub fn take(&mut self, chunk: &mut Chunk) {
        chunk.passed.clear();
        chunk.pages.clear();
        std::mem::swap(&mut chunk.passed, &mut self.stream);
        std::mem::swap(&mut chunk.pages, &mut self.pages);
    }

    pub fn knows_instructions(&self) -> bool {
        self.traits.knows_instructions()
    }

    /// Adds the events here to a back's counts.
    pub fn add_to(&self, cpu: &mut Cpu, counts: &mut [CacheCounts]) {
        for first in &self.firsts {
            counts[first.step.counts as usize].add(&first.counts);
        }
        cpu.counts.references += self.counts.references;
        cpu.counts.instructions += self.counts.instructions;
        cpu.counts.tlb_accesses += self.counts.tlb_accesses;
        cpu.counts.tlb_misses += self.counts.tlb_misses;
        cpu.spent.busy += self.spent.busy;
        cpu.spent.cache += self.spent.cache;
        cpu.spent.tlb += self.spent.tlb;
    }

    fn run<const CLASSES: bool, const WAYS: usize>(
        &mut self,
        space: u32,
        thread: u32,
        refs: &[Ref],
    ) -> Result<(), SimError> {
        let piece_bits = self.layout.piece_bits;
        let (clock, traits) = (self.clock, self.traits);
        let mut instructions = 0;
        self.counts.references += refs.len() as u64;
        // Values that change with every piece are kept in the host's registers.
        let mut between = self.between;
        for r in refs {
            let passed = match traits {
                Traits {
                    counts_instructions: true,
                    ..
                } => u64::from(r.insns),
                Traits { has_fetches: true, .. } => u64::from(r.op == Op::Fetch),
                _ => 1,
            };
            instructions += passed;
            between.pending += passed * clock;
            // A hint: the program's result does not depend on it.
            if r.op == Op::Prefetch {
                self.counts.references -= 1;
                continue;
            }
            let last = r.addr.saturating_add(u64::from(r.size.max(1)) - 1);
            if r.addr >> piece_bits == last >> piece_bits {
                self.piece::<CLASSES, WAYS>(&mut between, space, thread, r.addr, r.op)?;
                continue;
            }
            let mut from = r.addr;
            loop {
                self.piece::<CLASSES, WAYS>(&mut between, space, thread, from, r.op)?;
                let end = from | ((1 << piece_bits) - 1);
                if end >= last {
                    break;
                }
                from = end + 1;
            }
        }
        self.between = between;
        self.counts.instructions += instructions;
        self.spent.busy += instructions * clock;
        Ok(())
    }

    #[inline(always)]
    fn piece<const CLASSES: bool, const WAYS: usize>(
        &mut self,
        between: &mut Between,
        space: u32,
        thread: u32,
        address: u64,
        op: Op,
    ) -> Result<(), SimError> {
        between.begin();
        let page_bits = self.layout.page_bits;
        let number = address >> page_bits;
        let (page, new) = self.table.touch(space, number);
        if let Some(tlb) = &mut self.tlb {
            self.counts.tlb_accesses += 1;
            if !tlb.touch(page, number) {
                self.counts.tlb_misses += 1;
                let refill = tlb.walk(space, number).unwrap_or(self.refill);
                between.pending += refill;
                self.spent.tlb += refill;
            }
        }
        let write = matches!(op, Op::Write | Op::Modify);
        if new {
            self.first_touch(page, thread, write)?;
        }
        let fetch = op == Op::Fetch;
        if fetch && !self.traits.has_fetches {
            return Err(SimError::UnexpectedFetch);
        }
        let first = &mut self.firsts[usize::from(fetch && self.own_fetch)];
        let step = &first.step;
        // Sets lie within the page, or are chosen by the virtual address: either way this is it.
        let place = step.set_line(&self.layout, page, address, address);
        let reads = op != Op::Write;
        let shadow = match &mut first.shadow {
            Some((shadow, arena)) if CLASSES => Some((shadow, arena)),
            _ => None,
        };
        let counts = &mut first.counts;
        let prior = match look_up::<WAYS>(step, &mut first.cache, shadow, counts, place, reads) {
            Lookup::Hit(at) => {
                if step.write_back {
                    first.cache.set_state(at, if write { DIRTY } else { 0 });
                } else if write {
                    let piece = piece(&self.layout, page, address);
                    self.stream.pass_on(between, piece, self.last);
                }
                if step.hit > 0 {
                    counts.hit_stall += step.hit;
                    self.spent.cache += step.hit;
                    between.after += step.hit;
                }
                return Ok(());
            }
            Lookup::Miss(prior) => prior,
        };
        let piece = piece(&self.layout, page, address);
        let class = CLASSES.then(|| class(prior));
        if let Some(class) = class {
            counts.classes[class as usize] += 1;
        }
        let mut what = LOOKUP | if reads { READS } else { 0 } | if fetch { FETCH } else { 0 };
        let fills = step.fills(reads);
        if fills {
            what |= FILLED;
        }
        self.stream.reserve(4);
        self.stream
            .push(between, piece, Passed::with_miss(what, step.kind, class));
        let keeps = write && step.write_back;
        if fills {
            let gone = take_in::<WAYS>(&mut first.cache, counts, place, if keeps { DIRTY } else { 0 });
            let finer = u32::from(step.line_bits) - self.layout.piece_bits;
            self.stream
                .push_if(gone.is_dirty(), gone.line().unwrap_or(0) << finer, WRITE_BACK);
            if keeps {
                return Ok(());
            }
        }
        if write {
            self.stream.push(between, piece, WRITE);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn first_touch(&mut self, page: u32, thread: u32, write: bool) -> Result<(), SimError> {
        if u64::from(page) >= self.pages_max {
            return Err(SimError::TooManyPages { pages: self.pages_max });
        }
        let page = self.table.page(page);
        self.pages.push(NewPage { page, thread, write });
        Ok(())
    }
}

/// The number of a piece in the footprint.
#[inline(always)]
fn piece(layout: &Layout, page: u32, address: u64) -> u32 {
    let bits = layout.page_bits - layout.piece_bits;
    page << bits | (address >> layout.piece_bits) as u32 & ((1 << bits) - 1)
}
