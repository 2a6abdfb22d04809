//! The gains of proposed changes: each is simulated, on the recorded references.

use std::cmp::Reverse;

use rayon::prelude::*;
use results::{Alternative, Cause, CauseKind, Outcome, ProgramChange};
use sim::{Config, Detail, Evidence, Place, PolicySpec, SimError};
use trace::Trace;

use super::varied::varied;
use crate::settings::Settings;
use crate::words::NOTHING;
use crate::{basis, faults};

/// How many changes are simulated, each in a run over the whole trace without detail: those of the costliest causes.
const MOST: usize = 6;

/// A change that was simulated, and its gain; `None`: it cannot be simulated.
type Known = Vec<(Vec<ProgramChange>, Option<f64>)>;

/// Simulates the changes of the worst causes under the baseline, stores what each saves of the run time, and orders the
/// causes: first those whose cure saves most, then those that wait longest.
///
/// A change that cannot be simulated (rows that are none of the data's, ambiguous names) leaves its cause without a
/// gain: the advice then relies on the rule only. A change that seems to save more than the waiting at the places that
/// it changes is not proposed.
pub fn gains(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    evidence: &Evidence,
    colors: Option<(&str, f64)>,
    causes: &mut [Cause],
) -> Result<(), SimError> {
    let Some(policy) = config.detailed() else {
        return Ok(());
    };
    let mut asked: Vec<&[ProgramChange]> = Vec::new();
    for cause in causes.iter() {
        let of_alternatives = cause.alternatives.iter().map(|other| &other.simulated);
        for changes in std::iter::once(&cause.simulated).chain(of_alternatives) {
            if !changes.is_empty() && !asked.contains(&changes.as_slice()) && asked.len() < MOST {
                asked.push(changes);
            }
        }
    }
    let simulated = |changes: &[ProgramChange]| -> Result<Option<f64>, SimError> {
        let changed = Config {
            changes: changes.to_vec(),
            ..plain(config, policy)
        };
        match settings.simulate(trace, &changed) {
            // Loops are longer than windows of a run: another order of a piece of a loop gains nothing, but that proves
            // nothing.
            Ok(runs) => Ok(runs
                .first()
                .map(|run| {
                    let mut outcome = run.outcome.clone();
                    outcome.time_ns.wall = faults::wall_of(&outcome.time_ns, &base.time_ns, changes);
                    basis::gain(base, &outcome)
                })
                .filter(|gain| *gain >= NOTHING || base.windows.is_none() || !changes.iter().any(is_order))),
            Err(SimError::Change { .. } | SimError::ChangesUnder { .. } | SimError::Order(_)) => Ok(None),
            Err(error) => Err(error),
        }
    };
    // In parallel, since they are independent; but orders of the work need memory, and run one by one.
    let one = |changes: &[ProgramChange]| Ok((changes.to_vec(), simulated(changes)?));
    let (orders, layouts): (Vec<_>, Vec<_>) = asked.into_iter().partition(|changes| changes.iter().any(is_order));
    let (orders, layouts): (Result<Known, SimError>, Result<Known, SimError>) = side_by_side(|| {
        rayon::join(
            || orders.into_iter().map(one).collect(),
            || layouts.into_par_iter().map(one).collect(),
        )
    });
    let mut known = orders?;
    known.extend(layouts?);
    let gain = |changes: &[ProgramChange]| {
        let same = known.iter().find(|(other, _)| other == changes);
        same.and_then(|(_, gain)| *gain)
    };
    for cause in causes.iter_mut() {
        let most = most(cause, evidence, base);
        // A saving beyond the waiting time is no possible change of the program.
        let bounded = |gain: Option<f64>, change: &mut Option<String>| {
            let implausible = gain.is_some_and(|gain| gain > most + NOTHING);
            if implausible {
                *change = None;
            }
            gain.filter(|_| !implausible)
        };
        cause.gain = bounded(gain(&cause.simulated), &mut cause.change);
        for other in &mut cause.alternatives {
            other.gain = bounded(gain(&other.simulated), &mut other.change);
        }
        prefer(cause);
    }
    vary(trace, settings, config, policy, causes);
    of_colors(causes, colors);
    let rank = |cause: &Cause| cause.gain.filter(|gain| *gain >= NOTHING).unwrap_or(0.0);
    causes.sort_by(|a, b| {
        rank(b)
            .total_cmp(&rank(a))
            .then(Reverse(a.stall_ns).cmp(&Reverse(b.stall_ns)))
    });
    Ok(())
}

