//! The page in a browser: it loads in silence, what is drawn are the numbers of the result, and nothing of a result becomes
//! markup. `browser/check.py` looks, in headless Chromium, at two widths and in both color schemes.

use std::path::Path;
use std::process::Command;

use crate::comparison::comparison;
use crate::invented::advice;
use results::{
    Advice, Profile, ProfileFrame, ProfileStack, SourceLine, Timeline, TimelineBlock, TimelinePhase, TimelineRow,
};
use serde_json::json;

/// A name that is a picture which runs a script, if it becomes markup.
const EVIL: &str = "<img src=x onerror=alert(1)>";

/// Numbers that are all different, a good part of them none.
fn numbers(seed: u64, count: u64) -> Vec<u64> {
    (0..count)
        .map(|at| {
            if (seed + at).is_multiple_of(3) {
                0
            } else {
                (seed * 7919 + at * at * 31) % 1_000_003
            }
        })
        .collect()
}

fn timeline(threads: u64) -> Timeline {
    let row = |(at, name): (u64, &str)| TimelineRow {
        name: name.to_string(),
        stall_ns: numbers(at + 1, 90),
    };
    let names = [
        "heap: build_table (join.c:120)",
        "counters",
        EVIL,
        "</script><script>alert(2)</script>",
    ];
    let block = |at: u64| TimelineBlock {
        process: 0,
        address: 0x7f00_0000_0000 + (at << 16),
        bytes: 1 << 16,
        structure: names[at as usize % names.len()].to_string(),
        stall_ns: numbers(at + 11, 90),
        misses: numbers(at + 5, 90),
        threads_stall_ns: numbers(at, threads),
    };
    let thread = |at: u64| TimelineRow {
        name: format!("worker {at}"),
        stall_ns: numbers(at + 3, 90),
    };
    Timeline {
        interval_ns: 65_536,
        structures: (0..).zip(names).map(row).collect(),
        threads: (0..threads).map(thread).collect(),
        blocks: (0..150).map(block).collect(),
        colors: (0..threads - 1).map(thread).collect(),
        moved_pages: if threads > 1 { numbers(2, 90) } else { Vec::new() },
        phases: vec![
            TimelinePhase {
                name: "build".to_string(),
                begin_ns: 0,
            },
            TimelinePhase {
                name: EVIL.to_string(),
                begin_ns: 40 * 65_536,
            },
        ],
    }
}

fn profile() -> Profile {
    let functions = ["probe", "join_tables", "main", EVIL, "build_table"];
    let frame = |(at, function): (u32, &str)| ProfileFrame {
        function: function.to_string(),
        file: Some("join.c".to_string()),
        line: Some(100 + at),
    };
    let stack = |frames: &[u32], structure: &str, stall_ns: u64, avoided: i64| ProfileStack {
        frames: frames.to_vec(),
        inlined: 0,
        structure: structure.to_string(),
        stall_ns,
        misses: stall_ns / 90,
        avoided_ns: Some(avoided),
    };
    Profile {
        samples: 321,
        frames: (0..).zip(functions).map(frame).collect(),
        stacks: vec![
            stack(&[0, 1, 2], "heap: build_table (join.c:120)", 700_000, 640_000),
            stack(&[3, 1, 2], EVIL, 200_000, -5_000),
            stack(&[4, 2], "heap: build_table (join.c:120)", 90_000, 1_000),
            stack(&[2], "stack", 10_000, 0),
        ],
        change: Some("exchange the loops over `i` and `j`".to_string()),
    }
}

