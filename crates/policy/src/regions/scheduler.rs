//! Policy `regions`: regioning phases, caches for regions, and threads that run where their region is (Lee12, table 2).

use std::collections::{BTreeMap, HashMap};

use super::closing::Closing;
use super::params::Rules;
use super::partition::{Kind, Partition, RegionId};
use super::phase::{Phase, TouchAt};
use super::switches::Switches;
use super::working_set::{History, SCANS, bytes, histogram};
use crate::domains::Domains;
use crate::seam::{Accessed, Action, Interest, Nature, Observation, Placement, Policy, Touch, Touched, World};
use crate::settings::{PolicyError, Settings};
use results::{RegionsMoment, RegionsVerdict};

/// What is known of an address space.
#[derive(Default)]
pub(super) struct Space {
    pub verdict: RegionsVerdict,
    /// Whether its regions are spread over caches.
    pub spread: bool,
    /// The cache that all of it has.
    pub cache: Option<u32>,
    pub stay_ns: Option<u64>,
    /// How often spreading did not pay, and how many more phases pass before it is tried again.
    pub failures: u32,
    pub rests: u64,
    /// Since the last scan: stays that a switch ended, and their time.
    pub stays: u64,
    pub stays_ns: u64,
    /// When the last switch was, if nothing came in between.
    pub switched_ns: Option<u64>,
    /// The cpu that each of its threads was seen on.
    pub threads: BTreeMap<u32, u32>,
}

/// Access bits of a page.
#[derive(Clone, Copy, Default)]
pub(super) struct Bits {
    pub history: History,
    /// The last scan that found it accessed; 0: none did.
    pub last: u64,
}

#[derive(Default)]
pub(super) struct Counts {
    pub phases: u64,
    pub touches: u64,
    pub merges: u64,
    pub torn_down: u64,
    pub opened: u64,
    pub given_up: u64,
}

pub struct Regions {
    pub(super) rules: Rules,
    pub(super) page_bytes: u64,
    pub(super) domains: Domains,
    pub(super) partition: Partition,
    pub(super) spaces: BTreeMap<u32, Space>,
    pub(super) bits: Vec<Bits>,
    pub(super) scans: u64,
    pub(super) last_scan_ns: u64,
    pub(super) closing: Closing,
    pub(super) switches: Switches,
    /// The regioning phase that is under way: there is one at a time.
    phase: Option<(u32, Phase)>,
    /// When each cpu's next phase begins.
    next_phase_ns: Vec<u64>,
    /// A page of the region that is torn down when the next phase begins; of the one that was torn down last.
    doomed: Option<u32>,
    torn: Option<u32>,
    pub(super) counts: Counts,
    pub(super) moments: Vec<RegionsMoment>,
    /// The regions as they were when the last phase ended: in a phase they are being found anew.
    pub(super) latest: Vec<results::Region>,
    /// Caches of regions that were torn down, by page, until the pages are in regions again.
    pub(super) had: HashMap<u32, u32>,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Regions::new(Rules::new(settings))))
}

impl Regions {
    fn new(rules: Rules) -> Regions {
        Regions {
            rules,
            page_bytes: 0,
            domains: Domains::none(0),
            partition: Partition::default(),
            spaces: BTreeMap::new(),
            bits: Vec::new(),
            scans: 0,
            last_scan_ns: 0,
            closing: Closing::default(),
            switches: Switches::default(),
            phase: None,
            next_phase_ns: Vec::new(),
            doomed: None,
            torn: None,
            counts: Counts::default(),
            moments: Vec::new(),
            latest: Vec::new(),
            had: HashMap::new(),
        }
    }

    /// What there is a number of for each cpu gets its room when the world is first seen.
    fn meet_world(&mut self, world: &World) {
        if !self.next_phase_ns.is_empty() {
            return;
        }
        self.domains = match &world.domains {
            Some(domains) => domains.as_ref().clone(),
            None => Domains::none(world.cpus),
        };
        self.page_bytes = world.page_bytes;
        self.closing.meet(world.cpus);
        self.next_phase_ns = vec![self.rules.period_ns; world.cpus as usize];
    }

