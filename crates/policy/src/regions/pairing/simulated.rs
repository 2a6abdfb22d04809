//! Policy `pairing`: it does what `domicile daemon --regions` does on a running system, with the world's view of
//! running threads and accessed pages.
//!
//! An address space is a process. At the end of each interval its working set is the pages that were accessed in it, as
//! in source `referenced`. Ticks show which threads ran, and on which cpus. A thread on a cpu that others wait for
//! counts as often as there are threads: all of them would keep it busy.

use std::collections::BTreeMap;

use results::{PairedProcess, Pairing, PairingAction};

use super::lately::{Lately, PATIENCE};
use super::{CPU, Domain, Free, Place, Process, decide};
use crate::domains::Domains;
use crate::seam::{Accessed, Action, Interest, Observation, Placement, Policy, Tick, Touch, World};
use crate::settings::{Param, PolicyError, Range, Settings};

/// Ticks in an interval.
const TICKS: u64 = 16;
/// Actions that the report lists, at most: the last ones.
const LISTED: usize = 256;

pub const PARAMS: &[Param] = &[Param {
    name: "interval",
    summary: "processes are observed for so long before each decision; several slices of the scheduler (`daemon --regions`: 1 s)",
    unit: "us",
    range: Range {
        least: 1,
        most: 86_400_000_000,
    },
    default: 20_000,
    names: &[],
}];

#[derive(Default)]
struct Member {
    lately: Lately,
    /// Time that its threads would have kept a cpu busy in this interval, in ns, by thread.
    busy_ns: BTreeMap<u32, u64>,
    /// Ticks of this interval in each domain.
    ticks: Vec<u32>,
    /// Its threads, with the cpus that each was given last; 0: none.
    threads: BTreeMap<u32, u128>,
    free: Option<Free>,
}

struct Pairer {
    interval_ns: u64,
    begun_ns: u64,
    /// When each cpu's last tick was.
    ticked_ns: Vec<u64>,
    domains: Domains,
    members: BTreeMap<u32, Member>,
    said: Pairing,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    Ok(Box::new(Pairer {
        interval_ns: settings.integer("interval").saturating_mul(1000),
        begun_ns: 0,
        ticked_ns: Vec::new(),
        domains: Domains::none(0),
        members: BTreeMap::new(),
        said: Pairing::default(),
    }))
}

impl Pairer {
    fn tick_ns(&self) -> u64 {
        self.interval_ns.div_ceil(TICKS)
    }

    fn meet_world(&mut self, world: &World) {
        if self.domains.of_cpu.is_empty() {
            self.domains = match &world.domains {
                Some(domains) => domains.as_ref().clone(),
                None => Domains::none(world.cpus),
            };
            self.ticked_ns = vec![0; world.cpus as usize];
            self.said.cache.clone_from(&self.domains.name);
            self.said.caches = self.domains.count();
            self.said.cache_bytes = self.domains.bytes;
        }
    }

    fn ticked(&mut self, tick: Tick, world: &World) {
        self.meet_world(world);
        let Some(ran) = tick.ran else { return };
        let turns = world.runnable.get(tick.cpu as usize).copied().unwrap_or(1).max(1);
        // Ticks may come for another policy's sake, too.
        let before = std::mem::replace(&mut self.ticked_ns[tick.cpu as usize], world.now_ns);
        let tick_ns = self.tick_ns().min(world.now_ns.saturating_sub(before));
        let caches = self.domains.count() as usize;
        let member = self.members.entry(ran.space).or_default();
        *member.busy_ns.entry(ran.thread).or_default() += tick_ns * u64::from(turns);
        member.threads.entry(ran.thread).or_default();
        member.ticks.resize(caches, 0);
        member.ticks[self.domains.of_cpu[tick.cpu as usize] as usize] += 1;
    }

    /// The interval is over: each process as it was in it.
    fn observe_interval(&mut self, accessed: &[Accessed], world: &World) {
        let mut pages: BTreeMap<u32, u64> = BTreeMap::new();
        for one in accessed {
            *pages.entry(one.page.space).or_default() += 1;
        }
        let time = world.now_ns.saturating_sub(self.begun_ns).max(1);
        self.begun_ns = world.now_ns;
        for (&space, member) in &mut self.members {
            let bytes = pages.get(&space).copied().unwrap_or(0) * world.page_bytes;
            let busy = |ns: u64| (ns.min(time) * u64::from(CPU) / time) as u32;
            let busy = member.busy_ns.values().map(|&ns| busy(ns)).sum();
            member.busy_ns.clear();
            member.lately.tell(Some(bytes), busy);
        }
    }

