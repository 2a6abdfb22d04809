//! Simulation and advice.

use ::advise::{Policies, Settings};
use policy::{Kind, Name};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyString};
use results::{Document, ProgramChange};
use sim::{Detail, PolicySpec};

use crate::failed;
use crate::machines::AnyMachine;
use crate::policies::{InPython, Raised, has};
use crate::result::Result as OfRun;
use crate::traces::Trace;
use crate::waiting::wait_for;

/// The parts of an outcome beyond its totals, as `domicile simulate --by` names them.
const PARTS: [&str; 6] = ["thread", "structure", "line", "page", "time", "stack"];

/// Simulates a trace on a machine under placement policies, and returns the outcomes, one for each policy.
///
/// `set`: parameters, as in `["migrate.trigger=64"]`. `changes`: changes of the program's data, as `domicile simulate --change` takes
/// them. `by`: splits the counts, too: any of thread, structure, line, page, time, stack. `classes`: whether misses are classified.
#[pyfunction]
#[pyo3(signature = (trace, machine, policies = None, *, set = vec![], changes = vec![], by = vec![], seed = 1, cpus = None, classes = true))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn simulate(
    py: Python<'_>,
    trace: &Trace,
    machine: AnyMachine<'_>,
    policies: Option<Bound<'_, PyAny>>,
    set: Vec<String>,
    changes: Vec<String>,
    by: Vec<String>,
    #[pyo3(from_py_with = crate::seed)] seed: u64,
    #[pyo3(from_py_with = crate::cpus)] cpus: Option<u32>,
    classes: bool,
) -> PyResult<OfRun> {
    let mut machine = machine.load()?;
    if let Some(cpus) = cpus {
        machine = machine.with_cpus(cpus).map_err(failed)?;
    }
    let given = match &policies {
        Some(policies) => several(policies)?,
        None => vec![Given::Name("page-coloring".to_string())],
    };
    if given.is_empty() {
        return Err(failed("`policies` is empty: name one at least"));
    }
    let names: Vec<String> = given.iter().filter_map(Given::name).collect();
    let policies = specs(&names, &set)?;
    if let Some(other) = by.iter().find(|part| !PARTS.contains(&part.as_str())) {
        return Err(failed(format_args!(
            "`by` has `{other}`, which is none of {}",
            PARTS.join(", ")
        )));
    }
    let parts = |part: &str| by.iter().any(|given| given == part);
    let detail = Detail {
        threads: parts("thread"),
        structures: parts("structure"),
        source_lines: if parts("line") { usize::MAX } else { 0 },
        pages: if parts("page") { usize::MAX } else { 0 },
        timeline: parts("time"),
        profile: parts("stack"),
        ..Detail::default()
    };
    let changes: Vec<ProgramChange> = changes
        .iter()
        .map(|change| change.parse().map_err(failed))
        .collect::<PyResult<_>>()?;
    let config = sim::Config {
        seed,
        detail,
        classes,
        changes,
        ..sim::Config::new(machine, policies)
    };
    let of = trace;
    let trace = of.with_references()?;
    let runs = match config.policies.is_empty() {
        true => Vec::new(),
        false => wait_for(py, |wanted| sim::simulate(trace, &config, &|_| wanted.or_end()))?
            .map_err(|error| of.error(error))?,
    };
    let mut runs = runs.into_iter();
    let mut in_order = Vec::new();
    for given in &given {
        match given {
            Given::Name(_) => in_order.extend(runs.next()),
            Given::Object(object) => in_order.push(by_object(py, of, &config, object)?),
        }
    }
    let runs = in_order;
    let header = trace.header();
    let outcomes = runs.into_iter().map(|run| {
        let mut outcome = run.outcome;
        outcome.program.clone_from(&header.program);
        outcome.arguments.clone_from(&header.arguments);
        if let Some(profile) = &mut outcome.profile {
            profile.keep(results::Profile::KEPT);
        }
        outcome
    });
    Ok(OfRun(Document::Outcomes(outcomes.collect())))
}