    pub(super) fn bits_of(&mut self, index: u32) -> &mut Bits {
        if self.bits.len() <= index as usize {
            self.bits.resize(index as usize + 1, Bits::default());
        }
        &mut self.bits[index as usize]
    }

    /// The working set of a region.
    pub(super) fn working_set(&self, region: RegionId, page_bytes: u64) -> u64 {
        let pages = self.partition.region(region).pages.iter();
        let bits = pages.map(|&page| self.bits.get(page as usize).copied().unwrap_or_default());
        // What nobody used for as long as histories go back is not in use, though it was not scanned since.
        let used = bits.filter(|bits| bits.last > 0 && bits.last + u64::from(SCANS) > self.scans);
        bytes(&histogram(used.map(|bits| bits.history)), page_bytes)
    }

    fn touched(&mut self, touched: &Touched, world: &World, actions: &mut Vec<Action>) {
        let index = touched.index;
        let region = self.partition.meet(index, touched.page);
        let space = self.spaces.entry(touched.page.space).or_default();
        space.threads.insert(touched.thread, touched.cpu);
        if touched.nature != Nature::Data {
            self.partition.make_global(index);
            self.show(index, actions);
            return;
        }
        match &mut self.phase {
            Some((cpu, phase)) if *cpu == touched.cpu => {
                let entered = phase.touch(
                    TouchAt {
                        index,
                        region,
                        now_ns: world.now_ns,
                        fault_ns: self.rules.fault_ns,
                    },
                    self.rules.idle_ns,
                    &mut self.partition,
                );
                for &index in &entered.everywhere {
                    self.partition.make_global(index);
                    self.show(index, actions);
                }
                for index in entered.closed.into_iter().chain(entered.guest) {
                    self.show(index, actions);
                }
                for region in [entered.close, entered.open].into_iter().flatten() {
                    self.show_region(region, actions);
                }
                // Whatever the region's kind, who touches a page may go on.
                self.closing.open_at(touched.page, index, touched.cpu, actions);
            }
            _ => self.switch(touched, region, world, actions),
        }
    }

    /// Opens and closes a page as it should be at this moment.
    pub(super) fn show(&mut self, index: u32, actions: &mut Vec<Action>) {
        let (Some(page), Some(region)) = (self.partition.page(index), self.partition.region_of(index)) else {
            return;
        };
        let mut closed = self.closed_outside(page.space, region);
        if let Some((cpu, phase)) = &self.phase {
            let bit = 1 << cpu;
            let global = self.partition.region(region).kind == Kind::Global;
            let open = global || phase.open() == Some(region) || phase.is_guest(index);
            closed = if open { closed & !bit } else { closed | bit };
        }
        self.closing.set(page, index, closed, actions);
    }

    pub(super) fn show_region(&mut self, region: RegionId, actions: &mut Vec<Action>) {
        for at in 0..self.partition.region(region).pages.len() {
            let index = self.partition.region(region).pages[at];
            self.show(index, actions);
        }
    }

    pub(super) fn show_all(&mut self, actions: &mut Vec<Action>) {
        let regions: Vec<RegionId> = self.partition.regions().map(|(number, _)| number).collect();
        for region in regions {
            self.show_region(region, actions);
        }
    }

    /// The cpus from which a region's pages must not be used, but for a phase.
    fn closed_outside(&self, space: u32, region: RegionId) -> u128 {
        let spread = self.spaces.get(&space).is_some_and(|space| space.spread);
        match self.partition.region(region).kind {
            Kind::Local(cache) if spread && !self.switches.is_opened(region) => {
                self.closing.all() & !self.domains.mask(cache)
            }
            _ => 0,
        }
    }

    fn tick(&mut self, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        match &self.phase {
            Some((own, phase)) if *own == cpu && world.now_ns >= phase.ends_ns => self.end_phase(cpu, world, actions),
            None if world.now_ns >= self.next_phase_ns[cpu as usize] && self.domains.count() > 1 => {
                self.begin_phase(cpu, world, actions);
            }
            _ => {}
        }
    }

