//! The machine, laid out for simulation: numbered cache instances, the instances that serve each cpu, and the order in
//! which a piece tries them.

use machine::{Cache, Index, Kind, Machine, Prefetch, Replacement, Write};

use crate::cache::{DIRTY, PERM};
use crate::clock::{Units, units};
use crate::error::SimError;
use crate::sharing::Held;

/// One kind of cache, in the simulator's form.
pub struct Shape {
    pub name: String,
    pub level: u8,
    pub line_bits: u32,
    pub sets: usize,
    pub ways: usize,
    pub hit: Units,
    /// The time of a line that another core beneath it holds modified; 0: a hit.
    pub transfer: Units,
    /// Lines of others come so far apart; 0: none come.
    pub others: Units,
    pub write_back: bool,
    pub allocate_on_write: bool,
    pub inclusive: bool,
    pub replacement: Replacement,
    pub prefetch: Option<Prefetch>,
    /// True if the virtual address chooses the set.
    pub virtual_index: bool,
    pub index: SetIndex,
    /// Number of its first instance; the others follow.
    pub first: usize,
    pub instances: usize,
    pub cpus_per_instance: u32,
}

/// How an address chooses the set.
pub enum SetIndex {
    Mask(u64),
    Modulo(u64),
    Hashed { sets: u64, slices: u32, masks: Vec<u64> },
}

impl Shape {
    fn new(cache: &Cache, cpus: u32, first: usize) -> Self {
        let slices = cache.hash.as_ref().map_or(1, |hash| hash.slices.max(1));
        let way_bytes = u64::from(cache.ways) * u64::from(cache.line_bytes) * u64::from(slices);
        let per_slice = (cache.bytes / way_bytes).max(1);
        let index = match &cache.hash {
            Some(hash) => SetIndex::Hashed {
                sets: per_slice,
                slices,
                masks: hash.masks.clone(),
            },
            None if per_slice.is_power_of_two() => SetIndex::Mask(per_slice - 1),
            None => SetIndex::Modulo(per_slice),
        };
        Shape {
            name: cache.name.clone(),
            level: cache.level,
            line_bits: cache.line_bytes.trailing_zeros(),
            sets: (per_slice * u64::from(slices)) as usize,
            ways: cache.ways as usize,
            hit: units(cache.hit_ns),
            transfer: units(cache.transfer_ns),
            others: match cache.others_gbps > 0.0 {
                true => units(f64::from(cache.line_bytes) / cache.others_gbps).max(1),
                false => 0,
            },
            write_back: cache.write == Write::Back,
            allocate_on_write: cache.allocate_on_write,
            inclusive: cache.inclusive,
            replacement: cache.replacement,
            prefetch: cache.prefetch,
            virtual_index: cache.index == Index::Virtual,
            index,
            first,
            instances: cpus.div_ceil(cache.cpus_per_instance) as usize,
            cpus_per_instance: cache.cpus_per_instance,
        }
    }

    /// The set that an address (virtual or physical, as `virtual_index` says) goes to.
    #[inline(always)]
    pub fn set(&self, address: u64) -> usize {
        let line = address >> self.line_bits;
        match &self.index {
            SetIndex::Mask(mask) => (line & mask) as usize,
            SetIndex::Modulo(sets) => (line % sets) as usize,
            SetIndex::Hashed { sets, slices, masks } => {
                let mut bits = 0;
                for (i, mask) in masks.iter().enumerate() {
                    bits |= ((address & mask).count_ones() & 1) << i;
                }
                (u64::from(bits % slices) * sets + line % sets) as usize
            }
        }
    }

    /// Lines that it holds.
    pub fn lines(&self) -> u32 {
        (self.sets * self.ways) as u32
    }

    /// Number of the instance that serves a cpu.
    #[inline(always)]
    pub fn instance(&self, cpu: u32) -> usize {
        self.first + (cpu / self.cpus_per_instance) as usize
    }

    /// The cpus that an instance serves, `[from, to)`.
    pub fn cpus(&self, instance: usize, cpus: u32) -> (u32, u32) {
        let from = (instance - self.first) as u32 * self.cpus_per_instance;
        (from, (from + self.cpus_per_instance).min(cpus))
    }

