//! `advise` on a program whose threads fight over a line: the advice names the threads, the place,
//! and the line.

use crate::house;

use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

const COUNTERS: &str = r#"#include <pthread.h>
#include <stdio.h>

struct counters { long hits; long misses; } counters;

static void *hit(void *none) {
    for (int i = 0; i < 20000; i++)
        *(volatile long *)&counters.hits += 1; // line 8
    return none;
}

static void *miss(void *none) {
    for (int i = 0; i < 20000; i++)
        *(volatile long *)&counters.misses += 1; // line 14
    return none;
}

int main(void) {
    pthread_t first, second;
    pthread_create(&first, 0, hit, 0);
    pthread_create(&second, 0, miss, 0);
    pthread_join(first, 0);
    pthread_join(second, 0);
    printf("%ld %ld\n", counters.hits, counters.misses);
    return 0;
}
"#;

fn compiled(room: &Room) -> String {
    let source = room.file("counters.c", COUNTERS);
    let program = room.path("counters");
    let gcc = Command::new("gcc")
        .args(["-g", "-O1", "-pthread", "-o", &program, &source])
        .status();
    assert!(gcc.expect("gcc is there").success());
    assert!(Path::new(&program).exists());
    program
}

#[test]
fn false_sharing_is_reported_by_field_thread_and_source_line() {
    let room = Room::new();
    let program = compiled(&room);
    let trace = room.path("counters.trace");
    output(&["record", "-o", &trace, "--", &program], 0);
    let advice = &json(&["advise", "--machine", "westmere-x5660", "--json", &trace])[0];

    let worst = &advice["false_sharing"][0];
    assert_eq!(worst["structure"], "counters", "{worst}");
    assert!(worst["misses"].as_u64() > Some(10_000), "{worst}");
    let mut sides = worst["sides"].as_array().expect("two sides").clone();
    sides.sort_by_key(|side| side["field"].to_string());
    let named: Vec<_> = sides.iter().map(|side| (&side["field"], &side["source"])).collect();
    let hits = (&Value::from("counters.hits"), &Value::from("counters.c:8"));
    let misses = (&Value::from("counters.misses"), &Value::from("counters.c:14"));
    assert_eq!(named, [hits, misses]);
    assert_ne!(sides[0]["thread"], sides[1]["thread"]);

    let costly = &advice["structures"][0];
    assert_eq!(
        (&costly["name"], &costly["kind"]),
        (&"counters".into(), &"symbol".into())
    );
    assert_eq!((&costly["bytes"], &costly["line"]), (&16.into(), &4.into()));

    let (text, _) = output(
        &[
            "advise",
            "--details",
            "--machine",
            "westmere-x5660",
            "-o",
            &room.path("a.json"),
            &trace,
        ],
        0,
    );
    for part in [
        "counters.hits",
        "counters.misses",
        "counters.c:14",
        "counters (counters.c:4)",
    ] {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
}

#[test]
fn simulate_splits_by_what_it_is_asked_for() {
    let room = Room::new();
    let trace = room.trace("two.trace", &"0 r 100000 4\n1 w 300000 4\n".repeat(500));
    let by = |what: &[&str]| {
        let fixed = ["simulate", &trace, "--machine", "simos-r4400", "--json"];
        json(&[&fixed[..], what].concat()).remove(0)
    };
    let plain = by(&[]);
    let mut split = by(&["--by", "thread,structure,page"]);
    let parts = split.as_object_mut().expect("an object");
    let [threads, structures, pages] = ["threads", "structures", "pages"].map(|part| parts.remove(part).expect(part));
    assert_eq!(split, plain);
    assert_eq!(threads.as_array().map(Vec::len), Some(2));
    assert_eq!(threads[1]["references"], 500);
    assert_eq!(structures.as_array().map(Vec::len), Some(1));
    let mut addresses: Vec<_> = pages
        .as_array()
        .into_iter()
        .flatten()
        .map(|page| page["page"].as_u64())
        .collect();
    addresses.sort_unstable();
    assert_eq!(addresses, [Some(0x10_0000), Some(0x30_0000)]);
}

#[test]
fn lists_have_the_rows_that_are_asked_for() {
    let room = Room::new();
    let touched: String = (0..130)
        .map(|page| format!("0 r {:x} 4\n", 0x10_0000 + page * 4096))
        .collect();
    let trace = room.trace("many.trace", &touched);
    let simulate = |more: &[&str]| {
        let fixed = ["simulate", &trace, "--machine", "simos-r4400", "--by", "page"];
        output(&[&fixed[..], more].concat(), 0).0
    };
    let pages = |text: &str| text.lines().filter(|line| line.contains(" 0x1")).count();
    assert_eq!(pages(&simulate(&[])), 20);
    let few = simulate(&["--top", "3"]);
    assert!(pages(&few) == 3 && few.contains("and 97 more pages"), "{few}");
    assert_eq!(pages(&simulate(&["--top", "120"])), 120);
    assert_eq!(pages(&simulate(&["--top", "all"])), 130);
    // JSON has as many as are found; more are where more are asked for, and fewer never.
    let found = |more: &[&str]| {
        let fixed = ["simulate", &trace, "--machine", "simos-r4400", "--by", "page", "--json"];
        json(&[&fixed[..], more].concat())[0]["pages"].as_array().map(Vec::len)
    };
    assert_eq!(
        [&[][..], &["--top", "3"], &["--top", "all"]].map(found),
        [Some(100), Some(100), Some(130)]
    );

    // A saved result is shown again, with as many.
    let saved = output(
        &["simulate", &trace, "--machine", "simos-r4400", "--by", "page", "--json"],
        0,
    )
    .0;
    let saved = room.file("saved.json", &saved);
    assert_eq!(pages(&output(&["report", &saved], 0).0), 20);
    assert_eq!(pages(&output(&["report", &saved, "--top", "all"], 0).0), 100);
}

#[test]
fn rows_are_asked_for_only_where_there_are_lists() {
    let room = Room::new();
    let trace = room.trace("t.trace", "0 r 0 4\n");
    let simulate = ["simulate", &trace, "--machine", "simos-r4400", "--top", "3"];
    let said = |arguments: &[&[&str]]| output(&arguments.concat(), 2).1;
    assert!(said(&[&simulate]).contains("add `--by structure`"));
    assert!(said(&[&simulate, &["--by", "thread"]]).contains("add `--by structure`"));
    assert!(said(&[&simulate, &["--by", "structure", "--json"]]).contains("add `--by page`"));
    assert!(said(&[&["advise", &trace, "--top", "3", "--json"]]).contains("leave out `--top` or `--json`"));
    assert!(said(&[&["report", "x.json", "--top", "3", "--json"]]).contains("leave out `--top` or `--json`"));
    assert!(said(&[&["report", "x.json", "--top", "3", "--html", "y"]]).contains("leave out `--top` or `--html`"));
    for wrong in ["0", "-1", "few"] {
        assert!(
            said(&[&["report", "x.json", &format!("--top={wrong}")]]).contains("or `all`"),
            "{wrong}"
        );
    }
}

const CONTAINER: &str = r#"#include <cstdio>
#include <vector>

int main() {
    std::vector<double> a(1 << 18, 1.0); // line 5
    double sum = 0;
    for (int stride = 0; stride < 512; stride++)
        for (std::size_t at = stride; at < a.size(); at += 512)
            sum += a[at]; // line 9
    std::printf("%f\n", sum);
}
"#;

/// Code that the compiler inlined from the container is named by the line that uses it, and so is the
/// memory.
#[test]
fn inlined_containers_are_called_by_the_line_that_uses_them() {
    let room = Room::new();
    let source = room.file("container.cc", CONTAINER);
    let (program, trace) = (room.path("container"), room.path("container.trace"));
    let compiler = Command::new("g++")
        .args(["-g", "-O2", "-o", &program, &source])
        .status();
    assert!(compiler.expect("g++ is there").success());
    output(&["record", "-o", &trace, "--", &program], 0);
    let simulate = ["simulate", &trace, "--machine", "simos-r4400", "--by", "line", "--json"];
    let worst = &json(&simulate)[0]["source_lines"][0];
    assert_eq!(worst["function"], "main", "{worst}");
    assert_eq!(worst["line"], 9, "{worst}");
    assert!(
        worst["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("/container.cc")),
        "{worst}"
    );
    assert_eq!(worst["structures"][0]["name"], "heap: main (container.cc:5)", "{worst}");
    let result = room.path("advice.json");
    let (said, _) = output(
        &["advise", "--details", &trace, "--machine", "simos-r4400", "-o", &result],
        0,
    );
    let mut lines = said
        .lines()
        .skip_while(|line| !line.starts_with("Lines of the source that wait most"));
    let first = lines.nth(2).unwrap_or_default();
    assert!(
        first.contains("container.cc:9") && first.contains("heap: main (container.cc:5)"),
        "{said}"
    );
}

#[test]
fn objects_of_go_are_named_by_who_makes_them_and_not_taken_for_a_stack() {
    let room = Room::new();
    let program = room.path("go_runtime");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/go_runtime.c");
    let gcc = Command::new("gcc")
        .args(["-g", "-O1", "-mno-red-zone", "-o", &program])
        .arg(source)
        .status();
    assert!(gcc.expect("gcc is there").success());
    let trace = room.path("go_runtime.trace");
    output(&["record", "-o", &trace, "--", &program], 0);
    let outcome = &json(&[
        "simulate",
        &trace,
        "--machine",
        "westmere-x5660",
        "--by",
        "structure",
        "--json",
    ])[0];
    let worst = &outcome["structures"][0];
    assert_eq!(worst["name"], "heap: build (go_runtime.c:44)", "{worst}");
    assert_eq!(worst["blocks"], 20000, "{worst}");
}
