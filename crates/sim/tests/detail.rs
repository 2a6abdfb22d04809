//! The report beyond the totals, by name: a small trace with tables, on a small machine.
#![forbid(unsafe_code)]

use machine::Machine;
use serde_json::Value;
use sim::{Config, Detail, PolicySpec};
use trace::{
    Allocation, Event, Frame, Location, Op, Options, Process, Ref, Site, Stack, Symbol, Thread, Trace, Writer,
};

/// Two threads that count in fields of one struct, 100 times each in turns; the first one then
/// sweeps over a heap block, which is freed, and then over the program's other data.
const COUNTERS: u64 = 0x60_1000;
const BLOCK: u64 = 0x100_0000;
const TIMES: u64 = 100;

fn machine(cpus: u32) -> Machine {
    let preset = machine::presets().iter().find(|preset| preset.name == "simos-r4400");
    let preset = preset.expect("the preset is there");
    let machine = machine::from_toml(preset.text, preset.name).expect("it is valid");
    machine.with_cpus(cpus).expect("it can have so many cpus")
}

fn trace() -> Trace {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create_with(file.path(), &trace::Header::default(), Options::default()).expect("a trace");
    let process = writer.process(Process::default());
    let threads = [("one", 71), ("two", 72)].map(|(name, number)| {
        writer.thread(Thread {
            process,
            number,
            name: name.to_string(),
            stack: None,
        })
    });
    writer.symbols([Symbol {
        process,
        name: "counters".to_string(),
        addr: COUNTERS,
        bytes: 16,
        file: Some("/src/counters.c".to_string()),
        line: Some(3),
        fields: vec![(0, 8, ".hits".to_string()), (8, 8, ".misses".to_string())],
    }]);
    let location = |pc, line| Location {
        process,
        pc,
        function: "count".to_string(),
        file: Some("/src/counters.c".to_string()),
        line: Some(line),
        inlined_into: Vec::new(),
    };
    writer.locations([location(0x40_0010, 7), location(0x40_0020, 9), location(0x40_0030, 30)]);
    let stack = writer.stack(Stack {
        process,
        frames: vec![Frame { pc: 0x40_0030 }],
    });
    let sites = [0x40_0010, 0x40_0020, 0x40_0030].map(|pc| {
        let op = if pc == 0x40_0030 { Op::Read } else { Op::Modify };
        writer.site(Site { pc, op, size: 8 })
    });
    let make = |addr, site, op| Ref {
        addr,
        site,
        insns: 0,
        op,
        size: 8,
    };
    for _ in 0..TIMES {
        writer
            .push(threads[0], make(COUNTERS, sites[0], Op::Modify))
            .expect("pushed");
        writer
            .push(threads[1], make(COUNTERS + 8, sites[1], Op::Modify))
            .expect("pushed");
    }
    let alloc = Event::Alloc {
        addr: BLOCK,
        bytes: 1 << 16,
        stack,
        kind: Allocation::Heap,
    };
    writer.event(threads[0], alloc).expect("an event");
    for line in 0..1 << 10 {
        writer
            .push(threads[0], make(BLOCK + line * 64, sites[2], Op::Read))
            .expect("pushed");
    }
    writer.event(threads[0], Event::Free { addr: BLOCK }).expect("an event");
    // Memory that is no longer the block's.
    writer
        .push(threads[0], make(BLOCK + 8, sites[2], Op::Read))
        .expect("pushed");
    writer.finish().expect("finished");
    Trace::open(file.path()).expect("it opens")
}

fn outcome(cpus: u32, detail: Detail, classes: bool) -> Value {
    let config = Config {
        detail,
        classes,
        order: sim::Order::Recorded,
        ..Config::new(machine(cpus), vec![PolicySpec::new("page-coloring".parse().unwrap())])
    };
    let outcomes = sim::simulate(&trace(), &config, &|_| {}).expect("it runs");
    serde_json::to_value(&outcomes[0].outcome).expect("it is JSON")
}

