//! What one simulated run came to, as `simulate --json` prints it.
//!
//! Read tolerantly: fields that an older or shorter result lacks are zero or empty, fields that
//! are not shown here are kept as they are.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::slots::SlotsTold;

/// One run: a trace on a machine under a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    pub policy: String,
    pub machine: String,
    pub references: u64,
    pub instructions: Option<u64>,
    pub caches: Vec<Cache>,
    pub tlb: Tlb,
    pub memory: Memory,
    pub time_ns: Time,
    /// What occupied memory, where the machine says what it can move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<Bus>,
    /// What became of the program's prefetches, where the machine carries them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Prefetches>,
    /// What policy `order` did, where it is part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Work>,
    /// What became of cache slots, where policy `slots` is part of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotsTold>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Thread>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub structures: Vec<Structure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Page>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub false_sharing: Vec<Collision>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Marked work in another order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Items in runs, those of them that run before or after another item than recorded, and items that must stay.
    pub items: u64,
    pub moved: u64,
    pub fixed: u64,
    pub runs: u64,
    pub bins: u64,
    pub hints: u32,
    /// Side of a block, and why it is that.
    pub block: u64,
    pub reason: String,
    pub tour: String,
    pub workers: u32,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The counts of one kind of cache, summed over its instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    pub name: String,
    pub level: u8,
    pub accesses: u64,
    pub hits: u64,
    pub misses: u64,
    pub writebacks: u64,
    #[serde(deserialize_with = "or_zero")]
    pub cold: u64,
    #[serde(deserialize_with = "or_zero")]
    pub capacity: u64,
    #[serde(deserialize_with = "or_zero")]
    pub conflict: u64,
    #[serde(deserialize_with = "or_zero")]
    pub true_sharing: u64,
    #[serde(deserialize_with = "or_zero")]
    pub false_sharing: u64,
    pub upgrades: u64,
    pub stall_ns: Stall,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Nanoseconds that references waited because of a cache, by why. `miss` is the sum of the
/// classes, or all that is known where misses are not classed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    pub hit: f64,
    pub miss: f64,
    pub cold: Option<f64>,
    pub capacity: Option<f64>,
    pub conflict: Option<f64>,
    pub true_sharing: Option<f64>,
    pub false_sharing: Option<f64>,
    pub upgrade: f64,
    /// For lines that were found, and had not come yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<f64>,
}

impl Stall {
    /// Nanoseconds by class, in the order of [`CLASSES`].
    pub fn classes(&self) -> [f64; 5] {
        [
            self.cold,
            self.capacity,
            self.conflict,
            self.true_sharing,
            self.false_sharing,
        ]
        .map(Option::unwrap_or_default)
    }
}

/// How a class's count is taken from a cache's.
pub type CountOf = fn(&Cache) -> u64;

/// The classes of misses: what they are called, and how to get them from a cache's counts.
pub const CLASSES: [(&str, CountOf); 5] = [
    ("cold", |cache| cache.cold),
    ("capacity", |cache| cache.capacity),
    ("conflict", |cache| cache.conflict),
    ("true sharing", |cache| cache.true_sharing),
    ("false sharing", |cache| cache.false_sharing),
];

