//! Policy `slots` from end to end: a C program is recorded, a partition proposed, written, and simulated again.

use crate::house;

use std::path::Path;
use std::process::Command;

use house::{Room, json, output};
use serde_json::Value;

/// One cpu with an outer cache of 256 KiB in 16 colors.
const SMALL: &str = r#"
name = "small"
clock_mhz = 1000
page_bytes = 4096
cpus = 1

[[cache]]
name = "L1"
level = 1
kind = "data"
bytes = 8192
ways = 2
line_bytes = 64
cpus_per_instance = 1
index = "virtual"
hit_ns = 0.0

[[cache]]
name = "L2"
level = 2
kind = "unified"
bytes = 262144
ways = 4
line_bytes = 64
cpus_per_instance = 1
index = "physical"
hit_ns = 5.0

[memory]
local_ns = 100.0
"#;

/// Compiles and records tests/programs/sparse.c.
fn record(room: &Room, arguments: &[&str]) -> String {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = room.path("sparse");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Werror", "-I"])
        .arg(house.join("../../capture/valgrind"))
        .arg(house.join("tests/programs/sparse.c"))
        .args(["-o", &program])
        .status();
    assert!(compiled.unwrap().success());
    let trace = room.path("sparse.trace");
    output(&[&["record", "-o", &trace, "--", &program], arguments].concat(), 0);
    trace
}

fn of<'a>(advice: &'a Value, name: &str) -> &'a Value {
    let data = advice["slots"]["data"].as_array().unwrap();
    let found = data
        .iter()
        .find(|data| data["name"].as_str().unwrap().starts_with(name));
    found.unwrap_or_else(|| panic!("{name} is not in {data:?}"))
}

fn l2(outcome: &Value) -> u64 {
    outcome["caches"][1]["misses"].as_u64().unwrap()
}

/// Returns whether two results are equal, apart from numbers written with and without a point.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

#[test]
fn a_partition_is_proposed_written_and_simulated_again() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = record(&room, &["4"]);
    let plan = room.path("sparse-slots.toml");
    let advise = [
        "advise",
        &trace,
        "--machine",
        &machine,
        "--force",
        "--write-slots",
        &plan,
    ];
    let advice = &json(&[&advise[..], &["--json"]].concat())[0];

    // Reused data is protected, streamed data is confined.
    let (p, colidx, a) = (of(advice, "p ("), of(advice, "colidx ("), of(advice, "heap: make ("));
    assert_eq!(p["role"], "protect");
    assert_eq!((&colidx["role"], &a["role"]), (&"confine".into(), &"confine".into()));
    assert!(p["slot_bytes"].as_u64().unwrap() >= 128 << 10);
    let misses = |data: &Value, when: &str| data["misses"][when].as_u64().unwrap();
    assert!(misses(p, "after") * 2 < misses(p, "before"), "{p}");
    assert!(misses(a, "after") <= misses(a, "before") * 21 / 20, "{a}");
    let slots = &advice["slots"];
    assert!(slots["gain"].as_f64().unwrap() > 0.01, "{slots}");
    let verdict = advice["verdict"].as_str().unwrap();
    assert!(verdict.contains("Protecting `p (sparse.c:"), "{verdict}");

    // The file is the plan that was reported, and simulating it gives the same counts.
    let written = std::fs::read_to_string(&plan).unwrap();
    assert_eq!(slots["plan"], written);
    let policies = advice["policies"].as_array().unwrap();
    let named = |name: &str| policies.iter().find(|outcome| outcome["policy"] == name).unwrap();
    let proposed = named("slots (proposed)");
    let simulate = ["simulate", &trace, "--machine", &machine, "--json", "--policy", "slots"];
    let again = &json(&[&simulate[..], &["--slots", &plan]].concat())[0];
    for field in ["caches", "memory", "time_ns", "slots", "references"] {
        assert!(same(&again[field], &proposed[field]), "{field}: {again} {proposed}");
    }
    assert_eq!(again["slots"]["data_sets"], 3);
    assert_eq!(again["slots"]["refusals"], 0);
    assert_eq!(misses(slots, "after"), l2(again));
    assert_eq!(misses(slots, "before"), l2(named("random")));

    // The same for people.
    let (text, _) = output(
        &[&advise[..], &["--details", "-o", &room.path("advice.json")]].concat(),
        0,
    );
    assert!(text.contains("Cache slots: a partition of L2"), "{text}");
    assert!(text.contains("protect") && text.contains("confine") && text.contains("heap: make (sparse.c:"));
}

