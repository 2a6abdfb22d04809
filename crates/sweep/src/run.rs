//! Running the points that are not done yet: here, or wherever somebody asks for some of them by their numbers.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use results::Outcome;
use sim::misses::MissStream;
use sim::{Config, PolicySpec, SimError};
use trace::Trace;

use crate::error::SweepError;
use crate::file::Rows;
use crate::points::{Group, Point, groups};
use crate::row::Row;
use crate::spec::Spec;

/// How a sweep is run.
pub struct Limits<'a> {
    /// Threads that simulate; `None`: one for each cpu.
    pub threads: Option<usize>,
    /// Called with the number of points done, and of all.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Points that are simulated side by side, for each cpu: they share the decoding of their trace.
const BESIDE: usize = 4;

/// Simulates all points of a sweep that the rows do not have, and keeps each as a row.
///
/// A point that fails is a row with its error.
///
/// Errors: the specification names something that does not exist; the rows cannot be written.
pub fn run(spec: &Spec, rows: &mut Rows, limits: &Limits) -> Result<(), SweepError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // More threads than cpus take memory, and gain nothing.
    let threads = limits.threads.map(|threads| threads.clamp(1, cpus));
    let beside = threads.unwrap_or(cpus);
    let mut count = rows.rows().len() as u64;
    let mut open: Option<(&Group, Result<Simulation, String>)> = None;
    let groups = groups(spec)?;
    let batches = left(&groups, &rows.keys(), BESIDE * beside);
    let all = groups.iter().map(|group| group.points.len() as u64).sum();
    (limits.progress)(count, all);
    for (group, points) in batches {
        if open.as_ref().is_none_or(|(of, _)| *of != group) {
            open = Some((group, Simulation::open(spec, group, threads, &HashMap::new())));
        }
        if let Some((_, simulation)) = &open {
            rows_of(group, &points, simulation)
                .into_iter()
                .for_each(|row| rows.push(row));
        }
        count += points.len() as u64;
        (limits.progress)(count, all);
        rows.save_now_and_then()?;
    }
    rows.save()
}

/// Checks that everything that a specification names is there, so that nothing is written for one that is refused.
pub fn check(spec: &Spec) -> Result<(), SweepError> {
    groups(spec).map(drop)
}

/// The numbers of all points that the rows do not have, in batches of `most` at most that share a trace and a machine.
pub fn batches(spec: &Spec, rows: &Rows, most: usize) -> Result<Vec<Vec<u64>>, SweepError> {
    let groups = groups(spec)?;
    let left = left(&groups, &rows.keys(), most.max(1)).into_iter();
    Ok(left
        .map(|(_, points)| points.iter().map(|point| point.number).collect())
        .collect())
}

/// Simulates these points. `local`: the places of traces that the specification calls otherwise.
pub fn simulate(
    spec: &Spec,
    numbers: &[u64],
    threads: Option<usize>,
    local: &HashMap<PathBuf, PathBuf>,
) -> Result<Vec<Row>, SweepError> {
    let mut rows = Vec::new();
    for group in &groups(spec)? {
        let points: Vec<&Point> = group
            .points
            .iter()
            .filter(|point| numbers.contains(&point.number))
            .collect();
        if !points.is_empty() {
            rows.extend(rows_of(group, &points, &Simulation::open(spec, group, threads, local)));
        }
    }
    Ok(rows)
}

/// Rows of points that could not be simulated where they were sent.
pub fn failed(spec: &Spec, numbers: &[u64], error: &str) -> Result<Vec<Row>, SweepError> {
    let groups = groups(spec)?;
    let points = groups
        .iter()
        .flat_map(|group| group.points.iter().map(move |point| (group, point)));
    let these = points.filter(|(_, point)| numbers.contains(&point.number));
    Ok(these
        .map(|(group, point)| Row::of(group, point).with(Err(error.to_string())))
        .collect())
}

/// The traces of these points.
pub fn traces(spec: &Spec, numbers: &[u64]) -> Result<Vec<PathBuf>, SweepError> {
    let mut traces: Vec<PathBuf> = Vec::new();
    for group in groups(spec)? {
        let is_asked_for = group.points.iter().any(|point| numbers.contains(&point.number));
        if is_asked_for && !traces.contains(&group.trace) {
            traces.push(group.trace);
        }
    }
    Ok(traces)
}

