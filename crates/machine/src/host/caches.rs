//! Converts the kernel's report of each cpu's caches to kinds of cache that serve equally many neighbors.

use std::collections::{BTreeMap, BTreeSet};

use sys::caches::CacheReading;

use super::order::{Seen, sharers};
use super::{Notes, Trust, assume, list};
use crate::model::{Cache, Index, Kind, Replacement, Write};

/// The kernel's report of the caches of each cpu; cpus without a cache directory get the assumed ones.
pub(super) fn readings(root: &sys::Root, online: &[u32], notes: &mut Notes) -> Seen {
    let mut silent = Vec::new();
    let mut reason = None;
    let mut seen: Seen = Seen::new();
    for &cpu in online {
        match sys::caches::caches(root, cpu) {
            Ok(readings) => _ = seen.insert(cpu, readings),
            Err(error) => {
                silent.push(cpu);
                reason.get_or_insert(error);
            }
        }
    }
    let Some(reason) = reason else {
        notes.add(
            Trust::Read,
            "cache",
            "sizes, ways, lines and sharing from /sys/devices/system/cpu/cpu*/cache",
        );
        return seen;
    };
    // For some cpus the neighbors' caches are the better guess; for all of them there are only the usual figures.
    let (fallback, text) = match seen.values().next() {
        Some(readings) => {
            let alone = |reading: &CacheReading| CacheReading {
                sharers: None,
                ..reading.clone()
            };
            (readings.iter().map(alone).collect(), "taken to be like the others'")
        }
        None => (
            assume::caches(),
            "assumed are 32 KiB first-level caches and a 512 KiB second level for each cpu",
        ),
    };
    notes.add(
        Trust::Missing,
        "cache",
        format!("no caches of cpus {} ({reason}); {text}", list(&silent)),
    );
    seen.extend(silent.into_iter().map(|cpu| (cpu, fallback.clone())));
    seen
}

/// Geometry by which instances of one kind of cache can differ.
type Shape = (Option<u64>, Option<u32>, Option<u32>, Option<u64>);

fn shape(reading: &CacheReading) -> Shape {
    (reading.bytes, reading.ways, reading.line_bytes, reading.sets)
}

/// The kinds of cache that `cpus` (in the description's order) have, nearest first.
pub(super) fn caches(cpus: &[u32], seen: &Seen, page_bytes: u64, notes: &mut Notes) -> Vec<Cache> {
    let mut kinds: BTreeMap<(u32, u8), Vec<(u32, &CacheReading)>> = BTreeMap::new();
    for cpu in cpus {
        for reading in seen.get(cpu).into_iter().flatten() {
            let rank = match reading.kind.as_str() {
                "Data" => 0,
                "Instruction" => 1,
                "Unified" => 2,
                _ => continue,
            };
            kinds.entry((reading.level, rank)).or_default().push((*cpu, reading));
        }
    }
    // A unified cache beside a split one at the same level would serve references twice.
    let split: Vec<u32> = kinds
        .keys()
        .filter(|(_, rank)| *rank < 2)
        .map(|(level, _)| *level)
        .collect();
    kinds.retain(|(level, rank), _| *rank < 2 || !split.contains(level));

    let mut described: Vec<Cache> = Vec::new();
    let mut levels: Vec<u32> = kinds.keys().map(|(level, _)| *level).collect();
    levels.dedup();
    for ((level, rank), readings) in kinds {
        // Levels without gaps, however the kernel numbers them. There are at most as many as were read.
        let position = levels.iter().position(|known| *known == level).unwrap_or(0) + 1;
        let Ok(level) = u8::try_from(position) else { break };
        if level > 8 {
            break;
        }
        let kind = [Kind::Data, Kind::Instruction, Kind::Unified][rank as usize];
        let cache = one_kind(level, kind, &readings, cpus, page_bytes, &described, notes);
        described.push(cache);
    }
    let described = with_first_level(described, notes);
    notes.add(
        Trust::Assumed,
        "cache.hit_ns",
        "Linux reports no latencies: 4 ns for level 2, 16 for 3, 40 beyond; give measured ones in a description of your own",
    );
    notes.add(
        Trust::Assumed,
        "cache",
        "Linux does not report index hashes, replacement and inclusion: described without a hash, LRU (unless measured), not inclusive; \
         a last level that is hashed over slices has fewer colors than computed here",
    );
    described
}

fn with_first_level(mut caches: Vec<Cache>, notes: &mut Notes) -> Vec<Cache> {
    if caches
        .iter()
        .any(|cache| cache.level == 1 && cache.kind != Kind::Instruction)
    {
        return caches;
    }
    notes.add(
        Trust::Missing,
        "cache L1D",
        "no first-level data cache is reported; assumed is one of 32 KiB for each cpu",
    );
    let farther = caches
        .iter()
        .filter(|cache| cache.level > 1)
        .map(|cache| cache.line_bytes);
    let line_bytes = farther.min().unwrap_or(assume::LINE_BYTES).min(assume::LINE_BYTES);
    let geometry = (assume::bytes(1), assume::ways(1), line_bytes);
    caches.insert(0, plain("L1D".into(), 1, Kind::Data, geometry, Index::Physical));
    caches
}

