//! Nodes as Linux shows them, and pages on them, on machines of which is known what they should be: the guests of
//! `guest/run`, whose `DOMICILE_GUEST` says what was asked for. What runs in which guest is in `guest/README.md`.

use serde_json::Value;
use sys::memory::{Area, PAGE, Size};
use sys::move_pages::{move_to, nodes_of};
use sys::nodes::NodeReading;
use sys::{Root, nodes};

/// What was asked for.
struct Made {
    /// The cpus of each node.
    cpus: Vec<Vec<u32>>,
    distances: Vec<Vec<u32>>,
    memory_per_node: u64,
}

/// None where nobody asked for a machine; the test says so.
#[track_caller]
fn made() -> Option<Made> {
    let Ok(text) = std::env::var("DOMICILE_GUEST") else {
        harness::not_here("this is no guest of guest/run, of whose nodes something is known");
        return None;
    };
    let guest: Value = serde_json::from_str(&text).unwrap();
    let rows = |name: &str| -> Vec<Vec<u32>> { serde_json::from_value(guest[name].clone()).unwrap() };
    Some(Made {
        cpus: rows("cpus"),
        distances: rows("distances"),
        memory_per_node: guest["memory_per_node"].as_u64().unwrap(),
    })
}

fn found() -> Vec<NodeReading> {
    nodes::nodes(&Root::default()).unwrap()
}

/// Asserts that the nodes that are found are those that were asked for: so many with cpus, so many without.
#[track_caller]
fn nodes_are(with_cpus: usize, without: usize) {
    let Some(made) = made() else { return };
    let found = found();
    let numbers: Vec<u32> = found.iter().map(|node| node.number).collect();
    assert_eq!(numbers, (0..(with_cpus + without) as u32).collect::<Vec<u32>>());
    for (at, node) in found.iter().enumerate() {
        assert_eq!(node.cpus, made.cpus[at], "{node:?}");
        assert_eq!(node.cpus.is_empty(), at >= with_cpus, "{node:?}");
        assert_eq!(node.distances.as_deref(), Some(&*made.distances[at]), "{node:?}");
        // The kernel keeps some of it for itself.
        let bytes = node.memory_bytes.unwrap();
        assert!(
            (made.memory_per_node / 2..=made.memory_per_node).contains(&bytes),
            "{node:?}"
        );
    }
}

/// The kernel's own balancing, which moves pages as well, is off until this is dropped.
struct Still(String);

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";

impl Still {
    fn new() -> Still {
        let before = std::fs::read_to_string(BALANCING).unwrap();
        std::fs::write(BALANCING, "0").unwrap();
        Still(before)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let _ = std::fs::write(BALANCING, &self.0);
    }
}

/// Asserts that pages go to every node, and back, and keep what they hold.
#[track_caller]
fn pages_go_to_every_node() {
    if made().is_none() {
        return;
    }
    let _still = Still::new();
    const PAGES: usize = 32;
    let area = Area::map(PAGES * PAGE, Size::Small).unwrap();
    let content = |page: usize, word: usize| (page * 512 + word) as u64;
    let words = || (0..PAGES).flat_map(|page| (0..512).map(move |word| (page, word)));
    words().for_each(|(page, word)| area.set_word(page, word, content(page, word)));
    let addresses: Vec<usize> = (0..PAGES).map(|page| area.part(page, 1).start).collect();
    let numbers: Vec<u32> = found().iter().map(|node| node.number).collect();
    for &node in numbers.iter().chain(numbers.iter().rev()) {
        let there = vec![Ok(node); PAGES];
        assert_eq!(move_to(None, &addresses, &[node; PAGES]).unwrap(), there);
        assert_eq!(nodes_of(None, &addresses).unwrap(), there);
        assert!(
            words().all(|(page, word)| area.word(page, word) == content(page, word)),
            "lost on the way to node {node}"
        );
    }
}

#[test]
fn nodes_are_those_that_were_asked_for() {
    nodes_are(4, 0);
}

#[test]
fn pages_go_to_every_node_and_keep_what_they_hold() {
    pages_go_to_every_node();
}

mod eight_nodes {
    #[test]
    fn nodes_are_those_that_were_asked_for() {
        super::nodes_are(8, 0);
    }

    #[test]
    fn pages_go_to_every_node_and_keep_what_they_hold() {
        super::pages_go_to_every_node();
    }
}

mod slow_node {
    #[test]
    fn nodes_are_those_that_were_asked_for() {
        super::nodes_are(2, 1);
    }

    #[test]
    fn pages_go_to_every_node_and_keep_what_they_hold() {
        super::pages_go_to_every_node();
    }
}
