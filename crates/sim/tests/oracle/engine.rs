//! The engine under test: a program as streams in memory or as a trace, its answers as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use machine::Machine;
use policy::Policy;
use serde_json::Value;
use sim::{Config, Detail, Order, OtherNodes, PolicySpec, Run, SimError, Streams, Traits, Window};
use trace::{Header, Location, Op, Process, Ref, Site, Thread, Trace, TraceError, Writer};

use crate::oracle::both::Setup;
use crate::reference::{Item, Program};

/// One JSON object for each policy.
pub fn simulate(machine: &Machine, program: &Program, policies: &[&str], setup: &Setup) -> Result<Vec<Value>, String> {
    let config = config(machine, policies, setup);
    let streams = match setup.changes.is_empty() {
        true => streams(program),
        false => with_lines(program),
    };
    json(sim::simulate_refs(&streams, &config))
}

/// The same with detail, of all policies or of one.
pub fn simulate_closely(
    machine: &Machine,
    program: &Program,
    policies: &[&str],
    setup: &Setup,
    detail: Detail,
    detail_for: Option<usize>,
) -> Result<Vec<Value>, String> {
    let config = Config {
        detail,
        detail_for,
        ..config(machine, policies, setup)
    };
    json(sim::simulate_refs(&streams(program), &config))
}

/// The threads that share each line, under `first-touch`.
pub fn sharing(machine: &Machine, program: &Program, setup: &Setup) -> Result<sim::Sharing, String> {
    let config = Config {
        detail: Detail {
            sharing: true,
            ..Detail::default()
        },
        ..config(machine, &["first-touch"], setup)
    };
    let runs = sim::simulate_refs(&streams(program), &config).map_err(|error| error.to_string())?;
    let sharing = runs.into_iter().find_map(|run| run.sharing);
    sharing.ok_or_else(|| "there is no graph".to_string())
}

/// The same with a policy that no registry knows.
pub fn simulate_policy(
    machine: &Machine,
    program: &Program,
    policy: Box<dyn Policy>,
    setup: &Setup,
    detail: Detail,
) -> Result<Value, String> {
    let config = Config {
        detail,
        ..config(machine, &[], setup)
    };
    let policies = vec![("made by hand".to_string(), policy)];
    json(sim::simulate_with(&streams(program), &config, policies)).map(|mut outcomes| outcomes.remove(0))
}

fn json(runs: Result<Vec<sim::Simulated>, SimError>) -> Result<Vec<Value>, String> {
    let runs = runs.map_err(|error| error.to_string())?;
    runs.iter().for_each(remote_adds_up);
    runs.iter().for_each(waiting_adds_up);
    let object = |run: &sim::Simulated| serde_json::to_value(&run.outcome).map_err(|error| error.to_string());
    runs.iter().map(object).collect()
}

/// The waits reported for lines of the source are part of the run's waits.
fn waiting_adds_up(run: &sim::Simulated) {
    let Some(evidence) = &run.evidence else { return };
    let time = &run.outcome.time_ns;
    let stalls = time.cache_stall + time.local_stall + time.remote_stall;
    let (data, tlb): (Vec<u64>, Vec<u64>) = evidence
        .places
        .iter()
        .map(|place| (place.stall_ns, place.tlb_ns))
        .unzip();
    // Waits for code belong to no place. Figures are rounded down, those of each of up to 8 cpus.
    assert!(data.iter().sum::<u64>() <= stalls + 3 * 8, "{data:?}, {time:?}");
    assert!(tlb.iter().sum::<u64>() <= time.tlb_stall + 8, "{tlb:?}, {time:?}");
}

/// The misses of data on other nodes' memory are all that were counted, except for those from another cpu's cache.
fn remote_adds_up(run: &sim::Simulated) {
    /// At most this many structures are reported.
    const MOST: usize = 20;
    let Some(OtherNodes { structures, traffic }) = run.remote.as_ref().filter(|all| all.structures.len() < MOST) else {
        return;
    };
    let memory = &run.outcome.memory;
    let sum: u64 = structures.iter().map(|one| one.remote).sum();
    assert!(sum <= memory.remote, "{sum} by structure, {memory:?}");
    assert!(
        sum + memory.dirty_remote >= memory.remote,
        "{sum} by structure, {memory:?}"
    );
    // The same by pairs of nodes.
    let own: u64 = traffic.iter().enumerate().map(|(node, row)| row[node]).sum();
    let all: u64 = traffic.iter().flatten().sum();
    assert_eq!(all - own, sum, "{traffic:?}");
    // Lines that another cpu's dirty cache on the same node supplies count as remote.
    assert!(
        memory.local <= own && own <= memory.local + memory.dirty_remote,
        "{traffic:?}, {memory:?}"
    );
    for one in structures {
        let reasons: u64 = one.reasons.iter().map(|of| of.remote).sum();
        assert_eq!(reasons, one.remote, "{one:?}");
        assert_eq!(one.nodes.iter().sum::<u64>(), one.local + one.remote, "{one:?}");
    }
}

