//! The rules that every machine keeps, wherever its description comes from.

use crate::error::{Fault, MachineError};
use crate::model::{Cache, Core, IndexHash, Kind, Machine, Memory, Regions, Replacement, Tlb};

/// Most cpus of a machine: sets of cpus are kept as 128 bits.
pub const CPUS_MAX: u32 = 128;
/// Largest cache, 16 GiB: a bound on the memory that simulating it takes.
pub const CACHE_BYTES_MAX: u64 = 1 << 34;
/// Most nodes: Linux is built for up to 1024, but its distances are a byte each.
pub const NODES_MAX: u32 = 256;
const LATENCY_MAX_NS: f64 = 1e9;
const COLORS_MAX: u64 = 1 << 24;

impl Machine {
    /// The same machine with another number of cpus. Its nodes stay what they are, so with fewer cpus than nodes some
    /// nodes are memory only. A cache within a node stays there, whole, and serves the node's remaining cpus.
    pub fn with_cpus(&self, cpus: u32) -> Result<Machine, MachineError> {
        let mut machine = Machine { cpus, ..self.clone() };
        let (before, after) = (self.cpus / self.memory.nodes.max(1), cpus / self.memory.nodes.max(1));
        let of_a_node = |cache: &&mut Cache| self.memory.nodes > 1 && (2..=before).contains(&cache.cpus_per_instance);
        let mut parted = false;
        for cache in machine.caches.iter_mut().filter(of_a_node) {
            parted |= cpus > self.memory.nodes && !cpus.is_multiple_of(self.memory.nodes);
            parted |= after > cache.cpus_per_instance && !after.is_multiple_of(cache.cpus_per_instance);
            cache.cpus_per_instance = cache.cpus_per_instance.min(after.max(1));
        }
        let checked = check(&machine).and_then(|()| match parted {
            true => Err(Fault::value("cpus", cpus, String::new())),
            false => Ok(()),
        });
        let Err(fault) = checked else {
            return Ok(machine);
        };
        let nodes = (self.memory.nodes > 1).then(|| format!("as many on each of the {} nodes", self.memory.nodes));
        let each = if nodes.is_some() { " on each" } else { "" };
        let shared = self.caches.iter().filter(|cache| cache.cpus_per_instance > 1);
        let shared = shared.map(|cache| {
            format!(
                "a multiple of {} (the cpus of one {}) or fewer{each}",
                cache.cpus_per_instance, cache.name
            )
        });
        let allowed = [format!("1 to {CPUS_MAX}")].into_iter().chain(nodes).chain(shared);
        // Values that do not depend on the number of cpus were wrong before, and are reported as they are.
        let fault = match fault.key().ends_with("cpus") || fault.key().ends_with("cpus_per_instance") {
            true => Fault::value("cpus", cpus, allowed.collect::<Vec<_>>().join(", ")),
            false => fault,
        };
        Err(MachineError::Invalid {
            machine: self.name.clone(),
            fault,
        })
    }

    /// Checks the rules for a machine that was put together by hand.
    pub fn check(&self) -> Result<(), MachineError> {
        check(self).map_err(|fault| MachineError::Invalid {
            machine: self.name.clone(),
            fault,
        })
    }
}

/// Keys count caches by their position in `machine.caches`.
pub(crate) fn check(machine: &Machine) -> Result<(), Fault> {
    name("name", &machine.name)?;
    // Slower ones would not fit the times that are counted.
    if !(0.001..=1e6).contains(&machine.clock_mhz) {
        return Err(Fault::value("clock_mhz", machine.clock_mhz, "0.001 to 1000000"));
    }
    power_of_two("page_bytes", machine.page_bytes, 512, 1 << 30)?;
    range("cpus", machine.cpus, 1, CPUS_MAX)?;
    for (position, cache) in machine.caches.iter().enumerate() {
        one_cache(&format!("cache[{position}]"), cache, machine)?;
    }
    hierarchy(machine)?;
    if let Some(entries) = &machine.tlb {
        tlb(entries)?;
    }
    memory(&machine.memory)?;
    if let Some(prefetch) = &machine.prefetch {
        range("prefetch.outstanding", prefetch.outstanding, 1, 64)?;
        software_prefetch(machine)?;
    }
    if let Some(given) = &machine.regions {
        regions(given)?;
    }
    match &machine.core {
        Some(_) if machine.prefetch.is_some() => {
            Err(Fault::value("core", "[core] beside [prefetch]", "one of the two"))
        }
        Some(figures) => core(figures),
        None => Ok(()),
    }
}