fn plain(name: String, level: u8, kind: Kind, (bytes, ways, line_bytes): (u64, u32, u32), index: Index) -> Cache {
    Cache {
        name,
        level,
        kind,
        bytes,
        ways,
        line_bytes,
        cpus_per_instance: 1,
        index,
        hash: None,
        hit_ns: assume::hit_ns(level),
        transfer_ns: 0.0,
        others_gbps: 0.0,
        write: Write::Back,
        allocate_on_write: true,
        inclusive: false,
        replacement: Replacement::Lru,
        prefetch: None,
    }
}

fn one_kind(
    level: u8,
    kind: Kind,
    readings: &[(u32, &CacheReading)],
    cpus: &[u32],
    page_bytes: u64,
    nearer: &[Cache],
    notes: &mut Notes,
) -> Cache {
    let name = match kind {
        Kind::Data => format!("L{level}D"),
        Kind::Instruction => format!("L{level}I"),
        Kind::Unified => format!("L{level}"),
    };
    let about = format!("cache {name}");
    // The shape that most cpus have stands for all.
    let mut shapes: BTreeMap<Shape, Vec<u32>> = BTreeMap::new();
    readings
        .iter()
        .for_each(|(cpu, reading)| shapes.entry(shape(reading)).or_default().push(*cpu));
    let common = majority(shapes.iter().map(|(shape, cpus)| (*shape, cpus.len()))).unwrap_or_default();
    for (other, cpus) in shapes.iter().filter(|(shape, _)| **shape != common) {
        let bytes = other
            .0
            .map_or("an unknown size".into(), |bytes| format!("{bytes} bytes"));
        let text = format!(
            "cpus {} have another one, of {bytes}; described as if like the others",
            list(cpus)
        );
        notes.add(Trust::Simplified, &about, text);
    }
    if readings.len() < cpus.len() {
        let without: Vec<u32> = cpus
            .iter()
            .copied()
            .filter(|cpu| !readings.iter().any(|(has, _)| has == cpu))
            .collect();
        let text = format!("cpus {} have none; described as if they had", list(&without));
        notes.add(Trust::Simplified, &about, text);
    }
    let Some((_, model)) = readings.iter().find(|(_, reading)| shape(reading) == common) else {
        return plain(
            name,
            level,
            kind,
            (assume::bytes(level), assume::ways(level), assume::LINE_BYTES),
            Index::Physical,
        );
    };
    let least_line = nearer
        .iter()
        .filter(|cache| cache.level < level)
        .map(|cache| cache.line_bytes)
        .max()
        .unwrap_or(4);
    let geometry = geometry(&name, level, model, least_line, notes);
    // Linux does not say. First levels are indexed by virtual address, which is the same as by the
    // physical one where a way is no larger than a page.
    let way_bytes = geometry.0 / u64::from(geometry.1);
    let index = if level == 1 && way_bytes > page_bytes {
        Index::Virtual
    } else {
        Index::Physical
    };
    let through = model.write_policy.as_deref() == Some("WriteThrough");
    Cache {
        cpus_per_instance: cpus_per_instance(&about, readings, cpus, level, nearer, notes),
        write: if through { Write::Through } else { Write::Back },
        allocate_on_write: match model.allocation_policy.as_deref() {
            Some(policy) => policy.contains("Write"),
            None => !through,
        },
        ..plain(name, level, kind, geometry, index)
    }
}

/// The value that stands for most; of equals the first.
fn majority<T>(counted: impl Iterator<Item = (T, usize)>) -> Option<T> {
    let mut best: Option<(T, usize)> = None;
    for (value, count) in counted {
        if best.as_ref().is_none_or(|(_, most)| count > *most) {
            best = Some((value, count));
        }
    }
    best.map(|(value, _)| value)
}

