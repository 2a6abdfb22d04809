//! The number of million references that are simulated in a second: `cargo run --release -p domicile-sim --example
//! speed [million references [stream [case [folder for the traces]]]]`.
//!
//! The traces are those of `trace::synthetic`, written to a file and decoded while they are
//! simulated.

use std::path::Path;
use std::time::Instant;

use machine::{Cache, Index, Kind, Machine, Memory, Replacement, Tlb, Write};
use sim::{Config, Detail, PolicySpec};
use trace::synthetic::{Kind as Stream, Stream as Refs};
use trace::{Header, Process, Thread, Trace, Writer};

const POLICIES: [&str; 8] = [
    "page-coloring",
    "bin-hopping",
    "random",
    "round-robin+page-coloring",
    "round-robin+bin-hopping",
    "round-robin+random",
    "first-touch+bin-hopping",
    "first-touch+random",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let millions: u64 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let kind = arguments.next();
    let case = arguments.next();
    let made = tempfile::tempdir()?;
    // Traces that are kept are not written again, which helps a profiler.
    let kept = arguments.next().map(std::path::PathBuf::from);
    let folder = kept.unwrap_or_else(|| made.path().to_path_buf());
    for stream in Stream::ALL {
        if kind.as_ref().is_some_and(|kind| kind != stream.name()) {
            continue;
        }
        let path = |name: &str| folder.join(format!("{}-{name}.trace", stream.name()));
        let mut plain = None;
        for (name, cpus, apart, classes, policies, graph) in CASES {
            if case.as_ref().is_some_and(|case| case != name) {
                continue;
            }
            let file = path(&format!("{cpus}-{apart}"));
            if !file.exists() {
                write(&file, stream, cpus, millions * 1_000_000, apart)?;
            }
            let seconds = seconds(&Trace::open(&file)?, &machine(cpus as u32), classes, policies, graph)?;
            let one = *plain.get_or_insert(seconds);
            println!(
                "{:8} {name:14} {:8.1} million references a second, {:5.2} of the first",
                stream.name(),
                millions as f64 / seconds,
                seconds / one
            );
        }
    }
    Ok(())
}

/// Name, cpus, private data for each thread, classes, policies, and whether the graph of shared data is made.
const CASES: [(&str, u64, bool, bool, usize, bool); 7] = [
    ("plain", 1, false, false, 1, false),
    ("eight", 1, false, false, 8, false),
    ("classes", 1, false, true, 1, false),
    ("four-own", 4, true, true, 1, false),
    ("four-shared", 4, false, true, 1, false),
    ("own-graph", 4, true, true, 1, true),
    ("shared-graph", 4, false, true, 1, true),
];

fn seconds(
    trace: &Trace,
    machine: &Machine,
    classes: bool,
    policies: usize,
    graph: bool,
) -> Result<f64, sim::SimError> {
    let specs = POLICIES[..policies]
        .iter()
        .map(|name| PolicySpec::new(name.parse().expect("a policy")))
        .collect();
    let config = Config {
        classes,
        detail: Detail {
            sharing: graph,
            ..Detail::default()
        },
        ..Config::new(machine.clone(), specs)
    };
    let start = Instant::now();
    sim::simulate(trace, &config, &|_| {})?;
    Ok(start.elapsed().as_secs_f64())
}

/// `refs` references in all; with `apart`, each thread has an address space of its own.
fn write(path: &Path, kind: Stream, threads: u64, refs: u64, apart: bool) -> Result<(), trace::TraceError> {
    let mut writer = Writer::create(path, &Header::default())?;
    let one = writer.process(Process::default());
    for number in 0..threads {
        let process = if apart && number > 0 {
            writer.process(Process::default())
        } else {
            one
        };
        let thread = writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        });
        let mut stream = Refs::new(kind, number + 1, &mut writer);
        for _ in 0..refs / threads {
            writer.push(thread, stream.next().expect("the stream is endless"))?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// 32 KiB and 1 MiB; with several cpus a TLB and two nodes.
fn machine(cpus: u32) -> Machine {
    let cache = |name: &str, level, kib: u64, ways, index, hit_ns| Cache {
        name: name.to_string(),
        level,
        kind: Kind::Unified,
        bytes: kib << 10,
        ways,
        line_bytes: 64,
        cpus_per_instance: 1,
        index,
        hash: None,
        hit_ns,
        transfer_ns: 0.0,
        others_gbps: 0.0,
        write: Write::Back,
        allocate_on_write: true,
        inclusive: false,
        replacement: Replacement::Lru,
        prefetch: None,
    };
    Machine {
        name: "speed".to_string(),
        clock_mhz: 2000.0,
        page_bytes: 4096,
        cpus,
        caches: vec![
            cache("L1", 1, 32, 8, Index::Virtual, 0.0),
            cache("L2", 2, 1024, 16, Index::Physical, 5.0),
        ],
        prefetch: None,
        core: None,
        regions: None,
        tlb: (cpus > 1).then_some(Tlb {
            entries: 64,
            ways: 64,
            wired: 0,
            refill_ns: 20.0,
            walkers: 0,
            huge_refill_ns: None,
            far: Vec::new(),
        }),
        memory: Memory {
            nodes: if cpus > 1 { 2 } else { 1 },
            local_ns: 80.0,
            remote_ns: 140.0,
            dirty_remote_ns: 160.0,
            bandwidth_gbps: 0.0,
            upgrade_ns: 0.0,
            fault_ns: 0.0,
            clear_ns: 0.0,
            huge_pages: machine::HugeData::Never,
            frames_per_node: 0,
            distances: Vec::new(),
            tiers: Vec::new(),
        },
    }
}
