//! One run: the machine's state.
//!
//! [`crate::pieces`] carries out a reference, [`crate::miss_path`] the levels beyond the first cache,
//! [`crate::coherence`] the other cpus, and [`crate::dynamic`] the policy at work.

use policy::{Interest, Page, Policy};
use trace::{Dependence, Event, Header, Misprediction, Pace};

use crate::cache::{Cache, LINES_MAX};
use crate::changes::HugePages;
use crate::clock::{Spent, Units, units, whole_ns};
use crate::coherence::Deposit;
use crate::config::{Config, Costs};
use crate::counted::Aside;
use crate::counts::{CacheCounts, CpuCounts};
use crate::detail::Detail;
use crate::directory::Directory;
use crate::dynamic::Dynamic;
use crate::error::SimError;
use crate::faults::{Doing, Faults};
use crate::homes::{Homes, touch};
use crate::layout::Layout;
use crate::lookup::{self, SetLine};
use crate::memory::Memory;
use crate::others::Others;
use crate::outcome::Tally;
use crate::overlap::{self, Loads, Overlap};
use crate::pages::PageTable;
use crate::pieces::{Access, Who};
use crate::prefetch::Prefetchers;
use crate::recency::{Arena, Recency};
use crate::sharing::Pending;
use crate::slots::Planned;
use crate::software_prefetch::SoftwarePrefetch;
use crate::steps::{Step, Steps};
use crate::tlb::Tlb;
use crate::waits::Wait;

/// A frame in use.
#[derive(Clone, Copy, Debug)]
pub struct PageCopy {
    /// The frame, and in the lowest [`NODE_BITS`] its node: four of these fill a line of the host.
    home: u64,
    /// Number of the virtual page in its address space.
    pub number: u64,
}

/// There are 256 nodes at most ([`Layout`]).
const NODE_BITS: u32 = 8;

impl PageCopy {
    #[inline(always)]
    pub fn frame(&self) -> u64 {
        self.home >> NODE_BITS
    }

    #[inline(always)]
    pub fn node(&self) -> u32 {
        self.home as u32 & ((1 << NODE_BITS) - 1)
    }
}

/// One cpu: its clock, and its counts.
pub struct Cpu {
    pub clock: Units,
    /// Instructions since the run began.
    pub passed: u64,
    /// Its clock when counting began.
    pub begin: Units,
    /// Pieces that no cache on their route could serve.
    pub far: u64,
    pub spent: Spent,
    pub counts: CpuCounts,
    pub node: u32,
    pub core: u32,
}

/// How the program's instructions are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// True if `Ref::insns` counts.
    pub counts_instructions: bool,
    /// True if instruction fetches are in the stream.
    pub has_fetches: bool,
    /// True if the recorder left out those that a small cache answered.
    pub filtered_fetches: bool,
}

impl Traits {
    pub fn of(header: &Header) -> Traits {
        Traits {
            counts_instructions: header.counts_instructions,
            has_fetches: header.has_fetches,
            filtered_fetches: header.gaps.as_ref().is_some_and(|gaps| gaps.filtered_fetches),
        }
    }

    /// Returns whether the number of instructions is known.
    pub fn knows_instructions(&self) -> bool {
        self.counts_instructions || self.has_fetches && !self.filtered_fetches
    }
}

pub struct Engine {
    pub layout: Layout,
    pub steps: Steps,
    pub caches: Vec<Cache>,
    /// The shadow of each instance: the contents of a fully associative cache.
    pub shadows: Vec<Recency>,
    /// The shadows' positions ([`crate::layout::Place::arena`]).
    pub arenas: Vec<Arena>,
    /// Lines that others brought into caches that they share.
    pub others: Others,
    pub tlbs: Vec<Tlb>,
    /// Set if some data is translated by huge pages.
    pub huge_pages: Option<Box<HugePages>>,
    /// To be subtracted from the addresses of the current reference to get those of the program.
    pub moved: u64,
    pub refill: Units,
    /// The time of a walk for the current piece.
    pub refill_here: Units,
    pub table: PageTable,
    pub copies: Vec<PageCopy>,
    pub homes: Homes,
    pub memory: Memory,
    pub directory: Directory,
    pub cpus: Vec<Cpu>,
    /// By cpu and kind of cache.
    pub counts: Vec<CacheCounts>,
    /// Instance that serves a cpu, by cpu and kind.
    instances: Vec<u32>,
    pub dynamic: Option<Box<Dynamic>>,
    /// Set if page faults take time.
    pub faults: Option<Box<Faults>>,
    pub costs: Costs,
    /// Set if the policy wants to know of cache slots, and a plan describes them.
    pub plan: Option<Box<Planned>>,
    pub detail: Option<Box<Detail>>,
    /// Set if the windows of the trace are warmed.
    pub aside: Option<Box<Aside>>,
    /// Set if a cache of the machine prefetches.
    pub prefetchers: Option<Box<Prefetchers>>,
    /// Set if the program's prefetches do something.
    pub software_prefetch: Option<Box<SoftwarePrefetch>>,
    /// Set if cpus overlap.
    pub overlap: Option<Box<Overlap>>,
    pub classes: bool,
    pub coherent: bool,
    clock: Units,
    pub traits: Traits,
    /// Results of the current piece, for the policy.
    pub reached_memory: Option<u32>,
    pub deposits: Vec<Deposit>,
    /// Sharing misses that the current piece showed to be essential.
    pub essential: Vec<Pending>,
    copies_max: u64,
}