impl Cache {
    /// The misses of several caches.
    pub fn sum<'a>(caches: impl IntoIterator<Item = &'a Cache>) -> Cache {
        let mut sum = Cache::default();
        for cache in caches {
            sum.misses += cache.misses;
            sum.cold += cache.cold;
            sum.capacity += cache.capacity;
            sum.conflict += cache.conflict;
            sum.true_sharing += cache.true_sharing;
            sum.false_sharing += cache.false_sharing;
        }
        sum
    }

    /// Whether the misses were classed (a run can leave that out).
    pub fn classed(&self) -> bool {
        CLASSES.iter().map(|(_, of)| of(self)).sum::<u64>() > 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tlb {
    #[serde(deserialize_with = "or_zero")]
    pub accesses: u64,
    #[serde(deserialize_with = "or_zero")]
    pub misses: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub local: u64,
    pub remote: u64,
    /// Of `remote`: supplied by another cpu's cache.
    pub dirty_remote: u64,
    pub local_percent: f64,
    pub pages: u64,
    pub pages_max: u64,
    pub migrations: u64,
    pub replications: u64,
    pub collapses: u64,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Nanoseconds, summed over the cpus; `wall` is what a clock on the wall would show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Time {
    pub busy: f64,
    pub cache_stall: f64,
    pub local_stall: f64,
    pub remote_stall: f64,
    pub tlb_stall: f64,
    pub policy_overhead: f64,
    pub prefetch_stall: f64,
    pub imbalance: f64,
    pub sequential: f64,
    pub synchronization: f64,
    pub total: f64,
    pub wall: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_by_class: Option<StallByClass>,
}

/// Nanoseconds of waiting for caches and memory, by why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StallByClass {
    pub on_chip: f64,
    pub cold: Option<f64>,
    pub capacity: Option<f64>,
    pub conflict: Option<f64>,
    pub true_sharing: Option<f64>,
    pub false_sharing: Option<f64>,
    pub unclassed: f64,
    pub upgrade: f64,
    pub late_prefetch: f64,
}

impl StallByClass {
    /// The parts, with what they are called.
    pub fn parts(&self) -> [(&'static str, f64); 9] {
        let class = Option::unwrap_or_default;
        [
            ("found in caches", self.on_chip),
            ("cold", class(self.cold)),
            ("capacity", class(self.capacity)),
            ("conflict", class(self.conflict)),
            ("true sharing", class(self.true_sharing)),
            ("false sharing", class(self.false_sharing)),
            ("missed", self.unclassed),
            ("upgrades", self.upgrade),
            ("late prefetches", self.late_prefetch),
        ]
    }
}

/// Nanoseconds that memory, or the bus, was occupied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bus {
    pub data: f64,
    pub writebacks: f64,
    pub upgrades: f64,
    pub occupancy_percent: f64,
}

/// The program's prefetches, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefetches {
    pub issued: u64,
    pub dropped_tlb: u64,
    pub dropped_unmapped: u64,
    pub already_present: u64,
    pub brought: u64,
    pub useful: u64,
    pub late: u64,
}

/// What a data structure cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Structure {
    pub name: String,
    pub kind: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub bytes: u64,
    pub blocks: u64,
    pub stall_ns: f64,
    /// Its misses in each cache; of the other counts there is nothing.
    #[serde(serialize_with = "misses_alone")]
    pub caches: Vec<Cache>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Structure {
    /// Its misses in the caches of level `level`.
    pub fn of_level(&self, level: u8) -> Cache {
        Cache::sum(self.caches.iter().filter(|cache| cache.level == level))
    }
}

/// What a thread did and waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thread {
    /// Its index in the trace.
    pub thread: u32,
    /// Number and name that the program's world gives it.
    pub number: u64,
    pub name: String,
    pub references: u64,
    pub stall_ns: f64,
    #[serde(serialize_with = "misses_alone")]
    pub caches: Vec<Cache>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a page cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Page {
    /// Index of its process.
    pub process: u32,
    /// Its virtual address.
    pub page: u64,
    /// The data structure that has most of it.
    pub structure: String,
    pub stall_ns: f64,
    #[serde(serialize_with = "misses_alone")]
    pub caches: Vec<Cache>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Two threads that use different words of one line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Collision {
    pub structure: String,
    /// Address of the line.
    pub line: u64,
    pub misses: u64,
    pub sides: Vec<Side>,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    pub thread: String,
    /// The field that it uses, or the offset in the structure.
    pub field: String,
    pub write: bool,
    /// Where in the source it does so.
    pub source: Option<String>,
}

/// Where only the misses of caches and their classes are known, only they are written.
fn misses_alone<S: Serializer>(caches: &[Cache], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Known<'a> {
        All(&'a Cache),
        Misses {
            name: &'a str,
            level: u8,
            misses: u64,
            cold: u64,
            capacity: u64,
            conflict: u64,
            true_sharing: u64,
            false_sharing: u64,
            #[serde(flatten)]
            rest: &'a Map<String, Value>,
        },
    }
    serializer.collect_seq(caches.iter().map(|cache| match cache.accesses {
        0 => Known::Misses {
            name: &cache.name,
            level: cache.level,
            misses: cache.misses,
            cold: cache.cold,
            capacity: cache.capacity,
            conflict: cache.conflict,
            true_sharing: cache.true_sharing,
            false_sharing: cache.false_sharing,
            rest: &cache.rest,
        },
        _ => Known::All(cache),
    }))
}

/// Classes are null where misses were not classed, a TLB's counts where the machine has none.
fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.unwrap_or_default())
}