/// The dependence of the gains on unknown values. Orders of the work, which take memory, are left out.
fn vary(trace: &Trace, settings: &Settings, config: &Config, policy: &PolicySpec, causes: &mut [Cause]) {
    let mut gains: Vec<(Vec<ProgramChange>, f64)> = Vec::new();
    for cause in causes.iter().filter(|cause| !cause.simulated.iter().any(is_order)) {
        let gain = cause
            .gain
            .filter(|gain| *gain >= NOTHING && !cause.simulated.is_empty());
        let known = gains.iter().any(|(changes, _)| *changes == cause.simulated);
        gains.extend(gain.filter(|_| !known).map(|gain| (cause.simulated.clone(), gain)));
    }
    for (changes, gain_varied) in varied(trace, settings, &plain(config, policy), &gains) {
        for cause in causes.iter_mut().filter(|cause| cause.simulated == changes) {
            cause.gain_varied = Some(gain_varied);
        }
    }
}

/// A run that only measures time.
fn plain(config: &Config, policy: &PolicySpec) -> Config {
    Config {
        policies: vec![policy.clone()],
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        ..config.clone()
    }
}

/// True if a change is another order of the work.
fn is_order(change: &ProgramChange) -> bool {
    matches!(change, ProgramChange::Tile { .. } | ProgramChange::Interchange { .. })
}

/// The most that the cures of a cause can save, as a part of the run time: the waiting at the lines that they change,
/// which are those of the loops that use the data. Another order of all uses of some data must pay off at its own line.
fn most(cause: &Cause, evidence: &Evidence, base: &Outcome) -> f64 {
    let wall = base.time_ns.wall.max(1) as f64;
    if matches!(cause.kind, CauseKind::LateReuse | CauseKind::Bandwidth) {
        return cause.stall_ns as f64 / wall;
    }
    let name = |place: &Place| &evidence.structures[place.structure].what.name;
    let of_data = evidence.places.iter().filter(|place| *name(place) == cause.structure);
    let functions: Vec<&str> = of_data.map(|place| place.function.as_str()).collect();
    let touched = evidence
        .places
        .iter()
        .filter(|place| functions.contains(&place.function.as_str()));
    let waiting: u64 = touched.map(|place| place.stall_ns + place.tlb_ns).sum();
    // Huge pages also save faults.
    let huge = |changes: &[ProgramChange]| {
        changes
            .iter()
            .any(|change| matches!(change, ProgramChange::HugePages { .. }))
    };
    let saves_faults = huge(&cause.simulated) || cause.alternatives.iter().any(|other| huge(&other.simulated));
    let faults = if saves_faults { base.time_ns.page_faults } else { 0 };
    (waiting + faults) as f64 / wall
}

/// Of all cures of a cause, the one that saves most comes first. If the first cannot be simulated, but another of the
/// same cause can, it stays first: the requirements of the other (several chains, addresses known ahead) are unknown
/// here.
fn prefer(cause: &mut Cause) {
    let kind = cause.kind;
    if cause.simulated.is_empty() && cause.alternatives.iter().all(|other| other.kind == kind) {
        return;
    }
    let gain = |gain: Option<f64>| gain.unwrap_or(0.0);
    let best = (0..cause.alternatives.len()).max_by(|&a, &b| {
        let gains = [a, b].map(|at| gain(cause.alternatives[at].gain));
        gains[0].total_cmp(&gains[1])
    });
    let Some(at) = best.filter(|&at| gain(cause.alternatives[at].gain) > gain(cause.gain) + NOTHING) else {
        return;
    };
    let other = cause.alternatives.remove(at);
    let was = Alternative {
        kind: std::mem::replace(&mut cause.kind, other.kind),
        evidence: std::mem::replace(&mut cause.evidence, other.evidence),
        why: std::mem::replace(&mut cause.why, other.why),
        change: std::mem::replace(&mut cause.change, other.change),
        hint: std::mem::replace(&mut cause.hint, other.hint),
        simulated: std::mem::replace(&mut cause.simulated, other.simulated),
        gain: std::mem::replace(&mut cause.gain, other.gain),
        gain_varied: None,
    };
    cause.alternatives.insert(0, was);
}

/// The gain of the `best` colors of pages is the cure of pages that collide; there is no cure if they gain nothing.
fn of_colors(causes: &mut [Cause], best: Option<(&str, f64)>) {
    for cause in causes.iter_mut().filter(|cause| cause.kind == CauseKind::PagesCollide) {
        cause.change = best.map(|(policy, _)| format!("place pages by `{policy}`, or use less memory at a time"));
        cause.gain = best.map(|(_, gain)| gain);
    }
}

/// Runs work on its own threads: those of the process's pool no longer exist in a forked child, which would wait for
/// them for ever.
pub fn side_by_side<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
