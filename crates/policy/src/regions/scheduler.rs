//! Policy `regions`: regioning phases, caches for regions, and threads that run where their region is (Lee12, table 2).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::closing::Closing;
use super::conditions::by_size;
use super::params::{Rules, wants_bounds};
use super::partition::{Kind, Partition, RegionId};
use super::phase::{Alone, Entered, Phase, SEVERAL, TouchAt};
use super::space::Space;
use super::switches::Switches;
use super::working_set::{Bits, bytes, histogram};
use crate::domains::{Domains, Following};
use crate::seam::{
    Accessed, Action, Interest, Nature, Observation, Placement, Policy, Prices, Tick, Touch, Touched, World,
};
use crate::settings::{PolicyError, Settings};
use results::{RegionsMoment, RegionsSpent};

/// A phase begins where this part of it may pass in faults.
const LEAST: u64 = 8;

#[derive(Default)]
pub(super) struct Counts {
    pub phases: u64,
    pub touches: u64,
    pub merges: u64,
    pub torn_down: u64,
    pub opened: u64,
    pub given_up: u64,
    pub spent: RegionsSpent,
}

pub struct Regions {
    settings: Settings,
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
    pub(super) alone: Alone,
    /// When each cpu's next phase begins.
    pub(super) next_phase_ns: Vec<u64>,
    /// The part of each cpu's time that phases have taken; and the part of the time of each cpu in use that looks and tables have taken.
    phases_ns: Vec<u64>,
    shared_ns: u64,
    /// Cpus whose threads ran lately; at least one.
    busy: u64,
    /// The number of its phases that followed soon on another, since regions were being found.
    pub(super) soon: Vec<u64>,
    /// Phases since the last that changed a region, or after which one was spread.
    pub(super) idle_phases: u32,
    /// Consecutive phases that left each page the cache it had; and the pages' caches after the last ([`Partition::fingerprint`]).
    pub(super) steady_phases: u64,
    pub(super) fingerprint: u64,
    /// A page of the region that is torn down when the next phase begins; of the one that was torn down last.
    doomed: Option<u32>,
    torn: Option<u32>,
    pub(super) counts: Counts,
    pub(super) moments: Vec<RegionsMoment>,
    /// The regions as they were when the last phase ended: a phase finds them again.
    pub(super) latest: Vec<results::Region>,
    /// Caches of regions that were torn down, by page, until the pages are in regions again.
    pub(super) had: HashMap<u32, u32>,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Regions::new(settings)))
}

impl Regions {
    fn new(settings: &Settings) -> Regions {
        let rules = Rules::new(settings, &Following::default());
        Regions {
            settings: settings.clone(),
            alone: Alone::new(rules.alone),
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
            phases_ns: Vec::new(),
            shared_ns: 0,
            busy: 1,
            soon: Vec::new(),
            idle_phases: 0,
            steady_phases: 0,
            fingerprint: 0,
            doomed: None,
            torn: None,
            counts: Counts::default(),
            moments: Vec::new(),
            latest: Vec::new(),
            had: HashMap::new(),
        }
    }