fn config(machine: &Machine, policies: &[&str], setup: &Setup) -> Config {
    let spec = |name: &&str| PolicySpec {
        name: name.parse().unwrap(),
        sets: setup.sets.to_vec(),
        plan: None,
    };
    Config {
        seed: setup.seed,
        order: match setup.recorded {
            true => Order::Recorded,
            false => Order::Clock,
        },
        classes: setup.classes,
        changes: setup.changes.to_vec(),
        slice_ns: setup.slice_ns,
        schedule: setup.schedule,
        placement: setup.placement.map(<[u32]>::to_vec),
        barrier_ns: setup.barrier_ns.into(),
        window: (setup.from_phase.is_some() || setup.to_phase.is_some()).then(|| Window {
            from_phase: setup.from_phase.map(String::from),
            to_phase: setup.to_phase.map(String::from),
        }),
        ..Config::new(machine.clone(), policies.iter().map(spec).collect())
    }
}

pub fn streams(program: &Program) -> Streams {
    let mut threads = vec![Vec::new(); program.spaces.len()];
    let mut order = Vec::new();
    for (thread, item) in &program.items {
        threads[*thread as usize].push(match item {
            Item::Ref {
                op,
                addr,
                size,
                insns,
                site,
            } => sim::Item::Ref(Ref {
                addr: *addr,
                site: *site,
                insns: *insns,
                op: *op,
                size: *size,
            }),
            Item::Event(event) => sim::Item::Event(event.clone()),
        });
        order.push(Run {
            thread: *thread,
            items: 1,
        });
    }
    Streams {
        traits: Traits {
            counts_instructions: program.counts_instructions,
            has_fetches: program.has_fetches,
            ..Traits::default()
        },
        spaces: program.spaces.clone(),
        arrays: program.arrays.clone(),
        threads,
        order,
        dependences: program.dependences.clone(),
        paces: program.paces.clone(),
        mispredictions: program.mispredictions.clone(),
        sites: Vec::new(),
        locations: Vec::new(),
    }
}

/// The same, each site on a line of its own: site 3 on `a.c:3`.
fn with_lines(program: &Program) -> Streams {
    let mut streams = streams(program);
    let mut last = 0;
    for (_, item) in &program.items {
        if let Item::Ref { site, .. } = item {
            last = last.max(*site);
        }
    }
    let pc = |site: u32| 0x1000 + u64::from(site);
    streams.sites = (0..=last)
        .map(|site| Site {
            pc: pc(site),
            op: Op::Read,
            size: 4,
        })
        .collect();
    let location = |site| Location {
        process: 0,
        pc: pc(site),
        function: "main".to_string(),
        file: Some("a.c".to_string()),
        line: Some(site),
        inlined_into: Vec::new(),
    };
    streams.locations = (0..=last).map(location).collect();
    streams
}

/// The color of each page (process and number) under one policy, when it was placed.
pub fn colors(machine: &Machine, program: &Program, policy: &str) -> BTreeMap<(u32, u64), u32> {
    colors_with(machine, program, policy, &Setup::default())
}

pub fn colors_with(machine: &Machine, program: &Program, policy: &str, setup: &Setup) -> BTreeMap<(u32, u64), u32> {
    let config = Config {
        detail: Detail {
            placements: true,
            ..Detail::default()
        },
        ..config(machine, &[policy], setup)
    };
    let outcomes = sim::simulate_refs(&streams(program), &config).expect("the engine runs");
    let placements = outcomes[0].placements.iter();
    placements
        .map(|(page, color)| ((page.space, page.number), *color))
        .collect()
}

/// A trace under one policy.
pub fn simulate_trace(machine: &Machine, trace: &Trace, policy: &str) -> Result<Value, String> {
    let config = config(machine, &[policy], &Setup::default());
    json(sim::simulate(trace, &config, &|_| {})).map(|mut outcomes| outcomes.remove(0))
}

/// The program written to a file in the trace format, read again and simulated.
pub fn simulate_written(
    machine: &Machine,
    program: &Program,
    policies: &[&str],
    setup: &Setup,
) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("program.trace");
    write(program, &path).map_err(|error| error.to_string())?;
    let trace = Trace::open(&path).map_err(|error| error.to_string())?;
    json(sim::simulate(&trace, &config(machine, policies, setup), &|_| {}))
}

fn write(program: &Program, path: &Path) -> Result<(), TraceError> {
    let counted = |(_, item): &(u32, Item)| matches!(item, Item::Event(trace::Event::Counted { .. }));
    let header = Header {
        chosen: program.items.iter().any(counted).then(|| trace::Chosen {
            warmed: true,
            ..trace::Chosen::default()
        }),
        counts_instructions: program.counts_instructions,
        has_fetches: program.has_fetches,
        ..Header::default()
    };
    let mut writer = Writer::create(path, &header)?;
    for _ in 0..=program.spaces.iter().copied().max().unwrap_or(0) {
        writer.process(Process::default());
    }
    for space in &program.spaces {
        let thread = Thread {
            process: *space,
            ..Thread::default()
        };
        writer.thread(thread);
    }
    for (thread, item) in &program.items {
        match item {
            Item::Event(event) => writer.event(*thread, event.clone())?,
            Item::Ref {
                op, addr, size, insns, ..
            } => {
                let site = writer.site(Site {
                    pc: 0,
                    op: *op,
                    size: *size,
                });
                let reference = Ref {
                    addr: *addr,
                    site,
                    insns: *insns,
                    op: *op,
                    size: *size,
                };
                writer.push(*thread, reference)?;
            }
        }
    }
    writer.finish().map(|_| ())
}