    /// Returns whether placement decides the set: not with a virtual index, nor if the set lies in the page offset.
    pub fn depends_on_placement(&self, page_bytes: u64) -> bool {
        match &self.index {
            _ if self.virtual_index => false,
            SetIndex::Mask(mask) => (mask + 1) << self.line_bits > page_bytes,
            SetIndex::Modulo(_) | SetIndex::Hashed { .. } => true,
        }
    }
}

/// The properties of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index of its kind in [`Layout::caches`].
    pub cache: usize,
    /// Cpus that it serves, `[from, to)`.
    pub from: u32,
    pub to: u32,
    /// True if it serves one core only.
    pub private: bool,
    /// The arena of its shadow, and its lane there: instances whose first core and lines are the same share one.
    pub arena: u32,
    pub lane: u32,
}

/// An instance off a core's path.
#[derive(Clone, Copy, Debug)]
pub struct Off {
    /// The instance and whom it serves; the line is left open.
    pub held: Held,
    /// Cpus that it serves, `[from, to)`.
    pub from: u32,
    pub to: u32,
    /// Index of its kind.
    cache: u32,
    pub arena: u16,
    pub line_bits: u8,
    /// Bits of its line's number below the block's.
    pub finer: u8,
    pub virtual_index: bool,
    /// The rights that its lines lose when another core reads the block: they are no longer dirty, and may no longer be
    /// written freely.
    pub rights: u8,
    /// If the set is the low bits of the line's number: these bits.
    mask: Option<u64>,
}

impl Off {
    /// The set that an address (virtual or physical, as the index is) goes to.
    #[inline(always)]
    pub fn set(&self, layout: &Layout, address: u64) -> usize {
        match self.mask {
            Some(mask) => (address >> self.line_bits & mask) as usize,
            None => layout.caches[self.cache as usize].set(address),
        }
    }
}

pub struct Layout {
    pub caches: Vec<Shape>,
    /// Instances, numbered cache by cache.
    pub places: Vec<Place>,
    /// Kinds of cache that a data reference tries, innermost first.
    pub data: Vec<usize>,
    /// The same for a fetch.
    pub fetch: Vec<usize>,
    /// For each kind of cache, those that lead to it on a route.
    pub above: Vec<Vec<usize>>,
    pub cpus: u32,
    /// Cpus that share their innermost cache for data.
    pub core_cpus: u32,
    /// Instances on the path of each core, for any kind of piece.
    pub paths: Vec<Vec<u32>>,
    /// For each core and another (`core * cores + other`): instances on the other's path that
    /// are not on its own.
    off: Vec<Vec<Off>>,
    pub page_bits: u32,
    /// Pieces are cut at multiples of this.
    pub piece_bits: u32,
    /// The largest line: the unit of coherence.
    pub block_bits: u32,
    pub nodes: u32,
    /// The kind of cache that the program's prefetches go to, if they do anything.
    pub software_prefetch: Option<usize>,
    /// True if cpus overlap.
    pub overlaps: bool,
}

impl Layout {
    pub fn new(machine: &Machine) -> Result<Self, SimError> {
        check(machine)?;
        let mut caches = Vec::new();
        let mut first = 0;
        for cache in &machine.caches {
            let shape = Shape::new(cache, machine.cpus, first);
            first += shape.instances;
            caches.push(shape);
        }
        let data = route(machine, Kind::Data);
        let fetch = route(machine, Kind::Instruction);
        let core_cpus = data
            .first()
            .map_or(1, |&k| caches[k].cpus_per_instance.min(machine.cpus));
        let core = |cpu: u32| cpu / core_cpus;
        let mut places: Vec<Place> = Vec::new();
        let mut arenas = 0;
        for (k, shape) in caches.iter().enumerate() {
            for instance in shape.first..shape.first + shape.instances {
                let (from, to) = shape.cpus(instance, machine.cpus);
                let private = core(from) == core(to - 1);
                let cache = k;
                let same =
                    |other: &&Place| core(other.from) == core(from) && caches[other.cache].line_bits == shape.line_bits;
                let beside: Vec<&Place> = places.iter().filter(same).collect();
                let arena = beside.first().map_or(arenas, |other| other.arena);
                let lane = beside.len() as u32;
                arenas = arenas.max(arena + 1);
                places.push(Place {
                    cache,
                    from,
                    to,
                    private,
                    arena,
                    lane,
                });
            }
        }
        let paths: Vec<Vec<u32>> = (0..machine.cpus.div_ceil(core_cpus))
            .map(|core| {
                let (low, high) = (core * core_cpus, (core + 1) * core_cpus);
                let on = |place: &Place| {
                    (data.contains(&place.cache) || fetch.contains(&place.cache)) && place.from < high && place.to > low
                };
                let numbers = places.iter().enumerate();
                numbers.filter(|(_, place)| on(place)).map(|(i, _)| i as u32).collect()
            })
            .collect();
        let off = off_paths(&paths, &caches, &places, core_cpus, data.first().copied().unwrap_or(0));
        let level_one = caches.iter().filter(|shape| shape.level == 1);
        let page_bits = machine.page_bytes.trailing_zeros();
        Ok(Layout {
            software_prefetch: machine.prefetch.and(data.last().copied()),
            overlaps: machine.core.is_some(),
            piece_bits: level_one.map(|shape| shape.line_bits).min().unwrap_or_else(|| {
                caches
                    .iter()
                    .map(|shape| shape.line_bits)
                    .min()
                    .unwrap_or(page_bits.min(6))
            }),
            block_bits: caches
                .iter()
                .map(|shape| shape.line_bits)
                .max()
                .unwrap_or(page_bits.min(6)),
            above: (0..caches.len()).map(|kind| above([&data, &fetch], kind)).collect(),
            caches,
            places,
            data,
            fetch,
            cpus: machine.cpus,
            core_cpus,
            paths,
            off,
            page_bits,
            nodes: machine.memory.nodes,
        })
    }