    fn begin_phase(&mut self, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        if let Some(index) = self.doomed.take()
            && let Some(region) = self.partition.region_of(index)
            && let Kind::Local(cache) = self.partition.region(region).kind
        {
            let pages = self.partition.region(region).pages.clone();
            self.had.extend(pages.into_iter().map(|page| (page, cache)));
            self.partition.tear_down(region);
            self.switches.forget(region);
            self.torn = Some(index);
            self.counts.torn_down += 1;
        }
        for space in self.spaces.values_mut() {
            space.switched_ns = None;
        }
        self.phase = Some((cpu, Phase::new(world.now_ns + self.rules.phase_ns)));
        self.show_all(actions);
    }

    fn end_phase(&mut self, cpu: u32, world: &World, actions: &mut Vec<Action>) {
        let Some((_, phase)) = self.phase.take() else { return };
        self.counts.phases += 1;
        let rest_ns = self.rules.period_ns - self.rules.phase_ns.min(self.rules.period_ns);
        // A thread that goes from cpu to cpu has no more phases than one that stays.
        let threads = self
            .spaces
            .values()
            .map(|space| space.threads.len() as u64)
            .sum::<u64>();
        let next_ns = world.now_ns + rest_ns / threads.max(1);
        for next in &mut self.next_phase_ns {
            *next = (*next).max(next_ns);
        }
        self.next_phase_ns[cpu as usize] = world.now_ns + rest_ns;
        self.counts.touches += phase.seen.touches;
        self.counts.merges += phase.seen.merges;
        self.decide(&phase, world, actions);
        self.doomed = phase
            .largest(&self.partition, self.torn)
            .map(|region| self.partition.region(region).pages[0]);
        self.show_all(actions);
    }

    fn scan(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        self.scans += 1;
        let mut open = Vec::new();
        for page in accessed {
            let region = self.partition.meet(page.index, page.page);
            if page.nature != Nature::Data {
                self.partition.make_global(page.index);
            }
            self.spaces.entry(page.page.space).or_default();
            let scans = self.scans;
            self.bits_of(page.index).last = scans;
            open.push(region);
        }
        // Regions that nobody used are closed, and not scanned (section 4).
        open.sort_unstable();
        open.dedup();
        for region in open {
            for at in 0..self.partition.region(region).pages.len() {
                let index = self.partition.region(region).pages[at];
                let scans = self.scans;
                let bits = self.bits_of(index);
                bits.history.scan(bits.last == scans);
            }
        }
        let passed_ns = world.now_ns.saturating_sub(self.last_scan_ns);
        self.last_scan_ns = world.now_ns;
        self.look_at_switches(passed_ns, actions);
    }
}

impl Policy for Regions {
    /// Where frames are is not its matter, but who runs where is.
    fn place(&mut self, touch: &Touch, _world: &World) -> Placement {
        let space = self.spaces.entry(touch.page.space).or_default();
        space.threads.insert(touch.thread, touch.cpu);
        Placement::default()
    }

    fn interest(&self) -> Interest {
        Interest {
            touches: true,
            touch_fault_ns: self.rules.fault_ns,
            move_thread_ns: self.rules.switch_ns.saturating_sub(self.rules.fault_ns),
            tick_ns: self.rules.phase_ns,
            accessed_ns: self.rules.scan_ns,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        self.meet_world(world);
        match observation {
            Observation::Touched(touched) => self.touched(touched, world, actions),
            Observation::Tick(tick) => self.tick(tick.cpu, world, actions),
            Observation::ThreadMoved { thread, to, .. } => {
                let spaces = self.spaces.values_mut();
                for cpu in spaces.filter_map(|space| space.threads.get_mut(thread)) {
                    *cpu = *to;
                }
            }
            _ => {}
        }
    }

    fn observe_accessed(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        self.meet_world(world);
        self.scan(accessed, world, actions);
    }

    fn regions(&self) -> Option<results::Regions> {
        Some(self.report())
    }
}
