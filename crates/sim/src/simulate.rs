//! The way in: a trace or streams in memory, a machine, policies; out come outcomes.

use std::collections::HashMap;
use std::sync::Arc;

use policy::{HomesFrom, Interest, Kind, Name, WorkOrder};
use rayon::prelude::*;
use trace::Trace;

use results::PageMap;

use crate::calibrate;
use crate::candidate::{Candidate, Named, Progress, pool};
use crate::cdpc::{self, Material, OfTrace, Prepared};
use crate::changes::{self, NewOrder};
use crate::config::{Config, Order, PolicySpec};
use crate::detail::{self, Names};
use crate::error::SimError;
use crate::front;
use crate::input::{Input, Streams};
use crate::memory::Memory;
use crate::misses::{self, Scribe};
use crate::outcome::Simulated;
use crate::run::{Open, one_run};
use crate::split;
use crate::structures::Structures;
use crate::tracing::TraceInput;
use crate::work::{Changed, Interchange, Reordered, ReorderedInput, Tile, changed_streams, reordered_streams};

/// Simulates a trace; one run for each policy of `config`, in their order.
pub fn simulate(trace: &Trace, config: &Config, progress: Progress) -> Result<Vec<Simulated>, SimError> {
    if let Some(window) = &config.window {
        window.is_of(&trace.phases()?)?;
    }
    let spawned = trace.spawned()?;
    let hints = prepared(
        config,
        &OfTrace {
            trace,
            spawned: &spawned,
        },
    )?;
    let changed = changed(config, &TraceInput::new(trace, &spawned).names())?;
    let prepare = |order: &Sorting, config: &Config| match order {
        Sorting::Marked(order) => Reordered::new(trace, order, config),
        Sorting::Changed(order) => Reordered::changed(trace, &spawned, order),
    };
    by_order_of_work(config, changed, &prepare, &|reordered, config| match reordered {
        None => {
            let open = || Ok(Box::new(TraceInput::new(trace, &spawned)) as Box<dyn Input>);
            side_by_side(&open, config, built(config, &hints)?, progress)
        }
        Some(reordered) => {
            let open = || Ok(Box::new(ReorderedInput::new(&reordered, &spawned)) as Box<dyn Input>);
            let outcomes = side_by_side(&open, config, built(config, &hints)?, progress)?;
            Ok(with_work(outcomes, reordered.outcome()))
        }
    })
}

fn built(config: &Config, hints: &Prepared) -> Result<Vec<Candidate>, SimError> {
    let build = |spec: &PolicySpec| {
        let policy = policy::build(&spec.name, &spec.sets)?;
        Ok(Candidate {
            known: Some(spec.name.clone()),
            plan: spec.plan.clone(),
            ..Candidate::new((spec.name.to_string(), policy), hints)
        })
    };
    config.policies.iter().map(build).collect()
}

/// The hints that the policies of `config` want.
fn prepared(config: &Config, material: &dyn Material) -> Result<Prepared, SimError> {
    let policies = config.policies.iter().map(|spec| policy::build(&spec.name, &spec.sets));
    let policies = policies.collect::<Result<Vec<_>, _>>()?;
    Prepared::new(policies.iter().map(|policy| policy.as_ref()), config, material)
}

/// Simulates streams in memory; one run for each policy of `config`, in their order.
pub fn simulate_refs(streams: &Streams, config: &Config) -> Result<Vec<Simulated>, SimError> {
    if let Some(window) = &config.window {
        window.is_of(&streams.phases())?;
    }
    let hints = prepared(config, streams)?;
    let changed = changed(config, &streams.input().names())?;
    let prepare = |order: &Sorting, config: &Config| match order {
        Sorting::Marked(order) => reordered_streams(streams, order, config),
        Sorting::Changed(order) => changed_streams(streams, order),
    };
    by_order_of_work(config, changed, &prepare, &|reordered, config| match reordered {
        None => in_memory(streams, config, built(config, &hints)?),
        Some((streams, work)) => Ok(with_work(in_memory(&streams, config, built(config, &hints)?)?, &work)),
    })
}

/// The page access map of a trace, with the runs of a simulation of it that kept [`crate::Detail::placements`].
pub fn page_map(trace: &Trace, config: &Config, runs: &[Simulated]) -> Result<PageMap, SimError> {
    let spawned = trace.spawned()?;
    cdpc::page_map(
        config,
        &OfTrace {
            trace,
            spawned: &spawned,
        },
        runs,
    )
}

/// The same for streams in memory.
pub fn page_map_of_refs(streams: &Streams, config: &Config, runs: &[Simulated]) -> Result<PageMap, SimError> {
    cdpc::page_map(config, streams, runs)
}

/// Puts work in another order: a policy, or a change of the program.
enum Sorting {
    Marked(WorkOrder),
    Changed(Changed),
}

