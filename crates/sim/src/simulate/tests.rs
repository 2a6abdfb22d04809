use machine::{Index, Machine, Write};
use trace::{Event, Op, Ref};

use super::*;
use crate::input::{Item, Run};
use policy::Random;

const POLICIES: [&str; 5] = [
    "page-coloring",
    "bin-hopping",
    "random",
    "round-robin+random",
    "first-touch+cdpc",
];

fn preset(name: &str) -> Machine {
    let preset = machine::presets().iter().find(|preset| preset.name == name).unwrap();
    machine::from_toml(preset.text, name).unwrap()
}

fn streams(threads: u32, refs: usize) -> Streams {
    let mut random = Random::new(7);
    let mut streams = Streams::new(vec![Vec::new(); threads as usize]);
    streams.traits.has_fetches = true;
    for _ in 0..refs {
        let thread = random.below(threads);
        let items = &mut streams.threads[thread as usize];
        let near = random.below(3) > 0;
        let addr = u64::from(random.below(if near { 1 << 14 } else { 1 << 23 }));
        let op = [Op::Read, Op::Read, Op::Write, Op::Modify, Op::Fetch][random.below(5) as usize];
        let (site, insns, size) = (0, 1, 1 + random.below(40) as u16);
        items.push(Item::Ref(Ref {
            addr,
            site,
            insns,
            op,
            size,
        }));
        if random.below(100) == 0 {
            items.push(Item::Event(Event::Work {
                instructions: 1 << random.below(20),
            }));
        }
    }
    for (thread, items) in streams.threads.iter().enumerate() {
        let half = items.len() as u64 / 2;
        let thread = thread as u32;
        streams.order.insert(0, Run { thread, items: half });
        let items = items.len() as u64 - half;
        streams.order.push(Run { thread, items });
    }
    streams
}

fn json(outcomes: &[Simulated]) -> Vec<String> {
    outcomes
        .iter()
        .map(|run| serde_json::to_string(&run.outcome).unwrap())
        .collect()
}

/// The same run, split and whole.
fn agree(machine: &Machine, streams: &Streams, order: Order, classes: bool) {
    let policies = POLICIES.map(|name| PolicySpec::new(name.parse().unwrap())).to_vec();
    let config = Config {
        order,
        classes,
        ..Config::new(machine.clone(), policies)
    };
    let input = streams.input();
    assert!(front::can_split(machine, order, input.threads().len(), input.traits()));
    let split = simulate_refs(streams, &config).unwrap();
    let open = || Ok(Box::new(streams.input()) as Box<dyn Input>);
    let whole = whole(
        &open,
        &config,
        built(&config, &prepared(&config, streams).unwrap()).unwrap(),
        &|_| {},
    )
    .unwrap();
    assert_eq!(json(&split), json(&whole));
    let hints = split[4].outcome.cdpc.as_ref().unwrap();
    assert!(hints.pages > 100 && hints.asked > 100, "{hints:?}");
    let one = Config {
        policies: config.policies[2..3].to_vec(),
        ..config
    };
    assert_eq!(json(&split[2..3]), json(&simulate_refs(streams, &one).unwrap()));
}

#[test]
fn a_split_run_is_the_whole_run() {
    let mut plain = preset("simos-r4400").with_cpus(1).unwrap();
    plain.prefetch = None;
    for cache in &mut plain.caches {
        cache.inclusive = false;
        if cache.level == 1 {
            cache.index = Index::Virtual;
        }
    }
    let one = streams(1, 30_000);
    agree(&plain, &one, Order::Clock, true);
    agree(&plain, &one, Order::Clock, false);
    plain.memory.bandwidth_gbps = 0.2;
    agree(&plain, &streams(3, 30_000), Order::Recorded, true);
    plain.caches[0].write = Write::Through;
    plain.caches[0].hit_ns = 3.0;
    agree(&plain, &one, Order::Clock, true);
    plain.caches[0].allocate_on_write = false;
    agree(&plain, &one, Order::Clock, true);
    plain.caches[0].write = Write::Back;
    agree(&plain, &one, Order::Clock, false);
}

