//! Nodes, their distances and their memory.

use sys::nodes::{Access, NodeReading};

use super::{Notes, Trust, assume, list};
use crate::model::{HugeData, Memory, Tier};

/// The nodes of the description and their names in Linux.
pub(super) struct DescribedMemory {
    pub(super) memory: Memory,
    pub(super) numbers: Vec<u32>,
    pub(super) memory_bytes: Vec<Option<u64>>,
}

/// The kernel's nodes; none where it has no NUMA.
pub(super) fn nodes(root: &sys::Root, online: &[u32], notes: &mut Notes) -> Vec<NodeReading> {
    let nodes = match sys::nodes::nodes(root) {
        Ok(nodes) => nodes,
        Err(error) => {
            notes.add(
                Trust::Missing,
                "memory.nodes",
                format!("no NUMA nodes ({error}); described as one node"),
            );
            return Vec::new();
        }
    };
    let is_used = |node: &&NodeReading| node.cpus.iter().any(|cpu| online.binary_search(cpu).is_ok());
    let unused: Vec<u32> = nodes
        .iter()
        .filter(|node| !is_used(node) && !is_tier(node))
        .map(|node| node.number)
        .collect();
    if !unused.is_empty() {
        let text = format!(
            "nodes {} have no online cpu and are left out, with their memory",
            list(&unused)
        );
        notes.add(Trust::Simplified, "memory.nodes", text);
    }
    nodes
}

/// Memory without cpus: CXL memory, or a slower kind.
fn is_tier(node: &NodeReading) -> bool {
    node.cpus.is_empty() && node.memory_bytes.is_some_and(|bytes| bytes > 0)
}

/// The nodes that `cpus` are on, in their order.
pub(super) fn memory(
    root: &sys::Root,
    cpus: &[u32],
    nodes: &[NodeReading],
    page_bytes: u64,
    notes: &mut Notes,
) -> DescribedMemory {
    // Sorts by the order of the cpus; nodes whose cpus were all cut off are gone.
    let mut used: Vec<&NodeReading> = Vec::new();
    let mut counts: Vec<usize> = Vec::new();
    for cpu in cpus {
        let Some(node) = nodes.iter().find(|node| node.cpus.binary_search(cpu).is_ok()) else {
            continue;
        };
        match used.iter().position(|known| known.number == node.number) {
            Some(at) => counts[at] += 1,
            None => (used.push(node), counts.push(1)).1,
        }
    }
    let one = used.len() <= 1;
    if counts.iter().any(|count| *count != counts[0]) || counts.iter().sum::<usize>() != cpus.len() && !one {
        let text = format!("nodes have {counts:?} of the cpus; described as if they had equally many");
        notes.add(Trust::Simplified, "memory.nodes", text);
    }
    let total = sys::nodes::memory_bytes(root);
    let memory_bytes: Vec<Option<u64>> = match used.is_empty() {
        true => vec![total],
        false => used
            .iter()
            .map(|node| node.memory_bytes.or(total.filter(|_| one)))
            .collect(),
    };
    let least = memory_bytes
        .iter()
        .copied()
        .collect::<Option<Vec<u64>>>()
        .and_then(|all| all.into_iter().min());
    let frames_per_node = least.map_or(0, |bytes| bytes / page_bytes);
    if least.is_none() {
        notes.add(
            Trust::Missing,
            "memory.frames_per_node",
            "no meminfo for every node; described without a limit",
        );
    } else if memory_bytes.iter().any(|bytes| *bytes != least) {
        notes.add(
            Trust::Simplified,
            "memory.frames_per_node",
            "nodes differ in memory; described is the smallest",
        );
    }

    let (rows, remote) = if one {
        (Vec::new(), 10)
    } else {
        distances(&used, nodes, notes)
    };
    let local_ns = local_ns(&used, notes);
    if !one {
        let text = format!(
            "{local_ns} ns times the smallest distance between nodes, {remote}, over 10 (ACPI: relative latency)"
        );
        notes.add(Trust::Assumed, "memory.remote_ns", text);
    }
    let remote_ns = local_ns * f64::from(remote) / 10.0;
    let tiers: Vec<&NodeReading> = nodes.iter().filter(|node| is_tier(node)).collect();
    let untold = |node: &&&NodeReading| of_cpus(node, |access| access.read_latency_ns).is_none();
    let (untold, told): (Vec<&NodeReading>, Vec<&NodeReading>) = tiers.iter().partition(untold);
    if !untold.is_empty() && !used.is_empty() {
        let text = format!(
            "nodes {} have memory and no cpus; {local_ns} ns times their distance over 10 (ACPI: relative latency), and no bound \
             of bandwidth",
            numbers(&untold),
        );
        notes.add(Trust::Assumed, "memory.tier", text);
    }
    if !told.is_empty() && !used.is_empty() {
        let text = format!(
            "nodes {} have memory and no cpus; what reads from the nearest cpus take, and their bandwidth, is the firmware's word \
             (HMAT); from others it is taken to grow as the distance",
            numbers(&told)
        );
        notes.add(Trust::Read, "memory.tier", text);
    }
    let memory = Memory {
        // At most as many as cpus.
        nodes: used.len().max(1) as u32,
        local_ns,
        remote_ns,
        dirty_remote_ns: remote_ns,
        bandwidth_gbps: bandwidth(&used, notes),
        upgrade_ns: 0.0,
        fault_ns: 0.0,
        clear_ns: 0.0,
        huge_pages: HugeData::Never,
        frames_per_node,
        distances: rows,
        tiers: match used.is_empty() {
            true => Vec::new(),
            false => tiers
                .iter()
                .map(|node| tier(node, &used, nodes, local_ns, page_bytes))
                .collect(),
        },
    };
    let numbers = if used.is_empty() {
        vec![0]
    } else {
        used.iter().chain(&tiers).map(|node| node.number).collect()
    };
    let of_tiers = tiers.iter().filter(|_| !used.is_empty()).map(|node| node.memory_bytes);
    DescribedMemory {
        memory,
        numbers,
        memory_bytes: memory_bytes.into_iter().chain(of_tiers).collect(),
    }
}

