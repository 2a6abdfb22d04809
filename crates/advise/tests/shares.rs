//! Causes are parts of the waiting: whatever the machine, they come to no more than all of it.

use advise::Settings;
use proptest::prelude::*;
use trace::{Header, Op, Process, Ref, Site, Thread, Trace, Writer};

/// A walk: its instruction, where it begins, its step, how far it goes before it begins again, and whether it writes.
#[derive(Clone, Debug)]
struct Walk {
    begin: u64,
    step: u64,
    length: u64,
    write: bool,
}

fn walks() -> impl Strategy<Value = Vec<Vec<Walk>>> {
    let step = prop_oneof![Just(8u64), Just(24), Just(64), Just(4096), Just(16_000), 1..1u64 << 20];
    let walk = (0..64u64, step, 1..2000u64, any::<bool>()).prop_map(|(begin, step, length, write)| Walk {
        begin: 0x1000_0000 + begin * 0x10_0000,
        step,
        length,
        write,
    });
    prop::collection::vec(prop::collection::vec(walk, 1..5), 1..4)
}

fn trace(threads: &[Vec<Walk>], file: &std::path::Path) -> Trace {
    let mut writer = Writer::create(file, &Header::default()).unwrap();
    let process = writer.process(Process::default());
    for (number, walks) in threads.iter().enumerate() {
        let thread = writer.thread(Thread {
            process,
            number: number as u64 + 1,
            ..Thread::default()
        });
        for (at, walk) in walks.iter().enumerate() {
            let op = if walk.write { Op::Write } else { Op::Read };
            let site = writer.site(Site {
                pc: 0x40_0000 + (number * 16 + at) as u64 * 4,
                op,
                size: 8,
            });
            for round in 0..3000 {
                let addr = walk.begin + round % walk.length * walk.step;
                let reference = Ref {
                    addr,
                    site,
                    insns: 2,
                    op,
                    size: 8,
                };
                writer.push(thread, reference).unwrap();
            }
        }
    }
    writer.finish().unwrap();
    Trace::open(file).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: harness::cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn causes_come_to_no_more_than_the_whole(threads in walks(), preset: prop::sample::Index) {
        let presets = machine::presets();
        let preset = &presets[preset.index(presets.len())];
        let machine = machine::from_toml(preset.text, preset.name).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let trace = trace(&threads, &folder.path().join("walks.trace"));
        let advice = advise::advise(&trace, &machine, &Settings::default()).unwrap();
        let base = advice.base().unwrap();
        let time = &base.time_ns;
        let stalls = time.cache_stall + time.local_stall + time.remote_stall + time.tlb_stall;
        let causes: u64 = advice.causes.iter().map(|cause| cause.stall_ns).sum();
        // Each cpu's figures are rounded down.
        prop_assert!(causes <= stalls + 4 * 3, "{} of {}: {:#?}", causes, stalls, advice.causes);
        for todo in &advice.todo {
            prop_assert!((0.0..=1.0).contains(&todo.share), "{todo:?}");
            if let Some(gain) = todo.gain {
                prop_assert!((0.01..=1.0).contains(&gain), "{todo:?}");
            }
        }
        let rank = |todo: &results::Todo| todo.gain.unwrap_or(todo.share / 2.0);
        let ranked = advice.todo.is_sorted_by(|a, b| rank(a) >= rank(b));
        prop_assert!(ranked, "the largest gain is not first");
    }
}