fn regions(regions: &Regions) -> Result<(), Fault> {
    match (0.0..=LATENCY_MAX_NS).contains(&regions.switch_ns) {
        true => Ok(()),
        false => Err(Fault::value("regions.switch_ns", regions.switch_ns, "0 to 1e9")),
    }
}

fn core(core: &Core) -> Result<(), Fault> {
    let each = core.instructions_per_clock;
    if !(0.01..=64.0).contains(&each) {
        return Err(Fault::value("core.instructions_per_clock", each, "0.01 to 64"));
    }
    for (key, ns) in [
        ("core.line_ns", core.line_ns),
        ("core.memory_line_ns", core.memory_line_ns),
        ("core.huge_memory_line_ns", core.huge_memory_line_ns),
        ("core.set_refill_ns", core.set_refill_ns),
        ("core.bank_refill_ns", core.bank_refill_ns),
        ("core.set_rewrite_ns", core.set_rewrite_ns),
        ("core.misprediction_ns", core.misprediction_ns),
    ] {
        if !(0.0..=1000.0).contains(&ns) {
            return Err(Fault::value(key, ns, "0 to 1000"));
        }
    }
    range("core.window", core.window, 1, 1 << 16)?;
    range("core.outstanding", core.outstanding, 1, 256)?;
    range("core.outstanding_of_bank", core.outstanding_of_bank, 0, 256)?;
    range("core.store_buffer", core.store_buffer, 1, 1 << 12)
}

/// The program's prefetches go to a cache that is not the first, and only they do.
fn software_prefetch(machine: &Machine) -> Result<(), Fault> {
    let data = machine.caches.iter().filter(|cache| cache.kind != Kind::Instruction);
    if data.clone().all(|cache| cache.level == 1) {
        let allowed = "only with a second level of cache for data, which the prefetches go to";
        return Err(Fault::value("prefetch", "[prefetch] on one level of cache", allowed));
    }
    match machine.caches.iter().position(|cache| cache.prefetch.is_some()) {
        None => Ok(()),
        Some(position) => {
            let key = format!("cache[{position}].prefetch");
            let allowed = "\"none\" on a machine with [prefetch]";
            Err(Fault::value(key, "\"stream\"", allowed))
        }
    }
}

fn one_cache(key: &str, cache: &Cache, machine: &Machine) -> Result<(), Fault> {
    let at = |field: &str| format!("{key}.{field}");
    name(&at("name"), &cache.name)?;
    range(&at("level"), u32::from(cache.level), 1, 8)?;
    power_of_two(
        &at("line_bytes"),
        u64::from(cache.line_bytes),
        4,
        256.min(machine.page_bytes),
    )?;
    range(&at("ways"), cache.ways, 1, 1 << 24)?;
    if !(1..=CACHE_BYTES_MAX).contains(&cache.bytes) {
        return Err(Fault::value(
            at("bytes"),
            cache.bytes,
            format!("1 to {CACHE_BYTES_MAX}"),
        ));
    }
    let slices = match &cache.hash {
        None => 1,
        Some(hash) => {
            range(&at("hash.slices"), hash.slices, 2, 1024)?;
            masks(&at("hash.masks"), hash, cache.line_bytes)?;
            hash.slices
        }
    };
    // At most 2^24 * 2^8 * 2^10: no overflow.
    let quantum = u64::from(cache.ways) * u64::from(cache.line_bytes) * u64::from(slices);
    if !cache.bytes.is_multiple_of(quantum) {
        let product = if slices == 1 {
            "ways x line_bytes"
        } else {
            "ways x line_bytes x slices"
        };
        return Err(Fault::value(
            at("bytes"),
            cache.bytes,
            format!("a multiple of {product} = {quantum}"),
        ));
    }
    if let Some(hash) = &cache.hash {
        reaches_all_slices(
            &at("hash.masks"),
            hash,
            cache.bytes / quantum * u64::from(cache.line_bytes),
        )?;
    }
    if cache.replacement == Replacement::Plru && !cache.ways.is_power_of_two() {
        return Err(Fault::value(
            at("ways"),
            cache.ways,
            "a power of two, because replacement = \"plru\" keeps the ways in a binary tree",
        ));
    }
    if let Some(prefetch) = &cache.prefetch {
        range(&at("prefetch_streams"), prefetch.streams, 1, 256)?;
        range(&at("prefetch_lines"), prefetch.lines, 1, 64)?;
        range(&at("prefetch_after"), prefetch.after, 0, 64)?;
        range(&at("prefetch_step"), prefetch.step, 1, 64)?;
        if let Some(stride) = &prefetch.stride {
            range(&at("prefetch_stride_entries"), stride.entries, 1, 256)?;
            range(&at("prefetch_stride_ahead"), stride.ahead, 1, 64)?;
            range(&at("prefetch_stride_bytes"), stride.bytes, 1, 1 << 32)?;
        }
        if machine.cpus > 1 && cache.level == 1 {
            let found = format!("\"stream\" at level 1 of a machine of {} cpus", machine.cpus);
            let allowed = "\"none\", a cache beyond the first level, or cpus = 1";
            return Err(Fault::value(at("prefetch"), found, allowed));
        }
    }
    latency(&at("hit_ns"), cache.hit_ns)?;
    latency(&at("transfer_ns"), cache.transfer_ns)?;
    others(&at("others_gbps"), cache, machine)?;
    range(&at("cpus_per_instance"), cache.cpus_per_instance, 1, CPUS_MAX)?;
    if machine.cpus > cache.cpus_per_instance && !machine.cpus.is_multiple_of(cache.cpus_per_instance) {
        return Err(Fault::value(
            at("cpus_per_instance"),
            cache.cpus_per_instance,
            format!(
                "a divisor of cpus = {}, or at least as many (then all share one instance)",
                machine.cpus
            ),
        ));
    }
    Ok(())
}

