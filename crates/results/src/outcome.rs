//! The outcome of one simulated run: exactly the JSON object that `simulate --json` prints, one for each policy.

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, StallByClass};
use crate::detail::{Collision, Page, SourceLine, Structure, Thread};
use crate::lenient::ns;
use crate::live_regions::Pairing;
use crate::placed::{Cdpc, Slots};
use crate::profile::Profile;
use crate::program_change::ProgramChange;
use crate::regions::Regions;
use crate::timeline::Timeline;
use crate::windows::Windows;

/// One run: a trace on a machine under a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Outcome {
    pub policy: String,
    /// The parameters of the policy in this run, if runs of several settings were requested, as `trigger=64`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    pub machine: String,
    /// The program of the trace, and its arguments; absent within an advice, which has them itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    pub references: u64,
    /// Changes of the program that were simulated with it; absent if it was simulated unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ProgramChange>,
    /// Null where the trace does not count them.
    pub instructions: Option<u64>,
    /// The windows on which all figures rest; absent where all of the trace was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Windows>,
    /// The number of misses that the policy was replayed over, with fixed latencies and costs; absent if the run was
    /// simulated whole. In a replay, threads wait for each other as under first touch (`wall`, `total`, `imbalance` and
    /// the like contain that), and lines from other cpus' caches count as their page's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed_misses: Option<u64>,
    /// One for each kind of cache, its instances summed, in the machine's order.
    pub caches: Vec<Cache>,
    pub tlb: Tlb,
    pub memory: Memory,
    pub time_ns: Time,
    /// The use of memory, or of the bus; absent if the machine does not state its bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<Bus>,
    /// The outcome of the program's prefetches; absent where the machine does not carry them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetches>,
    /// The actions of policy `order`, or of a change `tile`; absent where there is neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Work>,
    /// The outcome of cache slots; absent where policy `slots` is no part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// Processes and their caches; absent where policy `pairing` is no part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// Findings and actions of region scheduling; absent where policy `regions` is no part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
    /// The hints of policy `cdpc`, and their results; absent if it is no part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdpc: Option<Cdpc>,
    /// The same figures cpu by cpu; absent on machines with one cpu, and where not asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub per_cpu: Vec<Cpu>,
    /// Thread by thread, all of the trace; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<Thread>>,
    /// All data structures with a miss or a stall, the largest stall first; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structures: Option<Vec<Structure>>,
    /// The pages with the largest stall; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<Vec<Page>>,
    /// The lines of the source with the largest stall; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_lines: Option<Vec<SourceLine>>,
    /// The lines with the most false sharing; absent where not asked for, empty where misses were not classed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_sharing: Option<Vec<Collision>>,
    /// Waiting over time; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Waiting by call stack; absent where not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

impl Outcome {
    /// Nanoseconds that it spends waiting for caches, memory and the TLB.
    pub fn stall_ns(&self) -> u64 {
        let time = &self.time_ns;
        let parts = [time.cache_stall, time.local_stall, time.remote_stall, time.tlb_stall];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// Null on machines whose description has no TLB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Tlb {
    pub accesses: Option<u64>,
    pub misses: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Memory {
    /// Pieces served by memory of the cpu's own node, and by others' or another core's cache.
    pub local: u64,
    pub remote: u64,
    /// Of `remote`: supplied by another core's cache.
    pub dirty_remote: u64,
    pub local_percent: f64,
    /// Pages touched, and the most frames in use at once (replicas included).
    pub pages: u64,
    pub pages_max: u64,
    /// Frames in use, averaged over the time of the run; absent if that was not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_average: Option<f64>,
    /// Absent where they take no time on the machine, and in traces with windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<PageFaults>,
    pub migrations: u64,
    pub recolorings: u64,
    pub replications: u64,
    pub collapses: u64,
    pub hints: HintCounts,
}

impl Outcome {
    /// The policy, with what tells this run from others of the same.
    pub fn name(&self) -> String {
        match &self.settings[..] {
            [] => self.policy.clone(),
            settings => format!("{} ({})", self.policy, settings.join(", ")),
        }
    }
}

/// Touches of pages that were not present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PageFaults {
    /// Of pages that were never touched before.
    pub first: u64,
    /// Of pages that were touched, and unmapped since.
    pub again: u64,
}

/// Pages for which the policy asked for a color or node, and those that got it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct HintCounts {
    pub placed: u64,
    pub honoured: u64,
}

