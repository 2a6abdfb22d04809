//! Threads go to the cache of the region that they touch (Lee12, section 2.2.2); and the measures if that happens too often.

use std::collections::{HashMap, HashSet};

use super::partition::{Kind, RegionId};
use super::scheduler::Regions;
use super::space::Stays;
use crate::seam::{Action, Touched, World};

/// Fewer stays than this say nothing of the others.
const STAYS: u64 = 8;
/// Per mille of a stay that following must save.
const GAIN: u64 = 30;

#[derive(Default)]
pub struct Switches {
    pub total: u64,
    pub excluded: u64,
    /// Since the last scan, by the page that was touched.
    by_page: HashMap<u32, u64>,
    /// Regions that are open to all until caches are given again.
    opened: HashSet<RegionId>,
}

impl Switches {
    pub fn is_opened(&self, region: RegionId) -> bool {
        self.opened.contains(&region)
    }

    /// A region is no more.
    pub fn forget(&mut self, region: RegionId) {
        self.opened.remove(&region);
    }

    /// Caches are given again.
    pub fn begin_anew(&mut self) {
        self.opened.clear();
    }
}

impl Regions {
    /// A page was touched that is closed to this cpu, outside of a phase.
    pub(super) fn switch(&mut self, touched: &Touched, region: RegionId, world: &World, actions: &mut Vec<Action>) {
        let Kind::Local(cache) = self.partition.region(region).kind else {
            self.show(touched.index, actions);
            return;
        };
        if self.domains.of_cpu[touched.cpu as usize] == cache {
            self.show(touched.index, actions);
            return;
        }
        let queued = |cpu: u32| world.runnable.get(cpu as usize).copied().unwrap_or(0);
        let to = self.domains.cpus(cache).min_by_key(|&cpu| (queued(cpu), cpu));
        let to = to.unwrap_or(touched.cpu);
        if queued(to) > 0 && queued(touched.cpu) <= 1 {
            // The thread would wait, and this cpu would have nothing to run (section 2.2.2).
            self.counts.opened += 1;
            self.switches.opened.insert(region);
            self.show_region(region, actions);
            return;
        }
        self.switches.total += 1;
        self.counts.spent.moving_ns += self.rules.switch_ns.max(self.rules.fault_ns);
        *self.switches.by_page.entry(touched.index).or_default() += 1;
        let space = self.spaces.entry(touched.page.space).or_default();
        let thread = space.threads.entry(touched.thread).or_default();
        thread.cpu = to;
        if let Some(before) = thread.moved_ns.replace(world.now_ns) {
            space.followed.add(world.now_ns.saturating_sub(before), 1);
        }
        actions.push(Action::MoveThread {
            thread: touched.thread,
            cpu: to,
        });
    }

    /// After each scan: pages that alone cause too many switches leave their region, and programs that do not gain by following get
    /// ordinary scheduling.
    pub(super) fn look_at_switches(&mut self, passed_ns: u64, actions: &mut Vec<Action>) {
        let mut of_region: HashMap<RegionId, u64> = HashMap::new();
        let by_page = std::mem::take(&mut self.switches.by_page);
        for (&index, switches) in &by_page {
            if let Some(region) = self.partition.region_of(index) {
                *of_region.entry(region).or_default() += switches;
            }
        }
        let too_many = |switches: u64| {
            u128::from(switches) * 1_000_000_000 > u128::from(self.rules.rate) * u128::from(passed_ns.max(1))
        };
        let mut causes: Vec<u32> = by_page
            .iter()
            .filter(|(index, switches)| {
                let all = self.partition.region_of(**index).map_or(0, |region| of_region[&region]);
                too_many(all) && **switches * 2 > all
            })
            .map(|(&index, _)| index)
            .collect();
        causes.sort_unstable();
        for index in causes {
            if self.partition.take_out(index).is_some() {
                self.switches.excluded += 1;
                if self.alone.came(index) {
                    self.partition.make_global(index);
                }
                self.show(index, actions);
            }
        }
        let mut gave_up = Vec::new();
        for (&number, space) in &mut self.spaces {
            // Earlier stays are of the time in which caches were filled.
            if std::mem::take(&mut space.fills) {
                space.followed = Stays::default();
            }
            if !space.spread || space.followed.changes < STAYS {
                continue;
            }
            let partition = &self.partition;
            let cache = |page| match partition.region_of(page).map(|region| partition.region(region).kind) {
                Some(Kind::Local(cache)) => Some(cache),
                _ => None,
            };
            let moves = |from, to| cache(from).zip(cache(to)).is_some_and(|(from, to)| from != to);
            let (Some(followed), Some(confined)) = (space.followed.mean_ns(), space.between_moves_ns(moves)) else {
                continue;
            };
            if u128::from(followed) * 1000 > u128::from(confined) * u128::from(1000 - GAIN) {
                space.spread = false;
                space.verdict = results::RegionsVerdict::NoGain;
                space.failures += 1;
                space.rests = 1 << space.failures.min(16);
                gave_up.push(number);
            }
        }
        for number in gave_up {
            self.counts.given_up += 1;
            self.open_space(number, actions);
        }
    }

    /// All regions of an address space are used from everywhere.
    pub(super) fn open_space(&mut self, space: u32, actions: &mut Vec<Action>) {
        let regions = self.partition.regions().filter(|(_, region)| region.space == space);
        let local: Vec<RegionId> = regions
            .filter(|(_, region)| matches!(region.kind, Kind::Local(_)))
            .map(|(number, _)| number)
            .collect();
        for region in local {
            self.partition.set_kind(region, Kind::Regular);
            self.show_region(region, actions);
        }
    }
}