/// The kernel's numbers of nodes, for people.
fn numbers(nodes: &[&NodeReading]) -> String {
    list(&nodes.iter().map(|node| node.number).collect::<Vec<_>>())
}

/// The firmware's figure for a node's memory.
fn of_cpus(node: &NodeReading, what: impl Fn(&Access) -> Option<u32>) -> Option<f64> {
    node.access.as_ref().and_then(what).map(f64::from)
}

/// Its figures for all nodes; none if it leaves one out.
fn of_all(nodes: &[&NodeReading], what: impl Fn(&Access) -> Option<u32>) -> Option<Vec<f64>> {
    let all: Option<Vec<f64>> = nodes.iter().map(|node| of_cpus(node, &what)).collect();
    all.filter(|all| !all.is_empty())
}

/// The latency of a miss on the own node.
fn local_ns(used: &[&NodeReading], notes: &mut Notes) -> f64 {
    let Some(told) = of_all(used, |access| access.read_latency_ns) else {
        let text = format!(
            "Linux reports no latencies: {} ns; give measured ones in a description of your own",
            assume::LOCAL_NS
        );
        notes.add(Trust::Assumed, "memory.local_ns", text);
        return assume::LOCAL_NS;
    };
    let most = told.iter().copied().fold(0.0, f64::max);
    let text = "what reads from the nearest cpus take, by the firmware (HMAT, /sys/devices/system/node/node*/access*)";
    notes.add(Trust::Read, "memory.local_ns", text);
    if told.iter().any(|ns| *ns != most) {
        notes.add(
            Trust::Simplified,
            "memory.local_ns",
            "nodes differ in latency; described is the longest",
        );
    }
    most
}

