//! A captured machine, with invented measurements of it.

use super::super::processor::{Chains, Faults, Pace, Pairs, Sets, Stream, Transfer, Walks};
use super::*;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// The report that Linux would give of a server, with typical figures for the rest.
fn described() -> HostReport {
    let mut machine = machine::load("icelake-sp").unwrap();
    machine.name = "host".into();
    for cache in &mut machine.caches {
        cache.hash = None;
    }
    let assumed = ["cache.hit_ns", "cache", "tlb", "memory.local_ns"];
    HostReport {
        processor: None,
        cpu_numbers: (0..machine.cpus).collect(),
        node_numbers: (0..machine.memory.nodes).collect(),
        node_memory_bytes: Vec::new(),
        online: String::new(),
        possible: None,
        present: None,
        huge_pages: None,
        notes: assumed
            .map(|about| Note {
                trust: Trust::Assumed,
                about: about.into(),
                text: String::new(),
            })
            .to_vec(),
        machine,
    }
}

fn measured(curve: &[(u64, f64)]) -> Measured {
    let curve: Vec<Point> = curve.iter().map(|&(bytes, ns)| Point { bytes, ns }).collect();
    Measured {
        cache_bytes: 6 * M,
        cache_ns: 12.0,
        memory_ns: curve.last().unwrap().ns,
        tlb_reach_bytes: Some(8 * M),
        refill_ns: Some(19.44),
        walkers: Some(4),
        huge_refill_ns: None,
        far: Vec::new(),
        others: None,
        curve,
        tlb_curve: Vec::new(),
    }
}

fn processor() -> Processor {
    Processor {
        window: Some(320),
        pace: Pace {
            clock_mhz: 3520.4,
            instructions_per_clock: Some(4.7),
            misprediction_ns: 4.64,
        },
        sets: Sets {
            refill_ns: 1.719,
            rewrite_ns: 9.25,
            bank_refill_ns: 0.904,
        },
        faults: Faults {
            fault_ns: 612.34,
            clear_ns: 88.06,
        },
        chains: [(1, 80.0), (16, 10.0)]
            .map(|(chains, ns)| Chains { chains, ns })
            .to_vec(),
        chains_of_all: Vec::new(),
        chains_of_bank: Vec::new(),
        pairs: Pairs {
            within_ns: 12.0,
            across_ns: 75.0,
            alone_ns: 80.0,
        },
        walks: Walks {
            brought: vec![0.01, 0.02, 0.6, 0.9],
        },
        stream: Stream {
            one_cpu_gbps: 20.0,
            all_cpus_gbps: 40.0,
            last_level_gbps: 0.0,
            memory_line_ns: 3.512,
            huge_memory_line_ns: 2.25,
        },
        strides: [
            (64, 4.0),
            (128, 7.0),
            (256, 16.0),
            (4 * K, 20.0),
            (64 * K, 24.0),
            (M, 50.0),
        ]
        .map(|(bytes, ns)| Point { bytes, ns })
        .to_vec(),
        transfers: vec![
            Transfer {
                cpus: [0, 1],
                shares: None,
                ns: 55.0,
            },
            Transfer {
                cpus: [0, 2],
                shares: Some("L3".to_string()),
                ns: 41.0,
            },
        ],
    }
}

fn cache<'a>(report: &'a HostReport, name: &str) -> &'a Cache {
    report.machine.caches.iter().find(|cache| cache.name == name).unwrap()
}

#[test]
fn measured_figures_take_the_place_of_usual_ones_and_are_named() {
    let mut report = described();
    let before = report.machine.clone();
    let [l2, l3] = ["L2", "L3"].map(|name| cache(&report, name).bytes);
    let curve = [
        (16 * K, 1.0),
        (32 * K, 1.2),
        (l2 / 2, 3.0),
        (l2, 3.4),
        (2 * l2, 14.0),
        (l3 / 8, 16.0),
        (l3 / 5, 20.0),
        (l3, 80.0),
        (4 * l3, 101.0),
    ];
    take(&mut report, Some(&measured(&curve)), Some(&processor()));
    report.machine.check().unwrap();
    assert!(
        cache(&report, "L2").hit_ns > 1.9 && cache(&report, "L2").hit_ns < 2.5,
        "{:?}",
        report.machine
    );
    assert_eq!(cache(&report, "L3").hit_ns, 15.0);
    let held = cache(&report, "L3").bytes;
    assert!(held <= l3 / 5 && held > l3 / 8, "{held} of {l3}");
    let sets = |machine: &Machine, name| {
        let cache = machine.caches.iter().find(|cache| cache.name == name).unwrap();
        cache.bytes / u64::from(cache.ways)
    };
    assert_eq!(
        sets(&before, "L3") / sets(&report.machine, "L3"),
        4,
        "halvings alone, so colors stay powers of two"
    );
    assert_eq!(report.machine.memory.local_ns, 100.0);
    assert_eq!(report.machine.memory.dirty_remote_ns, 55.0);
    let within = ["L2", "L3"].map(|name| cache(&report, name).transfer_ns);
    assert_eq!(within, [0.0, 26.0], "a hit of 15 ns tells the other");
    assert_eq!(
        report.machine.memory.bandwidth_gbps,
        40.0 / f64::from(before.memory.nodes)
    );
    assert_eq!(report.machine.clock_mhz, 3520.0);
    let core = report.machine.core.unwrap();
    assert_eq!(
        (core.line_ns, core.memory_line_ns, core.huge_memory_line_ns),
        (0.0, 3.51, 2.25)
    );
    let tlb = report.machine.tlb.as_ref().unwrap();
    assert_eq!((tlb.entries, tlb.refill_ns, tlb.walkers), (2048, 19.4, 4));
    // 128 bytes are still of the stream; 256 bytes to 64 KiB take 20 ns where memory takes 80, and 1 MiB more than half of that.
    let followed = cache(&report, "L2").prefetch.unwrap().stride.unwrap();
    assert_eq!((followed.ahead, followed.bytes), (4, 64 * K));
    let pair = |within_ns| {
        let mut report = report.clone();
        let mut processor = processor();
        processor.pairs.within_ns = within_ns;
        take(&mut report, None, Some(&processor));
        cache(&report, "L2").prefetch.unwrap().pair
    };
    assert_eq!([12.0, 70.0].map(pair), [true, false]);
    assert_eq!(cache(&report, "L2").prefetch.unwrap().after, 3);
    let ahead = |name| cache(&report, name).prefetch.map(|prefetch| prefetch.lines);
    assert_eq!(
        (ahead("L2"), ahead("L3")),
        (Some(20), None),
        "80 ns alone, 4 ns in order"
    );
    let core = report.machine.core.unwrap();
    assert_eq!((core.instructions_per_clock, core.outstanding), (4.7, 8));
    assert_eq!((core.set_refill_ns, core.bank_refill_ns), (1.72, 0.9));
    let of = |trust| {
        report
            .notes_of(trust)
            .map(|note| note.about.as_str())
            .collect::<Vec<_>>()
    };
    for about in ["cache.bytes", "cache.hit_ns", "memory.local_ns", "tlb", "clock_mhz"] {
        assert!(of(Trust::Measured).contains(&about), "{about}: {:?}", report.notes);
        assert!(!of(Trust::Assumed).contains(&about), "{about}: {:?}", report.notes);
    }
    assert!(
        report.basis().contains("as `domicile probe` measured it"),
        "{}",
        report.basis()
    );
}

