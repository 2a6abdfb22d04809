//! The result of a simulation: a [`results::Outcome`] for each policy, and data that is examined further but not
//! reported.

mod stall;
mod threads;
mod traffic;

use std::sync::Arc;

use policy::Page;
use results::{
    Cache, Cpu as CpuOutcome, CpuMemory, HintCounts, Outcome, PageFaults, Prefetches, RemoteStructure, Stall, Time, Tlb,
};

use crate::causes::Evidence;
use crate::cdpc::RunHints;
use crate::clock::{Spent, whole_ns};
use crate::config::Config;
use crate::counts::{CLASSES, CacheCounts, CpuCounts};
use crate::curves::CurvesOutcome;
use crate::engine::Cpu;
use crate::homes::Homes;
use crate::layout::{Layout, Shape};
use crate::memory::Memory;

pub use threads::{Sharing, ThreadSet};

/// A policy's run: its report, and data for further computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    pub outcome: Outcome,
    /// The hints that the policy was given, and how they came about.
    pub hints: Option<Arc<RunHints>>,
    /// The first color of each page, in the order in which they were touched, if asked for.
    pub placements: Vec<(Page, u32)>,
    /// Each structure's misses alone in a part of the outermost cache, if asked for.
    pub curves: Option<CurvesOutcome>,
    /// The measurements of why data misses, if asked for.
    pub evidence: Option<Evidence>,
    /// Misses that went to other nodes, if asked for.
    pub remote: Option<OtherNodes>,
    /// The threads that share each line, if asked for.
    pub sharing: Option<Sharing>,
}

/// Misses that went beyond all caches, by node and data structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtherNodes {
    /// Those with remote misses.
    pub structures: Vec<RemoteStructure>,
    /// By node of the cpu, and in it by node that served them.
    pub traffic: Vec<Vec<u64>>,
}

/// The counts of a run.
pub struct Tally<'a> {
    pub layout: &'a Layout,
    /// By cpu and kind of cache.
    pub counts: &'a [CacheCounts],
    pub cpus: &'a [Cpu],
    pub homes: &'a Homes,
    pub memory: &'a Memory,
    /// By cpu, if the machine carries prefetches out.
    pub software_prefetch: &'a [Prefetches],
    /// Pages touched.
    pub pages: usize,
    /// True if page faults take time.
    pub faults: bool,
    pub classes: bool,
    pub knows_instructions: bool,
}

/// Builds the report of a run that has ended. `used`: the cpus that threads were on.
pub fn simulated(tally: &Tally, policy: &str, config: &Config, used: &[bool]) -> Simulated {
    let machine = &config.machine;
    let has_tlb = machine.tlb.is_some();
    let cpus: Vec<CpuOutcome> = (0..tally.cpus.len())
        .map(|cpu| of_cpu(tally, cpu, has_tlb, used[cpu]))
        .collect();
    let mut caches = cpus[0].caches.clone();
    for cpu in &cpus[1..] {
        let sums = caches.into_iter().zip(&cpu.caches);
        caches = sums.map(|(sum, cache)| sum.plus(cache)).collect();
    }
    let counts = total(tally.cpus);
    let time_ns = cpus.iter().fold(no_time(false), |sum, cpu| sum.plus(&cpu.time_ns));
    let memory = of_memory(&counts);
    let bus = machine
        .memory
        .is_contended()
        .then(|| traffic::bus(tally.memory, machine.memory.all_nodes(), time_ns.wall));
    let outcome = Outcome {
        policy: policy.to_string(),
        machine: machine.name.clone(),
        references: counts.references,
        changes: config.changes.clone(),
        instructions: instructions(tally, &counts),
        caches,
        tlb: of_tlb(&counts, has_tlb),
        memory: results::Memory {
            local: memory.local,
            remote: memory.remote,
            dirty_remote: memory.dirty_remote,
            local_percent: memory.local_percent,
            pages: tally.pages as u64,
            pages_max: tally.homes.frames.used_max(),
            pages_average: None,
            page_faults: tally.faults.then_some(PageFaults {
                first: counts.faults_first,
                again: counts.faults_again,
            }),
            migrations: tally.homes.counts.migrations,
            recolorings: tally.homes.counts.recolorings,
            replications: tally.homes.counts.replications,
            collapses: tally.homes.counts.collapses,
            hints: HintCounts {
                placed: tally.homes.counts.hints_placed,
                honoured: tally.homes.counts.hints_honoured,
            },
        },
        time_ns,
        bus,
        prefetch: cpus.iter().filter_map(|cpu| cpu.prefetch).reduce(Prefetches::plus),
        per_cpu: match config.detail.per_cpu && cpus.len() > 1 {
            true => cpus,
            false => Vec::new(),
        },
        slots: tally.homes.policy.slots(),
        pairing: tally.homes.policy.pairing(),
        regions: tally.homes.policy.regions(),
        cdpc: tally.homes.cdpc(),
        ..Outcome::default()
    };
    Simulated {
        outcome,
        hints: tally.homes.hints.clone(),
        placements: tally.homes.placements.clone().unwrap_or_default(),
        curves: None,
        evidence: None,
        remote: None,
        sharing: None,
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
                tally.layout.overlaps || tally.layout.software_prefetch == Some(kind),
            )
        })
        .collect();
    let prefetch = tally.software_prefetch.get(cpu).copied();
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
            no_time(tally.classes)
        },
        prefetch,
    }
}