/// The remaining points, in the sweep's order.
fn left<'a>(groups: &'a [Group], done: &HashSet<String>, most: usize) -> Vec<(&'a Group, Vec<&'a Point>)> {
    let mut batches = Vec::new();
    for group in groups {
        let left: Vec<&Point> = group.points.iter().filter(|point| !done.contains(&point.key)).collect();
        batches.extend(left.chunks(most).map(|points| (group, points.to_vec())));
    }
    batches
}

fn rows_of(group: &Group, points: &[&Point], simulation: &Result<Simulation, String>) -> Vec<Row> {
    let found = match simulation {
        Ok(simulation) => simulation.outcomes(points),
        Err(error) => points.iter().map(|_| Err(error.clone())).collect(),
    };
    let incomplete = simulation.as_ref().ok().and_then(Simulation::incomplete);
    points
        .iter()
        .zip(found)
        .map(|(point, found)| Row {
            incomplete: incomplete.clone(),
            ..Row::of(group, point).with(found)
        })
        .collect()
}

/// The common part of the points of a group.
struct Simulation {
    trace: Trace,
    /// Without policies.
    config: Config,
    /// The misses, if policies are replayed over them.
    misses: Option<MissStream>,
}

impl Simulation {
    fn open(
        spec: &Spec,
        group: &Group,
        threads: Option<usize>,
        local: &HashMap<PathBuf, PathBuf>,
    ) -> Result<Simulation, String> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", group.trace.display());
        let file = local.get(&group.trace).cloned();
        let trace = Trace::open(file.unwrap_or_else(|| spec.place_of(&group.trace))).map_err(|error| named(&error))?;
        trace.check_references().map_err(|error| named(&error))?;
        let mut machine = measured::load(&spec.machine(&group.machine)).map_err(|error| error.to_string())?;
        if let Some(cpus) = group.cpus {
            machine = machine.with_cpus(cpus).map_err(|error| error.to_string())?;
        }
        let config = Config {
            seed: group.seed,
            changes: group.program_changes(),
            threads,
            ..Config::new(machine, Vec::new())
        };
        let recorded = || sim::misses::record_to_replay(&trace, &config, &|_| {}).map_err(|error| named(&error));
        let misses = match spec.fast {
            true => Some(recorded()?.0),
            false => None,
        };
        Ok(Simulation { trace, config, misses })
    }

    /// The part of the run that the trace does not have.
    fn incomplete(&self) -> Option<String> {
        let broke = capture::broke_off(self.trace.header());
        let broke = broke.map(|broke| format!("not a whole run: {broke}"));
        self.trace.lost_in_a_clause().or(broke)
    }

    /// The outcome of each point, or its error.
    fn outcomes(&self, points: &[&Point]) -> Vec<Result<Outcome, String>> {
        match self.together(points) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(error) if points.len() == 1 => vec![Err(error)],
            // One of them cannot be simulated: the others can.
            Err(_) => points.iter().flat_map(|point| self.outcomes(&[point])).collect(),
        }
    }

    fn together(&self, points: &[&Point]) -> Result<Vec<Outcome>, String> {
        let specs = points.iter().map(|point| PolicySpec {
            sets: point.setting.sets.clone(),
            ..PolicySpec::new(point.policy.clone())
        });
        let config = Config {
            policies: specs.collect(),
            ..self.config.clone()
        };
        let found: Result<Vec<Outcome>, SimError> = match &self.misses {
            None => sim::simulate(&self.trace, &config, &|_| {})
                .map(|runs| runs.into_iter().map(|run| run.outcome).collect()),
            Some(stream) => {
                let mut names = points.iter().map(|point| &point.policy);
                names
                    .try_for_each(sim::misses::is_replayable)
                    .map_err(|error| error.to_string())?;
                sim::misses::replay(stream, &config)
            }
        };
        let mut outcomes = found.map_err(|error| error.to_string())?;
        let header = self.trace.header();
        for (outcome, point) in outcomes.iter_mut().zip(points) {
            outcome.settings.clone_from(&point.setting.swept);
            outcome.program.clone_from(&header.program);
            outcome.arguments.clone_from(&header.arguments);
        }
        Ok(outcomes)
    }
}