/// Size, ways and line such that they multiply to whole sets; each change made for that gets a note.
fn geometry(name: &str, level: u8, reading: &CacheReading, least_line: u32, notes: &mut Notes) -> (u64, u32, u32) {
    let about = format!("cache {name}");
    let reported = reading
        .line_bytes
        .filter(|line| line.is_power_of_two() && (4..=256).contains(line));
    let line_bytes = reported.unwrap_or(assume::LINE_BYTES).max(least_line);
    if reported != Some(line_bytes) {
        let text = match reading.line_bytes {
            None => format!("its line is not reported; {line_bytes} bytes"),
            Some(line) => format!("a line of {line} bytes, which a description cannot have here; {line_bytes}"),
        };
        let trust = if reading.line_bytes.is_none() {
            Trust::Missing
        } else {
            Trust::Simplified
        };
        notes.add(trust, &about, text);
    }
    let bytes = reading.bytes.filter(|bytes| *bytes <= crate::CACHE_BYTES_MAX);
    // Ways times sets times line, if the size itself is missing.
    let product = || {
        let ways = u64::from(reading.ways?);
        ways.checked_mul(reading.sets?)?
            .checked_mul(u64::from(line_bytes))
            .filter(|size| *size <= crate::CACHE_BYTES_MAX)
    };
    let bytes = bytes.or_else(product).unwrap_or_else(|| {
        let assumed = assume::bytes(level);
        notes.add(
            Trust::Missing,
            &about,
            format!("the kernel reports no size; assumed are {} KiB", assumed >> 10),
        );
        assumed
    });
    // Whole lines, and at least one.
    let lines = (bytes / u64::from(line_bytes)).max(1);
    let bytes = lines * u64::from(line_bytes);
    let reported = reading.ways.map(u64::from);
    // Sets decide colors, so where the three disagree the ways give in, as in hwloc: an Arm server
    // reports the 15 ways and 2048 sets of one slice, and the size of all.
    let of_sets = reading
        .sets
        .filter(|sets| *sets > 0 && lines.is_multiple_of(*sets))
        .map(|sets| lines / sets);
    let wanted = of_sets.or(reported).unwrap_or(u64::from(assume::ways(level)));
    let fits = |ways: &u64| (1..=lines.min(1 << 24)).contains(ways) && lines.is_multiple_of(*ways);
    // Searches outwards from the wanted number; 1 always fits.
    let ways = (0..=wanted.max(1))
        .flat_map(|off| [wanted + off, wanted.saturating_sub(off)])
        .find(fits)
        .unwrap_or(1);
    match reported {
        Some(reported) if reported != ways => {
            let sets = lines / ways;
            let text = format!("{reported} ways do not fit its size and sets; described as {ways} ways of {sets} sets");
            notes.add(Trust::Simplified, &about, text);
        }
        None if of_sets != Some(ways) => {
            notes.add(Trust::Missing, &about, format!("its ways are not reported; {ways}"))
        }
        _ => {}
    }
    // Up to 2^24, as searched above.
    (bytes, ways as u32, line_bytes)
}

/// The number of neighbors that share an instance: the value of most cpus, adjusted to divide all of them and to
/// contain whole instances of the nearer caches.
fn cpus_per_instance(
    about: &str,
    readings: &[(u32, &CacheReading)],
    cpus: &[u32],
    level: u8,
    nearer: &[Cache],
    notes: &mut Notes,
) -> u32 {
    let mut sizes: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let mut scattered = Vec::new();
    let set: BTreeSet<u32> = cpus.iter().copied().collect();
    for (cpu, reading) in readings {
        let members = sharers(&set, *cpu, reading);
        let places: Vec<usize> = members
            .iter()
            .filter_map(|m| cpus.iter().position(|cpu| cpu == m))
            .collect();
        if places
            .iter()
            .max()
            .zip(places.iter().min())
            .is_some_and(|(last, first)| last - first + 1 != places.len())
        {
            scattered.push(*cpu);
        }
        sizes.entry(members.len()).or_default().push(*cpu);
    }
    if !scattered.is_empty() {
        let text = format!(
            "the cpus that share one with cpus {} are not neighbors in any order that fits the other caches",
            list(&scattered)
        );
        notes.add(Trust::Simplified, about, text);
    }
    let wanted = majority(sizes.iter().rev().map(|(size, cpus)| (*size, cpus.len()))).unwrap_or(1);
    // The least common multiple of the nearer ones. It always fits, because each divides the cpus.
    let inner = nearer
        .iter()
        .filter(|cache| cache.level < level)
        .fold(1, |inner, cache| {
            let sharers = cache.cpus_per_instance as usize;
            (1..=sharers)
                .map(|times| times * inner)
                .find(|multiple| multiple.is_multiple_of(sharers))
                .unwrap_or(inner)
        });
    let fits = |size: &usize| size.is_multiple_of(inner) && cpus.len().is_multiple_of(*size);
    // The nearest by ratio: five cpus of which four share one are better described as five.
    let off = |size: &usize| (size.max(&wanted) * 1000) / size.min(&wanted);
    let chosen = (1..=cpus.len()).filter(fits).min_by_key(off).unwrap_or(inner);
    for (size, cpus) in sizes.iter().filter(|(size, _)| **size != chosen) {
        let cpus = list(cpus);
        let text = match size {
            1 => format!("cpus {cpus} have one each; described as {chosen} that share one"),
            _ => format!("cpus {cpus} share one among {size}; described as {chosen} that share one"),
        };
        notes.add(Trust::Simplified, about, text);
    }
    chosen as u32
}
