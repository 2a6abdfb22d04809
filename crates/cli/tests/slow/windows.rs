//! Windows of a long run, warmed, against the whole of it: their own interval holds the truth for all seeds but one.

use crate::house;

use std::path::Path;
use std::process::Command;

use house::{Room, json};
use results::Outcome;

/// One machine whose outermost cache does not hold the program's data, and one whose does.
const MACHINES: [&str; 2] = ["simos-r4400", "zen3-milan"];
/// A phase that takes a fortieth of the run is in one of them at least: it may be five times as slow as all else.
const WINDOWS: &str = "80";
/// References of a window: the whole is more than 40 times as long as all of them.
const WINDOW: &str = "4K";

fn compiled(room: &Room) -> String {
    let program = room.path("phases");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/phases.c");
    let compiled = Command::new("gcc")
        .args(["-O1", "-g", "-o", &program])
        .arg(source)
        .status();
    assert!(compiled.unwrap().success());
    program
}

/// The program recorded from main, and simulated on both machines with one cpu.
fn simulated(room: &Room, program: &str, name: &str, options: &[&str]) -> Vec<Outcome> {
    let trace = room.path(name);
    let record = [
        &["record", "--json", "--from", "main", "-o", &trace],
        options,
        &["--", program],
    ]
    .concat();
    json(&record);
    let simulate = |machine: &&str| {
        let arguments = [
            "simulate",
            "--json",
            "--cpus",
            "1",
            "--machine",
            machine,
            "--policy",
            "page-coloring",
            &trace,
        ];
        serde_json::from_value(json(&arguments)[0].clone()).unwrap()
    };
    let outcomes = MACHINES.iter().map(simulate).collect();
    std::fs::remove_file(&trace).unwrap();
    outcomes
}

fn per_reference(outcome: &Outcome) -> (f64, Vec<f64>) {
    let references = outcome.references as f64;
    let misses = outcome.caches.iter().map(|cache| cache.misses as f64 / references);
    (outcome.time_ns.wall as f64 / references, misses.collect())
}

#[test]
fn warmed_windows_come_within_their_own_interval_of_the_whole() {
    let seeds = harness::repetitions(5, 20);
    let room = Room::new();
    let program = compiled(&room);
    let whole = simulated(&room, &program, "whole", &[]);
    let mut held = vec![0; MACHINES.len()];
    let mut missed = Vec::new();
    for seed in 1..=seeds {
        let number = seed.to_string();
        let options = ["--windows", WINDOWS, "--window", WINDOW, "--windows-seed", &number];
        let windows = simulated(&room, &program, &format!("seed{seed}"), &options);
        for (at, (windowed, whole)) in windows.iter().zip(&whole).enumerate() {
            let rests_on = windowed.windows.as_ref().unwrap();
            assert_eq!(rests_on.counted.len(), 80);
            assert_eq!(rests_on.of_references, Some(whole.references));
            let (part, of) = (rests_on.references(), whole.references);
            assert!(part * 40 < of, "{part} of {of}");
            let (time, _) = per_reference(whole);
            if rests_on.ns_per_reference.holds(time) {
                held[at] += 1;
            } else {
                missed.push(format!(
                    "seed {seed} on {}: {time} {:?}",
                    MACHINES[at], rests_on.ns_per_reference
                ));
            }
        }
    }
    assert!(held.iter().all(|held| *held >= seeds - 1), "{held:?}: {missed:#?}");
}
