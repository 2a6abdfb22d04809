//! Discovery on machines that we do not have: captured trees, against snapshots of the whole report and against hwloc's
//! view of the same trees.
//!
//! A fixture is a directory with `tree.sys.zst` (the output of `machines/capture-sys.sh`, compressed) and, if hwloc has
//! the machine in its own tests, `hwloc.txt` (caches and nodes of hwloc's expected output). Their origin is in
//! `fixtures/README.md`.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use machine::{HostReport, Index, Kind, MachineError, Trust, from_toml, host};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The captured tree, as `machines/capture-sys.sh` printed it.
fn tree(name: &str) -> String {
    let compressed = std::fs::read(fixture(name).join("tree.sys.zst")).unwrap();
    String::from_utf8(zstd::decode_all(compressed.as_slice()).unwrap()).unwrap()
}

/// Writes the files that `path:line` lines name.
fn unpack(text: &str, directory: &Path) {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines() {
        let (path, content) = line.split_once(':').unwrap();
        let file = files.entry(path).or_default();
        file.push_str(content);
        file.push('\n');
    }
    for (path, content) in files {
        let file = directory.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

fn report_of(text: &str) -> Result<HostReport, MachineError> {
    let directory = tempfile::tempdir().unwrap();
    unpack(text, directory.path());
    host(&sys::Root::new(directory.path()))
}

/// All fixtures, unpacked once: they have some ten thousand files.
static REPORTS: LazyLock<BTreeMap<&str, HostReport>> = LazyLock::new(|| {
    let read = |name| report_of(&tree(name)).unwrap();
    FIXTURES.iter().map(|name| (*name, read(name))).collect()
});

fn report(name: &str) -> &'static HostReport {
    &REPORTS[name]
}

/// A fixture without the lines for which `drop` holds.
fn report_without(name: &str, drop: impl Fn(&str) -> bool) -> HostReport {
    let text = tree(name);
    let kept: Vec<&str> = text.lines().filter(|line| !drop(line)).collect();
    report_of(&kept.join("\n")).unwrap()
}

/// The instances of each cache and the nodes, in the words of `hwloc.txt`.
fn as_hwloc(report: &HostReport) -> BTreeSet<String> {
    let list = |numbers: &[u32]| {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        sys::cpus::list(&numbers)
    };
    let mut lines = BTreeSet::new();
    for cache in &report.machine.caches {
        for cpus in report.cpu_numbers.chunks(cache.cpus_per_instance as usize) {
            let (name, bytes, ways, line) = (&cache.name, cache.bytes, cache.ways, cache.line_bytes);
            lines.insert(format!("cache {name} {bytes} {ways} {line} {}", list(cpus)));
        }
    }
    let nodes = report.machine.memory.nodes;
    for (node, number) in report.node_numbers.iter().enumerate() {
        // As the model has it: cpu c is on node c * nodes / cpus.
        let on_node = |cpu: &usize| *cpu as u32 * nodes / report.machine.cpus == node as u32;
        let cpus: Vec<u32> = (0..report.cpu_numbers.len())
            .filter(on_node)
            .map(|cpu| report.cpu_numbers[cpu])
            .collect();
        lines.insert(format!("node {number} {}", list(&cpus)));
    }
    lines
}

fn hwloc(name: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(fixture(name).join("hwloc.txt")).unwrap();
    text.lines().map(ToString::to_string).collect()
}

fn assert_same(ours: &BTreeSet<String>, theirs: &BTreeSet<String>, name: &str) {
    let ours_only: Vec<&String> = ours.difference(theirs).take(10).collect();
    let theirs_only: Vec<&String> = theirs.difference(ours).take(10).collect();
    assert!(
        ours_only.is_empty() && theirs_only.is_empty(),
        "{name}: ours {ours_only:?}, hwloc's {theirs_only:?}"
    );
}

const FIXTURES: [&str; 14] = [
    "intel-2-sockets",
    "intel-4-sockets-interleaved",
    "intel-4-sockets-offline",
    "intel-threads-apart",
    "intel-hybrid",
    "amd-8-nodes",
    "amd-8-nodes-2005",
    "amd-8-nodes-sparse",
    "arm-128-cpus",
    "arm-2-cpus-no-caches",
    "guest",
    "qemu-4-nodes",
    "qemu-8-nodes",
    "qemu-slow-node",
];

#[test]
fn reports_are_what_they_were() {
    for name in FIXTURES {
        insta::with_settings!({ snapshot_path => fixture(name), prepend_module_to_snapshot => false }, {
            insta::assert_json_snapshot!("report", report(name));
        });
    }
}

#[test]
fn every_described_machine_is_sound_and_can_be_written() {
    for name in FIXTURES {
        let report = report(name);
        report.machine.check().unwrap();
        assert_eq!(
            from_toml(&report.machine.to_toml(), name).unwrap(),
            report.machine,
            "{name}"
        );
        let mut cpus = report.cpu_numbers.clone();
        cpus.sort_unstable();
        assert_eq!(sys::cpus::list(&cpus), report.online, "{name}: each online cpu once");
    }
}

#[test]
fn uniform_machines_are_those_that_hwloc_sees() {
    for name in [
        "intel-2-sockets",
        "intel-4-sockets-interleaved",
        "intel-threads-apart",
        "amd-8-nodes",
        "amd-8-nodes-2005",
        "amd-8-nodes-sparse",
    ] {
        let report = report(name);
        assert_same(&as_hwloc(report), &hwloc(name), name);
        assert_eq!(
            report
                .notes_of(Trust::Simplified)
                .filter(|note| note.about.starts_with("cache"))
                .count(),
            0
        );
    }
}

#[test]
fn an_impossible_number_of_ways_is_changed_and_said() {
    // This kernel reports 32 MiB, and 2048 sets in 15 ways of 128-byte lines: those of one slice.
    let report = report("arm-128-cpus");
    assert_same(&as_hwloc(report), &hwloc("arm-128-cpus"), "arm-128-cpus");
    let changed: Vec<&str> = report
        .notes_of(Trust::Simplified)
        .map(|note| note.about.as_str())
        .collect();
    assert_eq!(changed, ["cache L3", "memory.frames_per_node"]);
    assert_eq!(report.machine.memory.distances[0], [10, 16, 32, 33]);
    assert_eq!(report.machine.memory.remote_ns, 1.6 * report.machine.memory.local_ns);
    // 64 KiB in 4 ways: 16 KiB a way are more than a page.
    assert_eq!(report.machine.caches[0].index, Index::Virtual);
}

#[test]
fn threads_of_a_core_become_neighbors() {
    let report = report("intel-threads-apart");
    assert_eq!(report.cpu_numbers, [0, 4, 1, 5, 2, 6, 3, 7]);
    assert!(report.notes.iter().any(|note| note.about == "cpu_numbers"));
    let shared: Vec<u32> = report
        .machine
        .caches
        .iter()
        .map(|cache| cache.cpus_per_instance)
        .collect();
    assert_eq!(shared, [2, 2, 2, 8]);
}

#[test]
fn two_kinds_of_core_are_described_as_the_larger_part_and_said() {
    let report = report("intel-hybrid");
    assert_eq!(report.machine.cpus, 5);
    // Four small cores share 1.5 MiB; the large one has a first level and a second level of its own.
    let l1 = &report.machine.caches[0];
    assert_eq!((l1.kind, l1.bytes, l1.cpus_per_instance), (Kind::Data, 32 << 10, 1));
    let l2 = report.machine.caches.iter().find(|cache| cache.name == "L2").unwrap();
    assert_eq!((l2.bytes, l2.cpus_per_instance), (1536 << 10, 5));
    let said: Vec<(&str, &str)> = report
        .notes_of(Trust::Simplified)
        .map(|note| (note.about.as_str(), note.text.as_str()))
        .collect();
    assert!(
        said.iter()
            .any(|(about, text)| *about == "cache L1D" && text.starts_with("cpus 4 have another one, of 49152"))
    );
    assert!(
        said.iter()
            .any(|(about, text)| *about == "cache L2" && text.starts_with("cpus 4 have another one, of 524288"))
    );
    assert!(
        said.iter()
            .any(|(about, text)| *about == "cache L2" && text.starts_with("cpus 0-3 share one among 4"))
    );
}

#[test]
fn cpus_that_are_offline_are_left_out_and_said() {
    let report = report("intel-4-sockets-offline");
    assert_eq!(report.online, "0-1,3-4,6-12,15");
    assert_eq!(report.machine.cpus, 12);
    // hwloc lists each instance as it is; here most instances have lost no sharer, and the report tells the rest.
    let theirs = hwloc("intel-4-sockets-offline");
    let l1d = report.machine.caches.iter().find(|cache| cache.name == "L1D").unwrap();
    assert!(theirs.contains(&format!("cache L1D {} {} {} 0,8", l1d.bytes, l1d.ways, l1d.line_bytes)));
    assert!(theirs.contains("cache L1D 16384 8 64 6"), "cpu 6 runs without cpu 14");
    assert_eq!(l1d.cpus_per_instance, 2);
    let said = report
        .notes_of(Trust::Simplified)
        .find(|note| note.about == "cache L1D")
        .unwrap();
    assert_eq!(said.text, "cpus 6,10 have one each; described as 2 that share one");
    // In this order the neighbors share a core.
    assert_eq!(report.cpu_numbers, [0, 8, 4, 12, 1, 9, 3, 11, 7, 15, 6, 10]);
}

#[test]
fn distances_of_a_ring_of_nodes() {
    let report = report("qemu-4-nodes");
    assert_eq!((report.machine.cpus, report.machine.memory.nodes), (8, 4));
    let ring = [[10, 16, 22, 16], [16, 10, 16, 22], [22, 16, 10, 16], [16, 22, 16, 10]];
    assert_eq!(report.machine.memory.distances, ring.map(Vec::from));
    let l3 = report.machine.caches.iter().find(|cache| cache.name == "L3").unwrap();
    assert_eq!(l3.cpus_per_instance, 2, "one for each node");
}

#[test]
fn a_node_without_cpus_is_a_tier() {
    let report = report("qemu-slow-node");
    assert_eq!((report.machine.cpus, report.machine.memory.nodes), (4, 2));
    assert_eq!(report.node_numbers, [0, 1, 2]);
    let [tier] = report.machine.memory.tiers.as_slice() else {
        panic!("one tier")
    };
    // At distance 42 of both.
    assert_eq!((tier.latency_ns, tier.far_latency_ns), (420.0, 420.0));
    assert!(tier.near.is_empty(), "{:?}", tier.near);
    assert_eq!(Some(tier.frames), report.node_memory_bytes[2].map(|bytes| bytes / 4096));
    assert_eq!(report.machine.memory.distances, [[10, 16], [16, 10]].map(Vec::from));
    let said = report.notes_of(Trust::Assumed).find(|note| note.about == "memory.tier");
    assert!(said.unwrap().text.starts_with("nodes 2 have memory and no cpus"));
}

#[test]
fn no_caches_reported() {
    let report = report("arm-2-cpus-no-caches");
    let names: Vec<&str> = report.machine.caches.iter().map(|cache| cache.name.as_str()).collect();
    assert_eq!(names, ["L1D", "L1I", "L2"]);
    let note = report
        .notes_of(Trust::Missing)
        .find(|note| note.about == "cache")
        .unwrap();
    assert!(
        note.text.contains("/sys/devices/system/cpu/cpu0/cache: does not exist"),
        "{}",
        note.text
    );
    assert_eq!(report.machine.clock_mhz, 800.0);
}

#[test]
fn sizes_that_the_kernel_leaves_out_are_assumed_and_said() {
    let whole = report("arm-128-cpus");
    let bare = report_without("arm-128-cpus", |line| {
        line.contains("/cache/") && !line.contains("/level:") && !line.contains("/type:") && !line.contains("/shared")
    });
    assert_eq!(bare.machine.cpus, whole.machine.cpus);
    for (bare, whole) in bare.machine.caches.iter().zip(&whole.machine.caches) {
        assert_eq!(
            (&bare.name, bare.cpus_per_instance),
            (&whole.name, whole.cpus_per_instance)
        );
    }
    for about in ["cache L1D", "cache L1I", "cache L2", "cache L3"] {
        assert!(
            bare.notes_of(Trust::Missing)
                .any(|note| note.about == about && note.text.contains("size")),
            "{about}"
        );
    }
}

#[test]
fn a_container_with_nothing_but_the_online_cpus() {
    let report = report_without("guest", |line| !line.starts_with("sys/devices/system/cpu/online"));
    assert_eq!((report.machine.cpus, report.machine.memory.nodes), (2, 1));
    assert_eq!(report.huge_pages, None);
    let missing: BTreeSet<&str> = report
        .notes_of(Trust::Missing)
        .map(|note| note.about.as_str())
        .collect();
    let all = [
        "cache",
        "clock_mhz",
        "huge_pages",
        "memory.frames_per_node",
        "memory.nodes",
        "page_bytes",
    ];
    for about in all {
        assert!(missing.contains(about), "{about} is missing and not said to be");
    }
}

#[test]
fn no_system_at_all_is_an_error_that_says_what_to_do() {
    let error = report_of("").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/sys/devices/system/cpu"), "{text}");
    assert!(text.contains("preset"), "{text}");
}

#[test]
fn the_host_itself() {
    let described = host(&sys::Root::default()).unwrap();
    assert_eq!(machine::load("host").unwrap(), described.machine);
    assert_eq!(described.machine.name, "host");
}