#[test]
fn what_placement_decides_is_not_split() {
    let mut machine = preset("sgi-power-indigo2-r8000");
    let streams = streams(2, 10);
    let input = streams.input();
    assert!(!front::can_split(&machine, Order::Clock, 2, input.traits()));
    machine.caches[0].index = Index::Physical;
    assert!(!front::can_split(&machine, Order::Recorded, 2, input.traits()));
}

/// An input that counts the batches asked for again, or that gives nothing again.
struct Counted<'a> {
    input: crate::input::StreamsInput<'a>,
    again: Option<&'a std::sync::atomic::AtomicU32>,
}

impl Input for Counted<'_> {
    fn traits(&self) -> crate::engine::Traits {
        self.input.traits()
    }

    fn threads(&self) -> &[crate::input::ThreadAbout] {
        self.input.threads()
    }

    fn next(&mut self, thread: u32, batch: &mut crate::input::Batch) -> Result<bool, SimError> {
        self.input.next(thread, batch)
    }

    fn repeats(&self) -> bool {
        self.again.is_some()
    }

    fn again(&mut self, thread: u32, batch: &mut crate::input::Batch) -> Result<(), SimError> {
        let again = self.again.expect("nothing is given again");
        again.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.input.again(thread, batch)
    }

    fn next_run(&mut self) -> Result<Option<Run>, SimError> {
        self.input.next_run()
    }
}

/// 40 threads in turns, in the midst of a batch each, of which a few are held.
#[test]
fn batches_that_are_given_up_change_nothing() {
    let streams = streams(40, 250_000);
    let policies: Vec<PolicySpec> = ["page-coloring", "random"]
        .map(|name| PolicySpec::new(name.parse().unwrap()))
        .to_vec();
    let mut alone = preset("simos-r4400").with_cpus(1).unwrap();
    alone.prefetch = None;
    alone.caches.iter_mut().for_each(|cache| {
        cache.inclusive = false;
        cache.index = if cache.level == 1 { Index::Virtual } else { cache.index };
    });
    let together = preset("simos-r4400").with_cpus(4).unwrap();
    let runs = [
        (together.clone(), Order::Clock),
        (together, Order::Recorded),
        (alone, Order::Recorded),
    ];
    for (at, (machine, order)) in runs.into_iter().enumerate() {
        let config = Config {
            order,
            slice_ns: 2000,
            ..Config::new(machine, policies.clone())
        };
        let count = std::sync::atomic::AtomicU32::new(0);
        let run = |again| {
            let policies = built(&config, &prepared(&config, &streams).unwrap()).unwrap();
            let open = || Counted {
                input: streams.input(),
                again,
            };
            json(
                &match at {
                    2 => split::run(Box::new(open()), &config, policies, &|_| {}),
                    _ => whole(&|| Ok(Box::new(open()) as Box<dyn Input>), &config, policies, &|_| {}),
                }
                .unwrap(),
            )
        };
        let (kept, given_up) = (run(None), run(Some(&count)));
        assert_eq!(kept, given_up, "{order:?}");
        let count = count.into_inner();
        assert!(count >= 20, "run {at}: {count} batches were asked for again");
    }
}

#[test]
fn the_hosts_threads_change_nothing() {
    let machine = preset("simos-r4400").with_cpus(4).unwrap();
    let streams = streams(6, 20_000);
    let policies = POLICIES.map(|name| PolicySpec::new(name.parse().unwrap())).to_vec();
    let run = |threads| {
        let config = Config {
            threads: Some(threads),
            ..Config::new(machine.clone(), policies.clone())
        };
        json(&simulate_refs(&streams, &config).unwrap())
    };
    assert_eq!(run(1), run(3));
}
