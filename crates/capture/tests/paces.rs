//! How long instructions take where nothing misses, found by playing samples of the run.
#![forbid(unsafe_code)]

use crate::workshop;

use std::collections::BTreeMap;

use trace::{Op, Trace};
use workshop::{compile, stream, symbol};

/// Clocks of an instruction around the reads of a variable, as they come most often.
fn pace(trace: &Trace, name: &str) -> f64 {
    let (start, bytes) = symbol(trace, name);
    let (refs, _) = stream(trace, 0);
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for read in refs
        .iter()
        .filter(|r| r.op == Op::Read && (start..start + bytes).contains(&r.addr))
    {
        *counts.entry(read.site).or_default() += 1;
    }
    let site = counts.into_iter().max_by_key(|(_, count)| *count).map(|(site, _)| site);
    let paces = trace.paces();
    let known = paces.iter().find(|pace| Some(pace.site) == site);
    known.map_or(0.0, |pace| f64::from(pace.clocks) / 1024.0)
}

#[test]
fn a_loop_takes_as_long_as_its_instructions_wait_for_each_other() {
    let bench = compile(
        "paces",
        &["-O1", "-fno-tree-vectorize", "-fno-unroll-loops", "-falign-loops=64"],
    );
    let (_, trace) = bench.record(&[]);
    // None of the loops crosses a line of code. Four instructions each (load and add in one, step, compare, jump); five for the copy; four for the list.
    let sum = pace(&trace, "numbers");
    assert!(
        (0.3..1.1).contains(&sum),
        "2 to 4 clocks of an addition over about 4 instructions: {sum}"
    );
    let copy = pace(&trace, "from");
    assert!(copy < 0.35, "a clock of the counter over about 5 instructions: {copy}");
    let prefix = pace(&trace, "cells");
    // Zen 3 hands a value from a store to its load in 2 clocks here: 0.33.
    assert!(
        (0.3..4.1).contains(&prefix) && prefix > copy,
        "2 to 16 clocks from a store to its load and one of an addition over about 9 instructions: {prefix}; a copy: {copy}"
    );
    let chase = pace(&trace, "nodes");
    assert!(
        (0.9..2.1).contains(&chase),
        "4 clocks of a load over about 3 instructions: {chase}"
    );
    // The loop before each read makes no reference.
    let hash = pace(&trace, "keys");
    assert!(
        (0.7..1.4).contains(&hash),
        "4 clocks of a multiplication and an addition over about 4 instructions: {hash}"
    );
}
