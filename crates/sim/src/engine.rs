//! One run: the machine's state, and how a reference is carried out.
//!
//! The common case, a hit in the first cache, is here; what lies beyond is in [`crate::beyond`],
//! the other cpus in [`crate::coherence`], and the policy at work in [`crate::acting`].

use policy::{Interest, Policy};
use sys::arrays::prefetch;
use trace::{Op, Ref};

use crate::acting::Acting;
use crate::beyond::Start;
use crate::cache::{Cache, DIRTY, LINES_MAX, PERM, WATCH};
use crate::clock::{Spent, Units, units, whole_ns};
use crate::coherence::Deposit;
use crate::config::{Config, Costs};
use crate::counts::{CacheCounts, CpuCounts};
use crate::detail::Detail;
use crate::directory::Directory;
use crate::error::SimError;
use crate::homes::{Homes, touch};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::outcome::Tally;
use crate::pages::PageTable;
use crate::recency::{Arena, Prior, Recency};
use crate::sharing::Pending;
use crate::steps::{Step, Steps};
use crate::tlb::Tlb;
use policy::Random;

/// A frame in use.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The frame, and in the lowest [`NODE_BITS`] its node: four of these fill a line of the host.
    home: u64,
    /// Number of the virtual page in its address space.
    pub number: u64,
}

/// There are 256 nodes at most ([`Layout`]).
const NODE_BITS: u32 = 8;

impl Copy {
    #[inline(always)]
    pub fn frame(&self) -> u64 {
        self.home >> NODE_BITS
    }

    #[inline(always)]
    pub fn node(&self) -> u32 {
        self.home as u32 & ((1 << NODE_BITS) - 1)
    }
}

/// One cpu: its clock, and what it did.
pub struct Cpu {
    pub clock: Units,
    /// Pieces that the first cache could not serve.
    pub walks: u64,
    pub spent: Spent,
    pub counts: CpuCounts,
    pub node: u32,
    pub core: u32,
}

/// Who makes a reference.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    pub cpu: u32,
    pub thread: u32,
    pub space: u32,
}

/// A piece of a reference on its way through the caches.
#[derive(Clone, Copy)]
pub struct Access {
    pub who: Who,
    pub core: u32,
    pub page: u32,
    pub copy: u32,
    pub virtual_address: u64,
    pub physical_address: u64,
    pub bytes: u32,
    pub pc_site: u32,
    pub write: bool,
    /// Whether it fills caches that do not allocate on writes: reads, and writes that also read.
    pub reads: bool,
    pub fetch: bool,
    /// The moment at which transfers are asked for.
    pub now: Units,
}

/// How the program's instructions are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Whether `Ref::insns` counts.
    pub counts_instructions: bool,
    /// Whether instruction fetches are in the stream.
    pub has_fetches: bool,
}

/// What the first cache of its route did for a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Done,
    /// There is none.
    None,
    /// It missed; what its shadow knew of the line.
    Missed(Prior),
    /// It hit, at this position, and that is not all.
    Care(usize),
}

pub struct Engine {
    pub layout: Layout,
    pub steps: Steps,
    pub caches: Vec<Cache>,
    /// The shadow of each instance: what a fully associative cache would hold.
    pub shadows: Vec<Recency>,
    /// What the shadows know ([`crate::layout::Place::arena`]).
    pub arenas: Vec<Arena>,
    tlbs: Vec<Tlb>,
    refill: Units,
    pub table: PageTable,
    pub copies: Vec<Copy>,
    pub homes: Homes,
    pub memory: Memory,
    pub directory: Directory,
    pub cpus: Vec<Cpu>,
    /// By cpu and kind of cache.
    pub counts: Vec<CacheCounts>,
    /// Instance that serves a cpu, by cpu and kind.
    instances: Vec<u32>,
    pub acting: Option<Box<Acting>>,
    pub costs: Costs,
    pub detail: Option<Box<Detail>>,
    pub classes: bool,
    pub coherent: bool,
    clock: Units,
    pub traits: Traits,
    /// What the piece at hand found out, for the policy.
    pub reached_memory: Option<u32>,
    pub deposits: Vec<Deposit>,
    /// Sharing misses that the piece at hand showed to be essential.
    pub essential: Vec<Pending>,
    copies_max: u64,
}

