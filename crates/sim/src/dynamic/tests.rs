//! Policies, each made for one test: the reports they get, and the effects of their actions.

use std::sync::{Arc, Mutex};

use machine::{Cache, Index, Kind, Machine, Memory, Replacement, Tlb, Write};
use policy::{Action, Interest, Observation, Page, Placement, Policy, Touch, World};
use trace::{Op, Ref};

use crate::{Config, Item, Streams, simulate_with};

type Log = Arc<Mutex<Vec<(Observation, u64)>>>;

/// Answers its n-th observation with the n-th action, and keeps all of them.
struct Script {
    interest: Interest,
    actions: Vec<Action>,
    log: Log,
}

impl Policy for Script {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement::default()
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn observe(&mut self, observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        let mut log = self.log.lock().unwrap();
        actions.extend(self.actions.get(log.len()));
        log.push((*observation, world.now_ns));
    }
}

/// One level of 1 KiB, pages of 512 bytes, an instruction each ns, 100 ns to memory.
fn machine(cpus: u32, frames_per_node: u64) -> Machine {
    Machine {
        name: "test".to_string(),
        clock_mhz: 1000.0,
        page_bytes: 512,
        cpus,
        caches: vec![Cache {
            name: "L1".to_string(),
            level: 1,
            kind: Kind::Unified,
            bytes: 1024,
            ways: 2,
            line_bytes: 64,
            cpus_per_instance: 1,
            index: Index::Physical,
            hash: None,
            hit_ns: 0.0,
            transfer_ns: 0.0,
            others_gbps: 0.0,
            write: Write::Back,
            allocate_on_write: true,
            inclusive: false,
            replacement: Replacement::Lru,
            prefetch: None,
        }],
        prefetch: None,
        core: None,
        regions: None,
        tlb: Some(Tlb {
            entries: 2,
            ways: 2,
            wired: 0,
            refill_ns: 0.0,
            walkers: 0,
            huge_refill_ns: None,
            far: Vec::new(),
        }),
        memory: Memory {
            nodes: 1,
            local_ns: 100.0,
            remote_ns: 100.0,
            dirty_remote_ns: 100.0,
            bandwidth_gbps: 0.0,
            upgrade_ns: 0.0,
            fault_ns: 0.0,
            clear_ns: 0.0,
            huge_pages: machine::HugeData::Never,
            frames_per_node,
            distances: Vec::new(),
            tiers: Vec::new(),
        },
    }
}

fn read(addr: u64) -> Item {
    Item::Ref(Ref {
        addr,
        site: 0,
        insns: 0,
        op: Op::Read,
        size: 4,
    })
}

/// The outcome of one thread's reads, and the reports to the policy.
fn run(
    machine: Machine,
    addresses: &[u64],
    interest: Interest,
    actions: Vec<Action>,
) -> (results::Outcome, Vec<(Observation, u64)>) {
    let log = Log::default();
    let script = Script {
        interest,
        actions,
        log: Arc::clone(&log),
    };
    let streams = Streams::new(vec![addresses.iter().copied().map(read).collect()]);
    let config = Config::new(machine, Vec::new());
    let policy: Box<dyn Policy> = Box::new(script);
    let mut runs = simulate_with(&streams, &config, vec![("script".to_string(), policy)]).unwrap();
    let log = log.lock().unwrap().clone();
    (runs.remove(0).outcome, log)
}

fn page(number: u64) -> Page {
    Page { space: 0, number }
}

#[test]
fn touches_of_a_closed_page_are_reported_until_it_is_opened() {
    let interest = Interest {
        cache_misses: 1,
        touches: true,
        ..Interest::NONE
    };
    let actions = vec![
        Action::Close { page: page(0), cpus: 1 },
        // Touched for the first time: it stays closed.
        Action::Open { page: page(9), cpus: 1 },
        Action::Open { page: page(0), cpus: 1 },
    ];
    let (outcome, log) = run(machine(1, 0), &[0, 4, 8, 12, 16], interest, actions);
    assert!(matches!(log[0].0, Observation::Miss(miss) if miss.page == page(0)));
    let touched = |at: usize| matches!(log[at].0, Observation::Touched(touched) if touched.page == page(0));
    assert!(touched(1) && touched(2));
    assert_eq!(log.len(), 3);
    assert_eq!(outcome.time_ns.policy_overhead, 2 * 19_900);
}

#[test]
fn a_closed_page_is_open_to_other_cpus() {
    let interest = Interest {
        cache_misses: 1,
        touches: true,
        ..Interest::NONE
    };
    let close = Action::Close {
        page: page(0),
        cpus: 0b10,
    };
    let (outcome, log) = run(machine(2, 0), &[0, 4, 8], interest, vec![close]);
    assert_eq!((log.len(), outcome.time_ns.policy_overhead), (1, 0));
}

#[test]
fn a_thread_runs_on_where_it_was_moved_to() {
    let interest = Interest {
        cache_misses: 1,
        ..Interest::NONE
    };
    let there = Action::MoveThread { thread: 0, cpu: 1 };
    let (outcome, log) = run(machine(2, 0), &[0, 4, 8, 12], interest, vec![there]);
    let references: Vec<u64> = outcome.per_cpu.iter().map(|cpu| cpu.references).collect();
    assert_eq!(references, [1, 3]);
    // The line is missed again in the other cpu's cache.
    assert_eq!((log.len(), outcome.caches[0].misses), (2, 2));
    assert_eq!(outcome.per_cpu[0].time_ns.policy_overhead, 50_000);
    // It cannot go on there before it has left here.
    assert_eq!(outcome.per_cpu[1].time_ns.imbalance, 50_101);
    assert_eq!(outcome.time_ns.total, 2 * outcome.time_ns.wall);
}

