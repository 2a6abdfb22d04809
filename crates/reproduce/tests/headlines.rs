//! The main result of each paper on a small input, number by number: a change of a default or of the simulator that moves one fails
//! here. The inputs are made here and never differ, so that the counts are exact.
//!
//! If a change is meant to move a number: say so in CHANGELOG.md, write the new one here, and have the chapters written anew
//! (`make reproduce REPRODUCE_FLAGS=--write-book`).

use std::path::Path;
use std::sync::Arc;

use machine::Machine;
use policy::cdpc::{Access, Communication, Direction, Loop, Schedule, Summary};
use policy::slots::Plan;
use reproduce::{Keeping, Options, Reproduction, Source};
use results::Outcome;
use sim::{Config, PolicySpec, Scheduling};
use threads::{Keep, Scheduler, Shape, Tour, default_block};
use trace::{Event, Header, Op, Process, Ref, SiteId, Symbol, Thread, ThreadId, Trace, Writer};

const PAGE: u64 = 4096;

/// A trace of threads of one process, as it is written.
struct Pen {
    writer: Writer,
    threads: Vec<ThreadId>,
    sites: [SiteId; 2],
}

impl Pen {
    fn begin(path: &Path, threads: usize, symbols: &[(&str, u64, u64)]) -> Pen {
        let mut writer = Writer::create(path, &Header::default()).unwrap();
        let process = writer.process(Process {
            program: "/bin/small".to_string(),
            ..Process::default()
        });
        writer.symbols(symbols.iter().map(|&(name, addr, bytes)| Symbol {
            process,
            name: name.to_string(),
            addr,
            bytes,
            ..Symbol::default()
        }));
        let thread = |writer: &mut Writer| {
            writer.thread(Thread {
                process,
                ..Thread::default()
            })
        };
        let threads = (0..threads).map(|_| thread(&mut writer)).collect();
        let sites = [Op::Read, Op::Write].map(|op| {
            writer.site(trace::Site {
                pc: 0x1000,
                op,
                size: 8,
            })
        });
        Pen { writer, threads, sites }
    }

    fn refer(&mut self, thread: usize, op: Op, addr: u64) {
        let site = self.sites[usize::from(op == Op::Write)];
        let refer = Ref {
            addr,
            site,
            insns: 3,
            op,
            size: 8,
        };
        self.writer.push(self.threads[thread], refer).unwrap();
    }

    fn barrier(&mut self) {
        for thread in self.threads.clone() {
            let event = Event::Barrier {
                object: 0x77,
                threads: self.threads.len() as u32,
            };
            self.writer.event(thread, event).unwrap();
        }
    }
}

/// A preset with caches of a part of their size.
fn reduced(preset: &str, by: u64) -> Machine {
    let mut machine = machine::load(preset).unwrap();
    for cache in &mut machine.caches {
        cache.bytes /= by;
    }
    machine
}

/// What comes out of a trace under each policy.
fn outcomes(trace: &Path, machine: &Machine, policies: &[&str], change: impl FnOnce(&mut Config)) -> Vec<Outcome> {
    let specs = policies.iter().map(|name| PolicySpec::new(name.parse().unwrap()));
    let mut config = Config::new(machine.clone(), specs.collect());
    change(&mut config);
    let trace = Trace::open(trace).unwrap();
    let runs = sim::simulate(&trace, &config, &|_| {}).unwrap();
    runs.into_iter().map(|run| run.outcome).collect()
}

fn misses(outcome: &Outcome, level: u8) -> u64 {
    let caches = outcome.caches.iter().filter(|cache| cache.level == level);
    caches.map(|cache| cache.misses).sum()
}

