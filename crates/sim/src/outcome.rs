//! What a simulation found: exactly the JSON object of the contract, one for each policy.

mod stall;
mod traffic;

pub use stall::StallByClass;
pub use traffic::{BusOutcome, PrefetchOutcome};

use std::sync::Arc;

use policy::Page;
use serde::Serialize;

use crate::cdpc::{CdpcOutcome, Told};
use crate::clock::{Spent, whole_ns};
use crate::config::Config;
use crate::counts::{CLASSES, CacheCounts, CpuCounts};
use crate::curves::CurvesOutcome;
use crate::detail::{CollisionOutcome, PageOutcome, StructureOutcome, ThreadOutcome};
use crate::engine::Cpu;
use crate::homes::Homes;
use crate::layout::{Layout, Shape};
use crate::memory::Memory;
use crate::software_prefetch::PrefetchCounts;
use crate::work::WorkOutcome;

/// The result for one policy. Serializes to the JSON object that `domicile simulate --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    pub policy: String,
    pub machine: String,
    pub references: u64,
    /// `None` where the trace does not tell.
    pub instructions: Option<u64>,
    /// One for each kind of cache, its instances summed, in the machine's order.
    pub caches: Vec<CacheOutcome>,
    pub tlb: TlbOutcome,
    pub memory: MemoryOutcome,
    pub time_ns: TimeOutcome,
    /// What occupied memory, or the bus, where the machine says what it can move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<BusOutcome>,
    /// What became of the program's prefetches, where the machine carries them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchOutcome>,
    /// What policy `order` did, where it is part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<WorkOutcome>,
    /// What became of cache slots, where policy `slots` is part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<policy::SlotsTold>,
    /// What policy `cdpc` was told, where it is part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdpc: Option<CdpcOutcome>,
    /// The hints that it was told, and how they came about.
    #[serde(skip)]
    pub told: Option<Arc<Told>>,
    /// Which color each page had at first, in the order in which they were touched, where asked for.
    #[serde(skip)]
    pub placements: Vec<(Page, u32)>,
    /// Each structure's misses alone in a part of the outermost cache, where asked for.
    #[serde(skip)]
    pub curves: Option<CurvesOutcome>,
    /// The same figures cpu by cpu, on machines with several, where asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_cpu: Vec<CpuOutcome>,
    /// Thread by thread, all of the trace, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<ThreadOutcome>>,
    /// All data structures with a miss or a stall, the largest stall first, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structures: Option<Vec<StructureOutcome>>,
    /// The pages with the largest stall, as many as asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<PageOutcome>>,
    /// The lines with the most false sharing, as many as asked for; empty where classes are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_sharing: Option<Vec<CollisionOutcome>>,
}

/// Counts of pieces (parts of references within one line) of one kind of cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheOutcome {
    pub name: String,
    pub level: u8,
    pub accesses: u64,
    pub hits: u64,
    pub misses: u64,
    pub writebacks: u64,
    /// The classes, which add up to `misses`; `None` where classes are off.
    pub cold: Option<u64>,
    pub capacity: Option<u64>,
    pub conflict: Option<u64>,
    pub true_sharing: Option<u64>,
    pub false_sharing: Option<u64>,
    pub upgrades: u64,
    /// Lines that it brought before they were asked for; `None` where it does not prefetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetches: Option<u64>,
    /// Of `prefetches`: those that were asked for while it still held them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch_hits: Option<u64>,
    pub stall_ns: StallOutcome,
}

/// Nanoseconds that cpus waited on account of a cache: for its hits, for what it missed (by the
/// class of the miss), and for the right to write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StallOutcome {
    pub hit: u64,
    pub miss: u64,
    pub cold: Option<u64>,
    pub capacity: Option<u64>,
    pub conflict: Option<u64>,
    pub true_sharing: Option<u64>,
    pub false_sharing: Option<u64>,
    pub upgrade: u64,
    /// For lines that were found, and had not come yet; `None` where no prefetches of the program come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
}