impl Engine {
    /// `dependences`, `paces`, `mispredictions`: of the sites of the input. `loads`: the effect of changes of the
    /// program on them.
    pub fn new(
        config: &Config,
        policy: Box<dyn Policy>,
        traits: Traits,
        dependences: &[Dependence],
        paces: &[Pace],
        mispredictions: &[Misprediction],
        loads: &Loads,
    ) -> Result<Self, SimError> {
        let machine = &config.machine;
        let layout = Layout::new(machine)?;
        let mut caches = Vec::new();
        let mut shadows = Vec::new();
        for (number, place) in layout.places.iter().enumerate() {
            let shape = &layout.caches[place.cache];
            caches.push(lookup::empty(config, shape, number as u32));
            if config.classes {
                shadows.push(Recency::new(shape.lines(), place.lane));
            }
        }
        let kinds = layout.caches.len();
        let instances = (0..machine.cpus)
            .flat_map(|cpu| layout.caches.iter().map(move |shape| shape.instance(cpu) as u32))
            .collect();
        let homes = Homes::new(machine, policy);
        let dynamic = (homes.interest != Interest::NONE).then(|| Box::new(Dynamic::new(machine, homes.interest)));
        let finest = layout.caches.iter().map(|shape| shape.line_bits).min().unwrap_or(6);
        let copies_max = u64::from(LINES_MAX >> (layout.page_bits - finest));
        Ok(Engine {
            steps: Steps::new(&layout),
            others: Others::new(config, &layout),
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
            huge_pages: None,
            moved: 0,
            refill: machine.tlb.as_ref().map_or(0, |tlb| units(tlb.refill_ns)),
            refill_here: 0,
            table: PageTable::new(),
            copies: Vec::new(),
            memory: Memory::new(machine, 1 << layout.block_bits),
            directory: Directory::new(layout.cores()),
            cpus: (0..machine.cpus).map(|cpu| Cpu::new(&layout, cpu)).collect(),
            counts: vec![CacheCounts::default(); kinds * machine.cpus as usize],
            instances,
            homes,
            dynamic,
            faults: Faults::new(machine),
            costs: config.costs,
            plan: None,
            detail: None,
            aside: None,
            prefetchers: Prefetchers::new(&layout),
            software_prefetch: SoftwarePrefetch::new(machine, &layout),
            overlap: Overlap::new(machine, &layout, dependences, paces, mispredictions, loads),
            classes: config.classes,
            coherent: machine.cpus > 1,
            clock: overlap::period(machine),
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
        cpu.passed += instructions;
        let time = instructions * self.clock;
        cpu.clock += time;
        cpu.spent.busy += time;
    }

    /// The entry of the current page is not in the cpu's TLB. Returns the time of a walk to it.
    pub fn translate(&mut self, cpu: u32, space: u32, number: u64) -> Units {
        let on_huge = self.huge_pages.as_ref().and_then(|huge_pages| huge_pages.refill());
        let takes = match self.is_on_huge() {
            true => on_huge,
            false => self.tlbs[cpu as usize].walk(space, number),
        };
        self.refill_here = takes.unwrap_or(self.refill);
        self.refill_here
    }

    /// Returns whether the current page is on a huge one.
    #[inline]
    pub fn is_on_huge(&self) -> bool {
        self.huge_pages.as_ref().is_some_and(|huge_pages| huge_pages.here)
    }

    /// Finds out whether the current page is on a huge one, if some data is. A page with a color of its own is not.
    #[inline(always)]
    pub fn look_for_huge(&mut self, space: u32, number: u64) {
        if let Some(huge_pages) = &mut self.huge_pages {
            huge_pages.here = huge_pages.asked && !self.homes.policy.colors(Page { space, number });
        }
    }

    /// The set and line number of a piece in a cache.
    #[inline(always)]
    pub fn set_line(&self, a: &Access, step: &Step) -> SetLine {
        step.set_line(&self.layout, a.copy, a.virtual_address, a.physical_address)
    }

    #[cold]
    #[inline(never)]
    pub fn first_touch(&mut self, who: Who, page: u32, address: u64, write: bool) -> Result<(), SimError> {
        if !self.fault(who, page, address) {
            return Ok(());
        }
        if self.dynamic.is_some() {
            self.homes.world.now_ns = whole_ns(self.cpus[who.cpu as usize].clock);
        }
        let touch = touch(self.table.page(page), who.thread, who.cpu, write);
        let frame = self.homes.place(&touch, self.table.len())?;
        let copy = self.new_copy(page, frame)?;
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.new_page(page, self.table.page(page), copy);
        }
        Ok(())
    }

    /// A page is touched that the page table has as untouched. Returns whether it never was touched.
    fn fault(&mut self, who: Who, page: u32, address: u64) -> bool {
        let on_huge = self.is_on_huge();
        let Some(faults) = &mut self.faults else { return true };
        let fault = faults.touch(page, self.table.page(page), address, on_huge);
        if fault.takes > 0 {
            let cpu = &mut self.cpus[who.cpu as usize];
            cpu.clock += fault.takes;
            cpu.spent.faults += fault.takes;
            match fault.again {
                true => cpu.counts.faults_again += 1,
                false => cpu.counts.faults_first += 1,
            }
        }
        !fault.again
    }

    /// Nothing faults from now on.
    pub fn end_faults(&mut self) {
        let Some(faults) = self.faults.take() else { return };
        faults.unmapped().for_each(|page| self.table.is_touched(page));
    }

    /// Follows the mappings and unmappings of threads, if page faults take time.
    pub fn mappings(&mut self, cpu: u32, space: u32, thread: u32, event: &Event) {
        let Some(faults) = &mut self.faults else { return };
        let doing = Doing {
            space,
            thread,
            at: (cpu, self.cpus[cpu as usize].passed),
            event,
        };
        for page in faults.mappings(doing, &mut self.table) {
            self.tlb_remove(page);
        }
    }

    /// Numbers a frame that begins to hold a page or a replica of it.
    pub fn new_copy(&mut self, page: u32, frame: u64) -> Result<u32, SimError> {
        let copy = PageCopy {
            home: frame << NODE_BITS | u64::from(self.homes.frames.node_of(frame)),
            number: self.table.page(page).number,
        };
        if let Some(number) = self.dynamic.as_mut().and_then(|dynamic| dynamic.free_copies.pop()) {
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
            memory: &self.memory,
            software_prefetch: self
                .software_prefetch
                .as_ref()
                .map_or(&[], |software_prefetch| &software_prefetch.counts),
            pages: self.table.len(),
            faults: self.faults.is_some(),
            classes: self.classes,
            knows_instructions: self.traits.knows_instructions(),
        }
    }

    pub fn tlb_remove(&mut self, page: u32) {
        let Page { space, number } = self.table.page(page);
        let entries = match &mut self.huge_pages {
            None => [(page, number); 2],
            Some(huge_pages) => huge_pages.both(space, number),
        };
        for tlb in &mut self.tlbs {
            for (entry, number) in entries {
                tlb.remove(entry, number);
            }
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

    /// A cpu had nothing to run for a time.
    pub fn waited(&mut self, cpu: u32, wait: Wait) {
        let cpu = &mut self.cpus[cpu as usize];
        cpu.clock += wait.imbalance + wait.sequential + wait.synchronization;
        cpu.spent.imbalance += wait.imbalance;
        cpu.spent.sequential += wait.sequential;
        cpu.spent.synchronization += wait.synchronization;
    }

    /// The block that a line is in.
    pub fn block_of(&self, kind: usize, line: u32) -> u32 {
        line >> (self.layout.block_bits - self.layout.caches[kind].line_bits)
    }
}

impl Cpu {
    pub fn new(layout: &Layout, cpu: u32) -> Self {
        Cpu {
            clock: 0,
            passed: 0,
            begin: 0,
            far: 0,
            spent: Spent::default(),
            counts: CpuCounts::default(),
            node: layout.node(cpu),
            core: layout.core(cpu),
        }
    }
}