impl Engine {
    pub fn new(config: &Config, policy: Box<dyn Policy>, traits: Traits) -> Result<Self, SimError> {
        let machine = &config.machine;
        let layout = Layout::new(machine)?;
        let mut caches = Vec::new();
        let mut shadows = Vec::new();
        for (number, place) in layout.places.iter().enumerate() {
            let shape = &layout.caches[place.cache];
            let seed = Random::new(config.seed.wrapping_add(number as u64)).number();
            caches.push(Cache::new(shape.sets, shape.ways, shape.replacement, seed));
            if config.classes {
                shadows.push(Recency::new(shape.lines(), place.lane));
            }
        }
        let kinds = layout.caches.len();
        let instances = (0..machine.cpus)
            .flat_map(|cpu| layout.caches.iter().map(move |shape| shape.instance(cpu) as u32))
            .collect();
        let homes = Homes::new(machine, policy);
        let acting = (homes.interest != Interest::NONE).then(|| Box::new(Acting::new(machine, homes.interest)));
        let finest = layout.caches.iter().map(|shape| shape.line_bits).min().unwrap_or(6);
        let copies_max = u64::from(LINES_MAX >> (layout.page_bits - finest));
        Ok(Engine {
            steps: Steps::new(&layout),
            caches,
            shadows,
            arenas: layout
                .arenas()
                .iter()
                .map(|&(lanes, bits)| Arena::new(lanes, bits))
                .collect(),
            tlbs: machine
                .tlb
                .iter()
                .flat_map(|tlb| (0..machine.cpus).map(|_| Tlb::new(tlb)))
                .collect(),
            refill: machine.tlb.as_ref().map_or(0, |tlb| units(tlb.refill_ns)),
            table: PageTable::new(),
            copies: Vec::new(),
            memory: Memory::new(machine, 1 << layout.block_bits),
            directory: Directory::new(layout.cores()),
            cpus: (0..machine.cpus).map(|cpu| Cpu::new(&layout, cpu)).collect(),
            counts: vec![CacheCounts::default(); kinds * machine.cpus as usize],
            instances,
            homes,
            acting,
            costs: config.costs,
            detail: None,
            classes: config.classes,
            coherent: machine.cpus > 1,
            clock: units(1000.0 / machine.clock_mhz),
            traits,
            reached_memory: None,
            deposits: Vec::new(),
            essential: Vec::new(),
            copies_max,
            layout,
        })
    }

    #[inline(always)]
    pub fn instance(&self, cpu: u32, kind: usize) -> usize {
        self.instances[cpu as usize * self.layout.caches.len() + kind] as usize
    }

    #[inline(always)]
    pub fn counts_of(&mut self, cpu: u32, kind: usize) -> &mut CacheCounts {
        &mut self.counts[cpu as usize * self.layout.caches.len() + kind]
    }

    /// Instructions pass on a cpu.
    #[inline(always)]
    pub fn work(&mut self, cpu: u32, instructions: u64) {
        let cpu = &mut self.cpus[cpu as usize];
        cpu.counts.instructions += instructions;
        let time = instructions * self.clock;
        cpu.clock += time;
        cpu.spent.busy += time;
    }

