//! The pages that the compiler predicts for each thread, against the pages recorded for each thread: no page more, no
//! page less.
#![forbid(unsafe_code)]

use crate::house;
use crate::house::library;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use house::Room;
use policy::cdpc::{self, Loop};
use trace::{Batch, Event, Op, Trace};

const PAGE: u64 = 4096;
const ARRAYS: [&str; 6] = ["from", "to", "ring", "dealt", "columns", "table"];

/// The program, compiled with summaries, and the folder of the library that it finds; `None` (counted as skipped) without the compiler's passes.
fn compiled(room: &Room) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("build/compiler/libdomicile_compiler.so").exists() {
        harness::not_installed("the compiler's passes are not built (make -C compiler)");
        return None;
    }
    let built = library::built("libdomicile.so");
    for name in ["libdomicile.so", "libdomicile.so.0"] {
        std::fs::copy(&built, room.folder().join(name)).unwrap();
    }
    let program = room.folder().join("partitions");
    let mut compiler = Command::new(root.join("compiler/bin/domicile-cc"));
    compiler.env("DOMICILE_LIBRARY", room.folder());
    compiler.args(["-O1", "-g", "-fopenmp", "-o"]).arg(&program);
    compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/partitions.c"));
    assert!(compiler.status().unwrap().success());
    Some(program)
}

/// First byte and end of an array.
fn array(trace: &Trace, name: &str) -> Range<u64> {
    let symbol = trace.symbols().iter().find(|symbol| symbol.name == name).unwrap();
    symbol.addr..symbol.addr + symbol.bytes
}

/// The pages of an array that a thread touches while there is a team, and the loops that it describes.
fn recorded(trace: &Trace, thread: u32, arrays: &[Range<u64>]) -> (Vec<BTreeSet<u64>>, Vec<Loop>) {
    let (mut pages, mut loops) = (vec![BTreeSet::new(); arrays.len()], Vec::new());
    // Only the master does anything outside of teams.
    let mut parallel = thread > 0;
    let mut stream = trace.thread(thread).unwrap();
    let mut batch = Batch::default();
    while stream.next(&mut batch).unwrap() {
        let mut events = batch.events.iter().peekable();
        for (at, reference) in batch.refs.iter().enumerate() {
            while let Some(timed) = events.next_if(|timed| timed.at as usize <= at) {
                hear(&timed.event, &mut parallel, &mut loops);
            }
            if !parallel || matches!(reference.op, Op::Fetch | Op::Prefetch) {
                continue;
            }
            if let Some(which) = arrays.iter().position(|array| array.contains(&reference.addr)) {
                let last = reference.addr + u64::from(reference.size) - 1;
                pages[which].extend(reference.addr / PAGE..=last / PAGE);
            }
        }
        events.for_each(|timed| hear(&timed.event, &mut parallel, &mut loops));
    }
    (pages, loops)
}

fn hear(event: &Event, parallel: &mut bool, loops: &mut Vec<Loop>) {
    match event {
        Event::TeamBegin { .. } => *parallel = true,
        Event::TeamEnd { .. } => *parallel = false,
        Event::Summary { text } => loops.push(serde_json::from_str(text).unwrap()),
        _ => {}
    }
}

/// The pages of an array that the loops of a team of this size say that a thread touches.
fn predicted(loops: &[Loop], size: u32, thread: u32, array: &Range<u64>) -> BTreeSet<u64> {
    let mut pages = BTreeSet::new();
    for described in loops.iter().filter(|described| described.threads == size) {
        let mut own = described.clone();
        own.summaries
            .retain(|summary| array.contains(&(summary.start)) && summary.bytes <= array.end - array.start);
        let touched = cdpc::touched(&own, thread, PAGE).unwrap();
        pages.extend(touched.read.into_iter().chain(touched.written).flatten());
    }
    pages
}

#[test]
fn threads_touch_the_pages_that_the_compiler_says() {
    let room = Room::new();
    let Some(program) = compiled(&room) else { return };
    for size in [2, 4, 7] {
        let file = room.path("trace");
        let mut record = house::domicile(&["record", "-o", &file, "--"]);
        record.arg(&program).env("OMP_NUM_THREADS", size.to_string());
        record.assert().success();
        let trace = Trace::open(&file).unwrap();
        let arrays = ARRAYS.map(|name| array(&trace, name));
        let seen: Vec<_> = (0..size).map(|thread| recorded(&trace, thread, &arrays)).collect();
        let loops: Vec<Loop> = seen.iter().flat_map(|(_, loops)| loops.clone()).collect();
        for (thread, (pages, _)) in (0..size).zip(&seen) {
            for ((name, array), pages) in ARRAYS.iter().zip(&arrays).zip(pages) {
                let expected = predicted(&loops, size, thread, array);
                assert!(
                    !expected.is_empty(),
                    "{name}: nothing is said of thread {thread} of {size}"
                );
                let false_positives: Vec<_> = expected.difference(pages).collect();
                let false_negatives: Vec<_> = pages.difference(&expected).collect();
                assert!(
                    false_positives.is_empty() && false_negatives.is_empty(),
                    "{name}, thread {thread} of {size}: said and not touched {false_positives:?}, touched and not said {false_negatives:?}"
                );
            }
        }
        std::fs::remove_file(&file).unwrap();
    }
}
