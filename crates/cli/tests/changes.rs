//! `simulate --change`: the change of a program in simulation is that program, really written so.

use crate::house;

use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/change.c");

/// The trace of a program of this shape, as it is or as it is written with the change.
fn recorded(room: &Room, shape: u32, written: bool) -> String {
    // Names of one length: the loader reads them.
    let name = format!("change-{shape}-{}", if written { "made" } else { "asis" });
    let program = room.path(&name);
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-fno-tree-vectorize", PROGRAM, "-o", &program])
        .args([format!("-DSHAPE={shape}"), format!("-DWRITTEN={}", u32::from(written))])
        .status();
    assert!(compiled.expect("gcc is there").success());
    let trace = room.path(&format!("{name}.trace"));
    output(&["record", "-o", &trace, "--", &program], 0);
    trace
}

/// The effect on `data`: misses in the first cache for data and in the second, by class.
fn data(trace: &str, change: &[&str]) -> (Value, Value) {
    let mut arguments = vec![
        "simulate",
        trace,
        "--machine",
        "simos-r4400",
        "--by",
        "structure",
        "--json",
    ];
    arguments.extend(change);
    let outcome = json(&arguments).remove(0);
    let structures = outcome["structures"].as_array().expect("structures").clone();
    let named = |structure: &&Value| structure["name"] == "data" && structure["bytes"].as_u64() > Some(64);
    let found = structures.iter().find(named).expect("data misses").clone();
    (found["caches"].clone(), outcome)
}

/// Misses of the data, class by class, are those of the program that was written so; those of all else differ by less than one
/// in a hundred, because the data lies in other pages.
fn same(shape: u32, change: &str) {
    let room = Room::new();
    let before = recorded(&room, shape, false);
    let written = recorded(&room, shape, true);
    let (changed, outcome) = data(&before, &["--change", change]);
    let (expected, whole) = data(&written, &[]);
    assert_eq!(changed, expected, "{change}");
    assert_ne!(data(&before, &[]).0, expected, "{change} makes a difference");
    assert_eq!(outcome["references"], whole["references"]);
    for cache in 1..3 {
        let misses = |outcome: &Value| outcome["caches"][cache]["misses"].as_f64().expect("misses");
        let (now, then) = (misses(&outcome), misses(&whole));
        assert!(
            (now - then).abs() < then / 100.0,
            "{change}: {now} misses, {then} where it is written so"
        );
    }
    assert_eq!(outcome["changes"][0]["data"], "data");
}

#[test]
fn padding_is_what_a_padded_program_gets() {
    same(1, "pad,row_bytes=1024,pad_bytes=64,data=data");
}

#[test]
fn another_order_of_an_array_is_what_a_transposed_program_gets() {
    same(2, "transpose,element_bytes=8,columns=128,data=data");
}

#[test]
fn interchanged_loops_are_what_a_program_with_the_loops_so_gets() {
    let text = std::fs::read_to_string(PROGRAM).expect("it is there");
    let line = text
        .lines()
        .position(|line| line.contains("/* WALK */"))
        .expect("it walks");
    same(4, &format!("interchange,line=change.c:{},data=data", line + 1));
}

#[test]
fn split_fields_are_what_a_program_with_two_arrays_gets() {
    same(3, "fields,element_bytes=64,groups=0:8,data=data");
}

#[test]
fn changes_are_named_and_wrong_ones_are_refused() {
    let room = Room::new();
    let trace = room.trace("t", "0 r 1000 4\n0 r 2000 4\n");
    let machine = ["simulate", trace.as_str(), "--machine", "simos-r4400"];
    let (text, _) = output(&[&machine[..], &["--change", "huge-pages"]].concat(), 0);
    assert!(text.contains("changed: all data on huge pages"), "{text}");
    for (change, reason) in [
        ("pad,row_bytes=8,data=grid", "missing field `pad_bytes`"),
        ("pad,row_bytes=0,pad_bytes=8,data=grid", "row_bytes is 0"),
        ("shift,bytes=8,data=grid", "names no data `grid`"),
        (r#"{"kind":"shift","bytes":8,"data":"grid"}"#, "names no data `grid`"),
        ("interchange,line=a.c:1,data=grid", "names no data `grid`"),
        ("interchange,data=grid", "missing field `line`"),
    ] {
        let (_, said) = output(&[&machine[..], &["--change", change]].concat(), 2);
        assert!(said.contains(reason), "{change}: {said}");
    }
    let map = room.path("map.json");
    let (_, said) = output(
        &[&machine[..], &["--change", "huge-pages", "--page-map", &map]].concat(),
        2,
    );
    assert!(said.contains("leave `--change` out"), "{said}");
}
