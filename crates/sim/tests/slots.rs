//! Plans over traces with names, and the curves that plans are made from.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use machine::Machine;
use policy::slots::Plan;
use results::Outcome;
use sim::{Config, CurvesOutcome, Detail, PolicySpec, Simulated};
use trace::{
    Allocation, Array, Event, Frame, Header, Location, Op, Process, Ref, Site, Stack, Symbol, Thread, Trace, Writer,
};

const PAGE: u64 = 4096;
const LINES: u64 = PAGE / 64;

/// A symbol of 6 pages, not at the start of a page, so that it covers 5 whole; and blocks of one place.
const STRONG: u64 = 0x60_0800;
const STRONG_BYTES: u64 = 6 * PAGE;
const BLOCK: u64 = 0x100_0000;
const BLOCK_PAGES: u64 = 32;
const ROUNDS: u64 = 6;

/// 16 colors of 2 pages each: 2-way, 128 KiB.
fn machine() -> Machine {
    let text = "name = \"sixteen\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 2\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 131072\nways = 2\nline_bytes = 64\n\
                cpus_per_instance = 2\nindex = \"physical\"\nhit_ns = 0.0\n[memory]\nlocal_ns = 100.0\n";
    machine::from_toml(text, "sixteen.toml").expect("the machine is valid")
}

/// Each round reads the symbol, then allocates, reads and frees a block at an address of its own.
fn write(path: &Path) -> Result<(), trace::TraceError> {
    let mut writer = Writer::create(path, &Header::default())?;
    let program = "/bin/prog".to_string();
    let process = writer.process(Process {
        program,
        ..Process::default()
    });
    let child = writer.process(Process {
        parent: Some(process),
        ..Process::default()
    });
    let thread = |process| Thread {
        process,
        ..Thread::default()
    };
    let (first, forked) = (writer.thread(thread(process)), writer.thread(thread(child)));
    writer.symbols([Symbol {
        process,
        name: "strong".to_string(),
        addr: STRONG,
        bytes: STRONG_BYTES,
        ..Symbol::default()
    }]);
    writer.modules([trace::Module {
        process,
        path: "/bin/prog".to_string(),
        start: 0x40_0000,
        bytes: 0x40_0000,
        ..trace::Module::default()
    }]);
    // A name within the block: slots go by its allocation.
    writer.arrays([Array {
        process,
        name: "part".to_string(),
        addr: BLOCK,
        bytes: PAGE,
    }]);
    writer.locations([Location {
        process,
        pc: 0x40_0030,
        function: "make".to_string(),
        file: Some("/src/prog.c".to_string()),
        line: Some(30),
        inlined_into: Vec::new(),
    }]);
    let frames = vec![Frame { pc: 0x40_0030 }];
    let stack = writer.stack(Stack { process, frames });
    let (op, size) = (Op::Read, 8);
    let site = writer.site(Site {
        pc: 0x40_0040,
        op,
        size,
    });
    let read = |addr| Ref {
        addr,
        site,
        insns: 0,
        op,
        size,
    };
    for round in 0..ROUNDS {
        for line in 0..STRONG_BYTES / 64 {
            writer.push(first, read(STRONG + line * 64))?;
        }
        let addr = BLOCK + round * BLOCK_PAGES * PAGE;
        let (bytes, kind) = (BLOCK_PAGES * PAGE, Allocation::Heap);
        writer.event(
            first,
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind,
            },
        )?;
        for line in 0..BLOCK_PAGES * LINES {
            writer.push(first, read(addr + line * 64))?;
        }
        writer.event(first, Event::Free { addr })?;
    }
    // A forked child has its parent's variables, in pages of its own.
    writer.push(forked, read(STRONG + 2 * PAGE))?;
    writer.finish().map(|_| ())
}

fn simulate(plan: Option<&str>, detail: Detail) -> Result<Simulated, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("slots.trace");
    write(&path).map_err(|error| error.to_string())?;
    let trace = Trace::open(&path).map_err(|error| error.to_string())?;
    let plan = plan.map(|text| Plan::read(text, "plan.toml").map(Arc::new)).transpose();
    let spec = PolicySpec {
        plan: plan.map_err(|error| error.to_string())?,
        ..PolicySpec::new("slots".parse().unwrap())
    };
    let config = Config {
        detail,
        order: sim::Order::Recorded,
        ..Config::new(machine(), vec![spec])
    };
    let outcomes = sim::simulate(&trace, &config, &|_| {}).map_err(|error| error.to_string())?;
    outcomes.into_iter().next().ok_or_else(|| "no outcome".to_string())
}

