//! Counts of caches: accesses, misses by class, and the waiting that they cause.

use serde::{Deserialize, Serialize};

use crate::lenient::{maybe_ns, ns};

/// The classes of misses, as people call them, in the order in which arrays of classes are.
pub const CLASSES: [&str; 5] = ["cold", "capacity", "conflict", "true sharing", "false sharing"];

/// Counts of pieces (parts of references within one line) of one kind of cache, summed over its instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cache {
    pub name: String,
    pub level: u8,
    pub accesses: u64,
    pub hits: u64,
    pub misses: u64,
    pub writebacks: u64,
    /// The classes, which add up to `misses`; null where misses were not classed.
    pub cold: Option<u64>,
    pub capacity: Option<u64>,
    pub conflict: Option<u64>,
    pub true_sharing: Option<u64>,
    pub false_sharing: Option<u64>,
    pub upgrades: u64,
    /// Lines that it fetched before they were requested; absent if it does not prefetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetches: Option<u64>,
    /// Of `prefetches`: those that were requested while the cache still held them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetch_hits: Option<u64>,
    pub stall_ns: Stall,
}

/// Nanoseconds that cpus waited because of a cache: for its hits, for its misses (by class), and for permission to
/// write. `miss` is the sum of the classes, or the only known figure if misses were not classed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Stall {
    #[serde(deserialize_with = "ns")]
    pub hit: u64,
    #[serde(deserialize_with = "ns")]
    pub miss: u64,
    #[serde(deserialize_with = "maybe_ns")]
    pub cold: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub capacity: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub conflict: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub true_sharing: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub false_sharing: Option<u64>,
    #[serde(deserialize_with = "ns")]
    pub upgrade: u64,
    /// For lines that were found but had not arrived yet; absent if each line is available at once.
    #[serde(deserialize_with = "maybe_ns", skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
}

/// Misses in one kind of cache; the classes are null where misses were not classed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Misses {
    pub name: String,
    pub level: u8,
    pub misses: u64,
    pub cold: Option<u64>,
    pub capacity: Option<u64>,
    pub conflict: Option<u64>,
    pub true_sharing: Option<u64>,
    pub false_sharing: Option<u64>,
}

/// Nanoseconds of `cache_stall`, `local_stall` and `remote_stall` together, by reason. They add up to these exactly:
/// the rounding error is spread over the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StallByClass {
    /// For lines that a cache on the cpu's path held: the cost of misses nearer to the cpu, or first-level hits that
    /// take time.
    #[serde(deserialize_with = "ns")]
    pub on_chip: u64,
    /// For lines that none of them held, by the class of the outermost cache's miss; null if misses were not classed.
    #[serde(deserialize_with = "maybe_ns")]
    pub cold: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub capacity: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub conflict: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub true_sharing: Option<u64>,
    #[serde(deserialize_with = "maybe_ns")]
    pub false_sharing: Option<u64>,
    /// The same without a class: with classes off, and for pieces that no cache serves.
    #[serde(deserialize_with = "ns")]
    pub unclassed: u64,
    /// For permission to write.
    #[serde(deserialize_with = "ns")]
    pub upgrade: u64,
    /// For lines that had been requested, by the program ahead of use or by overlap in the cpu, but had not arrived
    /// yet.
    #[serde(deserialize_with = "ns")]
    pub late_prefetch: u64,
}

/// Misses of several caches together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTotals {
    pub misses: u64,
    /// In the order of [`CLASSES`]; `None` where misses were not classed.
    pub classes: [Option<u64>; 5],
}

impl ClassTotals {
    pub fn sum(all: impl IntoIterator<Item = ClassTotals>) -> ClassTotals {
        all.into_iter().reduce(ClassTotals::plus).unwrap_or_default()
    }

    /// A count that one of them does not know is unknown in the sum.
    fn plus(self, other: ClassTotals) -> ClassTotals {
        let mut classes = self.classes;
        for (sum, other) in classes.iter_mut().zip(other.classes) {
            *sum = sum.zip(other).map(|(a, b)| a.saturating_add(b));
        }
        ClassTotals {
            misses: self.misses.saturating_add(other.misses),
            classes,
        }
    }

    /// Returns true if any miss was classed.
    pub fn classed(&self) -> bool {
        self.classes.iter().flatten().any(|&misses| misses > 0)
    }

