//! An order of the cpus in which those that share something are neighbors.

use std::collections::{BTreeMap, BTreeSet};

use sys::caches::CacheReading;
use sys::nodes::NodeReading;

/// The caches of each online cpu as the kernel reports them.
pub(super) type Seen = BTreeMap<u32, Vec<CacheReading>>;

/// Groups of cpus that share an instance of one kind of cache, or a node. The group of a cpu is
/// named by its lowest member that is online.
type Groups = BTreeMap<u32, u32>;

/// `online` in an order in which, for nodes and each kind of cache, the members of a group are
/// neighbors, as far as the groups nest; within a group, by number.
///
/// Large groups go first: cpus are sorted by socket, then by node or cache within it, and so on.
pub(super) fn neighbors(online: &[u32], seen: &Seen, nodes: &[NodeReading]) -> Vec<u32> {
    let mut partitions: Vec<Groups> = vec![by_node(online, nodes)];
    let mut kinds: Vec<(u32, &str)> = seen
        .values()
        .flatten()
        .map(|reading| (reading.level, reading.kind.as_str()))
        .collect();
    let set: BTreeSet<u32> = online.iter().copied().collect();
    // Far caches first, so that among equal groups the order does not depend on the near ones.
    kinds.sort_unstable_by(|a, b| b.cmp(a));
    kinds.dedup();
    for (level, kind) in kinds {
        partitions.push(by_cache(&set, seen, level, kind));
    }
    partitions.sort_by_key(|groups| std::cmp::Reverse(largest(groups)));
    let mut ordered = online.to_vec();
    ordered.sort_by_key(|cpu| {
        let mut key: Vec<u32> = partitions
            .iter()
            .map(|groups| groups.get(cpu).copied().unwrap_or(*cpu))
            .collect();
        key.push(*cpu);
        key
    });
    ordered
}

fn by_node(online: &[u32], nodes: &[NodeReading]) -> Groups {
    let mut groups = Groups::new();
    for node in nodes {
        let members = node.cpus.iter().filter(|cpu| online.binary_search(cpu).is_ok());
        // Nodes are ordered as Linux numbers them, not by the cpus that they happen to have.
        groups.extend(members.map(|cpu| (*cpu, node.number)));
    }
    groups
}

/// The cpus that share an instance with `cpu`, itself included, that are online.
pub(super) fn sharers(online: &BTreeSet<u32>, cpu: u32, reading: &CacheReading) -> Vec<u32> {
    let mut sharers: Vec<u32> = match &reading.sharers {
        Some(sharers) => sharers.iter().copied().filter(|cpu| online.contains(cpu)).collect(),
        None => Vec::new(),
    };
    if !sharers.contains(&cpu) {
        sharers.push(cpu);
        sharers.sort_unstable();
    }
    sharers
}

fn by_cache(online: &BTreeSet<u32>, seen: &Seen, level: u32, kind: &str) -> Groups {
    let mut groups = Groups::new();
    for (cpu, readings) in seen {
        let own = readings
            .iter()
            .find(|reading| reading.level == level && reading.kind == kind);
        groups.insert(*cpu, own.map_or(*cpu, |reading| sharers(online, *cpu, reading)[0]));
    }
    groups
}

fn largest(groups: &Groups) -> usize {
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    groups.values().for_each(|group| *sizes.entry(*group).or_default() += 1);
    sizes.values().copied().max().unwrap_or(0)
}
