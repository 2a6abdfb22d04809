//! Programs that are interpreted: what the interpreter does at a line has that line's name.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use trace::{Allocation, Event, Op, ThreadId, Trace};

use crate::workshop;
use workshop::{compile, events, record, stream, threads};

/// Function and line of a program counter.
fn place(trace: &Trace, process: u32, pc: u64) -> (String, u32) {
    let found = trace.locations().iter().find(|of| of.process == process && of.pc == pc);
    found.map_or_else(Default::default, |of| (of.function.clone(), of.line.unwrap_or(0)))
}

/// The block of 8000 bytes, with the places of its allocation.
fn block(trace: &Trace) -> (u64, Vec<(String, u32)>) {
    let found = events(trace).into_iter().find_map(|(_, event)| match event {
        Event::Alloc {
            addr,
            bytes: 8000,
            stack,
            kind: Allocation::Heap,
        } => Some((addr, stack)),
        _ => None,
    });
    let (addr, stack) = found.expect("the block is allocated");
    let stack = &trace.stacks()[stack as usize];
    let frames = stack.frames.iter();
    (
        addr,
        frames.map(|frame| place(trace, stack.process, frame.pc)).collect(),
    )
}

/// References of a thread to the block, by place and kind.
fn by_place(trace: &Trace, thread: ThreadId) -> BTreeMap<(String, bool), u32> {
    let (start, _) = block(trace);
    let process = trace.threads()[thread as usize].process;
    let mut counts = BTreeMap::new();
    for r in stream(trace, thread).0 {
        if (start..start + 8000).contains(&r.addr) {
            let (function, _) = place(trace, process, trace.sites()[r.site as usize].pc);
            *counts.entry((function, r.op == Op::Write)).or_default() += 1;
        }
    }
    counts
}

fn counted(of: &[(&str, bool, u32)]) -> BTreeMap<(String, bool), u32> {
    of.iter()
        .map(|(name, writes, count)| ((name.to_string(), *writes), *count))
        .collect()
}

#[test]
fn references_and_memory_have_the_lines_of_the_interpreted_program() {
    let (outcome, trace) = compile("interpreter", &[]).record(&[]);
    let (_, allocated) = block(&trace);
    assert_eq!(allocated, [("fill".to_string(), 3), ("<main>".to_string(), 20)]);
    // What was done aside is not the program's; what was done at no line has the interpreter's name.
    let parent = [
        ("fill", false, 1000),
        ("fill", true, 1000),
        ("total", false, 1000),
        ("step", false, 1000),
    ];
    assert_eq!(by_place(&trace, 0), counted(&parent));
    let child = threads(&trace).end - 1;
    assert_ne!(trace.threads()[child as usize].process, trace.threads()[0].process);
    assert_eq!(by_place(&trace, child), counted(&[("total", false, 1000)]));
    let locations = trace.locations().iter();
    let total = locations.filter(|of| of.function == "total" && of.file.as_deref() == Some("scripts/app.script"));
    assert!(total.clone().count() > 0 && total.clone().all(|of| of.line == Some(12)));
    assert!(
        outcome.notes.iter().all(|note| !note.contains("interpreted program")),
        "{:?}",
        outcome.notes
    );
}

/// Windows are taken from what was written down before: lines that were reached between them hold within.
#[test]
fn windows_know_the_lines_that_were_reached_before() {
    let bench = compile("interpreter", &[]);
    let mut options = bench.options(&[]);
    options.from = Some("main".to_string());
    (options.window, options.windows) = (Some(200), 20);
    let (_, trace) = record(&options);
    let counts = by_place(&trace, 0);
    let places: Vec<&str> = counts.keys().map(|(name, _)| name.as_str()).collect();
    assert!(
        ["fill", "total", "step"].iter().all(|name| places.contains(name)),
        "{counts:?}"
    );
    // Besides those of the windows there are those that warm caches, of no place.
    let mut named = counts.iter().filter(|((name, _), _)| !name.is_empty());
    assert!(named.all(|(_, count)| *count < 1000), "{counts:?}");
}

/// Without program counters there are no places, and nothing else changes.
#[test]
fn lines_take_program_counters() {
    let bench = compile("interpreter", &[]);
    let mut options = bench.options(&[]);
    options.pcs = false;
    let (_, trace) = record(&options);
    let counts = by_place(&trace, 0);
    assert_eq!(counts, counted(&[("", false, 3000), ("", true, 1000)]));
}
