//! Traces of Perfetto, by Perfetto's own schema. Its trace processor is a download from elsewhere, so `readers/trace.py` follows
//! the rules by which that finds tracks and values.

use std::path::Path;

use profiles::{Format, Value};
use results::{Document, Timeline};
use serde_json::{Value as Json, json};

use crate::invented;
use crate::readers::{bytes, read};

fn traced(document: &Document) -> Option<Json> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    std::fs::write(&file, bytes(document, Format::Perfetto, Value::Stall)).expect("it is written");
    read("trace.py", Path::new(&file))
}

/// The counters of a timeline: their groups, names, units and values, in the order in which they are to be shown.
fn counters(of: &Timeline) -> Vec<Json> {
    let points = |values: &[u64]| {
        let ended = values.iter().copied().chain([0]);
        (0..)
            .zip(ended)
            .map(|(at, value): (u64, u64)| [at * of.interval_ns, value])
            .collect::<Vec<_>>()
    };
    let groups = [
        ("waiting by data structure", &of.structures),
        ("waiting by thread", &of.threads),
        ("waiting by page color", &of.colors),
    ];
    let rows = groups
        .iter()
        .flat_map(|(group, rows)| rows.iter().map(move |row| (*group, row)));
    let mut counters: Vec<Json> = rows
        .map(|(group, row)| json!({"path": [group, row.name], "unit": "ns", "values": points(&row.stall_ns)}))
        .collect();
    let misses: Vec<u64> = (0..4)
        .map(|at| of.blocks.iter().map(|block| block.misses[at]).sum())
        .collect();
    counters.push(json!({"path": ["misses of the first cache"], "unit": "misses", "values": points(&misses)}));
    counters.push(json!({"path": ["pages moved or copied"], "unit": "pages", "values": points(&of.moved_pages)}));
    counters
}

#[test]
fn counters_are_those_of_the_timeline() {
    let Some(found) = traced(&invented::advice()) else {
        return;
    };
    assert_eq!(
        found["process"],
        json!({"pid": 1, "name": "/opt/my join", "cmdline": ["/opt/my join", "--rows", "it's 5"]})
    );
    let about = found["about"].as_str().expect("it says what it is");
    assert!(about.contains("not measured") && about.contains("invented"), "{about}");
    assert_eq!(found["counters"], json!(counters(&invented::timeline())));
    assert_eq!(
        found["slices"],
        json!([
            {"path": ["phases"], "name": "build", "begin": 0, "end": 3000},
            {"path": ["phases"], "name": "<img onerror=x>", "begin": 3000, "end": 4 * 2048},
        ])
    );
}

#[test]
fn a_run_that_waited_for_nothing_is_a_trace() {
    let Some(found) = traced(&invented::empty()) else {
        return;
    };
    assert_eq!(found["process"]["name"], "program");
    assert_eq!(found["counters"], json!([]));
}
