//! Random machines: small, odd, and always valid.

use machine::{
    Cache, Core, FarPages, Index, IndexHash, Kind, Machine, Memory, Prefetch, Replacement, SoftwarePrefetch, Stride,
    Tier, Tlb, Write,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Free choices for the caches of one level; [`build`] makes them fit the levels nearer to the cpu.
#[derive(Clone, Debug)]
struct Level {
    /// Data and instructions apart (2), data alone (1), or unified (0).
    split: u8,
    wider_line: bool,
    /// The ratio of the cpus that share an instance to those one level nearer: index into the divisors that fit.
    sharing: usize,
    sets: u64,
    ways: u32,
    virtual_index: bool,
    hash: Option<u32>,
    hit_ns: f64,
    transfer_ns: f64,
    others_gbps: f64,
    through: bool,
    allocate: bool,
    inclusive: bool,
    replacement: Replacement,
}

fn latency() -> impl Strategy<Value = f64> {
    select(vec![0.0, 0.1, 1.0, 2.5, 3.3, 12.0, 40.0, 93.7])
}

fn level(cpus: u32) -> impl Strategy<Value = Level> {
    let shape = (
        0..3u8,
        any::<bool>(),
        if cpus == 1 { 0..1usize } else { 0..4 },
        prop_oneof![4 => 1..=4u64, 1 => select(vec![6, 8, 16])],
        prop_oneof![4 => 1..=4u32, 1 => select(vec![6, 8])],
    );
    let replacement = prop_oneof![
        4 => Just(Replacement::Lru),
        1 => Just(Replacement::Plru),
        1 => Just(Replacement::Random),
        1 => Just(Replacement::Reuse)
    ];
    let behavior = (
        prop::bool::weighted(0.3),
        option::weighted(0.1, 2..=3u32),
        (
            latency(),
            select(vec![0.0, 0.0, 1.1, 25.0]),
            select(vec![0.0, 0.0, 0.0, 0.02, 0.9]),
        ),
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.75),
        prop::bool::weighted(0.4),
        replacement,
    );
    (shape, behavior).prop_map(|(shape, behavior)| {
        let (split, wider_line, sharing, sets, ways) = shape;
        let (virtual_index, hash, (hit_ns, transfer_ns, others_gbps), through, allocate, inclusive, replacement) =
            behavior;
        Level {
            split,
            wider_line,
            sharing,
            sets,
            ways,
            virtual_index,
            hash,
            hit_ns,
            transfer_ns,
            others_gbps,
            through,
            allocate,
            inclusive,
            replacement,
        }
    })
}

fn memory() -> impl Strategy<Value = Memory> {
    let distances = option::weighted(0.3, vec(select(vec![16, 21, 31, 40]), 9));
    (
        1..=3u32,
        latency(),
        latency(),
        latency(),
        select(vec![0.0, 0.0, 0.7, 4.0]),
        select(vec![0, 0, 0, 40, 7]),
        distances,
        tiers(),
    )
        .prop_map(
            |(nodes, local_ns, remote_ns, dirty_remote_ns, bandwidth_gbps, frames_per_node, distances, tiers)| {
                let row = |from: usize| -> Vec<u32> {
                    let to = 0..nodes as usize;
                    to.map(|to| {
                        if from == to {
                            10
                        } else {
                            distances.as_ref().map_or(20, |d| d[from * 3 + to])
                        }
                    })
                    .collect()
                };
                Memory {
                    nodes,
                    local_ns,
                    remote_ns: remote_ns + local_ns,
                    dirty_remote_ns,
                    bandwidth_gbps,
                    upgrade_ns: if bandwidth_gbps > 1.0 { 9.3 } else { 0.0 },
                    fault_ns: 0.0,
                    clear_ns: 0.0,
                    huge_pages: machine::HugeData::Never,
                    frames_per_node,
                    distances: match distances {
                        Some(_) => (0..nodes as usize).map(row).collect(),
                        None => Vec::new(),
                    },
                    tiers: tiers
                        .into_iter()
                        .map(|mut tier| {
                            tier.near.retain(|near| *near < nodes);
                            tier
                        })
                        .collect(),
                }
            },
        )
}