/// Philbin96, table 3: the misses of the second level that threads with hints leave of a matrix multiply's.
#[test]
fn threads_in_the_order_of_their_blocks_miss_an_eighth() {
    const N: u64 = 96;
    let at = |matrix: u64, column: u64, row: u64| 0x100_0000 * (matrix + 1) + (column * N + row) * 8;
    let machine = reduced("sgi-power-indigo2-r8000", 64);
    let room = tempfile::tempdir().unwrap();

    let untiled = room.path().join("interchanged");
    let mut pen = Pen::begin(&untiled, 1, &[]);
    for j in 0..N {
        for k in 0..N {
            pen.refer(0, Op::Read, at(1, j, k));
            for i in 0..N {
                pen.refer(0, Op::Read, at(0, k, i));
                pen.refer(0, Op::Read, at(2, j, i));
                pen.refer(0, Op::Write, at(2, j, i));
            }
        }
    }
    pen.writer.finish().unwrap();

    // One thread for each element: a dot product of two columns, which are its hints.
    let threaded = room.path().join("threaded");
    let mut pen = Pen::begin(&threaded, 1, &[]);
    let cache = machine.caches.iter().map(|cache| cache.bytes).max().unwrap();
    let side = default_block(cache, None, 2).bytes;
    let mut scheduler = Scheduler::new(Shape::new(&[side; 2]).unwrap(), Tour::FirstFork);
    for i in 0..N {
        for j in 0..N {
            scheduler.fork(&[at(0, i, 0), at(1, j, 0)], (i, j)).unwrap();
        }
    }
    let bins = scheduler.bins();
    let body = |&(i, j): &(u64, u64), _: &mut threads::Inside<(u64, u64)>| {
        for k in 0..N {
            pen.refer(0, Op::Read, at(0, i, k));
            pen.refer(0, Op::Read, at(1, j, k));
        }
        pen.refer(0, Op::Write, at(2, j, i));
    };
    scheduler.run(Keep::No, body).unwrap();
    pen.writer.finish().unwrap();

    let of = |trace: &Path| {
        let outcome = outcomes(trace, &machine, &["page-coloring"], |_| ()).remove(0);
        (outcome.references, misses(&outcome, 1), misses(&outcome, 2))
    };
    // References, and misses of the first and the second level.
    assert_eq!(of(&untiled), (2_663_424, 1_778_688, 56_448));
    assert_eq!(of(&threaded), (1_778_688, 1_778_688, 6_662));
    assert_eq!(bins, 25);
}

/// Ding11: what a private slot saves of data that is used again beside data that passes through.
#[test]
fn a_slot_keeps_what_is_used_again() {
    let machine = reduced("clovertown-x5355", 8);
    let cache = machine.caches.iter().map(|cache| cache.bytes).max().unwrap();
    let (kept, passing) = (cache / 2, cache * 4);
    let (first, second) = (0x100_0000, 0x800_0000);
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("beside");
    let mut pen = Pen::begin(&path, 1, &[("kept", first, kept), ("passing", second, passing)]);
    for round in 0..8 {
        for line in 0..kept / 64 {
            pen.refer(0, Op::Read, first + line * 64);
        }
        for line in 0..passing / 64 / 8 {
            pen.refer(0, Op::Read, second + (round * passing / 64 / 8 + line) * 64);
        }
    }
    pen.writer.finish().unwrap();
    let plan = format!(
        "[[slot]]\nname = \"own\"\nbytes = \"{} KiB\"\nkind = \"private\"\n\
         [[data]]\nsymbol = \"kept\"\nslot = \"own\"\n[[data]]\nsymbol = \"passing\"\nslot = \"none\"\n",
        kept / 1024
    );
    let plan = Arc::new(Plan::read(&plan, "plan.toml").unwrap());
    let of: Vec<u64> = outcomes(&path, &machine, &["random", "slots"], |config| {
        config.policies[1].plan = Some(plan)
    })
    .iter()
    .map(|outcome| misses(outcome, 2))
    .collect();
    assert_eq!(of, [52_480, 36_864]);
}

/// Bugnion96, figure 6: two arrays whose parts meet in each cpu's cache, under page coloring, bin hopping and CDPC.
#[test]
fn colors_by_summaries_fill_the_cache_of_each_cpu() {
    let machine = reduced("simos-r4400", 4);
    let pages = machine.caches.iter().map(|cache| cache.bytes).max().unwrap() / PAGE;
    let threads = 4;
    let arrays = [("a", 0x100_0000), ("b", 0x100_0000 + 2 * pages * PAGE)];
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("halves");
    let mut pen = Pen::begin(&path, threads, &[]);
    let summary = |(name, start): (&str, u64)| Summary {
        name: name.to_string(),
        start,
        bytes: pages * PAGE * 2,
        offset: 0,
        unit: PAGE as i64,
        span: PAGE,
        inner: Vec::new(),
        communication: Communication::None,
        access: Access::Read,
    };
    let text = serde_json::to_string(&Loop {
        place: "small.f90:1".to_string(),
        threads: threads as u32,
        iterations: 2 * pages,
        schedule: Schedule::Even,
        direction: Direction::Forward,
        summaries: arrays.map(summary).to_vec(),
    })
    .unwrap();
    let speaker = pen.threads[0];
    pen.writer.event(speaker, Event::Summary { text }).unwrap();
    // Both parts of a cpu together are as large as its cache.
    let part = 2 * pages / threads as u64;
    for _ in 0..4 {
        for thread in 0..threads {
            for line in 0..part * PAGE / 64 {
                for (_, start) in arrays {
                    pen.refer(thread, Op::Read, start + thread as u64 * part * PAGE + line * 64);
                }
            }
        }
        pen.barrier();
    }
    pen.writer.finish().unwrap();
    let of: Vec<(u64, u64)> = outcomes(&path, &machine, &["page-coloring", "bin-hopping", "cdpc"], |_| ())
        .iter()
        .map(|outcome| (misses(outcome, 2), outcome.time_ns.wall))
        .collect();
    // Misses of the second level, and nanoseconds.
    assert_eq!(of, [(65_536, 8_236_640), (32_768, 4_550_240), (8_192, 1_784_480)]);
}

