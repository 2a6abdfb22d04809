//! Two groups of threads are told as two groups, placing them so is predicted to gain, and schedulers can take it.
#![forbid(unsafe_code)]

use advise::{PlacementForm, Settings, placement_matters, placement_text};
use machine::Machine;
use results::{Advice, SharingAdvice};
use serde_json::Value;
use trace::{Op, Process, Ref, Site, Symbol, Thread, Trace, Writer};

/// Eight cpus, four under each of two second-level caches.
fn machine() -> Machine {
    let text = "name = \"two-caches\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 8\n\
                [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 4096\nways = 4\nline_bytes = 64\n\
                cpus_per_instance = 1\nindex = \"physical\"\nhit_ns = 0.0\nwrite = \"back\"\n\
                [[cache]]\nname = \"L2\"\nlevel = 2\nkind = \"unified\"\nbytes = 262144\nways = 16\nline_bytes = 64\n\
                cpus_per_instance = 4\nindex = \"physical\"\nhit_ns = 10.0\nwrite = \"back\"\n\
                [memory]\nnodes = 1\nlocal_ns = 100.0\nremote_ns = 100.0\ndirty_remote_ns = 150.0\n";
    machine::from_toml(text, "two-caches.toml").expect("the machine is valid")
}

const LEFT: u64 = 0x60_0000;
const RIGHT: u64 = 0x70_0000;
const ALONE: u64 = 0x1000_0000;
const LINES: u64 = 256;

/// Of which group a thread is.
fn group(thread: usize) -> usize {
    thread / 2 % 2
}

/// What a thread has to do with the others.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Threads 0, 1, 4 and 5 write and read one array by turns, the others another one: neither their order nor turns between
    /// the caches bring them together.
    Groups,
    /// The same, and thread 0 writes both arrays before.
    Initialized,
    /// Each has an array of its own.
    Alone,
}

/// A trace of eight threads; `named`: by their group.
fn trace(kind: Kind, named: bool) -> Trace {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = Writer::create(file.path(), &trace::Header::default()).expect("a trace");
    let process = writer.process(Process {
        pid: 77,
        program: "/usr/bin/twogroups".to_string(),
        ..Process::default()
    });
    let symbol = |name: &str, addr| Symbol {
        process,
        name: name.to_string(),
        addr,
        bytes: LINES * 64,
        file: None,
        line: None,
        fields: Vec::new(),
    };
    writer.symbols([symbol("left", LEFT), symbol("right", RIGHT)]);
    let threads: Vec<u32> = (0..8)
        .map(|number| {
            let name = ["left", "right"][group(number as usize)];
            writer.thread(Thread {
                process,
                number,
                name: if named { name } else { "worker" }.to_string(),
                stack: None,
            })
        })
        .collect();
    let [read, write] =
        [(0x10, Op::Read), (0x20, Op::Write)].map(|(pc, op)| (writer.site(Site { pc, op, size: 8 }), op));
    let mut push = |thread: usize, addr: u64, (site, op): (u32, Op)| {
        let reference = Ref {
            addr,
            site,
            insns: 1,
            op,
            size: 8,
        };
        writer.push(threads[thread], reference).expect("pushed");
    };
    if kind == Kind::Initialized {
        for line in 0..LINES {
            push(0, LEFT + line * 64, write);
            push(0, RIGHT + line * 64, write);
        }
    }
    for round in 0..40 {
        for line in 0..LINES {
            for thread in 0..8usize {
                let base = match kind {
                    Kind::Alone => ALONE + thread as u64 * 0x10_0000,
                    _ => [LEFT, RIGHT][group(thread)],
                };
                // Each line is written by one of its group in each round, another one each time.
                let writes = (line + round) % 4 == [0, 1, 0, 1, 2, 3, 2, 3][thread];
                push(thread, base + line * 64, if writes { write } else { read });
            }
        }
    }
    writer.finish().expect("it is whole");
    Trace::open(file.path()).expect("it opens")
}

fn advice(kind: Kind, named: bool) -> Advice {
    advise::advise(&trace(kind, named), &machine(), &Settings::default()).expect("it simulates")
}

fn sharing(kind: Kind, named: bool) -> SharingAdvice {
    advice(kind, named).sharing.expect("there are caches to choose among")
}

fn groups(sharing: &SharingAdvice) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = sharing.groups.iter().map(|group| group.threads.clone()).collect();
    groups.sort();
    groups
}