/// `None` on machines whose description has no TLB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TlbOutcome {
    pub accesses: Option<u64>,
    pub misses: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryOutcome {
    /// Pieces served by memory of the cpu's own node, and by others' or another core's cache.
    pub local: u64,
    pub remote: u64,
    /// Of `remote`: supplied by another core's cache.
    pub dirty_remote: u64,
    pub local_percent: f64,
    /// Pages touched, and the most frames in use at once (replicas included).
    pub pages: u64,
    pub pages_max: u64,
    pub migrations: u64,
    pub recolorings: u64,
    pub replications: u64,
    pub collapses: u64,
    pub hints: Hints,
}

/// Pages for which the policy asked for a color or node, and those that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hints {
    pub placed: u64,
    pub honoured: u64,
}

/// Nanoseconds, summed over the cpus that ran a thread; `total` is the sum of the parts, `wall`
/// the largest clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimeOutcome {
    pub busy: u64,
    pub cache_stall: u64,
    pub local_stall: u64,
    pub remote_stall: u64,
    pub tlb_stall: u64,
    pub policy_overhead: u64,
    /// For room among the prefetches that are under way.
    pub prefetch_stall: u64,
    /// Waiting for other threads, where it is neither of the next two.
    pub imbalance: u64,
    /// Waiting while a master works alone, between two teams.
    pub sequential: u64,
    /// Locks, and the code of barriers.
    pub synchronization: u64,
    pub total: u64,
    pub wall: u64,
    /// `cache_stall`, `local_stall` and `remote_stall` once more, by why.
    pub stall_by_class: StallByClass,
}

/// One cpu's share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuOutcome {
    pub cpu: u32,
    pub node: u32,
    pub references: u64,
    pub instructions: Option<u64>,
    pub caches: Vec<CacheOutcome>,
    pub tlb: TlbOutcome,
    pub memory: CpuMemory,
    pub time_ns: TimeOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuMemory {
    pub local: u64,
    pub remote: u64,
    pub dirty_remote: u64,
    pub local_percent: f64,
}

/// What a run has counted.
pub struct Tally<'a> {
    pub layout: &'a Layout,
    /// By cpu and kind of cache.
    pub counts: &'a [CacheCounts],
    pub cpus: &'a [Cpu],
    pub homes: &'a Homes,
    pub memory: &'a Memory,
    /// By cpu, where the machine carries prefetches out.
    pub software_prefetch: &'a [PrefetchCounts],
    /// Pages touched.
    pub pages: usize,
    pub classes: bool,
    pub knows_instructions: bool,
}

/// Builds the outcome of a run that has ended. `used`: the cpus that threads were on.
pub fn outcome(tally: &Tally, policy: &str, config: &Config, used: &[bool]) -> Outcome {
    let machine = &config.machine;
    let has_tlb = machine.tlb.is_some();
    let cpus: Vec<CpuOutcome> = (0..tally.cpus.len())
        .map(|cpu| of_cpu(tally, cpu, has_tlb, used[cpu]))
        .collect();
    let mut caches = cpus[0].caches.clone();
    for cpu in &cpus[1..] {
        for (sum, cache) in caches.iter_mut().zip(&cpu.caches) {
            add(sum, cache);
        }
    }
    let counts = total(tally.cpus);
    let time_ns = cpus
        .iter()
        .fold(TimeOutcome::default(), |sum, cpu| sum.plus(&cpu.time_ns));
    let memory = of_memory(&counts);
    let bus = (machine.memory.bandwidth_gbps > 0.0)
        .then(|| BusOutcome::new(tally.memory, machine.memory.nodes, time_ns.wall));
    Outcome {
        policy: policy.to_string(),
        machine: machine.name.clone(),
        references: counts.references,
        instructions: instructions(tally, &counts),
        caches,
        tlb: of_tlb(&counts, has_tlb),
        memory: MemoryOutcome {
            local: memory.local,
            remote: memory.remote,
            dirty_remote: memory.dirty_remote,
            local_percent: memory.local_percent,
            pages: tally.pages as u64,
            pages_max: tally.homes.frames.used_max(),
            migrations: tally.homes.counts.migrations,
            recolorings: tally.homes.counts.recolorings,
            replications: tally.homes.counts.replications,
            collapses: tally.homes.counts.collapses,
            hints: Hints {
                placed: tally.homes.counts.hints_placed,
                honoured: tally.homes.counts.hints_honoured,
            },
        },
        time_ns,
        bus,
        prefetch: cpus.iter().filter_map(|cpu| cpu.prefetch).reduce(PrefetchOutcome::plus),
        per_cpu: match config.detail.per_cpu && cpus.len() > 1 {
            true => cpus,
            false => Vec::new(),
        },
        order: None,
        curves: None,
        slots: tally.homes.policy.slots(),
        cdpc: tally.homes.cdpc(),
        told: tally.homes.told.clone(),
        placements: tally.homes.placements.clone().unwrap_or_default(),
        threads: None,
        structures: None,
        pages: None,
        false_sharing: None,
    }
}