/// Nanoseconds, summed over the cpus that ran a thread; `total` is the sum of the parts, `wall` the largest clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Time {
    #[serde(deserialize_with = "ns")]
    pub busy: u64,
    #[serde(deserialize_with = "ns")]
    pub cache_stall: u64,
    #[serde(deserialize_with = "ns")]
    pub local_stall: u64,
    #[serde(deserialize_with = "ns")]
    pub remote_stall: u64,
    #[serde(deserialize_with = "ns")]
    pub tlb_stall: u64,
    #[serde(deserialize_with = "ns")]
    pub policy_overhead: u64,
    /// The system's time for faults of pages that are touched for the first time.
    #[serde(deserialize_with = "ns", skip_serializing_if = "is_none")]
    pub page_faults: u64,
    /// For room among the prefetches in progress.
    #[serde(deserialize_with = "ns")]
    pub prefetch_stall: u64,
    /// Waiting for other threads, for a reason other than the next two.
    #[serde(deserialize_with = "ns")]
    pub imbalance: u64,
    /// Waiting while a master works alone, between two teams.
    #[serde(deserialize_with = "ns")]
    pub sequential: u64,
    /// Locks, and the code of barriers.
    #[serde(deserialize_with = "ns")]
    pub synchronization: u64,
    #[serde(deserialize_with = "ns")]
    pub total: u64,
    #[serde(deserialize_with = "ns")]
    pub wall: u64,
    /// `cache_stall`, `local_stall` and `remote_stall` once more, by reason; absent in old results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_by_class: Option<StallByClass>,
}

pub(crate) fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Time {
    /// The total without the time in which cpus merely waited for other threads: computing, and waiting for memory.
    pub fn worked(&self) -> u64 {
        let waited = self
            .imbalance
            .saturating_add(self.sequential)
            .saturating_add(self.synchronization);
        self.total.saturating_sub(waited)
    }

    /// The same of two cpus.
    pub fn plus(self, other: &Time) -> Time {
        let by_class = self.stall_by_class.zip(other.stall_by_class);
        Time {
            busy: self.busy + other.busy,
            cache_stall: self.cache_stall + other.cache_stall,
            local_stall: self.local_stall + other.local_stall,
            remote_stall: self.remote_stall + other.remote_stall,
            tlb_stall: self.tlb_stall + other.tlb_stall,
            policy_overhead: self.policy_overhead + other.policy_overhead,
            page_faults: self.page_faults + other.page_faults,
            prefetch_stall: self.prefetch_stall + other.prefetch_stall,
            imbalance: self.imbalance + other.imbalance,
            sequential: self.sequential + other.sequential,
            synchronization: self.synchronization + other.synchronization,
            total: self.total + other.total,
            wall: self.wall.max(other.wall),
            stall_by_class: by_class.map(|(a, b)| a.plus(&b)),
        }
    }
}

/// One cpu's share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cpu {
    pub cpu: u32,
    pub node: u32,
    pub references: u64,
    pub instructions: Option<u64>,
    pub caches: Vec<Cache>,
    pub tlb: Tlb,
    pub memory: CpuMemory,
    pub time_ns: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetches>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuMemory {
    pub local: u64,
    pub remote: u64,
    pub dirty_remote: u64,
    pub local_percent: f64,
}

/// Nanoseconds that memory, or the bus, was occupied, all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Bus {
    /// By blocks that cpus asked for: misses, prefetches, and what other cpus' caches supplied.
    #[serde(deserialize_with = "ns")]
    pub data: u64,
    /// By blocks on their way to memory: dirty lines, and writes that no cache keeps.
    #[serde(deserialize_with = "ns")]
    pub writebacks: u64,
    /// By requests to write a line that others hold (`memory.upgrade_ns` of the machine).
    #[serde(deserialize_with = "ns")]
    pub upgrades: u64,
    /// The three together, in percent of the wall clock's time (of each node's). Transfers that are still in progress
    /// at the end count too.
    pub occupancy_percent: f64,
}

/// Prefetches of the program: `issued` is the sum of `dropped_tlb`, `dropped_unmapped`, `already_present` and `brought`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Prefetches {
    pub issued: u64,
    /// The TLB did not have the page.
    pub dropped_tlb: u64,
    /// The page had no frame (or was closed to the cpu), and there is no TLB to detect that.
    pub dropped_unmapped: u64,
    /// A cache of the cpu held the line, or it was on its way there.
    pub already_present: u64,
    /// Lines that arrived, or were in transit at the end.
    pub brought: u64,
    /// Of those, the ones that a reference found before they were evicted; for a cpu: that it found first.
    pub useful: u64,
    /// Of `useful`: those that the reference still had to wait for.
    pub late: u64,
}

impl Prefetches {
    /// The same of two cpus.
    pub fn plus(self, other: Prefetches) -> Prefetches {
        Prefetches {
            issued: self.issued + other.issued,
            dropped_tlb: self.dropped_tlb + other.dropped_tlb,
            dropped_unmapped: self.dropped_unmapped + other.dropped_unmapped,
            already_present: self.already_present + other.already_present,
            brought: self.brought + other.brought,
            useful: self.useful + other.useful,
            late: self.late + other.late,
        }
    }
}

/// Marked work in another order: what policy `order` found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Work {
    /// Items that could run in another order; items that could not (threads meet in them, or they do not end); and
    /// items that ran before or after another item than recorded.
    pub items: u64,
    pub fixed: u64,
    pub moved: u64,
    /// Runs of items, and bins, those of each run counted.
    pub runs: u64,
    pub bins: u64,
    /// Hints that counted, and the side of a block in their units.
    pub hints: u32,
    pub block: u64,
    /// Why the block has its size: `set`, `cache` or `tlb-reach`, and the same in words.
    pub limit: String,
    pub reason: String,
    /// `first-fork`, `nearest` or `hilbert`.
    pub tour: String,
    pub workers: u32,
}