/// Verghese96, figure 6.1: threads that move, with pages of their own that one thread touched first, and pages that all read.
#[test]
fn pages_follow_threads_and_are_copied() {
    const THREADS: usize = 8;
    const OWN: u64 = 8;
    let machine = reduced("flash-cc-numa", 64);
    let line = machine.caches[0].line_bytes;
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("moved");
    let mut pen = Pen::begin(&path, THREADS, &[]);
    let own = |thread: usize| 0x100_0000 * (thread as u64 + 2);
    let shared = 0x100_0000;
    let sweep = |pen: &mut Pen, thread: usize, op: Op, start: u64| {
        for at in (0..OWN * PAGE).step_by(line as usize) {
            pen.refer(thread, op, start + at);
        }
    };
    for thread in 0..THREADS {
        sweep(&mut pen, 0, Op::Write, own(thread));
    }
    sweep(&mut pen, 0, Op::Write, shared);
    pen.barrier();
    for _ in 0..400 {
        for thread in 0..THREADS {
            sweep(&mut pen, thread, Op::Write, own(thread));
            sweep(&mut pen, thread, Op::Read, shared);
        }
    }
    pen.writer.finish().unwrap();
    let policies = [
        "round-robin",
        "first-touch",
        "migrate",
        "replicate",
        "migrate-replicate",
    ];
    let of: Vec<[u64; 4]> = outcomes(&path, &machine, &policies, |config| {
        config.schedule = Scheduling::Next { every_ns: 20_000_000 };
    })
    .iter()
    .map(|outcome| {
        let memory = &outcome.memory;
        [
            memory.local,
            memory.migrations,
            memory.replications,
            outcome.time_ns.wall,
        ]
    })
    .collect();
    // Misses of local memory, pages moved and copied, nanoseconds.
    let known = [
        [409_373, 0, 0, 451_839_056],
        [1_147_102, 0, 0, 375_510_579],
        [874_339, 220, 0, 448_384_746],
        [1_851_781, 0, 56, 308_772_456],
        [1_879_335, 136, 56, 314_061_449],
    ];
    assert_eq!(of, known);
}

/// Lee12, figure 9: two regions that exceed one cache, on the paper's first machine.
#[test]
fn a_thread_that_follows_its_regions_gains() {
    const SMALL: Source = Source {
        name: "small26",
        about: "authors = \"Nobody\"\ntitle = \"Small\"\nyear = 2026\nmachine = \"clovertown-x5365\"\noptions = []\n\
                sizes = \"small\"\ndrawn = [\"figure1\"]\nexamples = [\"figure1\"]\n",
        items: &[(
            "figure1",
            "title = \"Two regions\"\nsection = \"1\"\nkind = \"regions\"\nunit = \"percent\"\n\
             columns = [\"largest gain\"]\n[regions]\nview = \"memlat\"\n[[regions.machine]]\nname = \"clovertown\"\n\
             preset = \"clovertown-x5365\"\nsizes_kb = [3072]\nstays = [14]\n",
        )],
    };
    let room = tempfile::tempdir().unwrap();
    let paper = SMALL.read().unwrap();
    let options = Options {
        programs: None,
        keeping: Keeping {
            folder: room.path().to_path_buf(),
            traces: false,
            afresh: false,
        },
        cache_bytes: None,
        rounds: Some(1),
        full: false,
        n: None,
        only: Vec::new(),
        cpus: Vec::new(),
        live: false,
        traces: None,
    };
    let mut reproduction = Reproduction::new(&paper, &options, &|_| ()).unwrap();
    let section = reproduction.item(&paper.items[0]).unwrap();
    let gain = |line: &reproduce::Line| format!("{}: {:.3}", line.row, line.value.unwrap());
    let gains: Vec<String> = section.lines.iter().map(gain).collect();
    assert_eq!(gains, ["clovertown, cyclic: 870.977", "clovertown, random: 307.489"]);
}
