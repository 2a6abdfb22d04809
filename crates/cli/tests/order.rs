//! Policy `order` from end to end: a C program with marks is recorded, simulated and advised.

use crate::house;

use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

/// One cpu with 8 KiB of cache beyond the first.
const SMALL: &str = r#"
name = "small"
clock_mhz = 100
page_bytes = 4096
cpus = 1

[[cache]]
name = "L1"
level = 1
kind = "data"
bytes = 1024
ways = 1
line_bytes = 32
cpus_per_instance = 1
index = "virtual"
hit_ns = 0.0

[[cache]]
name = "L2"
level = 2
kind = "unified"
bytes = 8192
ways = 4
line_bytes = 64
cpus_per_instance = 1
index = "virtual"
hit_ns = 50.0

[memory]
local_ns = 500.0
"#;

/// Compiles and records tests/programs/multiply.c.
fn record(room: &Room, arguments: &[&str]) -> String {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = room.path("multiply");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Werror", "-I"])
        .arg(house.join("../../capture/valgrind"))
        .arg(house.join("tests/programs/multiply.c"))
        .args(["-o", &program])
        .status();
    assert!(compiled.unwrap().success());
    let trace = room.path("multiply.trace");
    output(&[&["record", "-o", &trace, "--", &program], arguments].concat(), 0);
    trace
}

fn l2(outcome: &Value, count: &str) -> u64 {
    outcome["caches"][1][count].as_u64().unwrap()
}

/// The outcome without the policy's name and the report of the order.
fn counts(outcome: &Value) -> Value {
    let mut outcome = outcome.clone();
    let fields = outcome.as_object_mut().unwrap();
    fields.remove("policy");
    fields.remove("order");
    outcome
}

#[test]
fn a_marked_program_is_recorded_and_put_in_order() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = record(&room, &["48"]);
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert_eq!(info["work_items"], 48 * 48);
    assert_eq!(info["phases"].as_array().unwrap().len(), 2);

    // The hints are the program's: every row with every row.
    let hints: Vec<(u64, u64)> = json(&["trace", "cat", &trace, "--json"])
        .iter()
        .filter(|item| item["event"] == "work-begin")
        .map(|item| (item["hints"][0].as_u64().unwrap(), item["hints"][1].as_u64().unwrap()))
        .collect();
    let (a, b) = hints[0];
    let expected: Vec<_> = (0..48u64)
        .flat_map(|i| (0..48u64).map(move |j| (a + i * 48 * 8, b + j * 48 * 8)))
        .collect();
    assert_eq!(hints, expected);

    let simulate = |more: &[&str]| json(&[&["simulate", &trace, "--machine", &machine, "--json"], more].concat());
    let outcomes = simulate(&["--policy", "page-coloring", "--policy", "order"]);
    let (plain, ordered) = (&outcomes[0], &outcomes[1]);
    assert_eq!(ordered["policy"], "order");
    assert_eq!(plain["references"], ordered["references"]);
    assert_eq!(plain["instructions"], ordered["instructions"]);
    let (before, after) = (l2(plain, "capacity"), l2(ordered, "capacity"));
    assert!(after * 3 < before, "{before} capacity misses become {after}");
    assert_eq!(l2(plain, "cold"), l2(ordered, "cold"));
    // 8 KiB for two hints.
    let order = &ordered["order"];
    assert_eq!((&order["block"], &order["limit"]), (&4096.into(), &"cache".into()));
    assert_eq!(
        (&order["items"], &order["runs"], &order["fixed"]),
        (&2304.into(), &1.into(), &0.into())
    );

    // One bin is the order that there was.
    let block = format!("order.block={}", u64::MAX);
    let one = simulate(&["--policy", "order", "--policy", "page-coloring", "--set", &block]);
    assert_eq!(counts(&one[0]), counts(&one[1]));
    assert_eq!(counts(&one[1]), counts(plain));
}

