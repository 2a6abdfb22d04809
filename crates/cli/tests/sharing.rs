//! `advise` says which threads belong under one cache, and writes it; `simulate` places threads by hand.

use crate::house;

use house::{Room, json, output};

/// Two groups of four threads each, that write lines of their group's page by turns.
fn program() -> String {
    let mut text = String::new();
    for round in 0..400u64 {
        for thread in 0..8u64 {
            let group = thread / 2 % 2;
            let line = round % 64 * 64;
            let op = if round % 4 == thread / 2 { 'w' } else { 'r' };
            text += &format!("{thread} {op} {:x} 4\n", (group + 16) * 4096 + line);
        }
    }
    text
}

/// Sixteen cpus, four under each cache.
const MACHINE: &str = "name = \"four-caches\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 16\n\
    [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 4096\nways = 4\nline_bytes = 64\n\
    cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\nwrite = \"back\"\n\
    [[cache]]\nname = \"L2\"\nlevel = 2\nkind = \"unified\"\nbytes = 262144\nways = 16\nline_bytes = 64\n\
    cpus_per_instance = 4\nindex = \"physical\"\nhit_ns = 10.0\nwrite = \"back\"\n\
    [memory]\nnodes = 1\nlocal_ns = 100.0\nremote_ns = 100.0\ndirty_remote_ns = 150.0\n";

/// The trace and the machine.
fn files(room: &Room) -> [String; 2] {
    let trace = room.trace("groups.trace", &program());
    [trace, room.file("four-caches.toml", MACHINE)]
}

#[test]
fn advise_packs_the_groups_and_writes_that() {
    let room = Room::new();
    let [trace, machine] = files(&room);
    let script = room.path("pack.sh");
    let advise = [
        "advise",
        &trace,
        "--machine",
        &machine,
        "--json",
        "--write-placement",
        &script,
    ];
    let advice = &json(&advise)[0];
    let sharing = &advice["sharing"];
    let mut groups: Vec<&serde_json::Value> = sharing["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| &of["threads"])
        .collect();
    groups.sort_by_key(|threads| threads.to_string());
    assert_eq!(
        groups,
        [&serde_json::json!([0, 1, 4, 5]), &serde_json::json!([2, 3, 6, 7])]
    );
    assert_eq!(sharing["placements"][0]["name"], "grouped", "{sharing}");
    assert_eq!(sharing["written"], script);
    assert!(
        advice["verdict"]
            .as_str()
            .unwrap()
            .contains("Pack threads 0-1,4-5 and 2-3,6-7"),
        "{advice}"
    );
    let written = std::fs::read_to_string(&script).unwrap();
    assert_eq!(
        written.lines().filter(|line| line.starts_with("under \"")).count(),
        8,
        "{written}"
    );

    // What it says is what comes out where the threads are placed so by hand.
    let cpus = sharing["placements"][0]["cpus"].as_array().unwrap();
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let policy = advice["baseline"].as_str().unwrap();
    let by_hand = [
        "simulate",
        &trace,
        "--machine",
        &machine,
        "--policy",
        policy,
        "--json",
        "--place-threads",
        &cpus.join(","),
    ];
    let by_hand = &json(&by_hand)[0];
    assert_eq!(by_hand["time_ns"]["wall"], sharing["placements"][0]["wall_ns"]);
}

#[test]
fn what_cannot_be_placed_is_said_before_anything_runs() {
    let room = Room::new();
    let [trace, machine] = files(&room);
    let file = room.path("pack");
    let advise = |more: &[&str]| output(&[&["advise", &trace], more].concat(), 2).1;
    let said = advise(&["--machine", &machine, "--write-placement", &file]);
    assert!(said.contains("--placement-form taskset"), "{said}");
    let script = room.path("pack.sh");
    let said = advise(&["--machine", "simos-r4400", "--write-placement", &script]);
    assert!(said.contains("several caches that each serve several cpus"), "{said}");
    let said = advise(&[
        "--machine",
        &machine,
        "--write-placement",
        &script,
        "--policy",
        "random",
    ]);
    assert!(said.contains("goes without `--policy`"), "{said}");
    let said = advise(&["--machine", &machine, "--placement-form", "systemd"]);
    assert!(said.contains("--write-placement"), "{said}");
    let simulate = |more: &[&str]| output(&[&["simulate", &trace, "--machine", &machine], more].concat(), 2).1;
    let said = simulate(&["--place-threads", "0,16"]);
    assert!(said.contains("names cpu 16") && said.contains("cpus 0 to 15"), "{said}");
    let said = simulate(&["--place-threads", "0,1", "--policy", "cdpc"]);
    assert!(said.contains("goes without policy"), "{said}");
    assert!(!std::path::Path::new(&script).exists());
}