    fn decide(&mut self, world: &World, actions: &mut Vec<Action>) {
        let caches = self.domains.count();
        let cpus: Vec<u32> = (0..caches)
            .map(|cache| self.domains.cpus(cache).count() as u32)
            .collect();
        let domain = |&cpus: &u32| Domain {
            cpus,
            bytes: Some(self.domains.bytes),
        };
        let domains: Vec<Domain> = cpus.iter().map(domain).collect();
        let seen = |member: &Member| {
            let most = (0..).zip(&member.ticks).max_by_key(|(_, ticks)| **ticks);
            most.filter(|(_, ticks)| **ticks > 0).map(|(cache, _)| cache)
        };
        let processes: Vec<Process> = (self.members.values())
            .map(|member| member.lately.process(cpus.clone(), seen(member)))
            .collect();
        let plan = decide(&domains, &processes, PATIENCE);
        let mut changed = false;
        for ((&space, member), place) in self.members.iter_mut().zip(plan.places) {
            member.ticks.clear();
            let (place, free) = match place {
                Place::In(domains) => (Some(domains), None),
                Place::Free(free) => (None, Some(free)),
            };
            member.free = free;
            if place.as_deref() == member.lately.placed() {
                continue;
            }
            changed = true;
            self.said.actions_count += 1;
            self.said.actions.push(PairingAction {
                at_ns: world.now_ns,
                process: space,
                domains: place.clone(),
                why: free
                    .filter(|free| *free != Free::NoGain)
                    .map_or(plan.why.in_words(), Free::in_words)
                    .to_string(),
                ..PairingAction::default()
            });
            member.lately.place(place);
        }
        let beyond = self.said.actions.len().saturating_sub(LISTED);
        self.said.actions.drain(..beyond);
        if changed || self.said.why.is_empty() {
            self.said.why = plan.why.in_words().to_string();
            self.said.fullest_before_bytes = Some(plan.fullest_before);
            self.said.fullest_after_bytes = Some(plan.fullest_after);
        }
        self.show(actions);
    }

    /// Each thread gets the cpus of its process's place, also one that has come since.
    fn show(&mut self, actions: &mut Vec<Action>) {
        let all = (0..self.domains.count()).fold(0, |mask, cache| mask | self.domains.mask(cache));
        for member in self.members.values_mut() {
            let place = member.lately.placed();
            let cpus = place.map_or(all, |place| {
                place.iter().fold(0, |mask, &cache| mask | self.domains.mask(cache))
            });
            for (&thread, given) in &mut member.threads {
                if *given != cpus && (*given, cpus) != (0, all) {
                    *given = cpus;
                    actions.push(Action::Allow { thread, cpus });
                }
            }
        }
    }
}

impl Policy for Pairer {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement::default()
    }

    fn interest(&self) -> Interest {
        Interest {
            tick_ns: self.tick_ns(),
            accessed_ns: self.interval_ns,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, _actions: &mut Vec<Action>) {
        if let Observation::Tick(tick) = observation {
            self.ticked(*tick, world);
        }
    }

    fn observe_accessed(&mut self, accessed: &[Accessed], world: &World, actions: &mut Vec<Action>) {
        self.meet_world(world);
        self.observe_interval(accessed, world);
        if self.domains.count() > 1 && self.members.values().any(|member| member.lately.is_known()) {
            self.decide(world, actions);
        }
    }

    fn pairing(&self) -> Option<Pairing> {
        let process = |(&process, member): (&u32, &Member)| PairedProcess {
            process,
            working_set_bytes: member.lately.bytes(),
            busy: member.lately.busy(),
            domains: member.lately.placed().map(<[u32]>::to_vec),
            why: match member.free {
                _ if member.lately.placed().is_some() => None,
                _ if !member.lately.is_known() => Some("it was not watched for long enough".to_string()),
                free => free.map(|free| free.in_words().to_string()),
            },
            ..PairedProcess::default()
        };
        Some(Pairing {
            processes: self.members.iter().map(process).collect(),
            ..self.said.clone()
        })
    }
}