#[test]
fn two_groups_are_told_as_two_groups() {
    for kind in [Kind::Groups, Kind::Initialized] {
        let sharing = sharing(kind, true);
        assert_eq!(
            groups(&sharing),
            [vec![0, 1, 4, 5], vec![2, 3, 6, 7]],
            "{:?}",
            sharing.graph
        );
        let edge = &sharing.graph.edges[0];
        assert_eq!(
            (group(edge.a as usize), edge.structures.len()),
            (group(edge.b as usize), 1)
        );
        assert_eq!(edge.structures[0].name, ["left", "right"][group(edge.a as usize)]);
        assert_eq!(sharing.placements[0].name, "grouped", "{:?}", sharing.placements);
        assert!(sharing.placements[0].gain > 0.05, "{:?}", sharing.placements);
        let caches: Vec<u32> = sharing.placements[0].cpus.iter().map(|cpu| cpu / 4).collect();
        let first = caches[0];
        assert_eq!(caches, [0, 0, 1, 1, 0, 0, 1, 1].map(|cache| cache ^ first));
        assert!(placement_matters(&sharing));
        assert!(
            sharing
                .verdict
                .starts_with("Pack threads 0-1,4-5 and 2-3,6-7 each under one L2"),
            "{}",
            sharing.verdict
        );
        assert!(
            sharing.verdict.contains("They share ") && sharing.verdict.contains("left"),
            "{}",
            sharing.verdict
        );
    }
}

#[test]
fn threads_that_share_nothing_make_one_line() {
    let advice = advice(Kind::Alone, true);
    let sharing = advice.sharing.expect("it was looked at");
    assert!(sharing.graph.edges.is_empty());
    assert!(sharing.groups.iter().all(|group| group.threads.len() == 1));
    assert!(!placement_matters(&sharing), "{:?}", sharing.placements);
    assert_eq!(sharing.verdict, "Under which L2 the threads run makes no difference.");
    assert!(advice.verdict.contains("other caches for the threads") || advice.verdict.contains(&sharing.verdict));
}

#[test]
fn one_thread_or_one_cache_is_not_asked_about() {
    let one = Machine {
        caches: machine().caches.into_iter().filter(|cache| cache.level == 1).collect(),
        ..machine()
    };
    let advice = advise::advise(&trace(Kind::Groups, true), &one, &Settings::default()).expect("it simulates");
    assert_eq!(advice.sharing, None);
}

#[test]
fn schedulers_take_the_placement() {
    let named = sharing(Kind::Groups, true);
    let script = placement_text(&named, PlacementForm::Taskset).expect("threads are told by their order");
    assert!(
        script.starts_with("#!/bin/sh\n") && script.contains("PID1: /usr/bin/twogroups"),
        "{script}"
    );
    for (place, cache) in [(1, "0 0-3"), (3, "1 4-7"), (8, "1 4-7")] {
        assert!(
            script.contains(&format!("under \"${{1}}\" {place} {cache}\n")),
            "{script}"
        );
    }
    let cpuset = placement_text(&named, PlacementForm::Cpuset).expect("likewise");
    assert!(
        cpuset.contains("cgroup.threads") && cpuset.contains("under \"${1}\" 5 0 0-3\n"),
        "{cpuset}"
    );

    let layers = placement_text(&named, PlacementForm::ScxLayered).expect("the groups have names of their own");
    let layers: Value = serde_json::from_str(&layers).expect("it is JSON");
    assert_eq!(layers.as_array().map(Vec::len), Some(3));
    let by_name = serde_json::json!([[{"PcommPrefix": "twogroups"}, {"CommPrefix": "right"}]]);
    assert_eq!(layers[1]["matches"], by_name);
    assert_eq!(layers[1]["kind"]["Confined"]["llcs"], serde_json::json!([1]));
    assert_eq!(layers[1]["kind"]["Confined"]["cpus_range"], serde_json::json!([4, 4]));
    assert_eq!(layers[2]["matches"], serde_json::json!([[]]));
}

#[test]
fn what_a_scheduler_cannot_take_is_refused() {
    let unnamed = sharing(Kind::Groups, false);
    let why = placement_text(&unnamed, PlacementForm::ScxLayered).expect_err("all are called the same");
    assert!(
        why.contains("`worker` and `worker`") && why.contains("pthread_setname_np"),
        "{why}"
    );
    let why = placement_text(&unnamed, PlacementForm::Systemd).expect_err("it is one process");
    assert!(why.contains("whole processes"), "{why}");
    // Of processes that are each in one group, both can take it.
    let mut processes = unnamed;
    for thread in &mut processes.graph.threads {
        thread.process = group(thread.thread as usize) as u32;
        thread.program = ["/bin/left", "/bin/right"][thread.process as usize].to_string();
    }
    let slices = placement_text(&processes, PlacementForm::Systemd).expect("each process is in one group");
    assert!(
        slices.contains("domicile-cache1.slice\n") && slices.contains("AllowedCPUs=4-7\n"),
        "{slices}"
    );
    let layers = placement_text(&processes, PlacementForm::ScxLayered).expect("programs have names of their own");
    assert!(
        layers.contains("\"PcommPrefix\": \"left\"") && !layers.contains("CommPrefix\": \"worker"),
        "{layers}"
    );
}