/// Says what to change about the program of a trace so that it waits less for memory, and what that would save.
///
/// `exact`: causes and reuse from all of a long run, and not from samples.
#[pyfunction]
#[pyo3(signature = (trace, machine, policies = None, *, set = vec![], seed = 1, cpus = None, exact = false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn advise(
    py: Python<'_>,
    trace: &Trace,
    machine: AnyMachine<'_>,
    policies: Option<Bound<'_, PyAny>>,
    set: Vec<String>,
    #[pyo3(from_py_with = crate::seed)] seed: u64,
    #[pyo3(from_py_with = crate::cpus)] cpus: Option<u32>,
    exact: bool,
) -> PyResult<OfRun> {
    let mut machine = machine.load()?;
    if let Some(cpus) = cpus {
        machine = machine.with_cpus(cpus).map_err(failed)?;
    }
    let policies = match policies {
        Some(policies) => Policies::These(specs(&names(&policies)?, &set)?),
        None => Policies::All {
            sets: set,
            plan: None,
            every: false,
        },
    };
    let of = trace;
    let trace = of.with_references()?;
    let advice = wait_for(py, |wanted| {
        let settings = Settings {
            policies,
            seed,
            exact,
            broke: capture::broke_off(trace.header()).map(str::to_string),
            progress: Some(&|_| wanted.or_end()),
            ..Settings::default()
        };
        ::advise::advise(trace, &machine, &settings)
    })?;
    Ok(OfRun(Document::Advice(Box::new(
        advice.map_err(|error| of.error(error))?,
    ))))
}

/// Whether a policy takes these parameters.
///
/// Errors: it does not, or there is no such policy.
#[pyfunction]
pub fn check_policy(policy: String, set: Vec<String>) -> PyResult<()> {
    specs(&[policy], &set).map(drop)
}

/// A policy by its name, or one written in Python.
enum Given<'py> {
    Name(String),
    Object(Bound<'py, PyAny>),
}

impl Given<'_> {
    fn name(&self) -> Option<String> {
        match self {
            Given::Name(name) => Some(name.clone()),
            Given::Object(_) => None,
        }
    }
}

/// One policy or several.
fn several<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Given<'py>>> {
    let one = |given: Bound<'py, PyAny>| match given.extract::<String>() {
        Ok(name) => Given::Name(name),
        Err(_) => Given::Object(given),
    };
    if given.is_instance_of::<PyString>() || has(given, "place")? || has(given, "observe")? {
        return Ok(vec![one(given.clone())]);
    }
    given.try_iter()?.map(|given| given.map(one)).collect()
}

/// Simulates a policy written in Python.
fn by_object(py: Python<'_>, of: &Trace, config: &sim::Config, object: &Bound<'_, PyAny>) -> PyResult<sim::Simulated> {
    let raised = Raised::default();
    let own = InPython::new(object, &raised)?;
    // As for any policy, what it does not decide falls to the defaults.
    let defaults = policy::build(&Name::default_of(Kind::Home), &[]).map_err(failed)?;
    let policy = policy::Combined::new(vec![Box::new(own), defaults]);
    let name = object.get_type().name()?.to_string();
    let run = wait_for(py, |wanted| {
        sim::simulate_trace_with(&of.trace, config, (name, Box::new(policy)), &|_| wanted.or_end())
    });
    let error = raised.lock().ok().and_then(|mut raised| raised.take());
    match error {
        Some(error) => Err(error),
        None => run?.map_err(|error| of.error(error)),
    }
}

/// One name or several.
fn names(given: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match given.extract::<String>() {
        Ok(name) => Ok(vec![name]),
        Err(_) => given.extract(),
    }
}

/// Policies with their parameters; all names are right.
fn specs(names: &[String], sets: &[String]) -> PyResult<Vec<PolicySpec>> {
    let names: Vec<Name> = names
        .iter()
        .map(|name| name.parse().map_err(failed))
        .collect::<PyResult<_>>()?;
    if let Some(set) = sets.iter().find(|set| {
        !names
            .iter()
            .any(|name| name.has(set.split('.').next().unwrap_or_default()))
    }) {
        return Err(failed(format_args!(
            "`{set}` sets a parameter of a policy that is not simulated here"
        )));
    }
    let spec = |name: Name| {
        let of_it = |set: &&String| name.has(set.split('.').next().unwrap_or_default());
        let sets: Vec<String> = sets.iter().filter(of_it).cloned().collect();
        policy::build(&name, &sets).map_err(failed)?;
        Ok(PolicySpec {
            sets,
            ..PolicySpec::new(name)
        })
    };
    names.into_iter().map(spec).collect()
}