/// Gigabytes a second of a node's memory; 0 where nothing says it.
fn bandwidth(used: &[&NodeReading], notes: &mut Notes) -> f64 {
    let Some(told) = of_all(used, |access| access.read_bandwidth) else {
        return 0.0;
    };
    let least = told.iter().copied().fold(f64::INFINITY, f64::min);
    notes.add(
        Trust::Read,
        "memory.bandwidth_gbps",
        "that of reads from the nearest cpus, by the firmware (HMAT)",
    );
    if told.iter().any(|bandwidth| *bandwidth != least) {
        notes.add(
            Trust::Simplified,
            "memory.bandwidth_gbps",
            "nodes differ in bandwidth; described is the least",
        );
    }
    least / 1000.0
}

/// A node without cpus, as far as the distances and the firmware describe it. `local_ns`: the latency at distance 10.
fn tier(tier: &NodeReading, used: &[&NodeReading], all: &[NodeReading], local_ns: f64, page_bytes: u64) -> Tier {
    let at = all
        .iter()
        .position(|node| node.number == tier.number)
        .unwrap_or_default();
    let from = |node: &NodeReading| {
        node.distances
            .as_ref()
            .filter(|row| row.len() == all.len())
            .map(|row| row[at])
    };
    let rows: Vec<u32> = used
        .iter()
        .map(|node| from(node).unwrap_or(assume::REMOTE_DISTANCE))
        .collect();
    let (nearest, farthest) = (rows.iter().min(), rows.iter().max());
    let distance = |row: Option<&u32>| f64::from(*row.unwrap_or(&assume::REMOTE_DISTANCE));
    let told = of_cpus(tier, |access| access.read_latency_ns);
    let latency_ns = told.unwrap_or(local_ns * distance(nearest) / 10.0);
    let near = (0..)
        .zip(&rows)
        .filter(|(_, row)| Some(*row) == nearest)
        .map(|(node, _)| node);
    Tier {
        name: format!("node {}", tier.number),
        latency_ns,
        far_latency_ns: latency_ns * distance(farthest) / distance(nearest),
        near: match nearest == farthest {
            true => Vec::new(),
            false => near.collect(),
        },
        bandwidth_gbps: of_cpus(tier, |access| access.read_bandwidth).map_or(0.0, |megabytes| megabytes / 1000.0),
        frames: tier.memory_bytes.unwrap_or(0) / page_bytes,
    }
}

/// Distances between the nodes in `used`, and the smallest between two of them.
fn distances(used: &[&NodeReading], all: &[NodeReading], notes: &mut Notes) -> (Vec<Vec<u32>>, u32) {
    // A row has one distance for each node of the kernel, those without cpus included.
    let row = |from: &NodeReading| -> Option<Vec<u32>> {
        let reported = from.distances.as_ref().filter(|reported| reported.len() == all.len())?;
        used.iter()
            .map(|to| Some(reported[all.iter().position(|node| node.number == to.number)?]))
            .collect()
    };
    let rows: Option<Vec<Vec<u32>>> = used.iter().map(|node| row(node)).collect();
    let sane = rows.filter(|rows| {
        rows.iter().enumerate().all(|(from, row)| {
            row.iter()
                .enumerate()
                .all(|(to, d)| if from == to { *d == 10 } else { (10..=255).contains(d) })
        })
    });
    match sane {
        Some(rows) => {
            let between = |(from, row): (usize, &Vec<u32>)| {
                row.iter()
                    .enumerate()
                    .filter(move |(to, _)| *to != from)
                    .map(|(_, d)| *d)
                    .min()
            };
            let smallest = rows
                .iter()
                .enumerate()
                .filter_map(between)
                .min()
                .unwrap_or(assume::REMOTE_DISTANCE);
            notes.add(
                Trust::Read,
                "memory.distances",
                "from /sys/devices/system/node/node*/distance",
            );
            (rows, smallest)
        }
        None => {
            let text = format!(
                "no usable distances; all nodes are taken to be {} apart",
                assume::REMOTE_DISTANCE
            );
            notes.add(Trust::Missing, "memory.distances", text);
            (Vec::new(), assume::REMOTE_DISTANCE)
        }
    }
}
