//! How long hints take for programs of more and more pages, on 16 cpus and one core.
//!
//! `hints_speed [ROUNDS]` prints one JSON object: for each program and number of pages the milliseconds of processor
//! time, one for each round.

use std::collections::BTreeMap;
use std::time::Duration;

use policy::cdpc::{Access, Communication, Direction, Loop, Machine, Schedule, Summary, hints};

const PAGE: u64 = 4096;
const CPUS: u32 = 16;
const ARRAYS: u64 = 7;
const SIZES: [u64; 4] = [62_500, 250_000, 1_000_000, 4_000_000];

/// As simos-r4400 has them: 1 MB, direct-mapped.
const MACHINE: Machine = Machine {
    page_bytes: PAGE,
    colors: 256,
    cpus: CPUS,
};

struct Program {
    name: &'static str,
    loops: fn(u64) -> Vec<Loop>,
    /// Whether the caches are so large that each cpu's pages fit.
    fits: bool,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "stencil, even parts",
        loops: even,
        fits: false,
    },
    Program {
        name: "pieces of 4 pages, dealt in turn",
        loops: dealt,
        fits: false,
    },
    Program {
        name: "pieces of 1 page, dealt in turn",
        loops: single,
        fits: false,
    },
    Program {
        name: "a ring that fits the caches",
        loops: ring,
        fits: true,
    },
];

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut results: BTreeMap<&str, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for _ in 0..rounds {
        for Program { name, loops, fits } in PROGRAMS {
            for pages in SIZES {
                let loops = loops(pages);
                let machine = Machine {
                    colors: if fits {
                        (pages / u64::from(CPUS)) as u32 + 100
                    } else {
                        MACHINE.colors
                    },
                    ..MACHINE
                };
                let began = processor_time();
                let hints = hints(&loops, &machine).expect("loops that can be");
                let took = processor_time() - began;
                assert!(hints.pages.len() as u64 >= pages - ARRAYS, "a hint for each page");
                assert!(
                    !fits || (hints.exchanged > 0 && hints.crowded == 0),
                    "the ring is closed"
                );
                let of_size = results.entry(name).or_default().entry(pages).or_default();
                of_size.push(took.as_secs_f64() * 1e3);
            }
        }
    }
    println!("{}", serde_json::to_string(&results).expect("names and numbers"));
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

/// What this thread has run, whatever else the machine does.
fn processor_time() -> Duration {
    // Counted when the thread gives way, else only at each tick of the kernel.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    let ran = text.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.expect("nanoseconds come first"))
}