/// Nobody else brings lines into the first cache that a core asks.
fn others(key: &str, cache: &Cache, machine: &Machine) -> Result<(), Fault> {
    let nearer = |kind: Kind| {
        let mut nearer = machine.caches.iter().filter(|other| other.level < cache.level);
        nearer.any(|other| other.kind == Kind::Unified || other.kind == kind)
    };
    let behind = match cache.kind {
        Kind::Unified => nearer(Kind::Data) && nearer(Kind::Instruction),
        kind => nearer(kind),
    };
    let most = if behind { OTHERS_MAX } else { 0.0 };
    if (0.0..=most).contains(&cache.others_gbps) {
        return Ok(());
    }
    let allowed = match behind {
        true => format!("a number from 0 to {OTHERS_MAX}"),
        false => {
            "0, because this is the first cache that a core asks, and others bring lines only into caches behind it"
                .to_string()
        }
    };
    Err(Fault::value(key, cache.others_gbps, allowed))
}

/// More than any cache takes in.
const OTHERS_MAX: f64 = 10_000.0;

fn masks(key: &str, IndexHash { slices, masks }: &IndexHash, line_bytes: u32) -> Result<(), Fault> {
    let slices = *slices;
    // Bits that a slice number needs.
    let needed = (slices - 1).ilog2() as usize + 1;
    let count_fits = if slices.is_power_of_two() {
        masks.len() == needed
    } else {
        (needed..=20).contains(&masks.len())
    };
    if !count_fits {
        let allowed = if slices.is_power_of_two() {
            format!("{needed}, one for each bit of a slice number below {slices}")
        } else {
            format!("{needed} to 20 (the more, the more evenly their value modulo {slices} falls)")
        };
        return Err(Fault::value(key, format!("{} masks", masks.len()), allowed));
    }
    for (index, mask) in masks.iter().enumerate() {
        if *mask == 0 || *mask > i64::MAX as u64 || mask & u64::from(line_bytes - 1) != 0 {
            return Err(Fault::value(
                format!("{key}[{index}]"),
                format!("{mask:#x}"),
                format!(
                    "address bits from {} (above the offset in a line) to 62, at least one",
                    line_bytes.ilog2()
                ),
            ));
        }
    }
    Ok(())
}

/// The lowest `set_bytes` of an address form the set number. If they also fix the slice, most sets of each slice are
/// never used.
fn reaches_all_slices(key: &str, hash: &IndexHash, set_bytes: u64) -> Result<(), Fault> {
    let set_bits = set_bytes.ilog2();
    // Gauss: how many masks are independent of each other above the set number.
    let mut rows: Vec<u64> = hash.masks.iter().map(|mask| mask >> set_bits).collect();
    let mut independent = 0;
    while let Some(pivot) = rows.pop() {
        if pivot != 0 {
            independent += 1;
            let top = 1 << pivot.ilog2();
            rows.iter_mut()
                .filter(|row| **row & top != 0)
                .for_each(|row| *row ^= pivot);
        }
    }
    if independent < hash.masks.len() {
        let found = format!(
            "{independent} independent masks above bit {}",
            set_bits.saturating_sub(1)
        );
        let allowed = format!("{} there, else part of the cache is never used", hash.masks.len());
        return Err(Fault::value(key, found, allowed));
    }
    Ok(())
}