/// Nodes without cpus.
fn tiers() -> impl Strategy<Value = Vec<Tier>> {
    let tier = (
        latency(),
        latency(),
        vec(0..3u32, 0..3),
        select(vec![0.0, 0.0, 0.3, 2.0]),
        select(vec![0, 0, 50, 3]),
    );
    let tier = tier.prop_map(|(latency_ns, far_latency_ns, near, bandwidth_gbps, frames)| Tier {
        name: "slow".to_string(),
        latency_ns,
        far_latency_ns,
        near,
        bandwidth_gbps,
        frames,
    });
    prop_oneof![3 => Just(Vec::new()), 1 => vec(tier, 1..3)]
}

fn tlb() -> impl Strategy<Value = Option<Tlb>> {
    let huge = option::weighted(0.3, latency());
    let some = (select(vec![1u32, 2, 3]), 1..=4u32, 0..4u32, latency(), 0..4u32, huge).prop_map(
        |(sets, ways, wired, refill_ns, walkers, huge_refill_ns)| Tlb {
            entries: sets * ways,
            ways,
            wired: wired.min(sets * ways - 1),
            refill_ns,
            walkers,
            huge_refill_ns,
            // From the earlier draws.
            far: (0..wired % 3)
                .map(|tier| FarPages {
                    pages: 1 + 16 * tier + walkers,
                    refill_ns: refill_ns + 7.5 * f64::from(tier + 1),
                })
                .collect(),
        },
    );
    option::weighted(0.5, some)
}

fn build(cpus: u32, page_bytes: u64, first_line: u32, levels: &[Level], tlb: Option<Tlb>, memory: Memory) -> Machine {
    let mut caches = Vec::new();
    let mut line_bytes = first_line;
    let mut sharers = 1;
    for (number, level) in levels.iter().enumerate() {
        if number > 0 && level.wider_line {
            line_bytes = (line_bytes * 2).min(256);
        }
        let fitting: Vec<u32> = (1..=cpus)
            .filter(|n| cpus.is_multiple_of(*n) && n.is_multiple_of(sharers))
            .collect();
        sharers = fitting[level.sharing.min(fitting.len() - 1)];
        let kinds: &[(Kind, &str)] = match level.split {
            2 => &[(Kind::Data, "D"), (Kind::Instruction, "I")],
            1 if number == 0 => &[(Kind::Data, "D")],
            _ => &[(Kind::Unified, "")],
        };
        for (kind, letter) in kinds {
            let ways = match level.replacement {
                Replacement::Plru => level.ways.next_power_of_two(),
                _ => level.ways,
            };
            // Not in the first cache for data or fetches.
            let others = number > 1 || number == 1 && (levels[0].split != 1 || *kind == Kind::Data);
            let way = u64::from(ways) * u64::from(line_bytes);
            // A slice of a single set per page keeps the number of colors small.
            let hash = level.hash.map(|slices| IndexHash {
                slices,
                masks: vec![0x5a40 | u64::from(line_bytes), 0x3_1100],
            });
            let hash = hash.map(|mut hash| {
                hash.masks.truncate(if hash.slices == 2 { 1 } else { 2 });
                let below = !u64::from(line_bytes - 1);
                hash.masks.iter_mut().for_each(|mask| *mask &= below);
                hash
            });
            caches.push(Cache {
                name: format!("L{}{letter}", number + 1),
                level: number as u8 + 1,
                kind: *kind,
                bytes: way * level.sets * u64::from(hash.as_ref().map_or(1, |hash| hash.slices)),
                ways,
                line_bytes,
                cpus_per_instance: sharers,
                index: if level.virtual_index {
                    Index::Virtual
                } else {
                    Index::Physical
                },
                hash,
                hit_ns: level.hit_ns,
                transfer_ns: level.transfer_ns,
                others_gbps: if others { level.others_gbps } else { 0.0 },
                write: if level.through { Write::Through } else { Write::Back },
                allocate_on_write: level.allocate,
                inclusive: level.inclusive && number > 0,
                replacement: level.replacement,
                prefetch: None,
            });
        }
    }
    Machine {
        name: "random".into(),
        clock_mhz: 333.0,
        page_bytes,
        cpus,
        caches,
        tlb,
        memory,
        prefetch: None,
        core: None,
        regions: None,
    }
}

/// Machines of 1 to `most` cpus and 1 to 4 levels.
pub fn machines(cpus: Vec<u32>) -> impl Strategy<Value = Machine> {
    select(cpus).prop_flat_map(|cpus| {
        (
            select(vec![512u64, 1024]),
            select(vec![8u32, 16, 32]),
            vec(level(cpus), 1..=4),
            tlb(),
            memory(),
        )
            .prop_map(move |(page, line, levels, tlb, memory)| build(cpus, page, line, &levels, tlb, memory))
            .prop_filter("a machine must be valid", |machine| machine.check().is_ok())
    })
}

