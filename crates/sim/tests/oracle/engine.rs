//! The engine under test: a program as streams in memory or as a trace, its answers as JSON.

use machine::Machine;
use policy::Policy;
use serde_json::Value;
use sim::{Config, Order, PolicySpec, Run, SimError, Streams, Traits};
use trace::Ref;

use crate::both::Setup;
use crate::reference::{Item, Program};

/// One JSON object for each policy.
pub fn simulate(machine: &Machine, program: &Program, policies: &[&str], setup: &Setup) -> Result<Vec<Value>, String> {
    let config = config(machine, policies, setup);
    json(sim::simulate_refs(&streams(program), &config))
}

/// The same with a policy that no registry knows.
pub fn simulate_policy(
    machine: &Machine,
    program: &Program,
    policy: Box<dyn Policy>,
    setup: &Setup,
) -> Result<Value, String> {
    let config = config(machine, &[], setup);
    let policies = vec![("made by hand".to_string(), policy)];
    json(sim::simulate_with(&streams(program), &config, policies)).map(|mut outcomes| outcomes.remove(0))
}

fn json(outcomes: Result<Vec<sim::Outcome>, SimError>) -> Result<Vec<Value>, String> {
    let outcomes = outcomes.map_err(|error| error.to_string())?;
    let object = |outcome| serde_json::to_value(outcome).map_err(|error| error.to_string());
    outcomes.iter().map(object).collect()
}

fn config(machine: &Machine, policies: &[&str], setup: &Setup) -> Config {
    let spec = |name: &&str| PolicySpec {
        name: name.to_string(),
        sets: setup.sets.to_vec(),
    };
    Config {
        seed: setup.seed,
        order: match setup.recorded {
            true => Order::Recorded,
            false => Order::Clock,
        },
        classes: setup.classes,
        slice_ns: setup.slice_ns,
        ..Config::new(machine.clone(), policies.iter().map(spec).collect())
    }
}

fn streams(program: &Program) -> Streams {
    let mut threads = vec![Vec::new(); program.spaces.len()];
    let mut order = Vec::new();
    for (thread, item) in &program.items {
        threads[*thread as usize].push(match item {
            Item::Ref { op, addr, size, insns } => sim::Item::Ref(Ref {
                addr: *addr,
                site: 0,
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
        },
        spaces: program.spaces.clone(),
        threads,
        order,
    }
}

/// A trace under one policy.
pub fn simulate_trace(machine: &Machine, trace: &trace::Trace, policy: &str) -> Result<Value, String> {
    let config = config(machine, &[policy], &Setup::default());
    let mut items = Vec::new();
    let mut stream = trace.thread(0).map_err(|e| e.to_string())?;
    let mut batch = trace::Batch::default();
    while stream.next(&mut batch).map_err(|e| e.to_string())? {
        items.extend(batch.refs.iter().map(|r| sim::Item::Ref(*r)));
    }
    let mut streams = Streams::new(vec![items]);
    streams.traits = Traits {
        counts_instructions: true,
        has_fetches: true,
    };
    json(sim::simulate_refs(&streams, &config)).map(|mut outcomes| outcomes.remove(0))
}
