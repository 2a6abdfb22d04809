//! `simulate`: traces whose misses can be worked out by hand.

use crate::house;

use house::{Room, json, output};
use serde_json::Value;

/// One cpu, one direct-mapped cache of four pages: four colors.
const DIRECT: &str = r#"
name = "direct"
clock_mhz = 100
page_bytes = 4096
cpus = 1

[[cache]]
name = "L1"
level = 1
kind = "unified"
bytes = 16384
ways = 1
line_bytes = 64
index = "physical"
hit_ns = 0.0

[memory]
local_ns = 100.0
"#;

/// Two cpus with a cache each that holds everything.
const PAIR: &str = r#"
name = "pair"
clock_mhz = 100
page_bytes = 4096
cpus = 2

[[cache]]
name = "L1"
level = 1
kind = "unified"
bytes = 65536
ways = 4
line_bytes = 64
cpus_per_instance = 1
hit_ns = 0.0

[memory]
local_ns = 100.0
"#;

fn simulate(machine: &str, trace: &str, more: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["simulate", trace, "--machine", machine, "--json"];
    arguments.extend(more);
    json(&arguments)
}

fn counts(outcome: &Value) -> [u64; 6] {
    let cache = &outcome["caches"][0];
    [
        "misses",
        "cold",
        "capacity",
        "conflict",
        "true_sharing",
        "false_sharing",
    ]
    .map(|name| cache[name].as_u64().unwrap())
}

/// Turns of two addresses, by the same thread.
fn turns(first: u64, second: u64) -> String {
    format!("0 r {first:x} 4\n0 r {second:x} 4\n").repeat(100)
}

#[test]
fn two_pages_of_one_color_thrash_and_of_two_do_not() {
    let room = Room::new();
    let machine = room.file("direct.toml", DIRECT);
    // Page coloring gives pages 0 and 4 color 0; bin hopping the colors 0 and 1.
    let trace = room.trace("t", &turns(0, 4 * 4096));
    let outcomes = simulate(
        &machine,
        &trace,
        &["--policy", "page-coloring", "--policy", "bin-hopping"],
    );
    assert_eq!(outcomes[0]["policy"], "page-coloring");
    assert_eq!(counts(&outcomes[0]), [200, 2, 0, 198, 0, 0]);
    assert_eq!(outcomes[1]["policy"], "bin-hopping");
    assert_eq!(counts(&outcomes[1]), [2, 2, 0, 0, 0, 0]);
    // 200 references at 10 ns; a miss waits 100 ns.
    assert_eq!(outcomes[0]["time_ns"]["total"], 200 * 10 + 200 * 100);
    assert_eq!(outcomes[1]["time_ns"]["total"], 200 * 10 + 2 * 100);
    let trace = room.trace("u", &turns(0, 4096));
    assert_eq!(counts(&simulate(&machine, &trace, &[])[0]), [2, 2, 0, 0, 0, 0]);
}

#[test]
fn page_coloring_is_the_default_and_parameters_are_set() {
    let room = Room::new();
    let machine = room.file("direct.toml", DIRECT);
    let trace = room.trace("t", &turns(0, 4 * 4096));
    let default = simulate(&machine, &trace, &[]);
    assert_eq!(default.len(), 1);
    assert_eq!(default[0]["policy"], "page-coloring");
    let seeded = |seed: u32| {
        let set = format!("random.seed={seed}");
        counts(&simulate(&machine, &trace, &["--policy", "random", "--set", &set])[0])
    };
    let results: Vec<_> = (1..=12).map(seeded).collect();
    assert!(
        results.contains(&[200, 2, 0, 198, 0, 0]) && results.contains(&[2, 2, 0, 0, 0, 0]),
        "{results:?}"
    );
}

#[test]
fn true_and_false_sharing_are_distinguished() {
    let room = Room::new();
    let machine = room.file("pair.toml", PAIR);
    let mut same = String::new();
    let mut neighbors = String::new();
    for _ in 0..50 {
        same += "0 w 1000 4\nb 2\n1 w 1000 4\nb 2\n";
        neighbors += "0 w 1000 4\nb 2\n1 w 1004 4\nb 2\n";
    }
    // Each cpu misses once cold, then each of its 49 writes finds its line taken away.
    let trace = room.trace("same", &same);
    assert_eq!(counts(&simulate(&machine, &trace, &[])[0]), [100, 2, 0, 0, 98, 0]);
    let trace = room.trace("neighbors", &neighbors);
    assert_eq!(counts(&simulate(&machine, &trace, &[])[0]), [100, 2, 0, 0, 0, 98]);
}

