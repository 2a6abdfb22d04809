//! The clock beside the simulation: which model of the processor is taken.

use advise::Settings;
use results::{Advice, Native};
use trace::{Header, Op, Process, Ref, Site, Thread, Trace, Writer};

/// Loads that all miss, of which ten can be on their way.
const MACHINE: &str = "
    name = \"overlaps\"
    clock_mhz = 1000
    page_bytes = 4096
    cpus = 1
    [[cache]]
    name = \"L1\"
    level = 1
    kind = \"data\"
    bytes = 4096
    ways = 4
    line_bytes = 64
    hit_ns = 0.0
    [memory]
    local_ns = 100.0
    [core]
    instructions_per_clock = 1
    window = 200
    outstanding = 10
    store_buffer = 10
";
const LOADS: u64 = 300_000;

fn advice(native: Native) -> Advice {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("walk.trace");
    let mut writer = Writer::create(&file, &Header::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let site = writer.site(Site {
        pc: 0,
        op: Op::Read,
        size: 8,
    });
    for at in 0..LOADS {
        let load = Ref {
            addr: 0x10_0000 + at % 4096 * 64,
            site,
            insns: 1,
            op: Op::Read,
            size: 8,
        };
        writer.push(thread, load).unwrap();
    }
    writer.finish().unwrap();
    let machine = machine::from_toml(MACHINE, "overlaps").unwrap();
    let settings = Settings {
        native: Some(native),
        ..Settings::default()
    };
    advise::advise(&Trace::open(&file).unwrap(), &machine, &settings).unwrap()
}

fn took(ms: u64) -> Native {
    Native {
        wall_ns: ms * 1_000_000,
        user_ns: ms * 1_000_000,
        ..Native::default()
    }
}

#[test]
fn the_model_that_is_nearer_to_the_clock_is_taken() {
    // 100 ns a load if each waits by itself, a tenth if they overlap.
    let advice = advice(took(30));
    let native = advice.native.as_ref().unwrap();
    assert!(native.is_right() && native.simulated_ns > 27_000_000, "{native:?}");
    assert!(native.overlapping_ns.unwrap() < 9_000_000, "{native:?}");
    // All that follows is by it.
    assert!(advice.base().unwrap().time_ns.wall > 27_000_000);
    assert!(!advice.otherwise.contains("as simulated"), "{}", advice.otherwise);
}

#[test]
fn no_bound_is_claimed_where_no_model_is_near() {
    let advice = advice(took(300));
    let native = advice.native.as_ref().unwrap();
    assert!(!native.is_right() && native.overlapping_ns.is_some(), "{native:?}");
    assert!(
        advice.otherwise.contains("times as long as simulated"),
        "{}",
        advice.otherwise
    );
    assert!(
        !advice.verdict.contains("nothing that is changed about memory"),
        "{}",
        advice.verdict
    );
    // A run that is too short to be measured says nothing.
    assert_eq!(self::advice(took(10)).native, None);
}
