//! The outermost caches of which a machine has several, each with cpus of its own.

/// Caches of one level, each with the cpus that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// The machine's name for them.
    pub name: String,
    /// Bytes of each.
    pub bytes: u64,
    /// The cache of each cpu, by the cpu's number; caches are numbered from 0 without gaps.
    pub of_cpu: Vec<u32>,
}

/// When it gains to run threads where their data is cached (Lee12, section 3.1, conditions 1 to 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Condition 1: the mean time between entering a region and leaving it.
    pub stay_least_ns: u64,
    pub stay_most_ns: u64,
    /// Condition 2: per mille of one cache that the working set must exceed.
    pub one_cache: u64,
    /// Condition 3: per mille of all caches together that it must not exceed.
    pub all_caches: u64,
}

impl Bounds {
    /// Bounds if nothing was measured but a move: a stay of four moves, and of a hundred times that; the caches' sizes.
    pub fn by_rule(switch_ns: u64) -> Bounds {
        let stay_least_ns = switch_ns.saturating_mul(4);
        Bounds {
            stay_least_ns,
            stay_most_ns: stay_least_ns.saturating_mul(100),
            one_cache: 1000,
            all_caches: 1000,
        }
    }
}

/// The known facts about a machine on which threads follow their data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Following {
    /// The whole time to move a thread to the cache of the data that it touched.
    pub switch_ns: Option<u64>,
    /// `None`: not measured.
    pub bounds: Option<Bounds>,
    /// Regions that were left for less belong together, however short stays may be.
    pub idle_least_ns: u64,
    /// True if they were measured for this run, rather than before.
    pub just_measured: bool,
}

impl Domains {
    /// For a machine that has no cache, or one for all cpus.
    pub fn none(cpus: u32) -> Domains {
        Domains {
            name: String::new(),
            bytes: 0,
            of_cpu: vec![0; cpus as usize],
        }
    }

    /// The number of caches.
    pub fn count(&self) -> u32 {
        self.of_cpu.iter().max().map_or(0, |last| last + 1)
    }

    /// The cpus of a cache.
    pub fn cpus(&self, cache: u32) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.of_cpu)
            .filter(move |&(_, &of)| of == cache)
            .map(|(cpu, _)| cpu)
    }

    /// The same as bits: bit c is cpu c.
    pub fn mask(&self, cache: u32) -> u128 {
        self.cpus(cache).fold(0, |mask, cpu| mask | 1 << cpu)
    }
}
