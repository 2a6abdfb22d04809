//! The advice: one program on one machine, under every policy that can make a difference.

use serde::{Deserialize, Serialize};

use crate::outcome::{CLASSES, Collision, Outcome, Structure};
use crate::slots::SlotAdvice;
use crate::work::WorkAdvice;

/// Structures and collisions that an advice names.
const MOST: usize = 10;

/// Lines with fewer false sharing misses than this are not named: threads that start and end have some.
const FEW: u64 = 10;

/// What `advise --json` prints: the whole result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advice {
    pub program: String,
    pub arguments: Vec<String>,
    pub machine: MachineFacts,
    pub trace: Facts,
    /// The policy that the parts below are told for: what a usual kernel does.
    pub baseline: String,
    /// Where the time of all cpus goes under the baseline; adds up to its total.
    #[serde(rename = "where")]
    pub shares: Vec<Share>,
    /// Who ended the waiting: caches, local or remote memory.
    pub served: Vec<Share>,
    /// The structures that cost most under the baseline, the worst first.
    pub structures: Vec<Structure>,
    pub false_sharing: Vec<Collision>,
    /// Every policy's outcome, the fastest first.
    pub policies: Vec<Outcome>,
    /// What another order of the marked work can gain, where work is marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkAdvice>,
    /// How the outermost cache could be partitioned, where that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotAdvice>,
    /// What placement can gain, in a sentence or two.
    pub verdict: String,
    /// What is only an estimate, and why.
    pub notes: Vec<String>,
}

/// What the report tells of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineFacts {
    pub name: String,
    pub clock_mhz: f64,
    pub cpus: u32,
    pub nodes: u32,
    /// Colors among which page placement can choose; 1: none.
    pub colors: u32,
    pub page_bytes: u64,
    pub caches: Vec<CacheFacts>,
    pub local_ns: f64,
    pub remote_ns: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheFacts {
    pub name: String,
    pub level: u8,
    pub bytes: u64,
    pub ways: u32,
    pub cpus_per_instance: u32,
    pub hit_ns: f64,
    pub colors: u32,
}

impl From<&machine::Machine> for MachineFacts {
    fn from(machine: &machine::Machine) -> Self {
        MachineFacts {
            name: machine.name.clone(),
            clock_mhz: machine.clock_mhz,
            cpus: machine.cpus,
            nodes: machine.memory.nodes,
            colors: machine.color_count(),
            page_bytes: machine.page_bytes,
            caches: machine
                .caches
                .iter()
                .map(|cache| CacheFacts {
                    name: cache.name.clone(),
                    level: cache.level,
                    bytes: cache.bytes,
                    ways: cache.ways,
                    cpus_per_instance: cache.cpus_per_instance,
                    hit_ns: cache.hit_ns,
                    colors: machine.colors(cache),
                })
                .collect(),
            local_ns: machine.memory.local_ns,
            remote_ns: machine.memory.remote_ns,
        }
    }
}

/// What the report tells of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The trace's file; `None` where it was recorded for this advice only.
    pub file: Option<String>,
    pub references: u64,
    pub instructions: Option<u64>,
    pub threads: u64,
    pub processes: u64,
    /// Bytes of all pages touched.
    pub footprint_bytes: u64,
}

/// A part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Share {
    /// `busy`, `cache`, `local`, `remote`, `memory`, `tlb`, `policy`, `prefetch`, `imbalance`,
    /// `sequential` or `synchronization`.
    pub part: String,
    /// What it is, for people.
    pub name: String,
    pub ns: f64,
    /// Of the total of all cpus.
    pub fraction: f64,
    /// Nanoseconds by class of the misses that caused it, where it is caused by misses.
    pub classes: Vec<(String, f64)>,
}

