//! The findings and actions of the policy, for reports.

use super::partition::{Kind, RegionId};
use super::scheduler::Regions;
use results::RegionsBounds;

/// Addresses that are reported of a region.
const ADDRESSES: usize = 16;

impl Regions {
    pub(super) fn report(&self) -> results::Regions {
        let page_bytes = self.page_bytes;
        let last = self.moments.last();
        let processes = self.spaces.iter().map(|(&process, space)| results::RegionsProcess {
            process,
            verdict: space.verdict,
            working_set_bytes: self.space_bytes(process, page_bytes),
            stay_ns: space.confined.mean_ns(),
            watched_ns: space.confined.ns,
            followed_ns: space.followed.mean_ns(),
            cache: space.cache,
        });
        results::Regions {
            cache: self.domains.name.clone(),
            caches: self.domains.count(),
            cache_bytes: self.domains.bytes,
            period_ns: self.rules.period_ns,
            phase_ns: self.rules.phase_ns,
            bounds: RegionsBounds {
                stay_least_ns: self.rules.bounds.stay_least_ns,
                stay_most_ns: self.rules.bounds.stay_most_ns,
                one_cache: self.rules.bounds.one_cache,
                all_caches: self.rules.bounds.all_caches,
                switch_ns: self.rules.switch_ns,
                from: self.rules.from,
            },
            spent: self.counts.spent,
            phases: self.counts.phases,
            touches: self.counts.touches,
            merges: self.counts.merges,
            torn_down: self.counts.torn_down,
            excluded: self.switches.excluded,
            switches: self.switches.total,
            opened: self.counts.opened,
            given_up: self.counts.given_up,
            seeds: last.map_or(0, |moment| moment.seeds),
            global_pages: last.map_or(0, |moment| moment.global_pages),
            processes: processes.collect(),
            regions: self.latest.clone(),
            moments: self.moments.clone(),
        }
    }

    /// All regions but seeds, the largest of each process first.
    pub(super) fn regions_now(&self) -> Vec<results::Region> {
        let known = self.partition.regions().filter(|(_, region)| region.kind != Kind::Seed);
        let mut regions: Vec<results::Region> = known.map(|(number, _)| self.report_region(number)).collect();
        regions.sort_by(|a, b| {
            let key = |region: &results::Region| (region.process, std::cmp::Reverse(region.pages));
            key(a).cmp(&key(b)).then_with(|| a.addresses.cmp(&b.addresses))
        });
        regions
    }

    fn report_region(&self, number: RegionId) -> results::Region {
        let region = self.partition.region(number);
        let pages = region.pages.iter().filter_map(|&page| self.partition.page(page));
        let mut addresses: Vec<u64> = pages.map(|page| page.number * self.page_bytes).collect();
        addresses.sort_unstable();
        addresses.truncate(ADDRESSES);
        results::Region {
            process: region.space,
            kind: match region.kind {
                Kind::Seed => "seed",
                Kind::Regular => "regular",
                Kind::Local(_) => "local",
                Kind::Global => "global",
            }
            .to_string(),
            cache: match region.kind {
                Kind::Local(cache) => Some(cache),
                _ => None,
            },
            pages: region.pages.len() as u64,
            working_set_bytes: self.working_set(number, self.page_bytes),
            addresses,
        }
    }
}
