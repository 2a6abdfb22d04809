//! The description of this machine, on machines whose expected description is known: the guests of `guest/run`, whose
//! `DOMICILE_GUEST` tells what was asked for. `guest/README.md` lists which tests run in which guest.
#![allow(clippy::unwrap_used)]

use machine::{Trust, host};

/// The machine that was asked for.
struct Made {
    /// The cpus of each node.
    cpus: Vec<Vec<u32>>,
    distances: Vec<Vec<u32>>,
}

/// None if no machine was asked for; the test says so.
#[track_caller]
fn made() -> Option<Made> {
    let Ok(text) = std::env::var("DOMICILE_GUEST") else {
        harness::not_here("this is no guest of guest/run, of whose nodes something is known");
        return None;
    };
    let guest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = |name: &str| serde_json::from_value(guest[name].clone()).unwrap();
    Some(Made {
        cpus: rows("cpus"),
        distances: rows("distances"),
    })
}

/// Asserts that the description has the nodes that were asked for, `with_cpus` of them with cpus.
#[track_caller]
fn nodes_are(with_cpus: usize) {
    let Some(made) = made() else { return };
    let report = host(&sys::Root::default()).unwrap();
    let memory = &report.machine.memory;
    assert_eq!(memory.nodes as usize, with_cpus);
    let all = made.cpus.len();
    assert_eq!(memory.all_nodes() as usize, all);
    assert_eq!(report.node_numbers, (0..all as u32).collect::<Vec<u32>>());
    // Those without cpus are as far as their distances say.
    for (tier, at) in memory.tiers.iter().zip(with_cpus..) {
        let from: Vec<f64> = (0..with_cpus)
            .map(|node| 10.0 * f64::from(made.distances[node][at]))
            .collect();
        let latencies: Vec<f64> = (0..with_cpus as u32).map(|node| tier.latency_from(node)).collect();
        assert_eq!(latencies, from);
        assert!(tier.frames > 0);
    }
    assert_eq!(report.cpu_numbers, made.cpus.concat());
    let between: Vec<Vec<u32>> = made.distances[..with_cpus]
        .iter()
        .map(|row| row[..with_cpus].to_vec())
        .collect();
    assert_eq!(memory.distances, between);
    // 100 ns, and farther by the smallest distance between two nodes.
    let nearest = between[0][1..].iter().min().unwrap();
    assert_eq!(memory.remote_ns, 10.0 * f64::from(*nearest));
    let said = report.notes_of(Trust::Simplified);
    assert_eq!(said.filter(|note| note.about == "memory.nodes").count(), 0);
    // The caches that are read belong to one node each.
    let cpus_per_node = report.machine.cpus / memory.nodes;
    assert!(
        report
            .machine
            .caches
            .iter()
            .all(|cache| cache.cpus_per_instance <= cpus_per_node),
        "{:?}",
        report.machine.caches
    );
}

#[test]
fn the_description_has_the_nodes_that_were_asked_for() {
    nodes_are(4);
}

mod eight_nodes {
    #[test]
    fn the_description_has_the_nodes_that_were_asked_for() {
        super::nodes_are(8);
    }
}

mod slow_node {
    #[test]
    fn the_description_has_the_nodes_that_were_asked_for() {
        super::nodes_are(2);
    }
}
