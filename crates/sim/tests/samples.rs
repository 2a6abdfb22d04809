//! Measurements on samples of a long run are as close to the whole as they claim.
#![forbid(unsafe_code)]

use sim::{Config, Detail, Evidence, PolicySpec};
use trace::{Op, Options, Process, Ref, Site, Symbol, Thread, Trace, Writer};

const DATA: u64 = 0x100_0000;
const BYTES: u64 = 4 << 20;
const SHORT: i64 = 8;
const LONG: i64 = 4096;
/// More than four million accesses are a long run.
const ACCESSES: u64 = (4 << 20) + (1 << 18);

fn data(process: u32) -> Symbol {
    Symbol {
        process,
        name: "data".to_string(),
        addr: DATA,
        bytes: BYTES,
        file: None,
        line: None,
        fields: Vec::new(),
    }
}

/// Steps of two lengths through an array, in a mixture that changes all the time.
fn trace() -> Trace {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create_with(file.path(), &trace::Header::default(), Options::default()).expect("a trace");
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    writer.symbols([data(process)]);
    let (op, size) = (Op::Read, 8);
    let site = writer.site(Site {
        pc: 0x40_0010,
        op,
        size,
    });
    let mut random = policy::Random::new(7);
    let mut offset = 0;
    for at in 0..ACCESSES {
        // From nine of ten short steps to one of ten, three times.
        let short = 9 - (at * 27 / ACCESSES) % 9;
        let step = if u64::from(random.below(10)) < short {
            SHORT
        } else {
            LONG
        };
        offset = (offset + step.unsigned_abs()) % BYTES;
        let reference = Ref {
            addr: DATA + offset,
            site,
            insns: 1,
            op,
            size,
        };
        writer.push(thread, reference).expect("it is written");
    }
    writer.finish().expect("it is whole");
    Trace::open(file.path()).expect("it is read")
}

fn evidence(trace: &Trace, exact: bool) -> Evidence {
    let machine = machine::load("simos-r4400").expect("the preset is there");
    let config = Config {
        detail: Detail {
            causes: true,
            exact,
            ..Detail::default()
        },
        ..Config::new(
            machine.with_cpus(1).expect("one"),
            vec![PolicySpec::new("page-coloring".parse().unwrap())],
        )
    };
    let mut runs = sim::simulate(trace, &config, &|_| {}).expect("it runs");
    runs.remove(0).evidence.expect("it was asked for")
}

fn share(evidence: &Evidence, step: i64) -> f64 {
    let steps = &evidence.places[0].steps;
    let found = steps.iter().find(|found| found.bytes == step);
    found.map_or(0.0, |found| found.share)
}

#[test]
fn a_sample_is_as_close_to_the_whole_as_it_says() {
    let trace = trace();
    let (some, all) = (evidence(&trace, false), evidence(&trace, true));
    assert_eq!(all.sampled, None);
    // All but the first access of the run.
    assert_eq!(all.places[0].steps_seen, ACCESSES - 1);
    let sampled = some.sampled.expect("it is long");
    assert_eq!(sampled.accesses, ACCESSES);
    assert!(sampled.one_in() > 4.0 && sampled.error() < 0.05, "{sampled:?}");
    let seen = some.places[0].steps_seen;
    assert!(seen <= sampled.bursts * sampled.burst && seen > ACCESSES / 16, "{seen}");
    for step in [SHORT, LONG] {
        let (some, all) = (share(&some, step), share(&all, step));
        assert!(all > 0.3, "{step}: {all}");
        assert!((some - all).abs() < 3.0 * sampled.error(), "{step}: {some} of {all}");
    }
    let used = |evidence: &Evidence| evidence.places[0].used_far.expect("lines were watched");
    let line_bytes = all.line_bytes;
    let (some, all) = (used(&some), used(&all));
    let line = line_bytes as f64;
    assert!(
        (some - all).abs() < 3.0 * sampled.line_error() * line,
        "{some} of {all}"
    );
}

/// Instructions without a name that miss once or twice each, as in an interpreter's start; more than steps are counted of.
const START: u64 = 20_000;
/// Rows that are walked down, four in each round of the loop.
const ROWS: u64 = 512;
const ROUND: u64 = 4;
const ROW: u64 = 4096;

/// A long start, and then columns of the data, one after another, by an unrolled loop whose code has no names.
fn walked_after_a_long_start() -> Trace {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create_with(file.path(), &trace::Header::default(), Options::default()).expect("a trace");
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    writer.symbols([data(process)]);
    let (op, size) = (Op::Read, 8);
    let mut sites = (0..START + ROUND).map(|at| {
        let pc = match at.checked_sub(START) {
            None => 0x40_0000 + at * 4096,
            Some(of_loop) => 0x1000_0000 + of_loop * 16,
        };
        writer.site(Site { pc, op, size })
    });
    let start: Vec<u32> = sites.by_ref().take(START as usize).collect();
    let of_loop: Vec<u32> = sites.collect();
    let once = (0..).zip(&start).map(|(at, site)| (*site, 0x4000_0000 + at * 64));
    let columns = 0..64;
    let walk = columns.flat_map(|column| {
        let rows = (0..ROWS).zip(of_loop.iter().cycle());
        rows.map(move |(row, site)| (*site, DATA + row * ROW + column * 8))
    });
    for (site, addr) in once.chain(walk) {
        let reference = Ref {
            addr,
            site,
            insns: 1,
            op,
            size,
        };
        writer.push(thread, reference).expect("it is written");
    }
    writer.finish().expect("it is whole");
    Trace::open(file.path()).expect("it is read")
}

#[test]
fn an_unrolled_walk_without_names_is_one_place_however_long_the_start_was() {
    let found = evidence(&walked_after_a_long_start(), false);
    let named = |place: &&sim::Place| found.structures[place.structure].what.name == "data";
    let places: Vec<_> = found.places.iter().filter(named).collect();
    assert_eq!(places.len(), 1, "{places:#?}");
    let step = places[0].steps.first().expect("steps were seen");
    assert_eq!(step.bytes, ROW as i64);
    assert!(step.share > 0.9, "{step:?}");
}