#[test]
fn the_result_has_the_fields_of_the_contract() {
    let room = Room::new();
    let trace = room.trace("t", "0 r 0 4\n1 w 4000 8\n0 r 4000 4\n");
    let outcome = &simulate("flash-cc-numa", &trace, &["--policy", "first-touch+page-coloring"])[0];
    for field in [
        "policy",
        "machine",
        "references",
        "instructions",
        "caches",
        "tlb",
        "memory",
        "time_ns",
        "per_cpu",
    ] {
        assert!(outcome.get(field).is_some(), "{field}");
    }
    assert_eq!(outcome["policy"], "first-touch+page-coloring");
    assert_eq!(outcome["machine"], "flash-cc-numa");
    for cache in outcome["caches"].as_array().unwrap() {
        let count = |name: &str| cache[name].as_u64().unwrap_or_else(|| panic!("{name} of {cache}"));
        assert_eq!(count("hits") + count("misses"), count("accesses"));
        let classes = ["cold", "capacity", "conflict", "true_sharing", "false_sharing"].map(count);
        assert_eq!(classes.iter().sum::<u64>(), count("misses"));
        count("writebacks");
        count("upgrades");
    }
    for field in [
        "local",
        "remote",
        "pages",
        "pages_max",
        "migrations",
        "replications",
        "collapses",
    ] {
        assert!(outcome["memory"][field].is_u64(), "{field}");
    }
    assert!(outcome["memory"]["local_percent"].is_number());
    let time = &outcome["time_ns"];
    let parts = [
        "busy",
        "cache_stall",
        "local_stall",
        "remote_stall",
        "tlb_stall",
        "policy_overhead",
        "imbalance",
        "sequential",
        "synchronization",
        "prefetch_stall",
    ];
    let sum: u64 = parts.iter().map(|part| time[part].as_u64().unwrap()).sum();
    assert_eq!(time["total"], sum);
    assert!(time["wall"].is_u64());
    assert_eq!(outcome["per_cpu"].as_array().unwrap().len(), 8);
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    let room = Room::new();
    let lines: String = (0..5000u64)
        .map(|i| format!("{} w {:x} 4\n", i % 3, i * i * 64 % (1 << 22)))
        .collect();
    let trace = room.trace("t", &lines);
    let run = || {
        output(
            &[
                "simulate",
                &trace,
                "--machine",
                "simos-r4400",
                "--policy",
                "random",
                "--json",
            ],
            0,
        )
        .0
    };
    assert_eq!(run(), run());
}

#[test]
fn the_result_is_printed_first_and_tables_on_request() {
    let room = Room::new();
    let trace = room.trace("t", &turns(0, 4096));
    let common = ["simulate", &trace, "--machine", "simos-r4400"];
    let of = |more: &[&str]| output(&[&common[..], more].concat(), 0).0;
    let text = of(&[]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("200 references"), "{text}");
    assert!(
        lines[1].starts_with("`page-coloring` takes ") && lines[1].contains("Misses: L1D "),
        "{text}"
    );
    assert!(
        lines[2].starts_with("Time: ") && lines[3].starts_with("More: "),
        "{text}"
    );
    assert!(!text.contains("2 cold"), "{text}");
    let details = of(&["--details"]);
    assert!(
        details.contains("page-coloring") && details.contains("2 cold"),
        "{details}"
    );
    let both = of(&["--policy", "page-coloring", "--policy", "random"]);
    assert!(
        both.contains("the least; `") || both.contains("as do all others"),
        "{both}"
    );
    assert!(both.contains("cpu total"), "{both}");
    let saved = room.path("saved.json");
    std::fs::write(&saved, of(&["--json"])).unwrap();
    assert_eq!(output(&["report", &saved, "--details"], 0).0, details);
    assert!(text.starts_with(&output(&["report", &saved], 0).0));
    let unclassed = &simulate("simos-r4400", &trace, &["--no-classes"])[0];
    assert!(unclassed["caches"][0]["cold"].is_null());
}

#[test]
fn a_machine_file_that_is_wrong_fails_with_file_and_line() {
    let room = Room::new();
    let machine = room.file("bad.toml", &DIRECT.replace("ways = 1", "ways = 3"));
    let trace = room.trace("t", "0 r 0 4\n");
    let (_, said) = output(&["simulate", &trace, "--machine", &machine], 1);
    assert!(said.contains("bad.toml:") && said.contains("ways"), "{said}");
}

/// A trace of one thread that reads the first four lines of a page in phase `init`, and eight in `compute`.
fn phased(path: &str) {
    use trace::{Event, Header, Op, Process, Ref, Site, Thread, Writer};
    let mut writer = Writer::create(std::path::Path::new(path), &Header::default()).unwrap();
    writer.process(Process::default());
    let thread = writer.thread(Thread::default());
    let (op, size) = (Op::Read, 4);
    let site = writer.site(Site { pc: 0, op, size });
    for (name, lines) in [("init", 4), ("compute", 8), ("end", 16)] {
        writer.event(thread, Event::Phase { name: name.into() }).unwrap();
        for line in 0..lines {
            let (addr, insns) = (line * 64, 0);
            let reference = Ref {
                addr,
                site,
                insns,
                op,
                size,
            };
            writer.push(thread, reference).unwrap();
        }
    }
    writer.finish().unwrap();
}

#[test]
fn a_window_counts_from_phase_to_phase() {
    let room = Room::new();
    let machine = room.file("direct.toml", DIRECT);
    let trace = room.path("phased.dtr");
    phased(&trace);
    let [all] = &simulate(&machine, &trace, &[])[..] else {
        panic!("one policy")
    };
    assert_eq!(counts(all)[..2], [16, 16]);
    let window = ["--from-phase", "compute", "--to-phase", "end"];
    let [outcome] = &simulate(&machine, &trace, &window)[..] else {
        panic!("one policy")
    };
    assert_eq!(outcome["references"], 8);
    assert_eq!(outcome["caches"][0]["hits"], 4);
    assert_eq!(counts(outcome)[..2], [4, 4]);
    assert_eq!(outcome["time_ns"]["wall"], 8 * 10 + 4 * 100);
    assert_eq!(outcome["time_ns"]["stall_by_class"]["cold"], 400);
    let wrong = ["simulate", &trace, "--machine", &machine, "--from-phase", "compile"];
    let (_, complaint) = output(&wrong, 1);
    assert!(
        complaint.contains("there is no phase `compile`; the trace has the phases `init`, `compute`, `end`"),
        "{complaint}"
    );
}