fn of_cpu(tally: &Tally, cpu: usize, has_tlb: bool, used: bool) -> CpuOutcome {
    let kinds = tally.layout.caches.len();
    let counts = &tally.counts[cpu * kinds..(cpu + 1) * kinds];
    let shapes = tally.layout.caches.iter().zip(counts).enumerate();
    let caches = shapes
        .map(|(kind, (shape, counts))| {
            of_cache(
                shape,
                counts,
                tally.classes,
                tally.layout.software_prefetch == Some(kind),
            )
        })
        .collect();
    let prefetch = tally.software_prefetch.get(cpu).map(PrefetchOutcome::of);
    let number = cpu as u32;
    let cpu = &tally.cpus[cpu];
    CpuOutcome {
        cpu: number,
        node: cpu.node,
        references: cpu.counts.references,
        instructions: instructions(tally, &cpu.counts),
        caches,
        tlb: of_tlb(&cpu.counts, has_tlb),
        memory: of_memory(&cpu.counts),
        time_ns: if used {
            of_time(cpu, counts, tally.classes)
        } else {
            TimeOutcome {
                stall_by_class: stall::by_class(&Spent::default(), &[], tally.classes, 0),
                ..TimeOutcome::default()
            }
        },
        prefetch,
    }
}

/// `software_prefetch`: whether prefetches of the program come to the cache.
fn of_cache(shape: &Shape, counts: &CacheCounts, classes: bool, software_prefetch: bool) -> CacheOutcome {
    let prefetches = shape.prefetch.is_some();
    let class: [Option<u64>; CLASSES] = counts.classes.map(|count| classes.then_some(count));
    CacheOutcome {
        name: shape.name.clone(),
        level: shape.level,
        accesses: counts.accesses,
        hits: counts.accesses - counts.misses,
        misses: counts.misses,
        writebacks: counts.writebacks,
        cold: class[0],
        capacity: class[1],
        conflict: class[2],
        true_sharing: class[3],
        false_sharing: class[4],
        upgrades: counts.upgrades,
        prefetches: prefetches.then_some(counts.prefetches),
        prefetch_hits: prefetches.then_some(counts.prefetch_hits),
        stall_ns: of_stall(counts, classes, software_prefetch),
    }
}

fn of_stall(counts: &CacheCounts, classes: bool, software_prefetch: bool) -> StallOutcome {
    let stall: [Option<u64>; CLASSES] = counts.class_stall.map(|time| classes.then_some(whole_ns(time)));
    StallOutcome {
        hit: whole_ns(counts.hit_stall),
        miss: match classes {
            true => stall.iter().flatten().sum(),
            false => whole_ns(counts.miss_stall),
        },
        cold: stall[0],
        capacity: stall[1],
        conflict: stall[2],
        true_sharing: stall[3],
        false_sharing: stall[4],
        upgrade: whole_ns(counts.upgrade_stall),
        late: software_prefetch.then_some(whole_ns(counts.late_stall)),
    }
}

