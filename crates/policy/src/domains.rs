//! The outermost caches of which a machine has several, each with cpus of its own.

/// Caches of one level, each with the cpus that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domains {
    /// What the machine calls them.
    pub name: String,
    /// Bytes of each.
    pub bytes: u64,
    /// The cache of each cpu, by the cpu's number; caches are numbered from 0 without gaps.
    pub of_cpu: Vec<u32>,
}

impl Domains {
    /// Of a machine that has no cache, or one for all cpus.
    pub fn none(cpus: u32) -> Domains {
        Domains {
            name: String::new(),
            bytes: 0,
            of_cpu: vec![0; cpus as usize],
        }
    }

    /// How many caches there are.
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
