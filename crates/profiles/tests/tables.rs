//! Tables, as DuckDB and Polars read them.

use std::collections::BTreeMap;
use std::path::Path;

use profiles::{Format, Value, export};
use results::{Document, Profile, ProfileFrame, Timeline, TimelineRow};
use serde_json::{Value as Json, json};

use crate::invented;
use crate::readers::read;
use crate::sums::{named, one_line};

/// The rows of all tables by name. The script fails where its two readers differ.
fn tables(document: &Document) -> Option<BTreeMap<String, Json>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in export(document, Format::Parquet, Value::Stall)
        .expect("it has tables")
        .files
    {
        let name = name.expect("files of a folder have names");
        std::fs::write(folder.path().join(name), bytes).expect("it is written");
    }
    let read = read("tables.py", Path::new(folder.path()))?;
    Some(serde_json::from_value(read).expect("it is an object"))
}

fn stacks(policy: &str, profile: &Profile) -> Vec<Json> {
    let nowhere = ProfileFrame::default();
    let rows = profile.stacks.iter().map(|stack| {
        let mut path = named(profile, stack, |frame| one_line(&frame.function).replace(';', ":"));
        path.reverse();
        if path[0].starts_with('#') {
            path[0].insert(0, '_');
        }
        let innermost = stack
            .frames
            .first()
            .and_then(|at| profile.frames.get(*at as usize))
            .unwrap_or(&nowhere);
        json!({
            "policy": policy, "stack": path.join(";"), "function": one_line(&innermost.function),
            "file": innermost.file, "line": innermost.line, "structure": one_line(&stack.structure),
            "stall_ns": stack.stall_ns, "misses": stack.misses, "avoided_ns": stack.avoided_ns,
        })
    });
    rows.collect()
}

fn timeline(policy: &str, of: &Timeline) -> Vec<Json> {
    let rows = |what: &'static str, rows: &[TimelineRow]| -> Vec<Json> {
        let points = |row: &TimelineRow| -> Vec<Json> {
            let name = &row.name;
            let values = (0..).zip(&row.stall_ns);
            let point = |(at, stall): (u64, &u64)| json!({"policy": policy, "start_ns": at * of.interval_ns, "what": what, "name": name, "stall_ns": stall});
            values.map(point).collect()
        };
        rows.iter().flat_map(points).collect()
    };
    [
        rows("structure", &of.structures),
        rows("thread", &of.threads),
        rows("color", &of.colors),
    ]
    .concat()
}

#[test]
fn other_readers_find_all_rows() {
    let Some(mut tables) = tables(&invented::advice()) else {
        return;
    };
    let mut expected = stacks("first-touch", &invented::profile());
    expected.push(json!({
        "policy": "page-coloring", "stack": "main", "function": "main", "file": "/src/join.c", "line": 12,
        "structure": "nodes", "stall_ns": 8, "misses": 2, "avoided_ns": null,
    }));
    assert_eq!(tables.remove("stacks"), Some(json!(expected)));
    assert_eq!(
        tables.remove("timeline"),
        Some(json!(timeline("first-touch", &invented::timeline())))
    );
    let lines = json!([
        {"policy": "first-touch", "function": "walk", "file": "/src/tree.c", "line": 44, "stall_ns": 70_000_000_001_u64,
         "misses": 1001, "cold": 500, "capacity": 501, "conflict": 0, "true_sharing": 0, "false_sharing": 0},
        {"policy": "first-touch", "function": "<img onerror=x>", "file": null, "line": null, "stall_ns": 3,
         "misses": 2, "cold": null, "capacity": null, "conflict": null, "true_sharing": null, "false_sharing": null},
    ]);
    assert_eq!(tables.remove("lines"), Some(lines));
    let structures = json!([
        {"policy": "first-touch", "name": "größe 'x'; \"y\"", "kind": "heap", "file": "/src/join.c", "line": 120,
         "bytes": 1_u64 << 33, "blocks": 12, "stall_ns": 12_345_678_901_u64,
         "misses": 10, "cold": 5, "capacity": 5, "conflict": 0, "true_sharing": 0, "false_sharing": 0},
    ]);
    // The second policy was not asked for them.
    assert_eq!(tables.remove("structures"), Some(structures));
    let pages = json!([
        {"policy": "first-touch", "process": u32::MAX, "page": 0xffff_8000_0000_1000_u64, "structure": "nodes", "stall_ns": 9,
         "misses": 3, "cold": null, "capacity": null, "conflict": null, "true_sharing": null, "false_sharing": null},
    ]);
    assert_eq!(tables.remove("pages"), Some(pages));
    assert!(tables.is_empty(), "{tables:?}");
}

#[test]
fn runs_are_told_apart_by_policy_and_settings() {
    let Some(tables) = tables(&invented::outcomes(invented::profile(), invented::timeline())) else {
        return;
    };
    assert_eq!(
        tables["stacks"],
        json!(stacks("first-touch (trigger=64)", &invented::profile()))
    );
}

#[test]
fn a_run_that_waited_for_nothing_has_tables_without_rows() {
    let Some(tables) = tables(&invented::empty()) else {
        return;
    };
    let names: Vec<_> = tables.keys().map(String::as_str).collect();
    assert_eq!(names, ["lines", "pages", "stacks", "structures", "timeline"]);
    assert!(tables.values().all(|rows| *rows == json!([])), "{tables:?}");
}

#[test]
fn parts_that_a_result_lacks_have_no_table() {
    let Document::Advice(mut advice) = invented::advice() else {
        panic!("it is an advice");
    };
    advice.profile = None;
    advice.timeline = None;
    advice.source_lines.clear();
    advice.policies.clear();
    let files = export(&Document::Advice(advice), Format::Parquet, Value::Stall)
        .expect("it has a table")
        .files;
    let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [Some("structures.parquet")]);
}