fn shown(threads: u64) -> Advice {
    let mut advice = advice();
    advice.program = format!("/opt/{EVIL}/bin/join");
    advice.timeline = Some(timeline(threads));
    advice.profile = Some(profile());
    let line = |line: u32, stall_ns: u64| SourceLine {
        function: EVIL.to_string(),
        file: Some("/src/join.c".to_string()),
        line: Some(line),
        stall_ns,
        ..SourceLine::default()
    };
    advice.source_lines = vec![line(130, 1_500_000), line(20, 10_000)];
    advice.todo = serde_json::from_value(json!([
        {"source": "join.c:130", "code": "sum += table[key[i]].count;", "data": format!("heap: {EVIL} (join.c:120)"), "kind": "walks-across",
         "because": "each step of 4 KiB needs a line of 64 bytes and uses 8 of them", "action": "exchange the loops over `i` and `j`",
         "share": 0.61, "gain": 0.5, "range": [0.31, 0.58], "instead": [{"action": "tile them by 64", "gain": 0.41}]},
        {"kind": "page-colors", "because": "pages collide", "action": "domicile run --policy page-coloring", "share": 0.2},
    ]))
    .unwrap();
    advice.sharing = serde_json::from_value(json!({
        "cache": "L3", "graph": {"line_bytes": 64,
            "threads": [{"thread": 0, "number": 70, "name": EVIL, "bytes": 9000}, {"thread": 1, "number": 71, "name": "b", "bytes": 100}],
            "edges": [{"a": 0, "b": 1, "bytes": 640, "misses": 12, "structures": [{"name": EVIL, "bytes": 64, "misses": 12}]}]},
    }))
    .unwrap();
    let side =
        |thread: &str, field: &str| json!({"thread": thread, "field": field, "write": true, "source": "join.c:77"});
    advice.false_sharing = serde_json::from_value(json!([
        {"structure": "counters", "line": 4096, "misses": 4321, "sides": [side("1 (worker)", EVIL), side("2 (worker)", "counters[1].hits, in a long name")]},
    ]))
    .unwrap();
    advice.homes = serde_json::from_value(json!({"against": "random", "traffic": [[50, 7], [3, 40]]})).unwrap();
    let mut other = advice.base().unwrap().clone();
    (other.policy, other.time_ns.wall) = ("page-coloring".to_string(), other.time_ns.wall / 2);
    other.regions = serde_json::from_value(json!({"cache": "L2", "caches": 2, "moments": [
        {"at_ns": 1000, "regions": [1, 1], "load_bytes": [65_536, 4096]}, {"at_ns": 2000, "regions": [2, 0], "load_bytes": [69_632, 0]},
    ]}))
    .unwrap();
    advice.policies.push(other);
    advice
}

fn looked_at(advice: &Advice) {
    let page = report::advice_page(advice, &|_| Ok(format!("for (;;) {EVIL};\n").repeat(200)));
    assert!(page.len() < 5 << 20, "{} bytes", page.len());
    for (heat, number) in [(9, 130), (1, 20)] {
        let row = page
            .split(&format!("heat-{heat}\""))
            .nth(1)
            .and_then(|rest| rest.split("</tr>").next());
        let is_of = |row: &str| row.contains(&format!(">{number}</td>")) && row.contains("for (;;)");
        assert!(row.is_some_and(is_of), "line {number}: {row:?}");
    }
    looked_at_page(&page, &serde_json::to_string(advice).unwrap());
}

/// The page of a result, in a browser.
fn looked_at_page(page: &str, result: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let page = file("page.html", page);
    let result = file("result.json", result);
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.py");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(check).args([&page, &result]);
    // A folder for screenshots, for those who want to see them.
    command.args(std::env::var_os("DOMICILE_PICTURES"));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Whether there is a browser; a test that is not run is counted.
fn has_browser() -> bool {
    let there = [
        "/usr/bin/chromium",
        "/usr/bin/chromedriver",
        "/usr/share/doc/python3-selenium",
    ];
    let lacking = there.iter().find(|path| !Path::new(path).exists());
    lacking
        .inspect(|path| harness::not_installed(format!("{path} is not there")))
        .is_none()
}

#[test]
fn the_page_shows_the_numbers_of_the_result() {
    if has_browser() {
        looked_at(&shown(1));
        looked_at(&shown(5));
    }
}

#[test]
fn the_page_of_a_comparison_shows_both_sides() {
    if has_browser() {
        let mut comparison = comparison(9);
        comparison.source_lines.as_mut().unwrap()[0].name = EVIL.to_string();
        let page = report::comparison_page(&comparison);
        looked_at_page(&page, &serde_json::to_string(&comparison).unwrap());
    }
}
