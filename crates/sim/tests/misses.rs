//! Streams of misses: recorded once, replayed under each policy, and held against the full simulation where both must
//! agree: every reference misses, and no line is used by two cpus.
#![forbid(unsafe_code)]

use std::io::Cursor;

use machine::Machine;
use results::Outcome;
use sim::misses::{record, replay};
use sim::{Config, Costs, Order, PolicySpec, SimError, VERGHESE96};
use trace::import::{self, Format};
use trace::{Header, Module, Op, Options, Process, Ref, Site, Thread, Trace, Writer};

const PAGE: u64 = 4096;
const POLICIES: [&str; 6] = [
    "first-touch",
    "round-robin",
    "post-facto",
    "migrate",
    "replicate",
    "migrate-replicate",
];

/// Four cpus on four nodes, a cache of one line each.
fn machine(frames: u64) -> Machine {
    let text = format!(
        "name = \"four-nodes\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 4\n\
         [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 64\nways = 1\nline_bytes = 64\n\
         cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\n\
         [memory]\nnodes = 4\nlocal_ns = 300.0\nremote_ns = 1200.0\ndirty_remote_ns = 1200.0\nframes_per_node = {frames}\n"
    );
    machine::from_toml(&text, "four-nodes.toml").unwrap()
}

fn import(text: &str) -> Trace {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create_with(file.path(), &Header::default(), Options::default()).unwrap();
    import::read(Format::Text, Cursor::new(text.as_bytes().to_vec()), "text", &mut writer).unwrap();
    writer.finish().unwrap();
    Trace::open(file.path()).unwrap()
}

/// Splitmix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Stretches in which a thread uses some pages: now few, now many, mostly reading. A thread uses every fourth line of a
/// page, and another one each time.
fn program(seed: u64) -> Trace {
    let mut numbers = Numbers(seed);
    let mut text = String::new();
    let mut line = [0u64; 4];
    for _ in 0..60 {
        let (thread, writes) = (numbers.below(4), numbers.below(3) == 0);
        let (first, span) = (numbers.below(12), 1 + numbers.below(3));
        for _ in 0..20 + numbers.below(200) {
            let turn = &mut line[thread as usize];
            *turn = (*turn + 1) % 16;
            let page = first + numbers.below(span);
            let op = if writes && numbers.below(40) == 0 { 'w' } else { 'r' };
            text += &format!("{thread} {op} {:x} 8\n", (page + 16) * PAGE + (*turn * 4 + thread) * 64);
        }
    }
    import(&text)
}

fn config(machine: Machine, sets: &[&str]) -> Config {
    let spec = |name: &str| PolicySpec {
        sets: sets.iter().map(|set| set.to_string()).collect(),
        ..PolicySpec::new(name.parse().unwrap())
    };
    Config {
        order: Order::Recorded,
        classes: false,
        ..Config::new(machine, POLICIES.map(spec).to_vec())
    }
}

/// The figures on which both ways must agree.
fn figures(outcome: &Outcome) -> [u64; 10] {
    let (memory, time) = (&outcome.memory, &outcome.time_ns);
    [
        memory.local,
        memory.remote,
        memory.pages,
        memory.pages_max,
        memory.migrations,
        memory.replications,
        memory.collapses,
        time.local_stall,
        time.remote_stall,
        time.policy_overhead,
    ]
}

fn agree(trace: &Trace, config: &Config) -> Vec<Outcome> {
    let stream = record(trace, config, &|_| {}).unwrap();
    let replayed = replay(&stream, config).unwrap();
    let whole = sim::simulate(trace, config, &|_| {}).unwrap();
    for (replayed, whole) in replayed.iter().zip(&whole) {
        assert_eq!(figures(replayed), figures(&whole.outcome), "{}", replayed.policy);
        assert_eq!(replayed.replayed_misses, Some(stream.misses.len() as u64));
        let worked = [replayed, &whole.outcome].map(|run| run.time_ns.worked());
        assert_eq!(worked[0], worked[1], "{}", replayed.policy);
    }
    replayed
}

#[test]
fn a_replay_comes_to_what_the_full_simulation_comes_to() {
    let mut done = [0; 3];
    for seed in 0..12 {
        let sets = ["migrate.batch=1", "replicate.batch=1", "migrate-replicate.batch=1"];
        let triggers = [16, 40, 128].map(|trigger| {
            let of = |policy: &str| format!("{policy}.trigger={trigger}");
            ["migrate", "replicate", "migrate-replicate"].map(of)
        });
        for triggers in &triggers {
            let sets: Vec<&str> = sets
                .iter()
                .copied()
                .chain(triggers.iter().map(String::as_str))
                .collect();
            for outcome in agree(&program(seed), &config(machine(0), &sets)) {
                done[0] += outcome.memory.migrations;
                done[1] += outcome.memory.replications;
                done[2] += outcome.memory.collapses;
            }
        }
    }
    assert!(done.iter().all(|&count| count > 20), "too little happens: {done:?}");
}

