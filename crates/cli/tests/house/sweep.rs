//! The trace of a parallel program, with and without its compiler's descriptions.

use serde_json::{Value, json as object};
use trace::{Event, Header, Op, Process, Ref, Site, Symbol, Thread, Writer};

use super::Room;

pub const PAGE: u64 = 4096;
pub const LINE: u64 = 128;
pub const THREADS: u32 = 4;
/// Two arrays of 128 pages, at the same place of a cache of 1 MiB.
pub const PAGES: u64 = 128;
const X: u64 = 0x1000_0000;
const Y: u64 = X + (1 << 20);
pub const ROUNDS: u32 = 5;

pub fn summary() -> Value {
    let array = |name: &str, start: u64| object!({"name": name, "start": start, "bytes": PAGES * PAGE, "unit": PAGE, "span": PAGE, "access": "read-write"});
    object!({"place": "sweep (sweep.f90:7)", "threads": THREADS, "iterations": PAGES, "schedule": "even",
             "summaries": [array("x", X), array("y", Y)]})
}

/// Thread 0 fills both arrays; then all sweep over their parts, several times.
pub fn record(room: &Room, said: &[String]) -> String {
    let path = room.path("sweep.trace");
    let mut writer = Writer::create(
        &path,
        &Header {
            program: "sweep".to_string(),
            ..Header::default()
        },
    )
    .unwrap();
    let process = writer.process(Process::default());
    let thread = Thread {
        process,
        ..Thread::default()
    };
    let all: Vec<u32> = (0..THREADS).map(|_| writer.thread(thread.clone())).collect();
    let symbol = |(name, addr): (&str, u64)| Symbol {
        process,
        name: name.to_string(),
        addr,
        bytes: PAGES * PAGE,
        ..Symbol::default()
    };
    writer.symbols([("x_", X), ("y_", Y)].map(symbol));
    let (op, size) = (Op::Write, 8);
    let site = writer.site(Site { pc: 0, op, size });
    let sweep = |writer: &mut Writer, thread: u32, first: u64, pages: u64| {
        for line in 0..pages * PAGE / LINE {
            for array in [X, Y] {
                let addr = array + first * PAGE + line * LINE;
                let insns = 0;
                let r = Ref {
                    addr,
                    site,
                    insns,
                    op,
                    size,
                };
                writer.push(thread, r).unwrap();
            }
        }
    };
    for text in said {
        writer.event(all[0], Event::Summary { text: text.clone() }).unwrap();
    }
    sweep(&mut writer, all[0], 0, PAGES);
    let object = 9;
    let barrier = |writer: &mut Writer| {
        let threads = THREADS;
        for &thread in &all {
            writer.event(thread, Event::Barrier { object, threads }).unwrap();
        }
    };
    barrier(&mut writer);
    let threads = THREADS;
    writer.event(all[0], Event::TeamBegin { object, threads }).unwrap();
    for _ in 0..ROUNDS {
        for &thread in &all {
            let own = PAGES / u64::from(THREADS);
            sweep(&mut writer, thread, u64::from(thread) * own, own);
        }
        barrier(&mut writer);
    }
    writer.event(all[0], Event::TeamEnd { object }).unwrap();
    writer.finish().unwrap();
    path
}

/// One thread, 1 MiB of `kept` again and again with a stream of `passed` in between: a case for a partition.
pub fn reused(path: &str) {
    let mut writer = Writer::create(path, &Header::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let (kept, passed) = ((X, 160 * PAGE), (Y, 1024 * PAGE));
    let symbol = |name: &str, (addr, bytes): (u64, u64)| Symbol {
        process,
        name: name.to_string(),
        addr,
        bytes,
        ..Symbol::default()
    };
    writer.symbols([symbol("kept", kept), symbol("passed", passed)]);
    let (op, size, insns) = (Op::Read, 8, 0);
    let site = writer.site(Site { pc: 0, op, size });
    for round in 0..8 {
        for (start, bytes) in [kept, (passed.0 + round * 128 * PAGE, 128 * PAGE)] {
            for addr in (start..start + bytes).step_by(LINE as usize) {
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
    }
    writer.finish().unwrap();
}
