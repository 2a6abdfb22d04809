//! Discovery on machines of several shapes, of which each is described in a few lines and made into the tree that Linux would show.
//!
//! Captured trees (`host.rs`) are real machines; these are today's servers, with figures that their makers or firmware
//! give: two sockets, sub-NUMA clustering, CXL memory, high-bandwidth memory. Each says where its figures are from.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use machine::{HostReport, Trust, host};

/// A node of the tree.
#[derive(Clone, Copy, Default)]
struct Node<'a> {
    /// As Linux writes it; empty: memory only.
    cpus: &'a str,
    gigabytes: u64,
    distances: &'a [u32],
    /// HMAT: nanoseconds and megabytes a second from these nodes' cpus.
    reads: Option<(u32, u32, &'a [u32])>,
}

/// A tree as Linux shows it: cpus without caches, nodes, and the firmware's figures for them.
fn tree(online: &str, nodes: &[Node]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{text}\n")).unwrap();
    };
    for file in ["online", "possible", "present"] {
        write(&format!("sys/devices/system/cpu/{file}"), online);
    }
    for (number, node) in nodes.iter().enumerate() {
        let at = format!("sys/devices/system/node/node{number}");
        write(&format!("{at}/cpulist"), node.cpus);
        let distances: Vec<String> = node.distances.iter().map(u32::to_string).collect();
        write(&format!("{at}/distance"), &distances.join(" "));
        let kilobytes = node.gigabytes << 20;
        write(
            &format!("{at}/meminfo"),
            &format!("Node {number} MemTotal: {kilobytes} kB"),
        );
        if let Some((latency, bandwidth, initiators)) = node.reads {
            // Linux shows the nearest of any kind (0), and the nearest cpus (1).
            for class in ["access0", "access1"] {
                write(&format!("{at}/{class}/initiators/read_latency"), &latency.to_string());
                write(
                    &format!("{at}/{class}/initiators/read_bandwidth"),
                    &bandwidth.to_string(),
                );
                for initiator in initiators {
                    let link = folder.path().join(format!("{at}/{class}/initiators/node{initiator}"));
                    std::os::unix::fs::symlink(format!("../../../node{initiator}"), link).unwrap();
                }
            }
        }
    }
    folder
}

fn report(online: &str, nodes: &[Node]) -> HostReport {
    let folder = tree(online, nodes);
    let report = host(&sys::Root::new(Path::new(folder.path()))).unwrap();
    report.machine.check().unwrap();
    report
}

fn says(report: &HostReport, trust: Trust, about: &str, text: &str) {
    let said: Vec<&str> = report
        .notes_of(trust)
        .filter(|note| note.about == about)
        .map(|note| note.text.as_str())
        .collect();
    assert!(said.iter().any(|said| said.contains(text)), "{said:?}");
}

/// Two Xeon Platinum 8380 (40 cores each, hyperthreads off): distances 10 and 20, as their firmware gives; no HMAT.
#[test]
fn two_sockets() {
    let node = |cpus, distances| Node {
        cpus,
        distances,
        gigabytes: 256,
        reads: None,
    };
    let report = report("0-79", &[node("0-39", &[10, 20]), node("40-79", &[20, 10])]);
    let memory = &report.machine.memory;
    assert_eq!((report.machine.cpus, memory.nodes), (80, 2));
    assert_eq!(
        (memory.local_ns, memory.remote_ns, memory.bandwidth_gbps),
        (100.0, 200.0, 0.0)
    );
    assert_eq!(memory.frames_per_node, 256 << 18);
    assert!(memory.tiers.is_empty());
    says(&report, Trust::Assumed, "memory.local_ns", "no latencies");
}

/// Two Xeon of the fourth generation in SNC4: four nodes a socket at distance 12, the other socket's at 21, as such machines show.
#[test]
fn sub_numa_clusters() {
    let rows: Vec<Vec<u32>> = (0..8)
        .map(|from| {
            let to = |to: u32| match (from == to, from / 4 == to / 4) {
                (true, _) => 10,
                (_, true) => 12,
                _ => 21,
            };
            (0..8).map(to).collect()
        })
        .collect();
    // Linux numbers a socket's second hardware threads after all first ones.
    let cpus: Vec<String> = (0..8)
        .map(|node| {
            format!(
                "{}-{},{}-{}",
                node * 14,
                node * 14 + 13,
                112 + node * 14,
                112 + node * 14 + 13
            )
        })
        .collect();
    let nodes: Vec<Node> = cpus
        .iter()
        .zip(&rows)
        .map(|(cpus, distances)| Node {
            cpus,
            distances,
            gigabytes: 64,
            reads: None,
        })
        .collect();
    // With both threads of each core there are more cpus than a description can hold. First without them.
    let first: Vec<String> = (0..8).map(|node| format!("{}-{}", node * 14, node * 14 + 13)).collect();
    let online: Vec<Node> = nodes
        .iter()
        .zip(&first)
        .map(|(node, cpus)| Node { cpus, ..*node })
        .collect();
    let report = report("0-111", &online);
    let memory = &report.machine.memory;
    assert_eq!((report.machine.cpus, memory.nodes), (112, 8));
    assert_eq!(memory.distances, rows);
    assert_eq!(memory.remote_ns, 120.0);
    let whole = self::report("0-223", &nodes);
    assert_eq!(whole.machine.cpus, 128);
    says(&whole, Trust::Simplified, "cpus", "up to 128 cpus");
    assert!(whole.cpu_numbers.starts_with(&[0]) && whole.cpu_numbers.contains(&112));
}

