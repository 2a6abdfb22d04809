//! What proposed changes gain: each is simulated, on the references that were recorded.

use std::cmp::Reverse;

use rayon::prelude::*;
use results::{Alternative, Cause, CauseKind, Outcome, ProgramChange};
use sim::{Config, Detail, Evidence, Place, SimError};
use trace::Trace;

use crate::basis;
use crate::settings::Settings;
use crate::words::NOTHING;

/// Changes that are simulated, each a run over the whole trace without detail: those of the causes that cost most.
const MOST: usize = 6;

/// A change that was simulated, and what it gains; `None`: it cannot be simulated.
type Known = Vec<(Vec<ProgramChange>, Option<f64>)>;

/// Simulates the changes of the worst causes under the baseline, puts down what each saves of the run time, and orders the
/// causes by that: those whose cure saves most first, then those that wait longest.
///
/// A change that cannot be simulated (rows that are none of the data's, names that several things have) leaves its cause
/// without a gain: the advice then is the rule's alone. So does one that seems to save more than is waited where it changes
/// something: the simulated order of the work, or of the data, is none that the program could have.
pub fn gains(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    evidence: &Evidence,
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
            policies: vec![policy.clone()],
            detail: Detail::default(),
            detail_for: None,
            classes: false,
            changes: changes.to_vec(),
            ..config.clone()
        };
        match settings.simulate(trace, &changed) {
            Ok(runs) => Ok(runs.first().map(|run| basis::gain(base, &run.outcome))),
            Err(SimError::Change { .. } | SimError::ChangesUnder { .. } | SimError::Order(_)) => Ok(None),
            Err(error) => Err(error),
        }
    };
    // Side by side: none needs what another finds.
    let known: Result<Known, SimError> = asked
        .into_par_iter()
        .map(|changes| Ok((changes.to_vec(), simulated(changes)?)))
        .collect();
    let known = known?;
    let gain = |changes: &[ProgramChange]| {
        let same = known.iter().find(|(other, _)| other == changes);
        same.and_then(|(_, gain)| *gain)
    };
    for cause in causes.iter_mut() {
        let simulated = gain(&cause.simulated);
        cause.gain = bounded(simulated, cause, evidence, base);
        for at in 0..cause.alternatives.len() {
            let simulated = gain(&cause.alternatives[at].simulated);
            cause.alternatives[at].gain = bounded(simulated, cause, evidence, base);
        }
        prefer(cause);
    }
    let rank = |cause: &Cause| cause.gain.filter(|gain| *gain >= NOTHING).unwrap_or(0.0);
    causes.sort_by(|a, b| {
        rank(b)
            .total_cmp(&rank(a))
            .then(Reverse(a.stall_ns).cmp(&Reverse(b.stall_ns)))
    });
    Ok(())
}

/// A gain that is not larger than the waiting at the lines that are changed; where the cause's own line waits less, it is the
/// one with the longest waiting. Another order of all that uses some data has to pay at the line that it is proposed for.
fn bounded(gain: Option<f64>, cause: &mut Cause, evidence: &Evidence, base: &Outcome) -> Option<f64> {
    let gain = gain?;
    let wall = base.time_ns.wall.max(1) as f64;
    let own = cause.stall_ns as f64 / wall;
    if cause.kind == CauseKind::LateReuse {
        // What other lines would gain is theirs to say.
        return Some(if gain <= own + NOTHING { gain } else { 0.0 });
    }
    let name = |place: &Place| &evidence.structures[place.structure].what.name;
    let functions: Vec<&str> = evidence
        .places
        .iter()
        .filter(|place| *name(place) == cause.structure)
        .map(|place| place.function.as_str())
        .collect();
    let touched = || {
        evidence
            .places
            .iter()
            .filter(|place| functions.contains(&place.function.as_str()))
    };
    let waiting: u64 = touched().map(|place| place.stall_ns + place.tlb_ns).sum();
    if gain > waiting as f64 / wall + NOTHING {
        return None;
    }
    if gain > own + NOTHING
        && let Some(place) = touched()
            .filter(|place| *name(place) == cause.structure)
            .max_by_key(|place| place.stall_ns)
    {
        cause.source = super::view::source(place);
        cause.file.clone_from(&place.file);
        cause.function.clone_from(&place.function);
    }
    Some(gain)
}

/// Of all ways to be rid of a cause, the one that saves most is its cure.
fn prefer(cause: &mut Cause) {
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
    };
    cause.alternatives.insert(0, was);
}

/// What the best colors of pages gain is the cure of pages that collide; nothing is, where they gain nothing.
pub fn of_colors(causes: &mut [Cause], best: Option<(&str, f64)>) {
    for cause in causes.iter_mut().filter(|cause| cause.kind == CauseKind::PagesCollide) {
        cause.change = best.map(|(policy, _)| format!("place pages by `{policy}`, or use less memory at a time"));
        cause.gain = best.map(|(_, gain)| gain);
    }
}