#[test]
fn advice_tells_what_order_would_gain() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = record(&room, &["48"]);
    let result = room.path("result.json");
    let (text, _) = output(
        &["advise", "--details", "--machine", &machine, &trace, "-o", &result],
        0,
    );
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("Running the 2304 marked work items in the order of `page-coloring+order`"),
        "{text}"
    );
    assert!(flat.contains("would save") && flat.contains("for each item"), "{text}");
    let advice: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    assert_eq!(advice["baseline"], "page-coloring");
    let work = &advice["work"];
    assert_eq!(
        (&work["policy"], &work["against"]),
        (&"page-coloring+order".into(), &"page-coloring".into())
    );
    assert!(work["gain"].as_f64().unwrap() > 0.1);
    let wall = |name: &str| {
        let policies = advice["policies"].as_array().unwrap();
        let outcome = policies.iter().find(|outcome| outcome["policy"] == name).unwrap();
        outcome["time_ns"]["wall"].as_f64().unwrap()
    };
    assert_eq!(work["wall_ns"], wall("page-coloring+order"));
    assert_eq!(work["against_ns"], wall("page-coloring"));
    let l2 = &work["caches"][1];
    let capacity = l2["classes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|class| class[0] == "capacity")
        .unwrap();
    assert!(capacity[1]["after"].as_u64() < capacity[1]["before"].as_u64());
    // A saved result says the same again, also as a page.
    assert!(text.starts_with(&output(&["report", "--details", &result], 0).0));
    let page = room.path("advice.html");
    output(&["report", &result, "--html", &page], 0);
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("The work in another order")
    );
}

#[test]
fn for_a_program_without_marks_the_error_says_how_to_mark() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = record(&room, &["20", "plain"]);
    let (_, said) = output(
        &[
            "simulate",
            &trace,
            "--machine",
            &machine,
            "--policy",
            "page-coloring",
            "--policy",
            "order",
        ],
        1,
    );
    assert!(
        said.contains("no") && said.contains("DOMICILE_WORK_BEGIN(count, hints)"),
        "{said}"
    );
    let advice = &json(&["advise", "--machine", &machine, "--json", &trace])[0];
    assert!(advice.get("work").is_none());
    let (_, said) = output(&["advise", "--machine", &machine, "--policy", "order", &trace], 1);
    assert!(said.contains("DOMICILE_WORK_BEGIN"), "{said}");
}

#[test]
fn parameters_of_the_order_are_checked() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = room.trace("t", "0 begin 10\n0 r 10 4\n0 end\n");
    let run = |set: &str, code| {
        output(
            &[
                "simulate",
                &trace,
                "--machine",
                &machine,
                "--policy",
                "order",
                "--set",
                set,
                "--json",
            ],
            code,
        )
    };
    assert!(run("order.tour=round", 2).1.contains("first-fork, nearest, hilbert"));
    assert!(run("order.workers=2", 1).1.contains("cpus are 1; use `--cpus 2`"));
    let (line, _) = run("order.tour=nearest", 0);
    assert!(line.contains("\"tour\":\"nearest\""), "{line}");
    let (_, said) = output(
        &["simulate", &trace, "--machine", &machine, "--policy", "order+order"],
        2,
    );
    assert!(said.contains("the order of work"), "{said}");
}

#[test]
fn work_items_are_printed_as_they_are_imported() {
    let room = Room::new();
    let trace = room.trace("t", "0 begin 10 ff\n0 r 10 4\n0 end\n0 begin\n1 w 20 8\n0 end\n");
    let (text, _) = output(&["trace", "cat", &trace], 0);
    assert!(text.contains("0 begin 10 ff\n0 r 10 4\n0 end\n"), "{text}");
    let again = room.trace("again", &text);
    assert_eq!(output(&["trace", "cat", &again], 0).0, text);
    let (about, _) = output(&["trace", "info", &trace], 0);
    assert!(about.contains("2 work items"), "{about}");
}