    #[inline(always)]
    pub fn core(&self, cpu: u32) -> u32 {
        cpu / self.core_cpus
    }

    /// Lanes of each arena, and the bits of a line number within its page.
    pub fn arenas(&self) -> Vec<(u32, u32)> {
        let mut arenas = Vec::new();
        for place in &self.places {
            let page_lines = self.page_bits - self.caches[place.cache].line_bits;
            arenas.resize(arenas.len().max(place.arena as usize + 1), (0, page_lines));
            arenas[place.arena as usize] = (place.lane + 1, page_lines);
        }
        arenas
    }

    pub fn cores(&self) -> u32 {
        self.cpus.div_ceil(self.core_cpus)
    }

    pub fn node(&self, cpu: u32) -> u32 {
        (u64::from(cpu) * u64::from(self.nodes) / u64::from(self.cpus)) as u32
    }

    /// Instance number `i` of those on the path of `other` that are not on that of `core`.
    #[inline(always)]
    pub fn off(&self, core: u32, other: u32, i: usize) -> Option<Off> {
        self.off[core as usize * self.paths.len() + other as usize]
            .get(i)
            .copied()
    }
}

/// The kinds of cache above one: those that lead to it on a route.
fn above(routes: [&[usize]; 2], cache: usize) -> Vec<usize> {
    let mut above: Vec<usize> = Vec::new();
    for route in routes {
        let leading = route.iter().position(|&kind| kind == cache).unwrap_or(0);
        for &kind in &route[..leading] {
            if !above.contains(&kind) {
                above.push(kind);
            }
        }
    }
    above
}

/// `first`: the innermost cache for data.
fn off_paths(paths: &[Vec<u32>], caches: &[Shape], places: &[Place], core_cpus: u32, first: usize) -> Vec<Vec<Off>> {
    let block = caches.iter().map(|shape| shape.line_bits).max().unwrap_or(0);
    let off = |&instance: &u32| {
        let place = &places[instance as usize];
        let shape = &caches[place.cache];
        Off {
            held: Held {
                line: 0,
                instance,
                first_core: (place.from / core_cpus) as u8,
                last_core: ((place.to - 1) / core_cpus) as u8,
            },
            from: place.from,
            to: place.to,
            cache: place.cache as u32,
            arena: place.arena as u16,
            line_bits: shape.line_bits as u8,
            finer: (block - shape.line_bits) as u8,
            virtual_index: shape.virtual_index,
            // Elsewhere the bit of the right says that the line was brought ahead of use.
            rights: (DIRTY | if place.cache == first { PERM } else { 0 }) as u8,
            mask: match shape.index {
                SetIndex::Mask(mask) => Some(mask),
                _ => None,
            },
        }
    };
    let pairs = paths.iter().flat_map(|own| paths.iter().map(move |other| (own, other)));
    pairs
        .map(|(own, other)| other.iter().filter(|i| !own.contains(i)).map(off).collect())
        .collect()
}