    /// Has the host fetch what references to come will need, all of it at once, instead of
    /// waiting for one thing after the other when they are carried out.
    pub fn warm(&self, who: Who, refs: &[Ref]) {
        let page_bits = self.layout.page_bits;
        let block_bits = self.layout.block_bits;
        for r in refs {
            let number = r.addr >> page_bits;
            let Some(page) = self.table.peek(who.space, number) else {
                continue;
            };
            prefetch(&self.copies, page as usize);
            if let Some(tlb) = self.tlbs.get(who.cpu as usize) {
                tlb.warm(page, number);
            }
            if self.coherent {
                let lines = page_bits - block_bits;
                let within = (r.addr >> block_bits) as u32 & ((1 << lines) - 1);
                self.directory.warm(page << lines | within);
            }
            let (first, levels) = self.steps.route(who.cpu, r.op == Op::Fetch);
            let mut arena = None;
            for level in first..first + if self.classes { levels } else { 0 } {
                let step = self.steps.get(level);
                if arena != Some(step.arena) {
                    arena = Some(step.arena);
                    let lines = u32::from(step.page_lines);
                    let line = page << lines | (r.addr >> step.line_bits) as u32 & ((1 << lines) - 1);
                    self.arenas[usize::from(step.arena)].warm(line);
                }
            }
        }
        // Where the outer caches have it is known by the frame.
        for r in refs {
            let Some(page) = self.table.peek(who.space, r.addr >> page_bits) else {
                continue;
            };
            let Some(copy) = self.copies.get(page as usize) else {
                continue;
            };
            let physical = copy.frame() << page_bits | r.addr & ((1 << page_bits) - 1);
            let (first, levels) = self.steps.route(who.cpu, r.op == Op::Fetch);
            for level in first + 1..first + levels {
                let step = self.steps.get(level);
                let address = if step.virtual_index { r.addr } else { physical };
                self.caches[step.instance as usize].warm(step.set(&self.layout, address));
            }
        }
    }

    /// Carries out a reference: its instructions, then its pieces.
    #[inline(always)]
    pub fn reference<const COHERENT: bool, const CLASSES: bool>(&mut self, who: Who, r: &Ref) -> Result<(), SimError> {
        let instructions = match self.traits {
            Traits {
                counts_instructions: true,
                ..
            } => u64::from(r.insns),
            Traits { has_fetches: true, .. } => u64::from(r.op == Op::Fetch),
            _ => 1,
        };
        self.work(who.cpu, instructions);
        self.cpus[who.cpu as usize].counts.references += 1;
        let last = r.addr.saturating_add(u64::from(r.size.max(1)) - 1);
        let piece_bits = self.layout.piece_bits;
        if r.addr >> piece_bits == last >> piece_bits {
            return self.piece::<COHERENT, CLASSES>(who, r.addr, last, r);
        }
        let mut from = r.addr;
        loop {
            let end = from | ((1 << piece_bits) - 1);
            self.piece::<COHERENT, CLASSES>(who, from, end.min(last), r)?;
            if end >= last {
                return Ok(());
            }
            from = end + 1;
        }
    }