#[test]
fn one_in_some_misses_and_scaled_thresholds_agree_too() {
    let of = |policy: &str| ["sample=10", "batch=1"].map(|set| format!("{policy}.{set}"));
    let sets: Vec<String> = ["migrate", "replicate", "migrate-replicate"]
        .into_iter()
        .flat_map(of)
        .collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    for seed in 20..26 {
        agree(&program(seed), &config(machine(0), &sets));
    }
}

#[test]
fn under_memory_pressure_both_ways_agree() {
    let of = |policy: &str| ["trigger=16", "batch=1", "reset=50"].map(|set| format!("{policy}.{set}"));
    let mut sets: Vec<String> = ["migrate", "replicate", "migrate-replicate"]
        .into_iter()
        .flat_map(of)
        .collect();
    sets.extend(["replicate.reserve=2".into(), "migrate-replicate.reserve=2".into()]);
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let mut collapses = 0;
    for seed in 40..52 {
        // Intervals are of the clock, which a replay leaves as it was recorded: so nothing takes time that policies change.
        let mut machine = machine(6);
        (machine.memory.remote_ns, machine.memory.dirty_remote_ns) = (300.0, 300.0);
        let costs = Costs {
            move_page_ns: 0.0,
            copy_page_ns: 0.0,
            collapse_ns: 0.0,
            ..VERGHESE96
        };
        let config = Config {
            costs,
            ..config(machine, &sets)
        };
        let outcomes = agree(&program(seed), &config);
        collapses += outcomes.iter().map(|outcome| outcome.memory.collapses).sum::<u64>();
    }
    assert!(collapses > 20, "nothing is given up: {collapses}");
}

/// A stream is of the run that `first-touch` is: pages that do not conflict there do not conflict here.
#[test]
fn a_stream_has_the_misses_of_first_touch() {
    // A cache of 64 colors, and sixteen pages in a row that fit into it.
    let mut machine = machine(0);
    (machine.caches[0].bytes, machine.caches[0].ways) = (64 * PAGE, 1);
    machine.check().unwrap();
    let mut text = String::new();
    for round in 0..4 {
        for page in 0..16 {
            text += &format!("{} r {:x} 8\n", round % 2, (page + 16) * PAGE);
        }
    }
    let trace = import(&text);
    let config = config(machine, &[]);
    let stream = record(&trace, &config, &|_| {}).unwrap();
    let whole = sim::simulate(&trace, &config, &|_| {}).unwrap();
    let misses = |run: &Outcome| run.caches.iter().map(|cache| cache.misses).sum::<u64>();
    assert_eq!(misses(&stream.run), misses(&whole[0].outcome));
    // Each of two cpus misses on each page once.
    assert_eq!(stream.cache_misses().count(), 32);
}

/// The best placement in hindsight is never worse than the other policies that place a page once.
#[test]
fn post_facto_has_the_most_local_misses_of_those_that_place_a_page_once() {
    for seed in 60..70 {
        let trace = program(seed);
        let config = config(machine(0), &[]);
        let stream = record(&trace, &config, &|_| {}).unwrap();
        let local: Vec<u64> = replay(&stream, &config)
            .unwrap()
            .iter()
            .map(|run| run.memory.local)
            .collect();
        assert!(local[2] >= local[0] && local[2] >= local[1], "{local:?}");
    }
}

#[test]
fn too_little_memory_for_the_pages_is_said() {
    let config = config(machine(2), &[]);
    let stream = record(
        &program(1),
        &Config {
            machine: machine(0),
            ..config.clone()
        },
        &|_| {},
    )
    .unwrap();
    assert!(matches!(replay(&stream, &config), Err(SimError::OutOfFrames { .. })));
}

/// The paper's pages in use: 1 page at first, 2 from the copy on.
#[test]
fn pages_are_averaged_over_time() {
    let mut text = String::new();
    for thread in 0..2 {
        for miss in 0..300u64 {
            text += &format!("{thread} r {:x} 8\n", PAGE + (miss % 16 * 4 + thread) * 64);
        }
    }
    let set = ["replicate.batch=1", "replicate.hold=1", "replicate.trigger=100"];
    let config = Config {
        order: Order::Recorded,
        ..config(machine(0), &set)
    };
    let stream = record(&import(&text), &config, &|_| {}).unwrap();
    let runs = replay(&stream, &config).unwrap();
    let copied = runs.iter().find(|run| run.policy == "replicate").unwrap();
    assert_eq!((copied.memory.pages, copied.memory.pages_max), (1, 2));
    let average = copied.memory.pages_average.unwrap();
    assert!(average > 1.0 && average < 2.0, "{average}");
    assert_eq!(runs[0].memory.pages_average, Some(1.0));
}