#[test]
fn a_programs_own_slots_are_simulated_and_advised() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = record(&room, &["4", "slots"]);
    let info = &json(&["trace", "info", &trace, "--json"])[0];
    assert_eq!((&info["slots"], &info["data_sets"]), (&1.into(), &2.into()));
    let (text, _) = output(&["trace", "info", &trace], 0);
    assert!(text.contains("1 defined, data sets allocated 2 times"), "{text}");
    let items = json(&["trace", "cat", &trace, "--json"]);
    let allocated: Vec<_> = items.iter().filter(|item| item["event"] == "allocate").collect();
    assert_eq!(allocated[0]["slot"], 1);
    assert!(allocated[1]["slot"].is_null());

    let simulate = [
        "simulate",
        &trace,
        "--machine",
        &machine,
        "--policy",
        "random",
        "--policy",
        "slots",
    ];
    let outcomes = json(&[&simulate[..], &["--json"]].concat());
    let (now, slots) = (l2(&outcomes[0]), l2(&outcomes[1]));
    assert!(slots * 10 < now * 9, "{now} misses become {slots}");
    assert_eq!(outcomes[1]["slots"]["private"], 1);
    assert_eq!(outcomes[1]["memory"]["recolorings"], 0, "nothing was touched before");
    let (text, _) = output(&simulate, 0);
    assert!(text.contains("2 data sets given colors (1 in private slots)"), "{text}");

    let advice = &json(&["advise", &trace, "--machine", &machine, "--json"])[0];
    let policies = advice["policies"].as_array().unwrap();
    assert!(policies.iter().any(|outcome| outcome["policy"] == "slots"));
}

#[test]
fn nothing_to_gain_is_said_and_nothing_written() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let lines: String = (0..20_000)
        .map(|line| format!("0 r {:x} 8\n", 0x100_0000 + line * 64))
        .collect();
    let trace = room.trace("stream.trace", &lines);
    let plan = room.path("none.toml");
    let advice = &json(&[
        "advise",
        &trace,
        "--machine",
        &machine,
        "--json",
        "--write-slots",
        &plan,
    ])[0];
    assert!(
        advice.get("slots").is_none(),
        "all misses are first uses: {}",
        advice["slots"]
    );
    let notes: Vec<&str> = advice["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with(&format!("{plan} was not written: "))),
        "{notes:?}"
    );
    assert!(!Path::new(&plan).exists());
}

#[test]
fn what_is_wrong_is_said() {
    let room = Room::new();
    let machine = room.file("small.toml", SMALL);
    let trace = room.trace("one.trace", "0 r 1000 8\n");
    let refused = |arguments: &[&str], code: i32, says: &str| {
        let (_, said) = output(
            &[&["simulate", &trace, "--machine", &machine], arguments].concat(),
            code,
        );
        assert!(said.contains(says), "{said}");
    };
    let plan = room.file("plan.toml", "[[slot]]\nname = \"x\"\nbytes = 0\nkind = \"private\"\n");
    refused(&["--policy", "slots", "--slots", &plan], 1, "slot[0].bytes");
    refused(&["--policy", "random", "--slots", &plan], 2, "add `--policy slots`");
    refused(&["--policy", "slots", "--slots", "nowhere.toml"], 1, "nowhere.toml");
    refused(&["--policy", "slots", "--set", "slots.rest=some"], 2, "any, confine");
    let plan = room.file("cpus.toml", "[[data]]\nsymbol = \"x\"\nslot = \"none\"\ncpus = [9]\n");
    refused(&["--policy", "slots", "--slots", &plan], 1, "cpu 9");
    // No outer cache with colors: nothing to partition.
    let plain = room.file("plain.toml", &SMALL.replace("\"physical\"", "\"virtual\""));
    let plan = room.path("none.toml");
    let (_, said) = output(&["advise", &trace, "--machine", &plain, "--write-slots", &plan], 2);
    assert!(said.contains("outermost cache has colors"), "{said}");
    let write = ["--write-slots", &plan, "--policy", "slots"];
    let (_, said) = output(&[&["advise", &trace, "--machine", &machine], &write[..]].concat(), 2);
    assert!(said.contains("goes without `--policy`"), "{said}");
    let advice = &json(&["advise", &trace, "--machine", &plain, "--json"])[0];
    assert!(advice.get("slots").is_none());
}