const PLAN: &str = "[[slot]]\nname = \"own\"\nbytes = \"32 KiB\"\nkind = \"private\"\n\
                    [[data]]\nsymbol = \"strong\"\nslot = \"own\"\n\
                    [[data]]\nsite = \"heap: make (prog.c:30)\"\nslot = \"none\"\n";

fn curves(plan: Option<&str>) -> (Outcome, CurvesOutcome) {
    let detail = Detail {
        curves: true,
        ..Detail::default()
    };
    let run = simulate(plan, detail).unwrap();
    (run.outcome, run.curves.unwrap())
}

fn misses_of(curves: &CurvesOutcome, name: &str) -> u64 {
    let found = curves.structures.iter().find(|curve| curve.what.name.starts_with(name));
    found.unwrap().misses
}

#[test]
fn a_plan_places_variables_and_blocks_by_name() {
    let (outcome, after) = curves(Some(PLAN));
    let slots = outcome.slots.unwrap();
    assert_eq!((slots.colors, slots.color_bytes), (16, 8192));
    // The symbol in both processes, each with a slot of its own, and each block.
    assert_eq!((slots.data_sets, slots.private, slots.refusals), (2 + ROUNDS, 2, 0));
    // Whole pages: five of the symbol, one of the child's, and all of the blocks.
    assert_eq!(slots.pages, 5 + 1 + ROUNDS * BLOCK_PAGES);
    // Lines that the symbol covers whole are missed once; the ends lie among the rest.
    let (_, before) = curves(None);
    let (now, with) = (misses_of(&before, "strong"), misses_of(&after, "strong"));
    let ends = STRONG_BYTES / 64 - 5 * LINES;
    assert!(now > 2 * with, "{now} {with}");
    assert!(with <= 5 * LINES + 1 + ROUNDS * ends, "{with}");
    assert_eq!(misses_of(&after, "heap: make"), ROUNDS * BLOCK_PAGES * LINES);
    // Nothing was touched before.
    assert_eq!((outcome.memory.recolorings, outcome.time_ns.policy_overhead), (0, 0));
}

#[test]
fn curves_are_those_of_each_structure_alone() {
    let (outcome, curves) = curves(None);
    assert_eq!(curves.accesses, outcome.caches[0].accesses);
    assert_eq!(curves.misses, outcome.caches[0].misses);
    let strong = &curves
        .structures
        .iter()
        .find(|curve| curve.what.name == "strong")
        .unwrap();
    let lines = STRONG_BYTES / 64;
    // The child's line is another one.
    assert_eq!((strong.accesses, strong.cold), (ROUNDS * lines + 1, lines + 1));
    let all = ROUNDS * lines + 1;
    // In turns over six pages: nothing is saved below three colors, all from there on.
    assert_eq!(strong.alone[..4], [all, all, all, lines + 1]);
    assert!(strong.alone[4..].iter().all(|misses| *misses == lines + 1));
    assert_eq!(strong.alone.len(), 17);
    let blocks = curves
        .structures
        .iter()
        .find(|curve| curve.what.name.starts_with("heap: make"))
        .unwrap();
    assert_eq!(
        (blocks.accesses, blocks.what.blocks),
        (ROUNDS * BLOCK_PAGES * LINES, ROUNDS)
    );
    assert!(blocks.alone.iter().all(|misses| *misses == blocks.cold));
    assert!(!curves.structures.iter().any(|curve| curve.what.name == "part"));
}

#[test]
fn sizes_and_cpus_of_a_plan_count() {
    let larger = PLAN.replace("slot = \"none\"", "at_least = \"1 MiB\"\nslot = \"none\"");
    let slots = simulate(Some(&larger), Detail::default())
        .unwrap()
        .outcome
        .slots
        .unwrap();
    assert_eq!(slots.data_sets, 2);
    let elsewhere = PLAN.replace("slot = \"own\"", "module = \"libx.so\"\nslot = \"own\"");
    let slots = simulate(Some(&elsewhere), Detail::default())
        .unwrap()
        .outcome
        .slots
        .unwrap();
    assert_eq!(slots.private, 0);
    let cpus = PLAN.replace("slot = \"own\"", "cpus = [2]\nslot = \"own\"");
    let refused = simulate(Some(&cpus), Detail::default()).unwrap_err();
    assert!(
        refused.contains("data[0].cpus names cpu 2") && refused.contains("0 to 1"),
        "{refused}"
    );
    // Two processes with a private slot of half the cache each leave nothing for the blocks.
    let much = PLAN.replace("32 KiB", "64 KiB");
    let slots = simulate(Some(&much), Detail::default()).unwrap().outcome.slots.unwrap();
    assert_eq!((slots.private, slots.refusals), (2, ROUNDS));
    assert!(slots.refused[0].contains("not free"), "{}", slots.refused[0]);
}
