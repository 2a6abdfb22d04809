//! The threads that share each line: a case worked out by hand, and random programs beside the definition carried out
//! literally.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trace::Op;

use crate::oracle::both::Setup;
use crate::oracle::engine;
use crate::oracle::exactness::cases;
use crate::oracle::machines::machines;
use crate::oracle::programs::programs;
use crate::reference::{Item, Program};

/// Bytes, of these written, and misses, by the two threads.
type Edges = BTreeMap<(u32, u32), [u64; 3]>;

/// For each line: the threads that touched it, wrote it and have it, and the one that got it last.
#[derive(Default)]
struct Line {
    touched: BTreeSet<u32>,
    wrote: BTreeSet<u32>,
    has: BTreeSet<u32>,
    last: Option<u32>,
}

/// The definition, reference by reference in recorded order.
fn naive(program: &Program, line_bytes: u64) -> Edges {
    let mut lines: BTreeMap<(u32, u64), Line> = BTreeMap::new();
    let mut edges = Edges::new();
    for (thread, item) in &program.items {
        let Item::Ref { op, addr, size, .. } = item else {
            continue;
        };
        if matches!(op, Op::Fetch | Op::Prefetch) {
            continue;
        }
        let last = addr.saturating_add(u64::from(*size.max(&1)) - 1);
        for number in addr / line_bytes..=last / line_bytes {
            let space = program.spaces[*thread as usize];
            let line = lines.entry((space, number)).or_default();
            line.touched.insert(*thread);
            if !line.has.contains(thread) {
                if let Some(other) = line.last.filter(|other| other != thread) {
                    edges.entry((other.min(*thread), other.max(*thread))).or_default()[2] += 1;
                }
                line.last = Some(*thread);
            }
            if matches!(op, Op::Write | Op::Modify) {
                line.wrote.insert(*thread);
                line.has.clear();
                line.last = Some(*thread);
            }
            line.has.insert(*thread);
        }
    }
    for line in lines.values() {
        for a in &line.touched {
            for b in line.touched.iter().filter(|b| *b > a) {
                let edge = edges.entry((*a, *b)).or_default();
                edge[0] += line_bytes;
                edge[1] += if line.wrote.contains(a) || line.wrote.contains(b) {
                    line_bytes
                } else {
                    0
                };
            }
        }
    }
    edges
}

fn edges(graph: &results::SharingGraph) -> Edges {
    let edge = |edge: &results::SharingEdge| ((edge.a, edge.b), [edge.bytes, edge.written, edge.misses]);
    graph.edges.iter().map(edge).collect()
}

/// Threads 0 and 1 write one line in turns, 2 reads it once; 2 and 3 read another line; 3 writes a third alone.
#[test]
fn lines_go_to_whoever_has_not_what_was_written() {
    let mut program = Program::new(4);
    for _ in 0..3 {
        program.write(0, 0x1000);
        program.write(1, 0x1008);
    }
    program.read(2, 0x1010);
    program.read(1, 0x1010);
    program.read(2, 0x2000);
    program.read(3, 0x2000);
    program.read(2, 0x2000);
    program.write(3, 0x3000);
    let machine = machine::load("zen3-milan").expect("the preset is there");
    let setup = Setup {
        recorded: true,
        ..Setup::default()
    };
    let sharing = engine::sharing(&machine, &program, &setup).expect("it runs");
    assert_eq!(
        edges(&sharing.graph),
        Edges::from([
            ((0, 1), [64, 64, 5]),
            ((0, 2), [64, 64, 0]),
            ((1, 2), [64, 64, 1]),
            ((2, 3), [64, 0, 1]),
        ])
    );
    let shared: Vec<[u64; 2]> = sharing.graph.threads.iter().map(|of| [of.bytes, of.shared]).collect();
    assert_eq!(shared, [[64, 64], [64, 64], [128, 128], [128, 64]]);
    let all: u64 = sharing.sets.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(all, 3 * 64);
}

/// More threads than one word has bits, and more than are told apart.
#[test]
fn threads_beyond_those_that_are_told_apart_are_counted() {
    let mut program = Program::new(300);
    for thread in 0..300 {
        program.read(thread, 0x1000);
    }
    let machine = machine::load("zen3-milan").expect("the preset is there");
    let setup = Setup {
        recorded: true,
        ..Setup::default()
    };
    let graph = engine::sharing(&machine, &program, &setup).expect("it runs").graph;
    assert_eq!((graph.threads.len(), graph.left_out), (256, 44));
    assert_eq!(graph.edges.len(), 256 * 255 / 2);
    assert_eq!(graph.edges.iter().map(|edge| edge.misses).sum::<u64>(), 255);
    assert!(
        graph
            .edges
            .iter()
            .any(|edge| (edge.a, edge.b, edge.misses) == (254, 255, 1))
    );
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn the_graph_is_that_of_its_definition(machine in machines(vec![1, 2, 4]), program in programs(8, 500), classes: bool) {
        let mut program = program;
        program.items.retain(|(_, item)| matches!(item, Item::Ref { .. }));
        let setup = Setup { recorded: true, classes, ..Setup::default() };
        let Ok(sharing) = engine::sharing(&machine, &program, &setup) else { return Ok(()) };
        prop_assert_eq!(edges(&sharing.graph), naive(&program, sharing.graph.line_bytes));
    }
}