/// The order that a change of the work asks for.
fn changed(config: &Config, names: &Names) -> Result<Option<Changed>, SimError> {
    if config.changes.is_empty() {
        return Ok(None);
    }
    let structures = Structures::new(&names.tables);
    let Some((data, order)) = changes::new_order(config, &structures)? else {
        return Ok(None);
    };
    Ok(Some(match order {
        NewOrder::Tiled { bytes } => Changed::Tiled(Tile {
            data,
            structures,
            bytes,
        }),
        NewOrder::Interchanged { line } => {
            let sites = detail::sites_of(names, &line).map_err(|what| SimError::Change {
                change: format!("interchange,line={line}"),
                what,
            })?;
            Changed::Interchanged(Interchange {
                data: data.into_iter().collect(),
                structures,
                sites: sites.into_iter().collect(),
            })
        }
    }))
}

/// Simulates policies over the work as it is, or over the reordered work.
type RunInOrder<'a, P> = &'a (dyn Fn(Option<P>, &Config) -> Result<Vec<Simulated>, SimError> + Sync);

/// Policies that leave the work in the same order are simulated together, over the same streams: `prepare` puts the
/// work in an order, `run` simulates policies over the result, or over the work as it is.
fn by_order_of_work<P: Send>(
    config: &Config,
    changed: Option<Changed>,
    prepare: &dyn Fn(&Sorting, &Config) -> Result<P, SimError>,
    run: RunInOrder<P>,
) -> Result<Vec<Simulated>, SimError> {
    let mut groups: Vec<(Option<WorkOrder>, Vec<usize>)> = Vec::new();
    for (place, spec) in config.policies.iter().enumerate() {
        let order = policy::work_order(&spec.name, &spec.sets)?;
        match groups.iter_mut().find(|(known, _)| *known == order) {
            Some((_, places)) => places.push(place),
            None => groups.push((order, vec![place])),
        }
    }
    // No policy has an order of its own if a change has one.
    let changed = changed.map(Sorting::Changed);
    let prepared = groups.iter().map(|(order, _)| {
        let marked = order.map(Sorting::Marked);
        let order = marked.as_ref().or(changed.as_ref());
        order.map(|order| prepare(order, config)).transpose()
    });
    let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
    let one = |(prepared, (_, places)): (Option<P>, (Option<WorkOrder>, Vec<usize>))| {
        let detailed = config
            .detail_for
            .map(|one| places.iter().position(|place| *place == one));
        let group = Config {
            policies: places.iter().map(|&place| config.policies[place].clone()).collect(),
            detail: match detailed {
                Some(None) => config.detail.of_totals(),
                _ => config.detail,
            },
            detail_for: detailed.flatten(),
            ..config.clone()
        };
        Ok(places.into_iter().zip(run(prepared, &group)?).collect::<Vec<_>>())
    };
    let groups: Vec<_> = prepared.into_iter().zip(groups).collect();
    let outcomes: Result<Vec<_>, SimError> = match config.threads {
        Some(1) => groups.into_iter().map(one).collect(),
        _ => groups.into_par_iter().map(one).collect(),
    };
    let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
    outcomes.sort_by_key(|(place, _)| *place);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn with_work(mut runs: Vec<Simulated>, work: &results::Work) -> Vec<Simulated> {
    for run in &mut runs {
        run.outcome.order = Some(work.clone());
    }
    runs
}

/// The same for policies that were made by hand, with the names to report; those of `config`
/// are not looked at.
pub fn simulate_with(streams: &Streams, config: &Config, policies: Vec<Named>) -> Result<Vec<Simulated>, SimError> {
    let hints = Prepared::new(policies.iter().map(|(_, policy)| policy.as_ref()), config, streams)?;
    let candidates = policies.into_iter().map(|named| Candidate::new(named, &hints));
    in_memory(streams, config, candidates.collect())
}

fn in_memory(streams: &Streams, config: &Config, policies: Vec<Candidate>) -> Result<Vec<Simulated>, SimError> {
    let open = || Ok(Box::new(streams.input()) as Box<dyn Input + '_>);
    side_by_side(&open, config, policies, &|_| {})
}

/// A trace under one policy that was made by hand; those of `config` are not looked at.
pub fn simulate_trace_with(
    trace: &Trace,
    config: &Config,
    named: Named,
    progress: Progress,
) -> Result<Simulated, SimError> {
    if let Some(window) = &config.window {
        window.is_of(&trace.phases()?)?;
    }
    let spawned = trace.spawned()?;
    let open = || Ok(Box::new(TraceInput::new(trace, &spawned)) as Box<dyn Input>);
    let candidate = Candidate::new(named, &Prepared::default());
    let mut runs = side_by_side(&open, config, vec![candidate], progress)?;
    Ok(runs.remove(0))
}

/// Tells the policies that ask for it where the misses of each page come from: those of a run under first touch, with
/// the colors that the policy gives.
fn foretell(open: Open, config: &Config, policies: &mut [Candidate]) -> Result<(), SimError> {
    let first_touch = Name::default_of(Kind::Home);
    let mut known: HashMap<Name, Arc<policy::BestHomes>> = HashMap::new();
    let by_misses = |one: &&mut Candidate| one.policy.wants_best_homes() == Some(HomesFrom::Misses);
    for one in policies.iter_mut().filter(by_misses) {
        let with_first_touch = |name: &Name| name.with(&first_touch);
        let as_now = one.known.as_ref().map_or_else(|| first_touch.clone(), with_first_touch);
        let best = match known.get(&as_now) {
            Some(best) => best.clone(),
            None => {
                let scribe = Scribe::default();
                let listener = Candidate::new((as_now.to_string(), scribe.policy(&as_now)?), &Prepared::default());
                let run = one_run(open, &misses::plain(config), listener, &|_| {})?;
                let stream = scribe.stream(run.outcome);
                let best = Arc::new(misses::best_homes(&stream, &config.machine));
                known.insert(as_now, best.clone());
                best
            }
        };
        one.policy.take_best_homes(&best);
    }
    Ok(())
}

/// Runs all policies, on as many threads of the host as are allowed; their common part is run once, if they have one.
fn side_by_side(
    open: Open,
    config: &Config,
    mut policies: Vec<Candidate>,
    progress: Progress,
) -> Result<Vec<Simulated>, SimError> {
    let follows_regions = |one: &&Candidate| one.policy.interest().accessed_ns > 0;
    if let Some(one) = policies.iter().find(follows_regions) {
        let policy = one.name.clone();
        if config.order == Order::Recorded {
            return Err(SimError::NoCommonTime { policy });
        }
        if config.schedule.times().is_some() {
            return Err(SimError::TwoSchedulers { policy });
        }
    }
    foretell(open, config, &mut policies)?;
    let wants_bounds = policies.iter().any(|one| one.policy.wants_bounds());
    let following = match wants_bounds {
        true => calibrate::following(&config.machine)?,
        false => calibrate::described(&config.machine),
    };
    let prices = Memory::prices(&config.machine, config.costs, following);
    for one in &mut policies {
        one.policy.take_prices(&prices);
    }
    if !config.detail.is_close() {
        return totals(open, config, policies, progress);
    }
    // A policy that is looked at closely has a run of its own; if only one is, the others go the fast way.
    let Some(one) = config
        .detail_for
        .filter(|&one| one < policies.len() && policies.len() > 1)
    else {
        return whole(open, config, policies, progress);
    };
    let mut others = policies;
    let close = vec![others.remove(one)];
    let plain = Config {
        detail: config.detail.of_totals(),
        ..config.clone()
    };
    let close = || whole(open, config, close, progress);
    let others = || totals(open, &plain, others, progress);
    let (close, others) = match config.threads {
        Some(1) => (close(), others()),
        _ => rayon::join(close, others),
    };
    let mut outcomes = others?;
    for outcome in close? {
        outcomes.insert(one, outcome);
    }
    Ok(outcomes)
}

/// All policies without detail: those that move nothing share everything that does not depend on placement.
fn totals(
    open: Open,
    config: &Config,
    policies: Vec<Candidate>,
    progress: Progress,
) -> Result<Vec<Simulated>, SimError> {
    let input = open()?;
    let closely = config.window.is_some() || config.barrier_ns > 0.0 || !config.changes.is_empty();
    if closely
        || input.warmed()
        || !front::can_split(&config.machine, config.order, input.threads().len(), input.traits())
    {
        drop(input);
        return whole(open, config, policies, progress);
    }
    let places = policies.iter().map(|one| one.policy.interest() == Interest::NONE);
    let places: Vec<bool> = places.collect();
    let (still, dynamic): (Vec<_>, Vec<_>) = policies
        .into_iter()
        .partition(|one| one.policy.interest() == Interest::NONE);
    let still = || match still.is_empty() {
        true => Ok(Vec::new()),
        false => split::run(input, config, still, progress),
    };
    let dynamic = || whole(open, config, dynamic, progress);
    let (still, dynamic) = match config.threads {
        Some(1) => (still(), dynamic()),
        _ => rayon::join(still, dynamic),
    };
    let (mut still, mut dynamic) = (still?.into_iter(), dynamic?.into_iter());
    let next = |place| if place { still.next() } else { dynamic.next() };
    Ok(places.into_iter().filter_map(next).collect())
}

/// Each policy a run of its own, side by side.
fn whole(
    open: Open,
    config: &Config,
    policies: Vec<Candidate>,
    progress: Progress,
) -> Result<Vec<Simulated>, SimError> {
    let one = |one: Candidate| one_run(open, config, one, progress);
    if policies.len() <= 1 {
        return policies.into_iter().map(one).collect();
    }
    pool(config)?.install(|| policies.into_par_iter().map(one).collect())
}

#[cfg(test)]
mod tests;