/// Stream prefetchers, every second of which runs on; as many follow strides too, of up to two pages.
fn prefetches() -> impl Strategy<Value = Prefetch> + Clone {
    let stride = (1..=3u32, 1..=4u32, 1..=2048u64).prop_map(|(entries, ahead, bytes)| Stride { entries, ahead, bytes });
    let streams = (1..=4u32, 1..=6u32, 1..=6u32, any::<bool>());
    (streams, option::weighted(0.5, stride)).prop_map(|((streams, lines, step, runs_on), stride)| Prefetch {
        streams,
        lines,
        step,
        // Drawn with these, so that earlier cases stay what they were.
        pair: (streams + lines) % 2 == 0,
        runs_on,
        after: (streams + step) % 4,
        stride,
    })
}

/// Machines of which some caches prefetch; at least one where there is one cpu, else only beyond the first level.
pub fn prefetching_machines(cpus: Vec<u32>) -> impl Strategy<Value = Machine> {
    let limits = prefetches();
    let some = vec(option::weighted(0.5, limits.clone()), 8);
    (machines(cpus), some, any::<prop::sample::Index>(), limits).prop_map(|(mut machine, some, one, always)| {
        for (cache, limits) in machine.caches.iter_mut().zip(some) {
            cache.prefetch = limits;
        }
        let one = one.index(machine.caches.len());
        machine.caches[one].prefetch = Some(always);
        only_beyond_the_first(&mut machine);
        machine
    })
}

/// Machines that carry the program's prefetches out.
pub fn asking_machines(cpus: Vec<u32>) -> impl Strategy<Value = Machine> {
    let asking = (machines(cpus), 1..=5u32).prop_map(|(mut machine, outstanding)| {
        machine.prefetch = Some(SoftwarePrefetch { outstanding });
        machine
    });
    asking.prop_filter("prefetches need a second level", |machine| machine.check().is_ok())
}

/// With several cpus, caches of the first level do not prefetch.
fn only_beyond_the_first(machine: &mut Machine) {
    let several = machine.cpus > 1;
    let nearest = machine.caches.iter_mut().filter(|cache| several && cache.level == 1);
    nearest.for_each(|cache| cache.prefetch = None);
}

/// Machines whose cpus overlap, some with caches that prefetch.
pub fn overlapping_machines(cpus: Vec<u32>) -> impl Strategy<Value = Machine> {
    let core = (
        select(vec![0.7, 1.0, 3.0]),
        prop_oneof![1 => 1..4u32, 2 => 4..60u32],
        (1..6u32, 0..4u32),
        1..6u32,
        select(vec![0.0, 0.0, 0.6, 3.0]),
        (
            select(vec![0.0, 2.0, 40.0]),
            select(vec![0.0, 0.0, 5.0]),
            select(vec![0.0, 0.0, 30.0]),
        ),
        select(vec![0.0, 5.0]),
        select(vec![0.0, 4.0, 60.0]),
    );
    let limits = prefetches();
    let prefetch = vec(option::weighted(0.2, limits), 8);
    (machines(cpus), core, prefetch).prop_map(|(mut machine, core, prefetch)| {
        let (
            instructions_per_clock,
            window,
            (outstanding, outstanding_of_bank),
            store_buffer,
            set_refill_ns,
            (line_ns, memory_line_ns, huge_memory_line_ns),
            set_rewrite_ns,
            misprediction_ns,
        ) = core;
        machine.core = Some(Core {
            instructions_per_clock,
            window,
            outstanding,
            outstanding_of_bank,
            line_ns,
            memory_line_ns,
            huge_memory_line_ns,
            store_buffer,
            set_refill_ns,
            // For machines whose second figure is that of few lines: no draw of its own, so that others stay as they
            // are.
            bank_refill_ns: if window % 3 == 1 {
                3.0 * instructions_per_clock
            } else {
                0.0
            },
            set_rewrite_ns,
            misprediction_ns,
        });
        for (cache, limits) in machine.caches.iter_mut().zip(prefetch) {
            cache.prefetch = limits;
        }
        only_beyond_the_first(&mut machine);
        machine
    })
}
