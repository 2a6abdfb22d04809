//! The decision after working sets and a regioning phase: a cache for each region or program (Lee12, table 2, step 4).

use super::balance::{Item, balance, loads, partition};
use super::conditions::{Known, judge};
use super::params::Division;
use super::partition::{Kind, RegionId};
use super::scheduler::Regions;
use super::space::Space;
use super::working_set::SCANS;
use crate::seam::{Action, World};
use results::{RegionsMoment, RegionsVerdict};

/// A thread that runs is seen within this many ticks.
const TICKS: u64 = 8;

/// The owner of a cache.
enum Of {
    Region(RegionId),
    Space(u32),
}

impl Regions {
    /// The last scan that is too long ago: as many are remembered as working sets are made of, or as come in some ticks, by which threads
    /// are seen.
    pub(super) fn since(&self) -> u64 {
        let ticks = TICKS * self.rules.phase_ns / self.rules.scan_ns;
        self.scans.saturating_sub(ticks.max(SCANS.into()))
    }

    /// Address spaces that were in use lately, by number.
    pub(super) fn running(&self) -> impl Iterator<Item = (u32, &Space)> {
        let since = self.since();
        let spaces = self.spaces.iter().filter(move |(_, space)| space.is_running(since));
        spaces.map(|(&number, space)| (number, space))
    }