#[test]
fn two_counters_in_one_line_are_reported_by_name() {
    let detail = Detail {
        false_sharing: 5,
        ..Detail::default()
    };
    let outcome = outcome(2, detail, true);
    let lines = outcome["false_sharing"].as_array().expect("it is there");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!(line["structure"], "counters");
    assert_eq!(line["line"], COUNTERS);
    // Each comes back to a line that the other took, except for the first time; the last one of
    // each is decided when the run ends.
    assert_eq!(line["misses"], 2 * (TIMES - 1));
    let side = |field: &str, thread: &str, source: &str| serde_json::json!({ "thread": thread, "field": field, "write": true, "source": source });
    let mut sides = line["sides"].as_array().expect("two sides").clone();
    sides.sort_by_key(|side| side["thread"].to_string());
    let wanted = [
        side("counters.hits", "71 (one)", "counters.c:7"),
        side("counters.misses", "72 (two)", "counters.c:9"),
    ];
    assert_eq!(sides, wanted);
    for absent in ["threads", "structures", "pages"] {
        assert!(outcome.get(absent).is_none(), "{absent} was not asked for");
    }
}

#[test]
fn lines_of_the_source_have_their_misses_and_their_data() {
    let detail = Detail {
        source_lines: 2,
        ..Detail::default()
    };
    let outcome = outcome(2, detail, true);
    let lines = outcome["source_lines"].as_array().expect("it is there");
    assert_eq!(lines.len(), 2, "as many as were asked for: {lines:?}");
    let place = |line: &Value| (line["function"].clone(), line["file"].clone(), line["line"].clone());
    let at = |line: u32| ("count".into(), "/src/counters.c".into(), line.into());
    assert_eq!(place(&lines[0]), at(30));
    let data = |line: &Value| line["structures"].as_array().expect("data").len();
    // The sweep reads the block, and once memory that no longer belongs to it.
    assert_eq!(data(&lines[0]), 2, "{lines:?}");
    assert_eq!(lines[0]["structures"][0]["name"], "heap: count (counters.c:30)");
    let misses = |line: &Value| line["caches"][1]["misses"].as_u64().expect("the data cache");
    assert_eq!(misses(&lines[0]), (1 << 10) + 1, "{lines:?}");
    assert!(place(&lines[1]) == at(7) || place(&lines[1]) == at(9), "{lines:?}");
    assert_eq!(misses(&lines[1]), TIMES);
    assert_eq!(lines[1]["structures"][0]["name"], "counters");
}

#[test]
fn structures_follow_allocations() {
    let detail = Detail {
        structures: true,
        pages: 2,
        threads: true,
        ..Detail::default()
    };
    let outcome = outcome(1, detail, true);
    let structures = outcome["structures"].as_array().expect("they are there");
    let first = &structures[0];
    assert_eq!(first["kind"], "heap", "{first}");
    assert_eq!((&first["bytes"], &first["blocks"]), (&(1 << 16).into(), &1.into()));
    assert_eq!(
        (&first["line"], &first["file"]),
        (&30.into(), &"/src/counters.c".into())
    );
    let counters = structures.iter().find(|structure| structure["name"] == "counters");
    let counters = counters.expect("both are reported");
    assert_eq!((&counters["kind"], &counters["line"]), (&"symbol".into(), &3.into()));
    let l1 = |structure: &Value| structure["caches"][1]["misses"].as_u64();
    assert!(l1(first) >= Some(1 << 10) && l1(counters) >= Some(1), "{structures:?}");
    assert_eq!(outcome["pages"].as_array().map(Vec::len), Some(2));
    assert_eq!(outcome["pages"][0]["structure"], first["name"]);
    assert_eq!(outcome["threads"][0]["references"], TIMES + (1 << 10) + 1);
    assert_eq!(outcome["threads"][1]["number"], 72);
    assert_eq!(outcome["threads"][1]["name"], "two");
}

#[test]
fn nothing_is_reported_of_classes_that_are_off() {
    let detail = Detail {
        structures: true,
        false_sharing: 5,
        ..Detail::default()
    };
    let outcome = outcome(2, detail, false);
    assert_eq!(outcome["false_sharing"], Value::Array(Vec::new()));
    let cache = &outcome["structures"][0]["caches"][1];
    assert!(cache["misses"].as_u64() > Some(0) && cache["cold"].is_null(), "{cache}");
}
