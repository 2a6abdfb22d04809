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

    // The prediction matches the result of placing the threads so by hand.
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
    assert!(said.contains("`--placement-form` with `run`, `taskset`"), "{said}");
    let script = room.path("pack.sh");
    let said = advise(&["--machine", "simos-r4400", "--cpus", "1", "--write-placement", &script]);
    assert!(said.contains("several caches of one level"), "{said}");
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

/// Two cpus, each with a cache of its own.
fn two_caches(room: &Room) -> String {
    let machine = MACHINE
        .replace("four-caches", "two-caches")
        .replace("cpus = 16", "cpus = 2");
    room.file(
        "two-caches.toml",
        &machine.replace("cpus_per_instance = 4", "cpus_per_instance = 1"),
    )
}

#[test]
fn more_threads_than_cpus_are_placed_where_each_cpu_has_its_cache() {
    let room = Room::new();
    let trace = room.trace("groups.trace", &program());
    let file = room.path("threads.toml");
    let machine = two_caches(&room);
    let advice = &json(&[
        "advise",
        &trace,
        "--machine",
        &machine,
        "--json",
        "--write-placement",
        &file,
    ])[0];
    let sharing = &advice["sharing"];
    assert_eq!(
        (&sharing["cpus_per_cache"], &sharing["placements"][0]["name"]),
        (&1.into(), &"grouped".into())
    );
    let written = std::fs::read_to_string(&file).unwrap();
    let way = written.split("[[ways]]").nth(1).unwrap();
    let cpus = |group: u64| {
        [0, 0, 1, 1, 0, 0, 1, 1]
            .map(|of| of ^ group)
            .map(|cpu| format!("[{cpu}]"))
            .join(", ")
    };
    assert!(
        [0, 1]
            .iter()
            .any(|first| way.contains(&format!("cpus = [{}]", cpus(*first)))),
        "{written}"
    );
    // In order and spread are the same here.
    assert_eq!(written.matches("[[ways]]").count(), 2, "{written}");
    assert!(written.contains("name = \"in order\""), "{written}");
}

#[test]
fn a_program_runs_with_its_threads_where_a_file_has_them() {
    let room = Room::new();
    let allowed = sys::affinity::allowed(None).unwrap();
    let last = allowed.last().unwrap();
    let ways = |cpu: u32| {
        let way = |name: &str| format!("[[ways]]\nname = \"{name}\"\npredicted_ns = 1000000\ncpus = [[{cpu}]]\n");
        format!("[[threads]]\nname = \"\"\n{}{}", way("grouped"), way("in order"))
    };
    let file = room.file("threads.toml", &ways(*last));
    // It goes on when it has the cpus, and not before.
    let waits = format!(
        "until grep -q 'Cpus_allowed_list:[[:space:]]*{last}$' /proc/$$/status; do :; done; echo there; exit 3"
    );
    let (out, said) = output(&["run", "--placement", &file, "--", "sh", "-c", &waits], 3);
    assert_eq!(out, "there\n");
    assert!(said.contains("1 of 1 threads placed (grouped)"), "{said}");

    let (out, _) = output(&["run", "--placement", &file, "--rounds", "3", "--", "true"], 0);
    for named in ["3 rounds in turns", "unplaced", "grouped", "in order", "1.00 ms"] {
        assert!(out.contains(named), "{out}");
    }
    let refused = |file: &str, more: &[&str], code: i32, named: &str| {
        let said = output(&[&["run", "--placement", file], more].concat(), code).1;
        assert!(said.contains(named), "{said}");
    };
    let failing = ["--rounds", "2", "--", "sh", "-c", "exit 3"];
    refused(&file, &failing, 3, "failed (exit status: 3)");
    refused(&file, &["--children", "--", "true"], 2, "leave out --children");
    refused(
        &room.file("no.toml", &ways(9999)),
        &["--", "true"],
        1,
        "cpus 9999 of way `grouped`",
    );
    refused(
        &room.file("short.toml", "[[threads]]\n"),
        &["--", "true"],
        1,
        "is no placement of threads",
    );
    refused(
        &room.file("text.toml", "under all"),
        &["--", "true"],
        1,
        "`domicile advise --write-placement",
    );
    let changed = |name: &str, from: &str, to: &str| room.file(name, &ways(*last).replacen(from, to, 1));
    for (from, to, named) in [
        ("[[threads]]", "speed = 3\n[[threads]]", "unknown field `speed`"),
        ("predicted_ns = 1000000", "predicted_ns = 0", "`predicted_ns` is 0"),
        (
            "1000000",
            "99999999999999999999999999",
            "99999999999999999999999999 is too large a number;",
        ),
        ("1000000", "-1", "-1 is below 0;"),
    ] {
        refused(&changed("wrong.toml", from, to), &["--", "true"], 1, named);
    }
    let of_a_run = changed(
        "of.toml",
        "[[threads]]",
        "program = \"true\"\narguments = [\"a b\"]\n[[threads]]",
    );
    refused(&of_a_run, &["--", "true", "c"], 0, "of a run of `true 'a b'`");
    let said = output(&["run", "--slots", &file, "--rounds", "2", "--", "true"], 2).1;
    assert!(said.contains("--placement"), "{said}");
}

/// A shell that starts the program of the file, and then another one.
#[test]
fn the_program_of_a_placement_is_placed_and_what_starts_it_is_not() {
    let room = Room::new();
    let allowed = sys::affinity::allowed(None).unwrap();
    if allowed.len() < 2 {
        return harness::not_here("one cpu is the place of all");
    }
    let last = allowed.last().unwrap();
    let inner = room.path("inner");
    std::fs::copy("/bin/sh", &inner).unwrap();
    let way = format!("[[ways]]\nname = \"grouped\"\npredicted_ns = 1000\ncpus = [[{last}]]\n");
    let text = format!("program = \"{inner}\"\n[[threads]]\nname = \"\"\n{way}");
    let file = room.file("threads.toml", &text);
    let waits = format!("until grep -q 'Cpus_allowed_list:[[:space:]]*{last}$' /proc/$$/status; do :; done");
    let list = "grep Cpus_allowed_list: /proc/self/status";
    let both = format!("{inner} -c \"$0\"; {list}");
    let (out, said) = output(&["run", "--placement", &file, "--", "sh", "-c", &both, &waits], 0);
    let all = sys::cpus::list(&allowed);
    assert_eq!(out.split_whitespace().last(), Some(&*all), "{out}");
    assert!(said.contains("1 of 1 threads placed (grouped)"), "{said}");
}