/// Checks that the caches fit together.
fn hierarchy(machine: &Machine) -> Result<(), Fault> {
    let caches = &machine.caches;
    if !caches
        .iter()
        .any(|cache| cache.level == 1 && cache.kind != Kind::Instruction)
    {
        return Err(Fault::value(
            "cache",
            "none at level 1 for data",
            "at least one of level 1, \"data\" or \"unified\"",
        ));
    }
    for (position, cache) in caches.iter().enumerate() {
        let at = |field: &str| format!("cache[{position}].{field}");
        if cache.level > 1 && !caches.iter().any(|nearer| nearer.level == cache.level - 1) {
            return Err(Fault::value(
                at("level"),
                cache.level,
                format!("levels without gaps; nothing has level {}", cache.level - 1),
            ));
        }
        for (other_position, other) in caches.iter().enumerate() {
            let earlier = other_position < position;
            if earlier && other.name == cache.name {
                return Err(Fault::value(
                    at("name"),
                    format!("{:?}", cache.name),
                    "a name that no other cache has",
                ));
            }
            let same_references =
                other.kind == cache.kind || other.kind == Kind::Unified || cache.kind == Kind::Unified;
            if earlier && other.level == cache.level && same_references {
                return Err(Fault::value(
                    at("kind"),
                    format!(
                        "a second cache at level {} for the references that {:?} serves",
                        cache.level, other.name
                    ),
                    "one data and one instruction cache a level, or one unified",
                ));
            }
            if other.level < cache.level {
                nests(&at, cache, other, machine.cpus)?;
            }
        }
    }
    // Saturates long before it could overflow.
    let colors = machine.color_period();
    if colors > COLORS_MAX {
        return Err(Fault::value(
            "cache",
            format!("{colors} page colors"),
            format!("sizes that make up to {COLORS_MAX}"),
        ));
    }
    Ok(())
}

/// A cache takes in whole lines and whole instances of those nearer to the cpu.
fn nests(at: &dyn Fn(&str) -> String, cache: &Cache, nearer: &Cache, cpus: u32) -> Result<(), Fault> {
    if cache.line_bytes < nearer.line_bytes {
        return Err(Fault::value(
            at("line_bytes"),
            cache.line_bytes,
            format!(
                "at least the {} of {:?}, which is nearer to the cpu",
                nearer.line_bytes, nearer.name
            ),
        ));
    }
    let (sharers, nearer_sharers) = (cache.cpus_per_instance.min(cpus), nearer.cpus_per_instance.min(cpus));
    if !sharers.is_multiple_of(nearer_sharers) {
        return Err(Fault::value(
            at("cpus_per_instance"),
            cache.cpus_per_instance,
            format!(
                "a multiple of {nearer_sharers}, because so many cpus share {:?}, which is nearer to them",
                nearer.name
            ),
        ));
    }
    Ok(())
}

fn tlb(tlb: &Tlb) -> Result<(), Fault> {
    range("tlb.entries", tlb.entries, 1, 1 << 20)?;
    if tlb.ways == 0 || !tlb.entries.is_multiple_of(tlb.ways) {
        return Err(Fault::value(
            "tlb.ways",
            tlb.ways,
            format!("a divisor of entries = {}", tlb.entries),
        ));
    }
    if tlb.wired >= tlb.entries {
        return Err(Fault::value(
            "tlb.wired",
            tlb.wired,
            format!("less than entries = {}", tlb.entries),
        ));
    }
    range("tlb.walkers", tlb.walkers, 0, 256)?;
    latency("tlb.huge_refill_ns", tlb.huge_refill_ns.unwrap_or(0.0))?;
    let (mut pages, mut refill_ns) = (0, tlb.refill_ns);
    for far in &tlb.far {
        range("tlb.far.pages", far.pages, pages + 1, 1 << 24)?;
        latency("tlb.far.refill_ns", far.refill_ns)?;
        if far.refill_ns < refill_ns {
            return Err(Fault::value(
                "tlb.far.refill_ns",
                far.refill_ns,
                format!("at least {refill_ns}, as nearer pages have"),
            ));
        }
        (pages, refill_ns) = (far.pages, far.refill_ns);
    }
    latency("tlb.refill_ns", tlb.refill_ns)
}