#[test]
fn a_last_level_that_gives_nothing_is_left_out() {
    let mut report = described();
    let [l2, l3] = ["L2", "L3"].map(|name| cache(&report, name).bytes);
    let curve = [(32 * K, 1.0), (l2, 4.0), (2 * l2, 95.0), (l3, 99.0), (4 * l3, 101.0)];
    take(&mut report, Some(&measured(&curve)), None);
    report.machine.check().unwrap();
    assert!(
        report.machine.caches.iter().all(|cache| cache.name != "L3"),
        "{:?}",
        report.machine
    );
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.text.contains("L3 gives this process nothing"))
    );
}

#[test]
fn where_nothing_was_measured_the_probe_is_offered() {
    let mut report = described();
    let before = report.clone();
    take(&mut report, None, None);
    assert_eq!(report, before);
    assert!(
        report.basis().contains("`domicile probe` measures them"),
        "{}",
        report.basis()
    );
}

#[test]
fn the_host_is_the_machine_as_it_was_measured() {
    let report = here().unwrap();
    assert_eq!(load("host").unwrap(), report.machine);
    // Measurements do not change the number of cpus or nodes.
    let described = host(&sys::Root::default()).unwrap();
    assert_eq!(report.machine.cpus, described.machine.cpus);
    assert_eq!(report.machine.memory.nodes, described.machine.memory.nodes);
    assert_eq!(load("icelake-sp").unwrap(), machine::load("icelake-sp").unwrap());
}

#[test]
fn a_last_level_that_others_use_keeps_its_bytes_and_loses_lines_with_time() {
    let mut report = described();
    let l3 = cache(&report, "L3").bytes;
    let curve = [
        (16 * K, 1.0),
        (32 * K, 1.2),
        (l3 / 8, 16.0),
        (l3 / 5, 20.0),
        (l3, 80.0),
        (4 * l3, 101.0),
    ];
    let others = |bytes| Measured {
        others: Some(crate::Others {
            bytes,
            gbps: 2.504,
            ns: 14.5,
            kept_once: 0.9,
        }),
        ..measured(&curve)
    };
    take(&mut report, Some(&others(l3)), None);
    report.machine.check().unwrap();
    assert_eq!(
        (cache(&report, "L3").bytes, cache(&report, "L3").others_gbps),
        (l3, 2.5)
    );
    assert_eq!(cache(&report, "L2").others_gbps, 0.0);
    // 14.5 ns less a load from the first cache; the walk, which loses lines while it goes on, takes 16 and more.
    assert_eq!(cache(&report, "L3").hit_ns, 13.5);
    let note = report
        .notes_of(Trust::Measured)
        .find(|note| note.about == "cache.bytes")
        .unwrap();
    assert!(note.text.contains("others bring 2.5 GB/s into L3"), "{}", note.text);
    assert_eq!(cache(&report, "L3").replacement, machine::Replacement::Lru);
    take(&mut report, Some(&others(l3 / 2)), None);
    assert_eq!(cache(&report, "L3").bytes, l3 / 2);
    // Most lines that are read once are gone.
    let mut passed_over = others(l3);
    if let Some(others) = &mut passed_over.others {
        others.kept_once = 0.12;
    }
    let mut report = described();
    take(&mut report, Some(&passed_over), None);
    report.machine.check().unwrap();
    assert_eq!(cache(&report, "L3").replacement, machine::Replacement::Reuse);
    let note = report
        .notes_of(Trust::Measured)
        .find(|note| note.about == "cache.bytes")
        .unwrap();
    assert!(
        note.text.contains("keeps 12% of the lines that are read once"),
        "{}",
        note.text
    );
}