/// Two sockets with a CXL memory expander at the first: HMAT gives the latencies of the nodes with cpus (110 ns) and of the expander
/// (250 ns, 30 GB/s: an x8 link of PCIe 5.0), and that the first socket is the nearest.
#[test]
fn memory_behind_cxl() {
    let nodes = [
        Node {
            cpus: "0-31",
            gigabytes: 128,
            distances: &[10, 32, 50],
            reads: Some((110, 300_000, &[0])),
        },
        Node {
            cpus: "32-63",
            gigabytes: 128,
            distances: &[32, 10, 60],
            reads: Some((110, 300_000, &[1])),
        },
        Node {
            cpus: "",
            gigabytes: 256,
            distances: &[50, 60, 10],
            reads: Some((250, 30_000, &[0])),
        },
    ];
    let report = report("0-63", &nodes);
    let memory = &report.machine.memory;
    assert_eq!((memory.nodes, memory.local_ns, memory.remote_ns), (2, 110.0, 352.0));
    assert_eq!(memory.bandwidth_gbps, 300.0);
    says(&report, Trust::Read, "memory.local_ns", "HMAT");
    let [tier] = memory.tiers.as_slice() else {
        panic!("one tier")
    };
    assert_eq!((tier.latency_ns, tier.far_latency_ns), (250.0, 300.0));
    assert_eq!((tier.near.as_slice(), tier.bandwidth_gbps), ([0].as_slice(), 30.0));
    assert_eq!(
        (tier.frames, report.node_numbers.as_slice()),
        (256 << 18, [0, 1, 2].as_slice())
    );
    says(&report, Trust::Read, "memory.tier", "nodes 2");
    assert_eq!(
        report
            .notes_of(Trust::Assumed)
            .filter(|note| note.about == "memory.tier")
            .count(),
        0
    );
}

/// Xeon Max in flat mode: each socket has a node of DRAM with its cpus and one of HBM without, which is farther by distance and as fast
/// in latency, with several times the bandwidth. The kernel was told nothing of the second socket's HBM.
#[test]
fn high_bandwidth_memory() {
    let nodes = [
        Node {
            cpus: "0-47",
            gigabytes: 256,
            distances: &[10, 21, 13, 23],
            reads: Some((120, 250_000, &[0])),
        },
        Node {
            cpus: "48-95",
            gigabytes: 256,
            distances: &[21, 10, 23, 13],
            reads: Some((130, 240_000, &[1])),
        },
        Node {
            cpus: "",
            gigabytes: 64,
            distances: &[13, 23, 10, 23],
            reads: Some((140, 800_000, &[0])),
        },
        Node {
            cpus: "",
            gigabytes: 64,
            distances: &[23, 13, 23, 10],
            // The kernel shows 0 for figures that it was not told.
            reads: Some((0, 0, &[1])),
        },
    ];
    let report = report("0-95", &nodes);
    let memory = &report.machine.memory;
    assert_eq!(
        (memory.nodes, memory.local_ns, memory.bandwidth_gbps),
        (2, 130.0, 240.0)
    );
    says(&report, Trust::Simplified, "memory.local_ns", "differ in latency");
    says(
        &report,
        Trust::Simplified,
        "memory.bandwidth_gbps",
        "differ in bandwidth",
    );
    let [first, second] = memory.tiers.as_slice() else {
        panic!("two tiers")
    };
    assert_eq!((first.latency_ns, first.bandwidth_gbps), (140.0, 800.0));
    assert_eq!((second.latency_ns, second.bandwidth_gbps), (169.0, 0.0));
    assert_eq!(
        (first.near.as_slice(), second.near.as_slice()),
        ([0].as_slice(), [1].as_slice())
    );
    says(&report, Trust::Read, "memory.tier", "nodes 2 ");
    says(&report, Trust::Assumed, "memory.tier", "nodes 3 ");
}

/// Firmware that gives bandwidths and no latencies, of one node only: latencies are assumed as without it.
#[test]
fn firmware_that_says_half() {
    let nodes = [
        Node {
            cpus: "0-3",
            gigabytes: 8,
            distances: &[10, 20],
            reads: Some((0, 50_000, &[0])),
        },
        Node {
            cpus: "4-7",
            gigabytes: 8,
            distances: &[20, 10],
            reads: None,
        },
    ];
    let report = report("0-7", &nodes);
    assert_eq!(
        (report.machine.memory.local_ns, report.machine.memory.bandwidth_gbps),
        (100.0, 0.0)
    );
    says(&report, Trust::Assumed, "memory.local_ns", "no latencies");
}