fn memory(memory: &Memory) -> Result<(), Fault> {
    range("memory.nodes", memory.nodes, 1, NODES_MAX)?;
    latency("memory.local_ns", memory.local_ns)?;
    latency("memory.remote_ns", memory.remote_ns)?;
    latency("memory.dirty_remote_ns", memory.dirty_remote_ns)?;
    bandwidth("memory.bandwidth_gbps", memory.bandwidth_gbps)?;
    latency("memory.upgrade_ns", memory.upgrade_ns)?;
    for (key, ns) in [
        ("memory.fault_ns", memory.fault_ns),
        ("memory.clear_ns", memory.clear_ns),
    ] {
        if !(0.0..=1e6).contains(&ns) {
            return Err(Fault::value(key, ns, "0 to 1e6"));
        }
    }
    if memory.upgrade_ns > 0.0 && memory.bandwidth_gbps == 0.0 {
        return Err(Fault::value(
            "memory.upgrade_ns",
            memory.upgrade_ns,
            "0, or with bandwidth_gbps: without it nothing occupies the memory",
        ));
    }
    frames("memory.frames_per_node", memory.frames_per_node)?;
    tiers(memory)?;
    if memory.distances.is_empty() {
        return Ok(());
    }
    if memory.distances.len() != memory.nodes as usize {
        let found = format!("{} rows", memory.distances.len());
        return Err(Fault::value(
            "memory.distances",
            found,
            format!("one row for each of the {} nodes", memory.nodes),
        ));
    }
    for (from, row) in memory.distances.iter().enumerate() {
        let key = format!("memory.distances[{from}]");
        if row.len() != memory.nodes as usize {
            let found = format!("{} distances", row.len());
            return Err(Fault::value(
                key,
                found,
                format!("one for each of the {} nodes", memory.nodes),
            ));
        }
        for (to, distance) in row.iter().enumerate() {
            let fits = if from == to {
                *distance == 10
            } else {
                (10..=255).contains(distance)
            };
            if !fits {
                let allowed = if from == to {
                    "10: the distance of a node from itself"
                } else {
                    "10 to 255"
                };
                return Err(Fault::value(format!("{key}[{to}]"), distance, allowed));
            }
        }
    }
    Ok(())
}

fn tiers(memory: &Memory) -> Result<(), Fault> {
    let most = NODES_MAX.saturating_sub(memory.nodes);
    if memory.tiers.len() > most as usize {
        let found = format!("{} tables", memory.tiers.len());
        return Err(Fault::value(
            "memory.tier",
            found,
            format!("at most {most}: {NODES_MAX} nodes in all"),
        ));
    }
    for (number, tier) in memory.tiers.iter().enumerate() {
        let key = |key: &str| format!("memory.tier[{number}].{key}");
        name(&key("name"), &tier.name)?;
        latency(&key("latency_ns"), tier.latency_ns)?;
        latency(&key("far_latency_ns"), tier.far_latency_ns)?;
        bandwidth(&key("bandwidth_gbps"), tier.bandwidth_gbps)?;
        frames(&key("frames"), tier.frames)?;
        for (index, node) in tier.near.iter().enumerate() {
            if *node >= memory.nodes {
                let key = format!("{}[{index}]", key("near"));
                return Err(Fault::value(
                    key,
                    node,
                    format!("0 to {}: nodes with cpus", memory.nodes - 1),
                ));
            }
        }
    }
    Ok(())
}

/// With less, the time of a transfer times the number of transfers does not fit a clock.
const BANDWIDTH_LEAST: f64 = 0.001;

fn bandwidth(key: &str, gbps: f64) -> Result<(), Fault> {
    match gbps == 0.0 || (BANDWIDTH_LEAST..=1e6).contains(&gbps) {
        true => Ok(()),
        false => Err(Fault::value(key, gbps, "0 (no contention), or 0.001 to 1000000")),
    }
}

fn frames(key: &str, frames: u64) -> Result<(), Fault> {
    match frames > 1 << 52 {
        true => Err(Fault::value(key, frames, "0 (no limit) to 2^52")),
        false => Ok(()),
    }
}

fn name(key: &str, name: &str) -> Result<(), Fault> {
    if name.is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        let found = format!("{:?}", name.chars().take(40).collect::<String>());
        return Err(Fault::value(key, found, "1 to 100 printable characters"));
    }
    Ok(())
}

fn range<T: Copy + PartialOrd + std::fmt::Display>(key: &str, value: T, low: T, high: T) -> Result<(), Fault> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(Fault::value(key, value, format!("{low} to {high}")))
    }
}

fn power_of_two(key: &str, value: u64, low: u64, high: u64) -> Result<(), Fault> {
    if value.is_power_of_two() && (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Fault::value(key, value, format!("a power of two from {low} to {high}")))
}

fn latency(key: &str, ns: f64) -> Result<(), Fault> {
    if ns.is_finite() && (0.0..=LATENCY_MAX_NS).contains(&ns) {
        return Ok(());
    }
    Err(Fault::value(key, ns, "0 to 1000000000 nanoseconds"))
}