    /// Allocates the values of each cpu when the world is first seen.
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
        self.phases_ns = vec![0; world.cpus as usize];
        self.soon = vec![0; world.cpus as usize];
    }

    /// The working set of a region. No thread touches a closed region, so that scans leave it out; it ages all the
    /// same.
    pub(super) fn working_set(&self, region: RegionId, page_bytes: u64) -> u64 {
        let region = self.partition.region(region);
        let scans = self.spaces.get(&region.space).map_or(0, |space| space.scans);
        let bits = region.pages.iter().filter_map(|&page| self.bits.get(page as usize));
        bytes(&histogram(bits.map(|bits| bits.until(scans))), page_bytes)
    }

    fn touched(&mut self, touched: &Touched, world: &World, actions: &mut Vec<Action>) {
        let index = touched.index;
        let region = self.partition.meet(index, touched.page);
        let space = self.spaces.entry(touched.page.space).or_default();
        space.saw(touched.thread, touched.cpu, self.scans);
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
                    &mut self.alone,
                );
                let ns = self.opening_ns(&entered);
                for &index in &entered.everywhere {
                    self.partition.make_global(index);
                }
                for index in entered.everywhere.into_iter().chain(entered.pages) {
                    self.show(index, actions);
                }
                for region in entered.regions {
                    self.show_region(region, actions);
                }
                // The thread that touches a page may go on, whatever the region's kind.
                self.closing.open_at(touched.page, index, touched.cpu, actions);
                self.counts.spent.regioning_ns += ns + self.rules.fault_ns;
                self.phases_ns[touched.cpu as usize] += ns + self.rules.fault_ns;
                self.work(ns, actions);
                if let Some((_, phase)) = &mut self.phase {
                    phase.worked(ns);
                }
                if !self.may_take(touched.cpu, 0, world.now_ns) {
                    self.end_phase(world.now_ns, world, actions);
                }
            }
            _ => self.switch(touched, region, world, actions),
        }
    }

    /// The time in a phase to open and to close the pages that a touch has changed. Each region of several pages has a table of its
    /// own, as each cache has, so that another region is another table; pages that come alone, or join a region, are entries.
    fn opening_ns(&self, entered: &Entered) -> u64 {
        let several = |region: &RegionId| self.partition.region(*region).pages.len() >= SEVERAL;
        let table_ns = match entered.regions.iter().any(several) {
            true => self.rules.flush_ns,
            false => 0,
        };
        let pages = 1 + entered.joined + (entered.pages.len() + entered.everywhere.len()) as u64;
        table_ns + pages * self.rules.entry_ns
    }

    /// Opens and closes a page as it should be at this moment.
    pub(super) fn show(&mut self, index: u32, actions: &mut Vec<Action>) {
        if let Some(region) = self.partition.region_of(index) {
            self.show_pages(region, Some(index), actions);
        }
    }

    pub(super) fn show_region(&mut self, region: RegionId, actions: &mut Vec<Action>) {
        self.show_pages(region, None, actions);
    }

    /// Pages of a region: one of them or all.
    fn show_pages(&mut self, region: RegionId, only: Option<u32>, actions: &mut Vec<Action>) {
        let known = self.partition.region(region);
        let kept = self.closed_outside(known.space, region);
        let (open, here) = match &self.phase {
            Some((cpu, phase)) => (known.kind == Kind::Global || phase.open() == Some(region), 1 << cpu),
            None => (true, 0),
        };
        let now = if open { kept & !here } else { kept | here };
        let guests = self.phase.as_ref().filter(|(_, phase)| !open && phase.has_guests());
        for &index in only.as_ref().map_or(&known.pages[..], std::slice::from_ref) {
            let Some(page) = self.partition.page(index) else {
                continue;
            };
            let guest = guests.is_some_and(|(_, phase)| phase.is_guest(index));
            let now = if guest { now & !here } else { now };
            self.closing.set(page, index, now, kept, actions);
        }
    }

    pub(super) fn show_all(&mut self, actions: &mut Vec<Action>) {
        let regions: Vec<RegionId> = self.partition.regions().map(|(number, _)| number).collect();
        for region in regions {
            self.show_region(region, actions);
        }
    }

    fn work(&self, ns: u64, actions: &mut Vec<Action>) {
        if ns > 0 {
            actions.push(Action::Work { ns });
        }
    }

    /// A phase begins or ends: another table of pages comes in.
    fn change_table(&mut self, cpu: u32, actions: &mut Vec<Action>) {
        self.counts.spent.regioning_ns += self.rules.flush_ns;
        self.phases_ns[cpu as usize] += self.rules.flush_ns;
        self.work(self.rules.flush_ns, actions);
    }

    /// Adds the time for the changes of the caches' tables.
    fn change_entries(&mut self, actions: &mut Vec<Action>) {
        let ns = self.closing.take_changed() * self.rules.entry_ns;
        self.counts.spent.tables_ns += ns;
        self.shared_ns += ns / self.busy;
        self.work(ns, actions);
    }

    /// The cpus from which a region's pages must not be used, except in a phase.
    fn closed_outside(&self, space: u32, region: RegionId) -> u128 {
        let spread = self.spaces.get(&space).is_some_and(|space| space.spread);
        match self.partition.region(region).kind {
            Kind::Local(cache) if spread && !self.switches.is_opened(region) => {
                self.closing.all() & !self.domains.mask(cache)
            }
            _ => 0,
        }
    }

    fn tick(&mut self, tick: &Tick, world: &World, actions: &mut Vec<Action>) {
        let cpu = tick.cpu;
        if let Some(ran) = tick.ran {
            self.spaces
                .entry(ran.space)
                .or_default()
                .saw(ran.thread, cpu, self.scans);
        }
        let due = world.now_ns >= self.next_phase_ns[cpu as usize] && self.domains.count() > 1 && self.scans > 0;
        match &self.phase {
            // If the cpu has nothing to run any more, another cpu's tick ends its phase.
            Some((_, phase)) if world.now_ns >= phase.ends_ns => {
                self.end_phase(self.tick_of(world.now_ns), world, actions);
            }
            // A thread may be on its way from here.
            None if due
                && !self
                    .running()
                    .any(|(_, space)| space.cpus(self.since()).any(|on| on == cpu)) => {}
            None if due && !self.could_pay(world.page_bytes) => {
                // No regions can gain anything: only address spaces get caches.
                self.decide(world, actions);
                self.show_all(actions);
                self.next_phase_ns[cpu as usize] = self.tick_of(world.now_ns) + self.rules.period_ns;
            }
            // One that would be broken off at once waits.
            None if due && self.may_take(cpu, self.rules.phase_ns / LEAST, world.now_ns) => {
                self.begin_phase(cpu, world, actions);
            }
            _ => {}
        }
    }

    /// When the tick came that is heard of now. Phases begin and end with ticks, so that how far a reference went beyond one decides
    /// nothing.
    pub(super) fn tick_of(&self, now_ns: u64) -> u64 {
        now_ns - now_ns % self.rules.phase_ns
    }

    /// Returns whether phases and looks may take this much more of a cpu's time.
    fn may_take(&self, cpu: u32, more_ns: u64, now_ns: u64) -> bool {
        let taken_ns = self.phases_ns[cpu as usize] + self.shared_ns + more_ns;
        let within = |cost: u64| u128::from(taken_ns) * 1000 <= u128::from(now_ns) * u128::from(cost);
        self.rules.cost.is_none_or(within)
    }

    /// True if regions of any address space could gain, by its working set alone.
    fn could_pay(&self, page_bytes: u64) -> bool {
        let (bytes, caches, bounds) = (self.domains.bytes, self.domains.count(), &self.rules.bounds);
        let mut spaces = self.running().filter(|(_, space)| space.rests == 0);
        spaces.any(|(number, _)| by_size(self.space_bytes(number, page_bytes), bytes, caches, bounds).is_none())
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
        for thread in self.spaces.values_mut().flat_map(|space| space.threads.values_mut()) {
            thread.moved_ns = None;
        }
        self.alone.next_phase();
        self.phase = Some((cpu, Phase::new(self.tick_of(world.now_ns), self.rules.phase_ns)));
        self.show_all(actions);
        self.change_table(cpu, actions);
    }

    /// A phase ends at a tick, or where it has taken as much as phases may.
    fn end_phase(&mut self, now_ns: u64, world: &World, actions: &mut Vec<Action>) {
        let Some((cpu, mut phase)) = self.phase.take() else {
            return;
        };
        self.counts.phases += 1;
        self.counts.touches += phase.seen.touches;
        self.counts.merges += phase.seen.merges;
        let growing = phase.is_growing(now_ns);
        let idle_ns = self.rules.idle_ns;
        let ended = phase.end(world.now_ns, idle_ns, &mut self.partition, &mut self.alone);
        for index in ended.everywhere {
            self.partition.make_global(index);
        }
        for (number, watched) in phase.watched(world.now_ns, idle_ns, &self.partition) {
            self.spaces.entry(number).or_default().watched(watched, !growing);
        }
        self.decide(world, actions);
        self.doomed = phase
            .largest(&self.partition, self.torn)
            .map(|region| self.partition.region(region).pages[0]);
        self.show_all(actions);
        self.change_table(cpu, actions);
        self.rest(cpu, now_ns, growing, phase.seen.merges > 0);
    }

    fn scan(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        self.scans += 1;
        let mut spaces = BTreeSet::new();
        for together in accessed.chunk_by(|a, b| a.page.space == b.page.space) {
            spaces.insert(together[0].page.space);
        }
        let mut fresh = false;
        for space in spaces {
            let space = self.spaces.entry(space).or_default();
            fresh |= space.scans == 0;
            space.scans += 1;
            space.found = self.scans;
        }
        let busy: BTreeSet<u32> = self.running().flat_map(|(_, space)| space.cpus(self.since())).collect();
        self.busy = (busy.len() as u64).max(1);
        let (mut open, mut read) = (Vec::new(), 0);
        for page in accessed {
            let region = self.partition.meet(page.index, page.page);
            if page.nature != Nature::Data {
                self.partition.make_global(page.index);
            }
            let scan = self.spaces[&page.page.space].scans;
            bits_of(&mut self.bits, page.index).found(scan);
            open.push(region);
        }
        // Regions that are not used are closed, and not scanned (section 4).
        open.sort_unstable();
        open.dedup();
        for region in open {
            let scan = self.spaces[&self.partition.region(region).space].scans;
            for &index in &self.partition.region(region).pages {
                bits_of(&mut self.bits, index).scan(scan);
            }
            read += self.partition.region(region).pages.len() as u64;
        }
        let ns = read * self.rules.read_ns;
        self.counts.spent.scanning_ns += ns;
        self.shared_ns += ns / self.busy;
        self.work(ns, actions);
        let passed_ns = world.now_ns.saturating_sub(self.last_scan_ns);
        self.last_scan_ns = world.now_ns;
        let before = self.counts.given_up + self.switches.excluded;
        self.look_at_switches(passed_ns, actions);
        if fresh || self.counts.given_up + self.switches.excluded != before {
            self.end_steady_rest(world.now_ns);
        }
    }
}

/// The access bits of a page, which has none yet if it is new.
fn bits_of(bits: &mut Vec<Bits>, index: u32) -> &mut Bits {
    if bits.len() <= index as usize {
        bits.resize(index as usize + 1, Bits::default());
    }
    &mut bits[index as usize]
}

impl Policy for Regions {
    /// This policy does not choose frames, but it chooses the cpus of threads.
    fn place(&mut self, touch: &Touch, _world: &World) -> Placement {
        let space = self.spaces.entry(touch.page.space).or_default();
        space.saw(touch.thread, touch.cpu, self.scans);
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
            Observation::Tick(tick) => self.tick(tick, world, actions),
            _ => {}
        }
        self.change_entries(actions);
    }

    fn observe_accessed(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        self.meet_world(world);
        self.scan(accessed, world, actions);
        self.change_entries(actions);
    }

    fn wants_bounds(&self) -> bool {
        wants_bounds(&self.settings)
    }

    fn take_prices(&mut self, prices: &Arc<Prices>) {
        self.rules = Rules::new(&self.settings, &prices.following);
    }

    fn regions(&self) -> Option<results::Regions> {
        Some(self.report())
    }
}
