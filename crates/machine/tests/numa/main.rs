//! The description of this machine, on machines of which is known what they should be: the guests of `guest/run`, whose
//! `DOMICILE_GUEST` says what was asked for. What runs in which guest is in `guest/README.md`.
#![allow(clippy::unwrap_used)]

use machine::{Trust, host};

/// What was asked for.
struct Made {
    /// The cpus of each node.
    cpus: Vec<Vec<u32>>,
    distances: Vec<Vec<u32>>,
}

/// None where nobody asked for a machine; the test says so.
#[track_caller]
fn made() -> Option<Made> {
    let Ok(text) = std::env::var("DOMICILE_GUEST") else {
        skips::not_here("this is no guest of guest/run, of whose nodes something is known");
        return None;
    };
    let guest: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = |name: &str| serde_json::from_value(guest[name].clone()).unwrap();
    Some(Made {
        cpus: rows("cpus"),
        distances: rows("distances"),
    })
}

/// Asserts that the description has the nodes with cpus that were asked for, and says which it leaves out.
#[track_caller]
fn nodes_are(with_cpus: usize, left_out: Option<&str>) {
    let Some(made) = made() else { return };
    let report = host(&sys::Root::default()).unwrap();
    let memory = &report.machine.memory;
    assert_eq!(memory.nodes as usize, with_cpus);
    assert_eq!(report.node_numbers, (0..with_cpus as u32).collect::<Vec<u32>>());
    assert_eq!(report.cpu_numbers, made.cpus.concat());
    let between: Vec<Vec<u32>> = made.distances[..with_cpus]
        .iter()
        .map(|row| row[..with_cpus].to_vec())
        .collect();
    assert_eq!(memory.distances, between);
    // 100 ns, and farther by the smallest distance between two nodes.
    let nearest = between[0][1..].iter().min().unwrap();
    assert_eq!(memory.remote_ns, 10.0 * f64::from(*nearest));
    let said: Vec<&str> = report
        .notes_of(Trust::Simplified)
        .filter(|note| note.about == "memory.nodes")
        .map(|note| note.text.as_str())
        .collect();
    assert_eq!(said, Vec::from_iter(left_out));
    // What is read of caches belongs to one node each.
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
    nodes_are(4, None);
}

mod eight_nodes {
    #[test]
    fn the_description_has_the_nodes_that_were_asked_for() {
        super::nodes_are(8, None);
    }
}

mod slow_node {
    #[test]
    fn the_description_has_the_nodes_that_were_asked_for() {
        let left_out = "nodes 2 have no online cpu and are left out, with their memory";
        super::nodes_are(2, Some(left_out));
    }
}
