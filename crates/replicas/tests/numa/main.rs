//! Copies on machines with several nodes: the guests of `guest/run`, whose `DOMICILE_GUEST` says what was asked for.
//! The kernel is asked on which node a page is (`move_pages(2)`), never the library.

/// Many processes that end at any moment, on whichever nodes they are.
#[path = "../processes.rs"]
mod anywhere;
mod processes;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;

use replicas::{Mode, Reader, Replicated};
use sys::affinity::Wanderer;
use sys::memory::PAGE;
use sys::near::NearMemory;
use sys::nodes::{NodeReading, free_bytes};
use sys::{Root, move_pages, nodes};

/// Ten pages and a part of one.
const WORDS: usize = 10 * PAGE / 8 + 5;

/// One test at a time: they fill nodes.
static ALONE: Mutex<()> = Mutex::new(());

/// The nodes with cpus, where there are several.
#[track_caller]
fn machine() -> Option<(Vec<NodeReading>, MutexGuard<'static, ()>)> {
    let found = nodes::nodes(&Root::default()).unwrap_or_default();
    let with_cpus: Vec<NodeReading> = found.into_iter().filter(|node| !node.cpus.is_empty()).collect();
    if with_cpus.len() < 2 {
        harness::not_here("this machine has one node with cpus, and copies on several are tested");
        return None;
    }
    Some((with_cpus, ALONE.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn numbers(nodes: &[NodeReading]) -> Vec<u32> {
    nodes.iter().map(|node| node.number).collect()
}

/// The nodes of all pages that lie under a slice.
fn pages_of(words: &[u64]) -> BTreeSet<u32> {
    let start = words.as_ptr().addr();
    let pages: Vec<usize> = (start..start + size_of_val(words)).step_by(PAGE).collect();
    move_pages::nodes_of(None, &pages)
        .unwrap()
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

/// What a thread on each of the nodes reads, and on which nodes that lies.
fn seen(data: &Replicated<u64>, nodes: &[NodeReading]) -> Vec<(u64, BTreeSet<u32>)> {
    let mut wanderer = Wanderer::new().unwrap();
    let mut reader = data.reader();
    let mut look = |node: &NodeReading| {
        wanderer.go(node.cpus[0] as usize).unwrap();
        let region = reader.enter();
        assert!(region.iter().all(|&word| word == region[0]));
        (region[0], pages_of(&region))
    };
    let seen = nodes.iter().map(&mut look).collect();
    wanderer.rest();
    seen
}

/// Each node's own copy, with that number in it.
fn own(nodes: &[NodeReading], number: u64) -> Vec<(u64, BTreeSet<u32>)> {
    nodes
        .iter()
        .map(|node| (number, BTreeSet::from([node.number])))
        .collect()
}

#[track_caller]
fn each_node_reads_its_own_copy() {
    let Some((nodes, _alone)) = machine() else { return };
    let data = Replicated::new(&[3u64; WORDS]).unwrap();
    let state = data.state();
    let on: Vec<u32> = state.copies.iter().map(|copy| copy.node.unwrap()).collect();
    assert_eq!((state.mode, on), (Mode::CopyOnEachNode, numbers(&nodes)), "{state}");
    assert_eq!(state.memory(), (11 * PAGE * nodes.len()) as u64);
    assert_eq!(state.extra(), (11 * PAGE * (nodes.len() - 1)) as u64);
    assert_eq!(seen(&data, &nodes), own(&nodes, 3));
    data.publish(&[4; WORDS]).unwrap();
    assert_eq!(seen(&data, &nodes), own(&nodes, 4), "after a write");

    data.collapse().unwrap();
    let collapsed = seen(&data, &nodes);
    assert!(collapsed.iter().all(|one| *one == collapsed[0]), "{collapsed:?}");
    let state = data.state();
    let copy = state.copies[0].node.unwrap();
    assert_eq!((state.extra(), collapsed[0].clone()), (0, (4, BTreeSet::from([copy]))));
    data.write(0, &[5; WORDS]).unwrap();
    data.replicate().unwrap();
    assert_eq!(seen(&data, &nodes), own(&nodes, 5), "replicated again");
}

#[test]
fn each_node_reads_its_own() {
    each_node_reads_its_own_copy();
}

#[test]
fn a_reader_that_moves_finds_the_copy_of_its_new_node_with_the_next_region() {
    let Some((nodes, _alone)) = machine() else { return };
    let data = Replicated::new(&[1u64; WORDS]).unwrap();
    let (mut wanderer, mut reader) = (Wanderer::new().unwrap(), data.reader());
    wanderer.go(nodes[0].cpus[0] as usize).unwrap();
    let region = reader.enter();
    wanderer.go(nodes[1].cpus[0] as usize).unwrap();
    assert_eq!(
        pages_of(&region),
        BTreeSet::from([nodes[0].number]),
        "a region keeps its copy"
    );
    drop(region);
    assert_eq!(pages_of(&reader.enter()), BTreeSet::from([nodes[1].number]));
    wanderer.rest();
}

#[test]
fn a_node_that_is_full_goes_without_and_its_threads_read_the_nearest() {
    let Some((nodes, _alone)) = machine() else { return };
    let full = nodes.last().unwrap();
    let free = free_bytes(&Root::default(), full.number).unwrap() as usize;
    // More than is free, which goes elsewhere.
    let filler = NearMemory::map(free + (8 << 20), Some(full.number)).unwrap();
    const BIG: usize = (16 << 20) / 8;
    let data = Replicated::new(&vec![6u64; BIG]).unwrap();
    let state = data.state();
    assert_eq!(state.without.len(), 1, "{state}");
    let without = &state.without[0];
    assert_eq!(without.node, full.number);
    assert!(without.why.contains("no memory"), "{state}");
    assert_eq!(state.copies.len(), nodes.len() - 1);
    let nearest = without.reads.unwrap();
    let distances = |to: u32| full.distances.as_ref().unwrap()[to as usize];
    assert!(
        numbers(&nodes[..nodes.len() - 1])
            .into_iter()
            .all(|node| distances(node) >= distances(nearest))
    );
    let found = seen(&data, &nodes);
    assert_eq!(found.last(), Some(&(6, BTreeSet::from([nearest]))));
    assert_eq!(found[..nodes.len() - 1], own(&nodes, 6)[..nodes.len() - 1]);
    drop(filler);
    data.replicate().unwrap();
    assert_eq!(seen(&data, &nodes), own(&nodes, 6), "once there is memory");
}

/// A reader on each node, a writer that goes from node to node, and copies that come and go.
#[test]
fn readers_on_all_nodes_see_each_write_whole_and_none_too_late() {
    const WRITES: u64 = 30;
    let Some((nodes, _alone)) = machine() else { return };
    let data = Replicated::new(&[0u64; WORDS]).unwrap();
    let (returned, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let read_on = |cpu: u32| {
        let mut wanderer = Wanderer::new().unwrap();
        wanderer.go(cpu as usize).unwrap();
        let mut reader: Reader<u64> = data.reader();
        let mut last = 0;
        while !done.load(Relaxed) {
            let known = returned.load(Relaxed);
            let region = reader.enter();
            assert!(region.iter().all(|&word| word == region[0]), "parts of two writes");
            assert!(region[0] >= known.max(last), "{} after {known} and {last}", region[0]);
            last = region[0];
            drop(region);
            // The writer needs their cpus, too.
            std::thread::yield_now();
        }
    };
    scope(|scope| {
        let readers: Vec<_> = nodes.iter().map(|node| scope.spawn(|| read_on(node.cpus[0]))).collect();
        let mut wanderer = Wanderer::new().unwrap();
        for number in 1..=WRITES {
            wanderer
                .go(nodes[number as usize % nodes.len()].cpus[0] as usize)
                .unwrap();
            data.publish(&[number; WORDS]).unwrap();
            returned.store(number, Relaxed);
            match number % 10 {
                3 => data.collapse().unwrap(),
                7 => data.replicate().unwrap(),
                _ => {}
            }
        }
        wanderer.rest();
        done.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
    assert_eq!(seen(&data, &nodes), own(&nodes, WRITES));
}

mod eight_nodes {
    #[test]
    fn each_node_reads_its_own() {
        super::each_node_reads_its_own_copy();
    }
}

/// A node without cpus has nobody who reads, and gets no copy.
mod slow_node {
    #[test]
    fn each_node_reads_its_own() {
        super::each_node_reads_its_own_copy();
    }
}