    #[inline(always)]
    fn piece<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        who: Who,
        from: u64,
        to: u64,
        r: &Ref,
    ) -> Result<(), SimError> {
        let page_bits = self.layout.page_bits;
        let number = from >> page_bits;
        let (page, first) = self.table.touch(who.space, number);
        let mut tlb_missed = false;
        if !self.tlbs.is_empty() {
            let cpu = &mut self.cpus[who.cpu as usize];
            cpu.counts.tlb_accesses += 1;
            if !self.tlbs[who.cpu as usize].touch(page, number) {
                tlb_missed = true;
                cpu.counts.tlb_misses += 1;
                cpu.clock += self.refill;
                cpu.spent.tlb += self.refill;
            }
        }
        let write = matches!(r.op, Op::Write | Op::Modify);
        if first {
            self.first_touch(who, page, write)?;
        }
        let copy = match self.acting.is_some() {
            true => self.before(who, page, write)?,
            false => page,
        };
        let offset = from & ((1 << page_bits) - 1);
        let physical = self.copies[copy as usize].frame() << page_bits | offset;
        let now = self.cpus[who.cpu as usize].clock;
        let first = self.first_cache::<COHERENT, CLASSES>(who.cpu, r.op, copy, from, physical);
        if first == First::Done && self.acting.is_none() && self.detail.is_none() {
            return Ok(());
        }
        let access = Access {
            who,
            core: self.cpus[who.cpu as usize].core,
            page,
            copy,
            virtual_address: from,
            physical_address: physical,
            bytes: (to - from) as u32 + 1,
            pc_site: r.site,
            write,
            reads: r.op != Op::Write,
            fetch: r.op == Op::Fetch,
            now,
        };
        self.go_on::<COHERENT, CLASSES>(&access, first, tlb_missed)
    }

    /// What the first cache leaves of a piece, and who wants to know of it.
    #[inline(never)]
    fn go_on<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        a: &Access,
        first: First,
        tlb_missed: bool,
    ) -> Result<(), SimError> {
        match first {
            First::Done => {}
            First::None => self.walk::<COHERENT, CLASSES>(a, Start::at(0)),
            First::Missed(prior) => {
                self.cpus[a.who.cpu as usize].walks += 1;
                self.walk::<COHERENT, CLASSES>(a, Start::missed(prior));
            }
            First::Care(at) => {
                let (first, _) = self.steps.route(a.who.cpu, a.fetch);
                let step = self.steps.get(first);
                self.hit_with_care::<COHERENT, CLASSES>(a, &step, at);
            }
        }
        self.detail_done(a);
        match self.acting.is_some() {
            true => self.after(a, tlb_missed),
            false => Ok(()),
        }
    }

    /// Looks a piece up in the first cache of its route, and does all that there is to do where
    /// it hits and nobody else has to know.
    #[inline(always)]
    fn first_cache<const COHERENT: bool, const CLASSES: bool>(
        &mut self,
        cpu: u32,
        op: Op,
        copy: u32,
        from: u64,
        physical: u64,
    ) -> First {
        let fetch = op == Op::Fetch;
        let (first, levels) = self.steps.route(cpu, fetch);
        if levels == 0 {
            return First::None;
        }
        let step = self.steps.at(first);
        let set = step.set(&self.layout, if step.virtual_index { from } else { physical });
        let within = (from >> step.line_bits) as u32 & ((1 << step.page_lines) - 1);
        let line = copy << step.page_lines | within;
        let instance = step.instance as usize;
        let prior = match CLASSES {
            true => {
                let arena = &mut self.arenas[usize::from(step.arena)];
                self.shadows[instance].touch(arena, line, op != Op::Write || step.allocate_on_write)
            }
            false => Prior::Cold,
        };
        let counts = &mut self.counts[step.counts as usize];
        counts.accesses += 1;
        let cache = &mut self.caches[instance];
        let Some(at) = cache.hit::<0>(set, line) else {
            return First::Missed(prior);
        };
        let state = cache.state(at);
        let write = matches!(op, Op::Write | Op::Modify);
        let care = match write {
            true => !step.write_back || (COHERENT && (state & PERM == 0 || state & WATCH != 0)),
            false => COHERENT && (state & WATCH != 0 || (fetch && !step.private)),
        };
        if care {
            return First::Care(at);
        }
        if write {
            cache.set_state(at, DIRTY);
        }
        if step.hit > 0 {
            counts.hit_stall += step.hit;
            let cpu = &mut self.cpus[cpu as usize];
            cpu.clock += step.hit;
            cpu.spent.cache += step.hit;
        }
        First::Done
    }

    /// The shadow of a cache is used as the cache is.
    #[inline(always)]
    pub fn shadow(&mut self, step: &Step, line: u32, insert: bool) -> Prior {
        let arena = &mut self.arenas[usize::from(step.arena)];
        self.shadows[step.instance as usize].touch(arena, line, insert)
    }

    /// The set of a cache that a piece goes to.
    #[inline(always)]
    pub fn set(&self, a: &Access, step: &Step) -> usize {
        step.set(
            &self.layout,
            if step.virtual_index {
                a.virtual_address
            } else {
                a.physical_address
            },
        )
    }

    #[cold]
    #[inline(never)]
    fn first_touch(&mut self, who: Who, page: u32, write: bool) -> Result<(), SimError> {
        if self.acting.is_some() {
            self.homes.world.now_ns = whole_ns(self.cpus[who.cpu as usize].clock);
        }
        let touch = touch(self.table.page(page), who.thread, who.cpu, write);
        let frame = self.homes.place(&touch, self.table.len())?;
        let copy = self.new_copy(page, frame)?;
        if let Some(acting) = &mut self.acting {
            acting.new_page(page, copy);
        }
        Ok(())
    }

    /// Numbers a frame that begins to hold a page or a replica of it.
    pub fn new_copy(&mut self, page: u32, frame: u64) -> Result<u32, SimError> {
        let copy = Copy {
            home: frame << NODE_BITS | u64::from(self.homes.frames.node_of(frame)),
            number: self.table.page(page).number,
        };
        if let Some(number) = self.acting.as_mut().and_then(|acting| acting.free_copies.pop()) {
            self.copies[number as usize] = copy;
            return Ok(number);
        }
        if self.copies.len() as u64 >= self.copies_max {
            return Err(SimError::TooManyPages { pages: self.copies_max });
        }
        self.copies.push(copy);
        if self.coherent {
            self.directory
                .grow(self.copies.len() << (self.layout.page_bits - self.layout.block_bits));
        }
        Ok(self.copies.len() as u32 - 1)
    }

    pub fn tally(&self) -> Tally<'_> {
        Tally {
            layout: &self.layout,
            counts: &self.counts,
            cpus: &self.cpus,
            homes: &self.homes,
            pages: self.table.len(),
            classes: self.classes,
            knows_instructions: self.traits.counts_instructions || self.traits.has_fetches,
        }
    }

    pub fn tlb_remove(&mut self, page: u32) {
        let number = self.table.page(page).number;
        for tlb in &mut self.tlbs {
            tlb.remove(page, number);
        }
    }

    /// The set of a line in a kind of cache.
    #[inline]
    pub fn set_of(&self, kind: usize, line: u32) -> usize {
        let shape = &self.layout.caches[kind];
        let lines_bits = self.layout.page_bits - shape.line_bits;
        let copy = &self.copies[(line >> lines_bits) as usize];
        let offset = u64::from(line & ((1 << lines_bits) - 1)) << shape.line_bits;
        let frame = if shape.virtual_index { copy.number } else { copy.frame() };
        shape.set(frame << self.layout.page_bits | offset)
    }

    /// A cpu had nothing to run until `moment`.
    pub fn wait_until(&mut self, cpu: u32, moment: Units) {
        let cpu = &mut self.cpus[cpu as usize];
        let wait = moment.saturating_sub(cpu.clock);
        cpu.clock += wait;
        cpu.spent.imbalance += wait;
    }

    /// The block that a line is in.
    pub fn block_of(&self, kind: usize, line: u32) -> u32 {
        line >> (self.layout.block_bits - self.layout.caches[kind].line_bits)
    }
}

impl Access {
    /// The number of the line that the piece is in.
    #[inline(always)]
    pub fn line(&self, step: &Step) -> u32 {
        self.line_of(u32::from(step.page_lines), u32::from(step.line_bits))
    }

    /// The same for lines of `line_bits`, of which a page has `1 << page_lines`.
    #[inline(always)]
    pub fn line_of(&self, page_lines: u32, line_bits: u32) -> u32 {
        let within = (self.virtual_address >> line_bits) as u32 & ((1 << page_lines) - 1);
        self.copy << page_lines | within
    }
}

impl Cpu {
    pub fn new(layout: &Layout, cpu: u32) -> Self {
        Cpu {
            clock: 0,
            walks: 0,
            spent: Spent::default(),
            counts: CpuCounts::default(),
            node: layout.node(cpu),
            core: layout.core(cpu),
        }
    }
}
