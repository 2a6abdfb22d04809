//! `sweep`: the points of a specification agree with `simulate`, in a file that a later run continues.

use serde_json::Value;

use crate::house::{Room, json, output};

/// Eight threads that read pages which the first of them touched, and write one.
fn program() -> String {
    let mut text = String::new();
    for round in 0..300 {
        for thread in 0..8 {
            let page = if round % 3 == 0 { thread } else { 100 + round % 5 };
            let op = if page == 100 { 'w' } else { 'r' };
            text += &format!("{thread} {op} {:x} 4\n", (page * 64 + 64) * 4096 + round % 64 * 64);
        }
    }
    text
}

const SPEC: &str = "machines = ['flash-cc-numa', 'simos-r4400']\npolicies = ['first-touch', 'migrate']\n\
                    [set]\n'migrate.trigger' = [16, 64]\n'migrate.batch' = 1\n";

fn specified(room: &Room, text: &str) -> String {
    room.trace("one", &program());
    room.trace("two", "0 r 1000 4\n0 w 2000 4\n");
    room.file("sweep.toml", text)
}

fn rows(room: &Room, spec: &str) -> Vec<Value> {
    json(&["sweep", spec, "-o", &room.path("rows.parquet"), "--json"])
}

#[test]
fn each_point_is_what_simulate_says() {
    let room = Room::new();
    let spec = specified(&room, &format!("traces = ['one', 'two']\n{SPEC}"));
    let rows = rows(&room, &spec);
    assert_eq!(rows.len(), 2 * 2 * 3);
    for row in &rows {
        let trace = room.path(row["trace"].as_str().unwrap());
        let mut words: Vec<String> = ["--json", "simulate", &trace, "--machine"].map(String::from).to_vec();
        words.push(row["machine"].as_str().unwrap().to_string());
        words.extend(["--policy".to_string(), row["policy"].as_str().unwrap().to_string()]);
        if row["policy"] == "migrate" {
            let setting = format!("migrate.{}", row["settings"].as_str().unwrap());
            words.extend([
                "--set".to_string(),
                "migrate.batch=1".to_string(),
                "--set".to_string(),
                setting,
            ]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let alone = &json(&words)[0];
        let mut swept: Value = serde_json::from_str(row["outcome"].as_str().unwrap()).unwrap();
        // The settings tell it from the others of its sweep.
        swept.as_object_mut().unwrap().remove("settings");
        assert_eq!(&swept, alone);
        assert_eq!(row["time_ns"], alone["time_ns"]["wall"]);
        assert_eq!(row["references"], alone["references"]);
    }
}

#[test]
fn a_sweep_goes_on_where_it_was() {
    let room = Room::new();
    let spec = specified(&room, &format!("traces = ['one', 'two']\n{SPEC}"));
    let whole = rows(&room, &spec);
    // The file has all of them, and nothing is simulated again: without its traces, too, all is there.
    std::fs::rename(room.path("one"), room.path("gone")).unwrap();
    assert_eq!(rows(&room, &spec), whole);
    // Another trace of this name is not taken for the same.
    std::fs::copy(room.path("two"), room.path("one")).unwrap();
    let (_, said) = output(&["sweep", &spec, "-o", &room.path("rows.parquet")], 1);
    assert!(said.contains("another length"), "{said}");
    std::fs::rename(room.path("gone"), room.path("one")).unwrap();
    let (text, said) = output(&["sweep", &spec, "-o", &room.path("rows.parquet")], 0);
    assert!(said.contains("12 of these points were in"), "{said}");
    assert!(text.starts_with("12 points in "), "{text}");
    assert_eq!(rows(&room, &spec), whole);
}

#[test]
fn a_point_that_fails_is_a_row() {
    let room = Room::new();
    let spec = specified(
        &room,
        "traces = ['one', 'nowhere']\nmachines = ['flash-cc-numa', 'no-machine.toml']\npolicies = ['first-touch']",
    );
    let rows = rows(&room, &spec);
    let errors: Vec<&str> = rows.iter().map(|row| row["error"].as_str().unwrap_or("")).collect();
    assert_eq!(errors[0], "");
    assert!(errors[1].contains("no-machine"), "{errors:?}");
    assert!(
        errors[2].contains("nowhere") && errors[3].contains("nowhere"),
        "{errors:?}"
    );
    assert!(rows[0]["time_ns"].is_u64() && rows[1]["time_ns"].is_null());
    // A failed run is tried again.
    std::fs::copy(room.path("two"), room.path("nowhere")).unwrap();
    let again = self::rows(&room, &spec);
    assert!(
        again[2]["time_ns"].is_u64() && again[1]["time_ns"].is_null(),
        "{again:?}"
    );
}

#[test]
fn a_fast_sweep_replays_misses() {
    let room = Room::new();
    let spec = specified(&room, &format!("traces = ['one']\nfast = true\n{SPEC}"));
    let fast = rows(&room, &spec);
    let settings: Vec<&str> = fast.iter().map(|row| row["settings"].as_str().unwrap()).collect();
    assert_eq!(settings[..3], ["", "trigger=16", "trigger=64"]);
    let trace = room.path("one");
    let sets = [
        "--set",
        "migrate.trigger=16,64",
        "--set",
        "migrate.batch=1",
        "--policy",
        "migrate",
    ];
    let always = [
        "simulate",
        trace.as_str(),
        "--machine",
        "flash-cc-numa",
        "--fast",
        "--json",
    ];
    let replayed = json(&[&always[..], &sets].concat());
    let swept: Vec<Value> = fast[1..3]
        .iter()
        .map(|row| serde_json::from_str(row["outcome"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(swept, replayed);
}

#[test]
fn what_is_wrong_with_a_specification_is_named() {
    for (text, says) in [
        (
            "traces = ['one']\nmachines = ['flash-cc-numa']\npolices = ['random']",
            "polices",
        ),
        (
            "traces = ['one']\nmachines = ['flash-cc-numa']\npolicies = ['rondom']",
            "rondom",
        ),
        (
            "traces = ['one']\nmachines = ['flash-numa']\npolicies = ['random']",
            "flash-numa",
        ),
        (
            "traces = ['one']\nmachines = ['flash-cc-numa']\npolicies = ['random']\n[set]\n'migrate.trigger' = 1",
            "migrate.trigger=1",
        ),
    ] {
        let room = Room::new();
        let spec = specified(&room, text);
        let (_, said) = output(&["sweep", &spec], 2);
        assert!(said.contains(says), "{said}");
    }
    let (_, said) = output(&["sweep", &Room::new().path("nowhere.toml")], 1);
    assert!(said.contains("nowhere.toml"), "{said}");
}