impl Advice {
    /// Puts an advice together. `baseline` is the name of one of the policies.
    pub fn new(
        machine: &machine::Machine,
        trace: Facts,
        baseline: &str,
        mut policies: Vec<Outcome>,
        notes: Vec<String>,
    ) -> Advice {
        policies.sort_by(|a, b| a.time_ns.wall.total_cmp(&b.time_ns.wall));
        let machine = MachineFacts::from(machine);
        let base = policies
            .iter()
            .find(|outcome| outcome.policy == baseline)
            .or(policies.iter().find(|outcome| outcome.order.is_none()))
            .or(policies.first());
        let mut structures = base.map_or_else(Vec::new, |base| base.structures.clone());
        structures.sort_by(|a, b| {
            b.stall_ns
                .total_cmp(&a.stall_ns)
                .then_with(|| misses(b).cmp(&misses(a)))
        });
        structures.retain(|structure| misses(structure) > 0);
        structures.truncate(MOST);
        let mut false_sharing = base.map_or_else(Vec::new, |base| base.false_sharing.clone());
        false_sharing.retain(|collision| collision.misses >= FEW);
        false_sharing.sort_by_key(|collision| std::cmp::Reverse(collision.misses));
        false_sharing.truncate(MOST);
        let mut advice = Advice {
            baseline: base.map_or_else(String::new, |base| base.policy.clone()),
            shares: base.map_or_else(Vec::new, shares),
            served: base.map_or_else(Vec::new, served),
            structures,
            false_sharing,
            machine,
            trace,
            work: WorkAdvice::new(&policies),
            policies,
            notes,
            ..Advice::default()
        };
        advice.verdict = crate::verdict(&advice);
        advice
    }

    /// The same with what was found of cache slots, which then is part of the verdict.
    pub fn with_slots(mut self, slots: Option<SlotAdvice>) -> Advice {
        self.slots = slots;
        self.verdict = crate::verdict(&self);
        self
    }

    /// The outcome that the advice is told for.
    pub fn base(&self) -> Option<&Outcome> {
        self.policies.iter().find(|outcome| outcome.policy == self.baseline)
    }
}

/// A structure's misses in the caches nearest to the cpus: what its references missed.
pub fn misses(structure: &Structure) -> u64 {
    let nearest = structure.caches.iter().map(|cache| cache.level).min();
    nearest.map_or(0, |level| structure.of_level(level).misses)
}

/// Where the time goes: computing, and waiting by why.
fn shares(outcome: &Outcome) -> Vec<Share> {
    let time = &outcome.time_ns;
    let mut shares = vec![share("busy", "busy", time.busy)];
    for cache in &outcome.caches {
        let name = &cache.name;
        let stall = &cache.stall_ns;
        shares.push(share("cache", &format!("{name} hits"), stall.hit));
        let classes = CLASSES.iter().zip(stall.classes()).filter(|(_, ns)| *ns > 0.0);
        shares.push(Share {
            classes: classes.map(|((class, _), ns)| (class.to_string(), ns)).collect(),
            ..share("cache", &format!("{name} misses"), stall.miss)
        });
        shares.push(share("cache", &format!("{name} upgrades"), stall.upgrade));
        let late = stall.late.unwrap_or_default();
        shares.push(share("cache", &format!("{name} lines on their way"), late));
    }
    shares.push(share("tlb", "TLB misses", time.tlb_stall));
    shares.push(share("policy", "work of the policy", time.policy_overhead));
    shares.push(share("prefetch", "room for prefetches", time.prefetch_stall));
    shares.push(share("imbalance", "waiting for other threads", time.imbalance));
    shares.push(share(
        "sequential",
        "waiting while one thread works alone",
        time.sequential,
    ));
    shares.push(share("synchronization", "locks and barriers", time.synchronization));
    // References that no cache serves wait for memory alone.
    let named: f64 = shares.iter().map(|share| share.ns).sum();
    if time.total - named > 1e-6 * time.total {
        shares.push(share("memory", "other waiting for memory", time.total - named));
    }
    complete(shares, time.total)
}

/// Who ended the waiting.
fn served(outcome: &Outcome) -> Vec<Share> {
    let time = &outcome.time_ns;
    let shares = vec![
        share("cache", "a cache", time.cache_stall),
        share("local", "local memory", time.local_stall),
        share("remote", "remote memory or another cpu's cache", time.remote_stall),
    ];
    complete(shares, time.total)
}

fn share(part: &str, name: &str, ns: f64) -> Share {
    Share {
        part: part.to_string(),
        name: name.to_string(),
        ns,
        ..Share::default()
    }
}

fn complete(mut shares: Vec<Share>, total: f64) -> Vec<Share> {
    shares.retain(|share| share.ns > 0.0);
    for share in &mut shares {
        share.fraction = if total > 0.0 { share.ns / total } else { 0.0 };
    }
    shares
}