    pub(super) fn decide(&mut self, world: &World, actions: &mut Vec<Action>) {
        self.switches.begin_anew();
        let (caches, cache_bytes) = (self.domains.count(), self.domains.bytes);
        let numbers: Vec<u32> = self.running().map(|(number, _)| number).collect();
        let working_sets: Vec<u64> = numbers
            .iter()
            .map(|&space| self.space_bytes(space, world.page_bytes))
            .collect();
        let preferred = match self.rules.division {
            Division::Preferred(space) => numbers.iter().position(|&number| number == space),
            _ => None,
        };
        let allowed = match self.rules.division {
            Division::None => vec![(0..caches).collect(); numbers.len()],
            _ => partition(&working_sets, preferred, caches, cache_bytes),
        };
        let mut taken = vec![0; caches as usize];
        // Those that are bound to few caches come first, then the larger ones.
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&at| (allowed[at].len(), std::cmp::Reverse(working_sets[at]), at));
        let mut given = Vec::new();
        for at in order {
            let space = numbers[at];
            self.judge_space(space, working_sets[at], allowed[at].len() as u32, world.page_bytes);
            let (of, items) = self.items(space, working_sets[at], world.page_bytes);
            let caches = balance(&items, &allowed[at], &taken);
            taken = loads(&items, &caches, &taken);
            given.extend(of.into_iter().zip(caches));
        }
        let alone = numbers.len() < 2;
        for (of, cache) in given {
            match of {
                Of::Region(region) => self.partition.set_kind(region, Kind::Local(cache)),
                // If it is alone, it may go anywhere.
                Of::Space(space) if alone => self.spaces.entry(space).or_default().cache = None,
                Of::Space(space) => self.put_space(space, cache, actions),
            }
        }
        self.had.clear();
        self.note(world, taken);
    }

    /// The bytes in use of all regions of an address space but global ones, which every cache has.
    pub(super) fn space_bytes(&self, space: u32, page_bytes: u64) -> u64 {
        let regions = self.partition.regions();
        regions
            .filter(|(_, region)| region.space == space && region.kind != Kind::Global)
            .map(|(number, _)| self.working_set(number, page_bytes))
            .sum()
    }

    fn judge_space(&mut self, number: u32, working_set: u64, caches: u32, page_bytes: u64) {
        let regions = self.partition.regions();
        let mine = |region: &super::partition::Region| region.space == number && region.pages.len() > 1;
        let regions: Vec<RegionId> = regions
            .filter(|(_, region)| mine(region) && region.kind != Kind::Global)
            .map(|(number, _)| number)
            .collect();
        let found = regions.iter().map(|&region| self.working_set(region, page_bytes)).sum();
        let Some(space) = self.spaces.get_mut(&number) else {
            return;
        };
        if space.rests > 0 {
            space.rests -= 1;
            return;
        }
        let known = Known {
            regions: regions.len(),
            stay_ns: space.confined.mean_ns(),
            watched_ns: space.confined.ns,
            working_set,
            found,
            cache_bytes: self.domains.bytes,
            caches,
        };
        space.verdict = judge(&known, &self.rules.bounds);
        let before = std::mem::replace(&mut space.spread, space.verdict == RegionsVerdict::Pays);
        if space.spread && !before {
            space.fills = true;
        }
    }

    /// The items of an address space that get caches: its regions, or all of it.
    fn items(&mut self, number: u32, working_set: u64, page_bytes: u64) -> (Vec<Of>, Vec<Item>) {
        let Some(space) = self.spaces.get(&number) else {
            return (Vec::new(), Vec::new());
        };
        let (spread, cache) = (space.spread, space.cache);
        let regions: Vec<(RegionId, Option<u32>)> = self
            .partition
            .regions()
            .filter(|(_, region)| region.space == number && region.pages.len() > 1 && region.kind != Kind::Global)
            .map(|(number, region)| match region.kind {
                Kind::Local(cache) => (number, Some(cache)),
                _ => (number, region.pages.iter().find_map(|page| self.had.get(page)).copied()),
            })
            .collect();
        if !spread {
            for (region, _) in regions {
                self.partition.set_kind(region, Kind::Regular);
            }
            let item = Item {
                bytes: working_set,
                now: cache,
            };
            return (vec![Of::Space(number)], vec![item]);
        }
        regions
            .into_iter()
            .map(|(region, now)| {
                let bytes = self.working_set(region, page_bytes);
                (Of::Region(region), Item { bytes, now })
            })
            .unzip()
    }

    /// Moves all running threads of an address space to the cpus of a cache, if it has enough of them.
    fn put_space(&mut self, number: u32, cache: u32, actions: &mut Vec<Action>) {
        let cpus: Vec<u32> = self.domains.cpus(cache).collect();
        let threads: Vec<u32> = self.running().flat_map(|(_, space)| space.cpus(self.since())).collect();
        let load = |&cpu: &u32| (threads.iter().filter(|on| **on == cpu).count(), cpu);
        let mut loads: Vec<(usize, u32)> = cpus.iter().map(load).collect();
        let since = self.since();
        let Some(space) = self.spaces.get_mut(&number) else {
            return;
        };
        if space.cpus(since).count() > cpus.len() {
            space.cache = None;
            return;
        }
        space.cache = Some(cache);
        for (number, thread) in space.running(since) {
            if cpus.contains(&thread.cpu) {
                continue;
            }
            let Some(least) = loads.iter_mut().min() else { return };
            least.0 += 1;
            thread.cpu = least.1;
            actions.push(Action::MoveThread {
                thread: number,
                cpu: least.1,
            });
        }
    }

    /// Records the state after this phase.
    fn note(&mut self, world: &World, load_bytes: Vec<u64>) {
        let mut moment = RegionsMoment {
            at_ns: world.now_ns,
            regions: vec![0; load_bytes.len()],
            load_bytes,
            switches: self.switches.total,
            merges: self.counts.merges,
            ..RegionsMoment::default()
        };
        let running: Vec<u32> = self.running().map(|(number, _)| number).collect();
        let regions = self.partition.regions();
        for (_, region) in regions.filter(|(_, region)| running.contains(&region.space)) {
            match region.kind {
                Kind::Local(cache) => moment.regions[cache as usize] += 1,
                Kind::Regular => moment.regular += 1,
                Kind::Seed => moment.seeds += 1,
                Kind::Global => moment.global_pages += region.pages.len() as u64,
            }
        }
        self.moments.push(moment);
        self.latest = self.regions_now();
    }
}