/// Moves thread 2 to cpu 1 at its first observation, and keeps how many threads each cpu then had.
struct Mover {
    interest: Interest,
    runnable: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Policy for Mover {
    fn place(&mut self, _touch: &Touch, _world: &World) -> Placement {
        Placement::default()
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn observe(&mut self, _observation: &Observation, world: &World, actions: &mut Vec<Action>) {
        let mut runnable = self.runnable.lock().unwrap();
        if runnable.is_empty() {
            actions.push(Action::MoveThread { thread: 2, cpu: 1 });
        }
        runnable.push(world.runnable.clone());
    }
}

/// Threads 0 and 2 are of cpu 0, where 2 waits; thread 1 ends at once. When 2 is moved, each cpu has one.
#[test]
fn a_thread_that_is_taken_out_of_a_queue_is_not_counted_there() {
    let runnable: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let mover = Mover {
        interest: Interest {
            touches: true,
            tick_ns: 500,
            ..Interest::NONE
        },
        runnable: Arc::clone(&runnable),
    };
    let stream = |base: u64| (0..40).map(|line| read(base + line * 64)).collect::<Vec<Item>>();
    let streams = Streams::new(vec![stream(0), vec![read(1 << 20)], stream(1 << 21)]);
    let config = Config::new(machine(2, 0), Vec::new());
    let policy: Box<dyn Policy> = Box::new(mover);
    simulate_with(&streams, &config, vec![("mover".to_string(), policy)]).unwrap();
    let runnable = runnable.lock().unwrap();
    assert_eq!((&runnable[0][..], &runnable[1][..]), (&[2, 0][..], &[1, 1][..]));
}

#[test]
fn a_tick_comes_with_each_period_that_passes() {
    let interest = Interest {
        tick_ns: 250,
        ..Interest::NONE
    };
    // Ten misses of 101 ns each: 1010 ns.
    let addresses: Vec<u64> = (0..10).map(|i| i * 64).collect();
    let (_, log) = run(machine(1, 0), &addresses, interest, Vec::new());
    let times: Vec<u64> = log.iter().map(|(_, now)| *now).collect();
    assert_eq!(times, [303, 505, 808, 1010]);
}

#[test]
fn pressure_is_reported_when_it_begins() {
    let interest = Interest {
        pressure_frames: 3,
        ..Interest::NONE
    };
    let addresses: Vec<u64> = (0..5).map(|i| i * 512).collect();
    let (_, log) = run(machine(1, 6), &addresses, interest, Vec::new());
    assert_eq!(log.len(), 1);
    assert!(matches!(log[0].0, Observation::Pressure(pressure) if pressure.free_frames == 2));
}

#[test]
fn misses_are_sampled() {
    let addresses: Vec<u64> = (0..20).map(|i| i * 512).collect();
    let interest = Interest {
        cache_misses: 3,
        tlb_misses: 7,
        ..Interest::NONE
    };
    let (outcome, log) = run(machine(1, 0), &addresses, interest, Vec::new());
    assert_eq!((outcome.caches[0].misses, outcome.tlb.misses), (20, Some(20)));
    let of = |level: policy::MissLevel| {
        let same = |observation: &Observation| matches!(observation, Observation::Miss(miss) if miss.level == level);
        log.iter().filter(|(observation, _)| same(observation)).count()
    };
    assert_eq!((of(policy::MissLevel::Cache), of(policy::MissLevel::Tlb)), (6, 2));
}

#[test]
fn frames_of_pages_that_moved_away_are_used_again() {
    let interest = Interest {
        cache_misses: 1,
        ..Interest::NONE
    };
    let mut machine = machine(1, 4);
    // Four colors: each page can be moved to another frame.
    machine.caches[0].bytes = 4096;
    let actions = (0..100)
        .map(|i| Action::Move {
            page: page(0),
            to: Placement {
                color: Some((i + 1) % 4),
                node: None,
            },
        })
        .collect();
    let (outcome, _) = run(machine, &[0; 100], interest, actions);
    // Each move makes the page's line miss once more, for the first time where it is now.
    assert_eq!(outcome.memory.recolorings, 100);
    assert_eq!((outcome.caches[0].misses, outcome.caches[0].cold), (100, Some(100)));
    assert_eq!((outcome.memory.pages, outcome.memory.pages_max), (1, 2));
}

#[test]
fn a_frame_that_is_freed_loses_its_streams() {
    let interest = Interest {
        cache_misses: 1,
        ..Interest::NONE
    };
    let mut machine = machine(1, 0);
    machine.caches[0].bytes = 4096;
    machine.caches[0].prefetch = Some(machine::Prefetch::default());
    let away = Action::Move {
        page: page(0),
        to: Placement {
            color: Some(3),
            node: None,
        },
    };
    // Page 1 takes the frame that page 0 leaves: line 1 does not go on from page 0's line 0, but
    // line 2 goes on from line 1, and 3 to 6 are brought.
    let (outcome, _) = run(machine.clone(), &[0, 512 + 64], interest, vec![away]);
    assert_eq!(outcome.memory.recolorings, 1);
    assert_eq!(outcome.caches[0].prefetches, Some(0));
    let (outcome, _) = run(machine, &[0, 512 + 64, 512 + 128, 512 + 192], interest, vec![away]);
    assert_eq!(outcome.caches[0].prefetches, Some(5));
    assert_eq!(outcome.caches[0].prefetch_hits, Some(1));
}
