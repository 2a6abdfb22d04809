//! What is measured on samples of a long run is as close to the whole as it says.
#![forbid(unsafe_code)]

use sim::{Config, Detail, Evidence, PolicySpec};
use trace::{Op, Options, Process, Ref, Site, Symbol, Thread, Trace, Writer};

const DATA: u64 = 0x100_0000;
const BYTES: u64 = 4 << 20;
const SHORT: i64 = 8;
const LONG: i64 = 4096;
/// More than four million accesses are a long run.
const ACCESSES: u64 = (4 << 20) + (1 << 18);

/// Steps of two lengths through an array, in a mixture that changes all the time.
fn trace() -> Trace {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create_with(file.path(), &trace::Header::default(), Options::default()).expect("a trace");
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    writer.symbols([Symbol {
        process,
        name: "data".to_string(),
        addr: DATA,
        bytes: BYTES,
        file: None,
        line: None,
        fields: Vec::new(),
    }]);
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
    // All but what begins the run.
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