/// Three cpus read a page that is the fourth's: with two frames in all, whichever nodes they are on, one of them gets a copy.
#[test]
fn frames_can_be_limited_together() {
    let mut text = String::new();
    for thread in [3, 0, 1, 2] {
        for miss in 0..300u64 {
            text += &format!("{thread} r {:x} 8\n", PAGE + (miss % 16 * 4 + thread) * 64);
        }
    }
    let set = [
        "replicate.batch=1",
        "replicate.hold=1",
        "replicate.trigger=100",
        "replicate.reserve=1",
    ];
    let config = Config {
        order: Order::Recorded,
        ..config(machine(0), &set)
    };
    let stream = record(&import(&text), &config, &|_| {}).unwrap();
    let copies = |frames_together| {
        let config = Config {
            frames_together,
            ..config.clone()
        };
        let runs = replay(&stream, &config).unwrap();
        let copied = runs.iter().find(|run| run.policy == "replicate").unwrap();
        (copied.memory.replications, copied.memory.pages_max)
    };
    assert_eq!(copies(None), (3, 4));
    assert_eq!(copies(Some(4)), (3, 4));
    assert_eq!(copies(Some(2)), (1, 2));
}

/// Two processes have a file mapped at different places and read three pages of it; one of them writes to the third.
#[test]
fn processes_share_pages_of_files_that_nobody_writes_to() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create(file.path(), &Header::default()).unwrap();
    let read = |op| Site { pc: 0, op, size: 8 };
    let sites = [Op::Read, Op::Write].map(|op| writer.site(read(op)));
    let bases = [0x10_0000u64, 0x77_0000];
    for base in bases {
        let process = writer.process(Process::default());
        writer.modules([Module {
            process,
            path: "/lib/shared.so".into(),
            start: base,
            bytes: 3 * PAGE,
            bias: base,
            ..Module::default()
        }]);
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        for turn in 0..600u64 {
            let page = turn % 3;
            let write = page == 2 && process == 1 && turn == 302;
            let (op, site) = if write {
                (Op::Write, sites[1])
            } else {
                (Op::Read, sites[0])
            };
            let addr = base + page * PAGE + turn / 3 % 16 * 256 + u64::from(process) * 64;
            let reference = Ref {
                addr,
                site,
                insns: 1,
                op,
                size: 8,
            };
            writer.push(thread, reference).unwrap();
        }
    }
    writer.finish().unwrap();
    let trace = Trace::open(file.path()).unwrap();
    let config = config(
        machine(0),
        &["replicate.batch=1", "replicate.trigger=50", "replicate.hold=1"],
    );
    let mut stream = record(&trace, &config, &|_| {}).unwrap();
    assert_eq!(stream.pages.len(), 6);
    assert_eq!(stream.share_files(trace.modules(), PAGE), 2);
    assert_eq!(stream.pages.len(), 4);
    let runs = replay(&stream, &config).unwrap();
    let of = |name: &str| runs.iter().find(|run| run.policy == name).unwrap().memory.clone();
    // The second process reads two pages on the first one's node.
    assert_eq!((of("first-touch").local, of("first-touch").remote), (800, 400));
    // Fifty misses on each, then it has copies.
    assert_eq!((of("replicate").replications, of("replicate").remote), (2, 100));
}

/// A thread that changes nodes finds its pages far; they follow it.
#[test]
fn pages_follow_threads_that_are_moved() {
    let mut text = String::new();
    for turn in 0..4000u64 {
        text += &format!("0 r {:x} 8\n", PAGE + turn % 64 * 64);
    }
    let config = config(
        machine(0),
        &[
            "migrate.batch=1",
            "migrate.trigger=10",
            "migrate.hold=1000",
            "migrate.reset=100",
        ],
    );
    let mut stream = record(&import(&text), &config, &|_| {}).unwrap();
    // A reference takes 300 ns and its instruction: some 760 of them an interval.
    stream.move_threads(4, 230_000);
    let runs = replay(&stream, &config).unwrap();
    let of = |name: &str| runs.iter().find(|run| run.policy == name).unwrap().memory.clone();
    let stays = of("first-touch");
    assert!(stays.remote > stays.local, "{stays:?}");
    let follows = of("migrate");
    assert_eq!((follows.migrations, follows.remote), (5, 50));
}