fn route(machine: &Machine, kind: Kind) -> Vec<usize> {
    let mut levels: Vec<u8> = machine.caches.iter().map(|cache| cache.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let find = |level: u8, kind: Kind| machine.caches.iter().position(|c| c.level == level && c.kind == kind);
    let serving = |&level: &u8| find(level, kind).or_else(|| find(level, Kind::Unified));
    levels.iter().filter_map(serving).collect()
}

/// Checks the simulator's assumptions; a machine that was loaded from a file keeps all of them.
fn check(machine: &Machine) -> Result<(), SimError> {
    let bad = |what: String| {
        Err(SimError::Machine {
            machine: machine.name.clone(),
            what,
        })
    };
    if !machine.page_bytes.is_power_of_two() || machine.page_bytes < 64 || machine.page_bytes > 1 << 30 {
        return bad(format!(
            "page_bytes = {} is not a power of two from 64 to 2^30",
            machine.page_bytes
        ));
    }
    if machine.cpus == 0 || machine.cpus > 128 {
        return bad(format!("cpus = {} is not from 1 to 128", machine.cpus));
    }
    if machine.memory.nodes == 0 || machine.memory.all_nodes() > 256 {
        return bad(format!("nodes = {} is not from 1 to 256", machine.memory.all_nodes()));
    }
    if !(machine.clock_mhz > 0.0 && machine.clock_mhz.is_finite()) {
        return bad(format!("clock_mhz = {} is not above 0", machine.clock_mhz));
    }
    let mut line = 0;
    let mut level = 0;
    for cache in &machine.caches {
        let name = &cache.name;
        if cache.level < level {
            return bad(format!(
                "cache {name} of level {} comes after one of level {level}",
                cache.level
            ));
        }
        if cache.level > level {
            level = cache.level;
            line = machine
                .caches
                .iter()
                .filter(|c| c.level < level)
                .map(|c| c.line_bytes)
                .max()
                .unwrap_or(0);
        }
        let bytes = u64::from(cache.line_bytes);
        if !bytes.is_power_of_two() || !(4..=256).contains(&bytes) || bytes > machine.page_bytes {
            return bad(format!(
                "line_bytes = {bytes} of cache {name} is not a power of two from 4 to 256"
            ));
        }
        if cache.line_bytes < line {
            return bad(format!("cache {name} has smaller lines than a cache of a lower level"));
        }
        let slices = cache.hash.as_ref().map_or(1, |hash| u64::from(hash.slices));
        let way_bytes = u64::from(cache.ways).saturating_mul(bytes).saturating_mul(slices);
        if way_bytes == 0 || cache.bytes == 0 || cache.bytes % way_bytes != 0 || cache.bytes > 1 << 34 {
            return bad(format!(
                "bytes = {} of cache {name} are not ways x line_bytes x slices of whole sets",
                cache.bytes
            ));
        }
        if cache.cpus_per_instance == 0 {
            return bad(format!("cpus_per_instance of cache {name} is 0"));
        }
        if let Some(prefetch) = &cache.prefetch {
            if machine.cpus > 1 && cache.level == 1 {
                return bad(format!(
                    "cache {name} prefetches at level 1, and it has more than one cpu"
                ));
            }
            if prefetch.streams == 0 || prefetch.lines == 0 {
                return bad(format!("cache {name} prefetches with no streams, or no lines ahead"));
            }
        }
        if cache.replacement == Replacement::Plru && !cache.ways.is_power_of_two() {
            return bad(format!("cache {name} is plru, and its ways are not a power of two"));
        }
    }
    if let Some(prefetch) = &machine.prefetch {
        let outer = |cache: &Cache| cache.level > 1 && cache.kind != Kind::Instruction;
        if prefetch.outstanding == 0 || !machine.caches.iter().any(outer) {
            return bad("[prefetch] lets no line come, or there is no second level of cache to come to".to_string());
        }
        if machine.caches.iter().any(|cache| cache.prefetch.is_some()) {
            return bad("it has [prefetch], and a cache that prefetches by itself".to_string());
        }
    }
    if let Some(tlb) = &machine.tlb
        && (tlb.ways == 0 || tlb.entries == 0 || tlb.entries % tlb.ways != 0 || tlb.wired >= tlb.entries)
    {
        return bad("the TLB's entries are not a multiple of its ways, or all wired".to_string());
    }
    Ok(())
}