    pub fn conflict(&self) -> Option<u64> {
        self.classes[2]
    }
}

impl Cache {
    pub fn totals(&self) -> ClassTotals {
        ClassTotals {
            misses: self.misses,
            classes: [
                self.cold,
                self.capacity,
                self.conflict,
                self.true_sharing,
                self.false_sharing,
            ],
        }
    }

    /// True if the misses were classed (a run can leave that out).
    pub fn classed(&self) -> bool {
        self.totals().classed()
    }

    /// The same of two instances of a kind of cache, or of two cpus. A count that one does not know is unknown in the
    /// sum.
    pub fn plus(mut self, other: &Cache) -> Cache {
        let option = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        self.accesses += other.accesses;
        self.hits += other.hits;
        self.misses += other.misses;
        self.writebacks += other.writebacks;
        self.upgrades += other.upgrades;
        self.cold = option(self.cold, other.cold);
        self.capacity = option(self.capacity, other.capacity);
        self.conflict = option(self.conflict, other.conflict);
        self.true_sharing = option(self.true_sharing, other.true_sharing);
        self.false_sharing = option(self.false_sharing, other.false_sharing);
        self.prefetches = option(self.prefetches, other.prefetches);
        self.prefetch_hits = option(self.prefetch_hits, other.prefetch_hits);
        let (own, stall) = (self.stall_ns, &other.stall_ns);
        self.stall_ns = Stall {
            hit: own.hit + stall.hit,
            miss: own.miss + stall.miss,
            cold: option(own.cold, stall.cold),
            capacity: option(own.capacity, stall.capacity),
            conflict: option(own.conflict, stall.conflict),
            true_sharing: option(own.true_sharing, stall.true_sharing),
            false_sharing: option(own.false_sharing, stall.false_sharing),
            upgrade: own.upgrade + stall.upgrade,
            late: option(own.late, stall.late),
        };
        self
    }
}

impl Misses {
    pub fn totals(&self) -> ClassTotals {
        ClassTotals {
            misses: self.misses,
            classes: [
                self.cold,
                self.capacity,
                self.conflict,
                self.true_sharing,
                self.false_sharing,
            ],
        }
    }

    /// Those of the caches nearest to the cpus: what references missed.
    pub fn nearest(caches: &[Misses]) -> ClassTotals {
        let nearest = caches.iter().map(|cache| cache.level).min();
        nearest.map_or_else(ClassTotals::default, |level| Misses::of_level(caches, level))
    }

    /// Those of the caches of a level.
    pub fn of_level(caches: &[Misses], level: u8) -> ClassTotals {
        ClassTotals::sum(caches.iter().filter(|cache| cache.level == level).map(Misses::totals))
    }
}

impl Stall {
    /// Nanoseconds by class, in the order of [`CLASSES`].
    pub fn classes(&self) -> [Option<u64>; 5] {
        [
            self.cold,
            self.capacity,
            self.conflict,
            self.true_sharing,
            self.false_sharing,
        ]
    }
}

impl StallByClass {
    /// The parts, with what they are called.
    pub fn parts(&self) -> [(&'static str, Option<u64>); 9] {
        [
            ("found in caches", Some(self.on_chip)),
            ("cold", self.cold),
            ("capacity", self.capacity),
            ("conflict", self.conflict),
            ("true sharing", self.true_sharing),
            ("false sharing", self.false_sharing),
            ("missed", Some(self.unclassed)),
            ("upgrades", Some(self.upgrade)),
            ("late prefetches", Some(self.late_prefetch)),
        ]
    }

    /// The same of two cpus; a class that only one of them knows is that one's.
    pub fn plus(self, other: &StallByClass) -> StallByClass {
        let option = |a: Option<u64>, b: Option<u64>| a.or(b).map(|_| a.unwrap_or(0) + b.unwrap_or(0));
        StallByClass {
            on_chip: self.on_chip + other.on_chip,
            cold: option(self.cold, other.cold),
            capacity: option(self.capacity, other.capacity),
            conflict: option(self.conflict, other.conflict),
            true_sharing: option(self.true_sharing, other.true_sharing),
            false_sharing: option(self.false_sharing, other.false_sharing),
            unclassed: self.unclassed + other.unclassed,
            upgrade: self.upgrade + other.upgrade,
            late_prefetch: self.late_prefetch + other.late_prefetch,
        }
    }
}