/// `late`: lines may be found that have not come.
fn of_cache(shape: &Shape, counts: &CacheCounts, classes: bool, late: bool) -> Cache {
    let prefetches = shape.prefetch.is_some();
    let class: [Option<u64>; CLASSES] = counts.classes.map(|count| classes.then_some(count));
    Cache {
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
        stall_ns: of_stall(counts, classes, late),
    }
}

fn of_stall(counts: &CacheCounts, classes: bool, late: bool) -> Stall {
    let stall: [Option<u64>; CLASSES] = counts.class_stall.map(|time| classes.then_some(whole_ns(time)));
    Stall {
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
        late: late.then_some(whole_ns(counts.late_stall)),
    }
}

/// For a cpu without threads.
fn no_time(classes: bool) -> Time {
    Time {
        stall_by_class: Some(stall::by_class(&Spent::default(), &[], classes, 0)),
        ..Time::default()
    }
}

fn of_time(cpu: &Cpu, counts: &[CacheCounts], classes: bool) -> Time {
    let spent = &cpu.spent;
    let mut time = Time {
        busy: whole_ns(spent.busy),
        cache_stall: whole_ns(spent.cache),
        local_stall: whole_ns(spent.local),
        remote_stall: whole_ns(spent.remote),
        tlb_stall: whole_ns(spent.tlb),
        policy_overhead: whole_ns(spent.policy),
        page_faults: whole_ns(spent.faults),
        prefetch_stall: whole_ns(spent.prefetch),
        imbalance: whole_ns(spent.imbalance),
        sequential: whole_ns(spent.sequential),
        synchronization: whole_ns(spent.synchronization),
        total: 0,
        wall: whole_ns(cpu.clock - cpu.begin),
        stall_by_class: None,
    };
    let stall = time.cache_stall + time.local_stall + time.remote_stall;
    time.stall_by_class = Some(stall::by_class(spent, counts, classes, stall));
    time.total = time.busy
        + stall
        + time.tlb_stall
        + time.policy_overhead
        + time.page_faults
        + time.prefetch_stall
        + time.imbalance
        + time.sequential
        + time.synchronization;
    time
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

fn of_tlb(counts: &CpuCounts, has: bool) -> Tlb {
    Tlb {
        accesses: has.then_some(counts.tlb_accesses),
        misses: has.then_some(counts.tlb_misses),
    }
}

fn instructions(tally: &Tally, counts: &CpuCounts) -> Option<u64> {
    tally.knows_instructions.then_some(counts.instructions)
}

fn total(cpus: &[Cpu]) -> CpuCounts {
    cpus.iter().fold(CpuCounts::default(), |mut sum, cpu| {
        sum.add(&cpu.counts);
        sum
    })
}
