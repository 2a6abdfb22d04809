//! One program through both simulators, and how their answers are compared.

use machine::Machine;
use policy::Policy;
use proptest::prelude::*;
use results::ProgramChange;
use serde_json::Value;
use sim::Scheduling;

use crate::oracle::engine;
use crate::reference::{self, Choices, Program};

/// The choices beyond machine, program and policy.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Parameters of policies, `policy.parameter=value`.
    pub sets: &'a [String],
    pub seed: u64,
    pub classes: bool,
    /// The order of the trace instead of that of the clocks.
    pub recorded: bool,
    pub slice_ns: u64,
    /// The cpus that threads are given.
    pub schedule: Scheduling,
    /// The first cpu of each thread.
    pub placement: Option<&'a [u32]>,
    /// The time of the code of a barrier.
    pub barrier_ns: u32,
    /// Phases between which is counted.
    pub from_phase: Option<&'a str>,
    pub to_phase: Option<&'a str>,
    /// The changes of the program.
    pub changes: &'a [ProgramChange],
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            sets: &[],
            seed: 1,
            classes: true,
            recorded: false,
            slice_ns: 10_000_000,
            schedule: Scheduling::Stay,
            placement: None,
            barrier_ns: 0,
            from_phase: None,
            to_phase: None,
            changes: &[],
        }
    }
}

impl Setup<'_> {
    fn choices(&self) -> Choices {
        Choices {
            seed: self.seed,
            classes: self.classes,
            recorded: self.recorded,
            slice_ns: self.slice_ns,
            schedule: self.schedule,
            placement: self.placement.map(<[u32]>::to_vec),
            barrier_ns: self.barrier_ns.into(),
            from_phase: self.from_phase.map(String::from),
            to_phase: self.to_phase.map(String::from),
            changes: self.changes.to_vec(),
        }
    }
}

/// The model's answer, or that the machine ran out of page frames.
pub fn model(machine: &Machine, program: &Program, policy: &str, setup: &Setup) -> Option<Value> {
    let policy = policy::build(&policy.parse().expect("a policy's name"), setup.sets).expect("the policy exists");
    let outcome = reference::simulate(machine, program, policy, &setup.choices()).ok()?;
    Some(outcome.json(machine, setup.classes))
}

/// The places at which the engine's object differs from the model's in a field that the model has.
pub fn differences(model: &Value, engine: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", model, engine, &mut found);
    found
}

fn compare(at: &str, model: &Value, engine: &Value, found: &mut Vec<String>) {
    match (model, engine) {
        (Value::Object(fields), _) => {
            for (name, value) in fields {
                compare(&format!("{at}.{name}"), value, &engine[name], found);
            }
        }
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            for (number, value) in values.iter().enumerate() {
                compare(&format!("{at}[{number}]"), value, &others[number], found);
            }
        }
        _ if model == engine => {}
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ => found.push(format!("{at}: the model says {model}, the engine {engine}")),
    }
}

/// The outcome on which both agree; `None` if the machine has too few page frames, on which they must agree as well.
pub fn agree(
    machine: &Machine,
    program: &Program,
    policy: &str,
    setup: &Setup,
) -> Result<Option<Value>, TestCaseError> {
    let model = model(machine, program, policy, setup);
    let outcome = engine::simulate(machine, program, &[policy], setup).map(|mut outcomes| outcomes.remove(0));
    let (Some(model), Ok(outcome)) = (&model, &outcome) else {
        prop_assert_eq!(
            model.is_none(),
            outcome.is_err(),
            "one of them ran out of page frames: {:?}",
            outcome
        );
        return Ok(None);
    };
    let different = differences(model, outcome);
    prop_assert!(
        different.is_empty(),
        "{:?}{}",
        setup,
        report(machine, program, policy, &different)
    );
    Ok(Some(outcome.clone()))
}

/// The same under a policy made by hand.
pub fn agree_with(
    machine: &Machine,
    program: &Program,
    policy: &(impl Policy + Clone + 'static),
    setup: &Setup,
) -> Result<(), TestCaseError> {
    let model = reference::simulate(machine, program, Box::new(policy.clone()), &setup.choices());
    let outcome = engine::simulate_policy(
        machine,
        program,
        Box::new(policy.clone()),
        setup,
        sim::Detail::default(),
    );
    let (Ok(model), Ok(outcome)) = (&model, &outcome) else {
        prop_assert_eq!(model.is_err(), outcome.is_err());
        return Ok(());
    };
    let different = differences(&model.json(machine, setup.classes), outcome);
    prop_assert!(
        different.is_empty(),
        "{:?}{}",
        setup,
        report(machine, program, "made by hand", &different)
    );
    Ok(())
}

/// The answer of both, which is the same.
pub struct Agreed(Value);

pub fn run(machine: &Machine, program: &Program, policy: &str) -> Agreed {
    run_with(machine, program, policy, &Setup::default())
}

pub fn run_recorded(machine: &Machine, program: &Program, policy: &str) -> Agreed {
    let setup = Setup {
        recorded: true,
        ..Setup::default()
    };
    run_with(machine, program, policy, &setup)
}

pub fn run_with(machine: &Machine, program: &Program, policy: &str, setup: &Setup) -> Agreed {
    machine.check().expect("the machine is valid");
    let model = model(machine, program, policy, setup).expect("there are page frames enough");
    let outcomes = engine::simulate(machine, program, &[policy], setup).expect("the engine runs");
    let different = differences(&model, &outcomes[0]);
    assert!(different.is_empty(), "{}", report(machine, program, policy, &different));
    Agreed(outcomes[0].clone())
}

/// Everything that someone needs to repeat a disagreement by hand.
pub fn report(machine: &Machine, program: &Program, policy: &str, different: &[String]) -> String {
    format!(
        "\n{}\n\npolicy {policy}, machine:\n{}\ntrace:\n{}",
        different.join("\n"),
        machine.to_toml(),
        program.text()
    )
}

impl Agreed {
    pub fn value(&self) -> &Value {
        &self.0
    }

    #[track_caller]
    pub fn cache(&self, name: &str, field: &str, expected: u64) {
        cache(&self.0, name, field, expected);
    }

    #[track_caller]
    pub fn cache_of(&self, cpu: usize, name: &str, field: &str, expected: u64) {
        cache(&self.0["per_cpu"][cpu], name, field, expected);
    }

    #[track_caller]
    pub fn tlb(&self, accesses: u64, misses: u64) {
        let tlb = &self.0["tlb"];
        assert_eq!(
            (tlb["accesses"].as_u64(), tlb["misses"].as_u64()),
            (Some(accesses), Some(misses))
        );
    }

    #[track_caller]
    pub fn memory(&self, field: &str, expected: u64) {
        let memory = &self.0["memory"];
        assert_eq!(memory[field].as_u64(), Some(expected), "memory.{field} in {memory}");
    }

    #[track_caller]
    pub fn time(&self, field: &str, expected: u64) {
        let time = &self.0["time_ns"];
        assert_eq!(time[field].as_f64(), Some(expected as f64), "time_ns.{field} in {time}");
    }
}

#[track_caller]
fn cache(object: &Value, name: &str, field: &str, expected: u64) {
    let caches = object["caches"].as_array().expect("caches are a list");
    let cache = caches
        .iter()
        .find(|cache| cache["name"] == name)
        .expect("the cache exists");
    assert_eq!(cache[field].as_u64(), Some(expected), "{name}.{field} in {cache}");
}
