//! The time of hints for a program of a given number of pages, on 16 cpus and one core.
//!
//! `hints_speed PROGRAM PAGES [plain]` prints the milliseconds of processor time, once, in a fresh process as at the
//! start of a program. Programs: `even`, `dealt`, `single`, `ring`. Plain hints are not weighed against static
//! policies.

use std::time::Duration;

use policy::cdpc::{Access, Communication, Direction, Loop, Machine, Schedule, Summary, hints, weighed};

const PAGE: u64 = 4096;
const CPUS: u32 = 16;
const ARRAYS: u64 = 7;
/// As simos-r4400 has them: 1 MB, direct-mapped.
const MACHINE: Machine = Machine {
    page_bytes: PAGE,
    colors: 256,
    cpus: CPUS,
    fit: true,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_default();
    let pages = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let mut machine = MACHINE;
    let loops = match program.as_str() {
        "even" => even(pages),
        "dealt" => dealt(pages),
        "single" => single(pages),
        "ring" => {
            // Caches so large that the pages of each cpu fit.
            machine.colors = (pages / u64::from(CPUS)) as u32 + 100;
            ring(pages)
        }
        _ => {
            eprintln!("hints_speed even|dealt|single|ring [PAGES [plain]]");
            std::process::exit(2)
        }
    };
    let began = processor_time();
    let hints = match arguments.next().as_deref() {
        Some("plain") => hints(&loops, &machine),
        _ => weighed(&loops, &machine, 1),
    };
    let hints = hints.expect("loops that can be");
    let took = processor_time() - began;
    assert!(hints.pages.len() as u64 >= pages - ARRAYS, "a hint for each page");
    let closed = hints.exchanged > 0 && hints.crowded == 0;
    assert!(program != "ring" || closed, "the ring is closed");
    println!("{:.3}", took.as_secs_f64() * 1e3);
}

/// Seven arrays as tomcatv has them, in three loops that read the columns of neighbours.
fn even(pages: u64) -> Vec<Loop> {
    let loops = [0..7, 0..4, 2..7].map(|arrays| a_loop(pages, arrays, Schedule::Even, PAGE as i64 + 8, 4104));
    loops.into()
}

/// The same dealt in pieces, of which each is a segment.
fn dealt(pages: u64) -> Vec<Loop> {
    vec![a_loop(pages, 0..7, Schedule::Chunked(4), 0, PAGE)]
}

/// As many segments as pages.
fn single(pages: u64) -> Vec<Loop> {
    vec![a_loop(pages, 0..7, Schedule::Chunked(1), 0, PAGE)]
}

/// Each cpu uses the ends of its neighbours' parts, the first and the last cpu too: pages have to exchange their colors.
fn ring(pages: u64) -> Vec<Loop> {
    let mut a_loop = a_loop(pages, 0..7, Schedule::Even, 0, PAGE);
    for (at, summary) in a_loop.summaries.iter_mut().enumerate() {
        summary.communication = Communication::Rotate([0, 1, -1][at % 3]);
    }
    vec![a_loop]
}

fn a_loop(pages: u64, arrays: std::ops::Range<u64>, schedule: Schedule, shift: i64, unit: u64) -> Loop {
    let bytes = pages / ARRAYS * PAGE;
    let summaries = arrays.flat_map(|array| {
        let summary = move |communication, access| Summary {
            name: format!("array {array}"),
            start: 0x1000_0000 + array * bytes,
            bytes,
            offset: 0,
            unit: unit as i64,
            span: unit,
            inner: Vec::new(),
            communication,
            access,
        };
        [
            summary(Communication::None, Access::Write),
            summary(Communication::Shift(shift), Access::Read),
            summary(Communication::Shift(-shift), Access::Read),
        ]
    });
    Loop {
        place: "measured".into(),
        threads: CPUS,
        iterations: bytes / unit,
        schedule,
        direction: Direction::Forward,
        summaries: summaries.collect(),
    }
}

/// This thread's processor time, which does not depend on the machine's other work.
fn processor_time() -> Duration {
    // Counted when the thread gives way, else only at each tick of the kernel.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.expect("nanoseconds come first"))
}