fn add(sum: &mut CacheOutcome, other: &CacheOutcome) {
    fn option(sum: &mut Option<u64>, other: Option<u64>) {
        *sum = sum.zip(other).map(|(a, b)| a + b);
    }
    sum.accesses += other.accesses;
    sum.hits += other.hits;
    sum.misses += other.misses;
    sum.writebacks += other.writebacks;
    sum.upgrades += other.upgrades;
    option(&mut sum.prefetches, other.prefetches);
    option(&mut sum.prefetch_hits, other.prefetch_hits);
    option(&mut sum.cold, other.cold);
    option(&mut sum.capacity, other.capacity);
    option(&mut sum.conflict, other.conflict);
    option(&mut sum.true_sharing, other.true_sharing);
    option(&mut sum.false_sharing, other.false_sharing);
    let (sum, other) = (&mut sum.stall_ns, &other.stall_ns);
    sum.hit += other.hit;
    sum.miss += other.miss;
    sum.upgrade += other.upgrade;
    option(&mut sum.late, other.late);
    option(&mut sum.cold, other.cold);
    option(&mut sum.capacity, other.capacity);
    option(&mut sum.conflict, other.conflict);
    option(&mut sum.true_sharing, other.true_sharing);
    option(&mut sum.false_sharing, other.false_sharing);
}

fn of_time(cpu: &Cpu, counts: &[CacheCounts], classes: bool) -> TimeOutcome {
    let spent = &cpu.spent;
    let mut time = TimeOutcome {
        busy: whole_ns(spent.busy),
        cache_stall: whole_ns(spent.cache),
        local_stall: whole_ns(spent.local),
        remote_stall: whole_ns(spent.remote),
        tlb_stall: whole_ns(spent.tlb),
        policy_overhead: whole_ns(spent.policy),
        prefetch_stall: whole_ns(spent.prefetch),
        imbalance: whole_ns(spent.imbalance),
        sequential: whole_ns(spent.sequential),
        synchronization: whole_ns(spent.synchronization),
        total: 0,
        wall: whole_ns(cpu.clock - cpu.begin),
        stall_by_class: StallByClass::default(),
    };
    let stall = time.cache_stall + time.local_stall + time.remote_stall;
    time.stall_by_class = stall::by_class(spent, counts, classes, stall);
    time.total = time.busy
        + stall
        + time.tlb_stall
        + time.policy_overhead
        + time.prefetch_stall
        + time.imbalance
        + time.sequential
        + time.synchronization;
    time
}

impl TimeOutcome {
    fn plus(self, other: &TimeOutcome) -> TimeOutcome {
        TimeOutcome {
            busy: self.busy + other.busy,
            cache_stall: self.cache_stall + other.cache_stall,
            local_stall: self.local_stall + other.local_stall,
            remote_stall: self.remote_stall + other.remote_stall,
            tlb_stall: self.tlb_stall + other.tlb_stall,
            policy_overhead: self.policy_overhead + other.policy_overhead,
            prefetch_stall: self.prefetch_stall + other.prefetch_stall,
            imbalance: self.imbalance + other.imbalance,
            sequential: self.sequential + other.sequential,
            synchronization: self.synchronization + other.synchronization,
            total: self.total + other.total,
            wall: self.wall.max(other.wall),
            stall_by_class: self.stall_by_class.plus(&other.stall_by_class),
        }
    }
}

fn of_memory(counts: &CpuCounts) -> CpuMemory {
    let all = counts.local + counts.remote;
    CpuMemory {
        local: counts.local,
        remote: counts.remote,
        dirty_remote: counts.dirty_remote,
        local_percent: if all == 0 {
            0.0
        } else {
            100.0 * counts.local as f64 / all as f64
        },
    }
}

fn of_tlb(counts: &CpuCounts, has: bool) -> TlbOutcome {
    TlbOutcome {
        accesses: has.then_some(counts.tlb_accesses),
        misses: has.then_some(counts.tlb_misses),
    }
}

fn instructions(tally: &Tally, counts: &CpuCounts) -> Option<u64> {
    tally.knows_instructions.then_some(counts.instructions)
}

fn total(cpus: &[Cpu]) -> CpuCounts {
    cpus.iter().fold(CpuCounts::default(), |mut sum, cpu| {
        sum.references += cpu.counts.references;
        sum.instructions += cpu.counts.instructions;
        sum.tlb_accesses += cpu.counts.tlb_accesses;
        sum.tlb_misses += cpu.counts.tlb_misses;
        sum.local += cpu.counts.local;
        sum.remote += cpu.counts.remote;
        sum.dirty_remote += cpu.counts.dirty_remote;
        sum
    })
}
