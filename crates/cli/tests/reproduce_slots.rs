//! `reproduce ding11` on programs that only say that they are the paper's.

use crate::house;

use std::fs;

use house::{Room, domicile, output};
use serde_json::Value;

/// `lu` without and with slots: shell scripts that say how long they "took".
fn programs(room: &Room, plain: f64, slots: f64) -> String {
    for build in ["count", "time"] {
        fs::create_dir_all(room.folder().join("programs").join(build)).unwrap();
        for (version, seconds) in [("plain", plain), ("slots", slots)] {
            let script = format!(
                "#!/bin/sh\necho '{{\"program\":\"lu\",\"version\":\"{version}\",\"n\":64,\"seconds\":{seconds},\
                 \"cpu_seconds\":9.0,\"checksum\":1.0,\"threads\":2}}'\n"
            );
            let path = room.folder().join("programs").join(build).join(format!("lu-{version}"));
            harness::write_program(&path, &script);
        }
    }
    room.path("programs")
}

/// The lines of one item, with the colors of this machine forced to be `colors`.
fn reproduce(room: &Room, folder: &str, item: &str, colors: &str) -> Vec<Value> {
    let kept = room.path("kept");
    let arguments = [
        "reproduce",
        "ding11",
        item,
        "--programs",
        folder,
        "--kept",
        &kept,
        "--rounds",
        "2",
        "--json",
    ];
    let output = domicile(&arguments).env("DOMICILE_COLORS", colors).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Value = serde_json::from_slice(&output.stdout).unwrap();
    lines.as_array().unwrap().clone()
}

fn line<'l>(lines: &'l [Value], row: &str, column: &str) -> &'l Value {
    let found = lines.iter().find(|line| line["row"] == row && line["column"] == column);
    found.unwrap_or_else(|| panic!("no line for {row}, {column} in {lines:#?}"))
}

#[test]
fn misses_saved_stand_beside_the_papers() {
    let room = Room::new();
    let folder = programs(&room, 2.0, 1.5);
    let lines = reproduce(&room, &folder, "figure10", "force:12:4:65536");
    assert_eq!(lines.len(), 4 * 4);
    for threads in ["1 thread", "2 threads", "4 threads", "8 threads"] {
        let of = |row| line(&lines, row, threads)["value"].as_f64().unwrap();
        let (random, slots) = (of("L2 misses, random"), of("L2 misses, slots"));
        assert!(random > 0.0 && slots > 0.0);
        assert!((of("misses saved") - 100.0 * (random - slots) / random).abs() < 1e-9);
    }
    let two = line(&lines, "misses saved", "2 threads");
    assert_eq!(
        (two["paper_value"].as_f64(), &two["unit"]),
        (Some(54.0), &"percent".into())
    );
    assert_eq!(two["run"], "lu-slots --cache 4m --class A --threads 2 --iterations 1");
    // Counts are kept, traces are not.
    let kept = fs::read_dir(room.path("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let extensions: Vec<_> = kept.map(|path| path.extension().unwrap().to_owned()).collect();
    assert_eq!(extensions, ["json"; 4]);
}

#[test]
fn times_are_measured_with_the_cpus_that_there_are() {
    let room = Room::new();
    let folder = programs(&room, 2.0, 1.5);
    let lines = reproduce(&room, &folder, "figure9", "force:12:4:65536");
    let one = line(&lines, "time saved", "1 thread");
    assert_eq!(
        (one["paper_value"].as_f64(), one["value"].as_f64()),
        (Some(16.0), Some(25.0))
    );
    assert_eq!(line(&lines, "without slots", "1 thread")["value"], 2.0);
    assert_eq!(line(&lines, "with slots", "1 thread")["value"], 1.5);
    let cpus = std::thread::available_parallelism().unwrap().get();
    let eight = line(&lines, "time saved", "8 threads");
    assert_eq!(eight["value"].is_null(), cpus < 8);
    assert!(cpus >= 8 || eight["reason"].as_str().unwrap().contains("cpus"));
    assert!(line(&lines, "simulated time saved", "8 threads")["value"].is_number());
}

/// Without colors there is nothing to measure, and it says so; the simulation needs none.
#[test]
fn without_colors_times_are_simulated_only() {
    let room = Room::new();
    let folder = programs(&room, 2.0, 1.5);
    let lines = reproduce(&room, &folder, "figure9", "no colors");
    assert_eq!(lines.len(), 2 * 4);
    let one = line(&lines, "time saved", "1 thread");
    assert!(one["value"].is_null() && one["reason"].as_str().unwrap().contains("DOMICILE_COLORS"));
    assert!(line(&lines, "simulated time saved", "1 thread")["value"].is_number());
}

#[test]
fn sizes_of_this_paper_are_not_asked_for() {
    for option in [["--size", "7"], ["--cache", "2097152"]] {
        let (_, said) = output(&[&["reproduce", "ding11", "figure10"], &option[..]].concat(), 2);
        assert!(said.contains(option[0]) && said.contains("philbin96"), "{said}");
    }
    let (_, said) = output(&["reproduce", "ding11", "figure4"], 2);
    assert!(said.contains("figure5, figure6"), "{said}");
}
