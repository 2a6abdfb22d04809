//! Regions of a program are told in three lines where it would gain by them, and not at all where it would not.
#![forbid(unsafe_code)]

use advise::Settings;
use machine::Machine;
use results::Advice;
use trace::{Op, Process, Ref, Site, Thread, Trace, Writer};

/// Four cpus, two under each of two caches of 128 KiB.
fn machine() -> Machine {
    let text = "name = \"two-caches\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 4\n\
                [[cache]]\nname = \"L2\"\nlevel = 1\nkind = \"unified\"\nbytes = 131072\nways = 16\nline_bytes = 64\n\
                cpus_per_instance = 2\nindex = \"physical\"\nhit_ns = 4.0\n[memory]\nlocal_ns = 100.0\n\
                [regions]\nswitch_ns = 2000.0\nstay_least_ns = 3000\nstay_most_ns = 10000000\none_cache = 1000\nall_caches = 1046\n";
    machine::from_toml(text, "two-caches.toml").expect("the machine is valid")
}

/// A thread that reads at random in two regions of so many pages, 4000 reads in each in turn.
fn advice(pages: u64, machine: &Machine) -> Advice {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create(file.path(), &trace::Header::default()).expect("a trace");
    let process = writer.process(Process {
        pid: 77,
        program: "/usr/bin/turns".to_string(),
        ..Process::default()
    });
    let thread = writer.thread(Thread {
        process,
        number: 0,
        name: "turns".to_string(),
        stack: None,
    });
    let site = writer.site(Site {
        pc: 0x10,
        op: Op::Read,
        size: 8,
    });
    let mut state = 88172645463325252u64;
    for at in 0..1_500_000u64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let reference = Ref {
            addr: (1 + at / 4000 % 2) * 0x1000_0000 + state % (pages * 64) * 64,
            site,
            insns: 1,
            op: Op::Read,
            size: 8,
        };
        writer.push(thread, reference).expect("pushed");
    }
    writer.finish().expect("it is whole");
    let trace = Trace::open(file.path()).expect("it opens");
    advise::advise(&trace, machine, &Settings::default()).expect("it simulates")
}

#[test]
fn regions_that_gain_make_three_lines() {
    let regions = advice(25, &machine()).regions.expect("they gain");
    assert!(regions.unify > 0.05, "{regions:?}");
    assert_eq!((regions.balance, regions.partition), (0.0, 0.0));
    let [found, users, would] = &regions.lines[..] else {
        panic!("{:?}", regions.lines)
    };
    assert!(found.starts_with("Regions: 2 of "), "{found}");
    assert!(users.starts_with("Users: process 0 ("), "{users}");
    let unified =
        "On two-caches (2 L2 of 128 KB) threads that go to the cache of their region (unification) would save ";
    assert!(would.starts_with(unified), "{would}");
    assert!(would.ends_with("; balancing, partitioning: nothing."), "{would}");
}

/// All of it in one cache; too much for both; a machine with one cache.
#[test]
fn what_would_not_gain_is_not_told() {
    assert_eq!(advice(12, &machine()).regions, None);
    assert_eq!(advice(60, &machine()).regions, None);
    let mut one = machine();
    one.caches[0].cpus_per_instance = 4;
    assert_eq!(advice(25, &one).regions, None);
}
