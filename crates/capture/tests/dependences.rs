//! Where addresses come from: seen in the program's data flow, and written into the trace.
#![forbid(unsafe_code)]

use crate::workshop;

use std::collections::{BTreeMap, BTreeSet};

use trace::{Op, Trace};
use workshop::{Bench, compile, record, stream};

/// A load of a function: its site, and where in the function its instruction is.
struct Load {
    site: u32,
    line: u32,
    on: Vec<u32>,
    either: bool,
}

/// The loads of a function that do not read the stack, by their lines in ascending order.
fn loads(trace: &Trace, function: std::ops::Range<u32>) -> Vec<Load> {
    let line = |pc: u64| {
        let ours = |file: &String| file.ends_with("chains.c");
        let mut locations = trace.locations().iter().filter(|location| location.pc == pc);
        locations
            .find(|location| location.file.as_ref().is_some_and(ours))?
            .line
    };
    let (low, high) = trace.threads()[0].stack.expect("the recorder knows");
    let (refs, _) = stream(trace, 0);
    let elsewhere = refs.iter().filter(|r| !(low..high).contains(&r.addr));
    let elsewhere: BTreeSet<u32> = elsewhere.map(|r| r.site).collect();
    let dependences = trace.dependences().expect("the recorder knows");
    let sites = trace.sites().iter().enumerate();
    let mut loads: Vec<Load> = sites
        .filter(|(number, site)| site.op == Op::Read && elsewhere.contains(&(*number as u32)))
        .filter_map(|(number, site)| {
            let on = dependences.iter().find(|one| one.site == number as u32);
            Some(Load {
                site: number as u32,
                line: line(site.pc).filter(|line| function.contains(line))?,
                on: on.map(|one| one.on.clone()).unwrap_or_default(),
                either: on.is_some_and(|one| one.either),
            })
        })
        .collect();
    loads.sort_by_key(|load| load.line);
    loads
}

/// The lines of a function's body in `chains.c`.
fn body(name: &str) -> std::ops::Range<u32> {
    let source = include_str!("programs/chains.c");
    let lines: Vec<&str> = source.lines().collect();
    let begins = lines
        .iter()
        .position(|line| line.contains(&format!(" {name}(const")))
        .unwrap();
    let length = lines[begins..].iter().position(|line| *line == "}").unwrap();
    begins as u32 + 1..(begins + length) as u32 + 1
}

fn recorded(bench: &Bench) -> Trace {
    let (outcome, trace) = record(&bench.options(&[]));
    assert_eq!(outcome.exit, capture::Exit::Code(0));
    trace
}

#[test]
fn lists_and_trees_wait_for_their_own_loads_and_arrays_for_none() {
    let bench = compile("chains", &["-O2", "-fno-inline", "-fno-ipa-cp"]);
    let trace = recorded(&bench);

    // `value` and `next` of each node are found by the `next` of the one before.
    let list = loads(&trace, body("chase"));
    assert_eq!(list.len(), 2);
    let (next, value): (Vec<&Load>, Vec<&Load>) = list.iter().partition(|load| load.on == [load.site]);
    assert_eq!((next.len(), value.len()), (1, 1));
    assert_eq!(value[0].on, [next[0].site]);

    // Of several lists, the first node is found by its head, and the others as before.
    let several = loads(&trace, body("lists"));
    let (of_nodes, heads): (Vec<&Load>, Vec<&Load>) = several.iter().partition(|load| !load.on.is_empty());
    assert_eq!((of_nodes.len(), heads.len()), (2, 1));
    let next = of_nodes.iter().find(|load| load.on.contains(&load.site)).unwrap();
    let mut sources = [heads[0].site, next.site];
    sources.sort_unstable();
    for load in of_nodes {
        assert!(load.on == sources && load.either, "{sources:?} {:?}", load.on);
    }
    assert!(!list.iter().any(|load| load.either), "one load is no choice");

    // Of a tree, by the `left` or `right` before.
    let tree = loads(&trace, body("search"));
    let children: Vec<u32> = tree
        .iter()
        .filter(|load| load.on.contains(&load.site))
        .map(|load| load.site)
        .collect();
    assert!((1..=2).contains(&children.len()), "{children:?}");
    for load in &tree {
        assert!(!load.on.is_empty() && children.iter().all(|child| load.on.contains(child)));
    }

    // An array's addresses come from no load, those of an indirect one from the index.
    assert!(loads(&trace, body("sum")).iter().all(|load| load.on.is_empty()));
    let gather = loads(&trace, body("gather"));
    assert_eq!(gather.len(), 2);
    let (index, element): (Vec<&Load>, Vec<&Load>) = gather.iter().partition(|load| load.on.is_empty());
    assert_eq!((index.len(), element.len()), (1, 1));
    assert_eq!(element[0].on, [index[0].site]);
}

/// Locked instructions have one order; other updates in place have none.
#[test]
fn locked_instructions_wait_for_one_another() {
    let bench = compile("spins", &["-pthread"]);
    let (outcome, trace) = bench.record(&["takes"]);
    assert_eq!(outcome.exit, capture::Exit::Code(0));
    let dependences = trace.dependences().expect("the recorder knows");
    let waits = |site: u32| dependences.iter().any(|one| one.site == site && one.on.contains(&site));
    let mut updated: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for thread in workshop::threads(&trace) {
        for r in stream(&trace, thread).0 {
            if r.op == Op::Modify {
                updated.entry(r.site).or_default().insert(r.addr);
            }
        }
    }
    // The lock is one word that is tried again and again; what is computed meanwhile is many.
    let (spun, others): (Vec<_>, Vec<_>) = updated.iter().partition(|(site, _)| waits(**site));
    assert!(!spun.is_empty());
    assert!(spun.iter().all(|(_, words)| words.len() == 1), "{spun:?}");
    assert!(
        others.iter().any(|(_, words)| words.len() == 1 << 16),
        "{:?}",
        others.len()
    );
}

/// Where pointers are kept on the stack, they are followed there: by recursion, and without optimisation.
#[test]
fn what_goes_through_the_stack_is_followed() {
    let recursive = recorded(&compile("chains", &["-O2", "-fno-inline", "-fno-ipa-cp"]));
    let depth = loads(&recursive, body("depth"));
    let nodes = |load: &&Load| !load.on.is_empty();
    assert!(
        depth.iter().filter(nodes).count() >= 2,
        "left and right come from nodes"
    );

    let plain = recorded(&compile("chains", &["-O0"]));
    let chase = loads(&plain, body("chase"));
    // `p->next` comes from `p` on the stack, and that from the `p->next` before.
    let next: Vec<&Load> = chase.iter().filter(|load| load.on.contains(&load.site)).collect();
    assert_eq!(next.len(), 1);
    let sum = loads(&plain, body("sum"));
    assert!(sum.iter().all(|load| !load.on.contains(&load.site)));
}
