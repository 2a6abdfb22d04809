//! The way in: a trace or streams in memory, a machine, policies; out come outcomes.

use policy::Policy;
use rayon::prelude::*;
use trace::Trace;

use crate::clock::Units;
use crate::config::{Config, Order, PolicySpec};
use crate::counts::Class;
use crate::engine::Engine;
use crate::error::SimError;
use crate::input::{Input, Streams};
use crate::outcome::{Outcome, outcome};
use crate::schedule::Schedule;
use crate::tracing::TraceInput;

/// Called now and then, from any thread, with the references carried out since it was called last
/// (of all policies together).
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Simulates a trace; one outcome for each policy of `config`, in their order.
pub fn simulate(trace: &Trace, config: &Config, progress: Progress) -> Result<Vec<Outcome>, SimError> {
    let policies = built(config)?;
    let spawned = trace.spawned()?;
    let open = || Ok(Box::new(TraceInput::new(trace, &spawned)) as Box<dyn Input>);
    side_by_side(&open, config, policies, progress)
}

fn built(config: &Config) -> Result<Vec<(String, Box<dyn Policy>)>, SimError> {
    let build = |spec: &PolicySpec| Ok((spec.name.clone(), policy::build(&spec.name, &spec.sets)?));
    config.policies.iter().map(build).collect()
}

/// Simulates streams in memory; one outcome for each policy of `config`, in their order.
pub fn simulate_refs(streams: &Streams, config: &Config) -> Result<Vec<Outcome>, SimError> {
    simulate_with(streams, config, built(config)?)
}

/// The same for policies that were made by hand, with the names to report; those of `config`
/// are not looked at.
pub fn simulate_with(
    streams: &Streams,
    config: &Config,
    policies: Vec<(String, Box<dyn Policy>)>,
) -> Result<Vec<Outcome>, SimError> {
    let open = || Ok(Box::new(streams.input()) as Box<dyn Input + '_>);
    side_by_side(&open, config, policies, &|_| {})
}

type Open<'a, 'b> = &'a (dyn Fn() -> Result<Box<dyn Input + 'b>, SimError> + Sync);

/// Runs all policies, on as many threads of the host as are allowed.
fn side_by_side(
    open: Open,
    config: &Config,
    policies: Vec<(String, Box<dyn Policy>)>,
    progress: Progress,
) -> Result<Vec<Outcome>, SimError> {
    let one = |(name, policy): (String, Box<dyn Policy>)| one_run(open, config, &name, policy, progress);
    if policies.len() == 1 {
        return policies.into_iter().map(one).collect();
    }
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = config.threads {
        pool = pool.num_threads(threads);
    }
    let pool = pool.build().map_err(|error| SimError::Host(error.to_string()))?;
    pool.install(|| policies.into_par_iter().map(one).collect())
}

fn one_run(
    open: Open,
    config: &Config,
    name: &str,
    policy: Box<dyn Policy>,
    progress: Progress,
) -> Result<Outcome, SimError> {
    let mut input = open()?;
    let mut engine = Engine::new(config, policy, input.traits())?;
    let threads = input.threads().len();
    if let Some(acting) = &mut engine.acting {
        acting.set_threads(threads as u32);
    }
    let slice = config.slice_ns.saturating_mul(1 << 20) as Units;
    let schedule = Schedule::new(&mut engine, input.as_mut(), slice, progress);
    let used = match config.order {
        Order::Clock => schedule.by_clock()?,
        Order::Recorded => schedule.recorded()?,
    };
    finish(&mut engine, &used);
    Ok(outcome(&engine, name, &config.machine, &used, config.detail.per_cpu))
}

/// The end of the run: cpus wait for the last, and undecided sharing was false.
pub fn finish(engine: &mut Engine, used: &[bool]) {
    let wall = engine.cpus.iter().map(|cpu| cpu.clock).max().unwrap_or(0);
    for (cpu, _) in engine.cpus.iter_mut().zip(used).filter(|(_, used)| **used) {
        cpu.spent.imbalance += wall - cpu.clock;
        cpu.clock = wall;
    }
    for pending in engine.directory.undecided() {
        engine.decide(pending, Class::FalseSharing);
    }
}
