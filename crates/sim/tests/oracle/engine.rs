//! The engine under test: a program as a trace, its answers as JSON.

use machine::Machine;
use serde_json::Value;
use sim::{Config, Order, PolicySpec, Run, Streams, Traits};
use trace::Ref;

use crate::both::Setup;
use crate::reference::{Item, Program};

pub fn simulate(machine: &Machine, program: &Program, policies: &[&str], setup: &Setup) -> Result<Vec<Value>, String> {
    let outcomes = sim::simulate_refs(&streams(program), &config(machine, policies, setup));
    outcomes.map(json).map_err(|error| error.to_string())
}

pub fn simulate_trace(machine: &Machine, trace: &trace::Trace, policy: &str) -> Result<Value, String> {
    let config = config(machine, &[policy], &Setup::default());
    let outcomes = sim::simulate(trace, &config, &|_| {}).map_err(|error| error.to_string())?;
    json(outcomes).pop().ok_or("no outcome".to_string())
}

fn config(machine: &Machine, policies: &[&str], setup: &Setup) -> Config {
    let spec = |name: &&str| PolicySpec {
        name: name.to_string(),
        sets: setup.sets.to_vec(),
    };
    Config {
        seed: setup.seed,
        classes: setup.classes,
        order: if setup.recorded { Order::Recorded } else { Order::Clock },
        ..Config::new(machine.clone(), policies.iter().map(spec).collect())
    }
}

fn streams(program: &Program) -> Streams {
    let mut streams = Streams {
        traits: Traits {
            counts_instructions: program.counts_instructions,
            has_fetches: program.has_fetches,
        },
        spaces: program.spaces.clone(),
        threads: vec![Vec::new(); program.spaces.len()],
        order: Vec::new(),
    };
    for (thread, item) in &program.items {
        let item = match item {
            Item::Ref { op, addr, size, insns } => sim::Item::Ref(Ref {
                addr: *addr,
                site: 0,
                insns: *insns,
                op: *op,
                size: *size,
            }),
            Item::Event(event) => sim::Item::Event(event.clone()),
        };
        streams.threads[*thread as usize].push(item);
        streams.order.push(Run {
            thread: *thread,
            items: 1,
        });
    }
    streams
}

fn json(outcomes: Vec<sim::Outcome>) -> Vec<Value> {
    outcomes
        .iter()
        .map(|outcome| serde_json::to_value(outcome).expect("an outcome is JSON"))
        .collect()
}
