//! Conflicts: data that would fit into the cache, but competes for a few of its sets.

use std::collections::HashSet;

use machine::Cache;
use results::{Cause, CauseEvidence, CauseKind, ProgramChange, bytes, percent};

use super::Finding;
use super::view::View;

/// From this part of conflicts on, misses count as conflicts: first uses and other data cause the rest.
const CONFLICTS: f64 = 0.3;
/// A walk that reaches at most this part of the sets collides with itself.
const FEW: u64 = 4;
/// Steps that are followed.
const STEPS: u64 = 4096;

/// The walk's steps are multiples of a large power of two, one after the other or in any order.
pub fn power_of_two(view: &View) -> Option<Finding> {
    let (cache, conflicts) = conflicts(view)?;
    let (pitch, steps) = match view.step() {
        Some(step) => {
            let step = step.bytes.unsigned_abs();
            (step, format!("steps of {step} bytes"))
        }
        None if view.seen() => {
            let pitch = view.place.pitch;
            (pitch, format!("steps, in no order, are multiples of {pitch} bytes and"))
        }
        None => return None,
    };
    let (covered, sets) = covered(view, cache, pitch);
    if pitch < u64::from(cache.line_bytes) * FEW || covered * FEW > sets {
        return None;
    }
    let power = 1 << pitch.trailing_zeros();
    let padded = pitch + u64::from(cache.line_bytes);
    Some(Finding {
        kind: CauseKind::PowerOfTwo,
        evidence: CauseEvidence {
            power_of_two: Some(power),
            sets_covered: Some(covered),
            sets: Some(sets),
            ..view.evidence()
        },
        why: format!(
            "{steps} come to {covered} of {sets} sets of {}: {} of the misses are conflicts",
            cache.name,
            percent(conflicts)
        ),
        change: Some(format!(
            "pad rows from {pitch} to {padded} bytes, so that they begin in different sets"
        )),
        hint: None,
        simulated: vec![ProgramChange::Pad {
            data: view.structure.what.name.clone(),
            row_bytes: pitch,
            pad_bytes: cache.line_bytes.into(),
        }],
    })
}

/// Several arrays, or pages, at the same place of the cache.
pub fn arrays(view: &View) -> Option<Finding> {
    let (cache, conflicts) = conflicts(view)?;
    // The author can change a walk without a step, wherever its pages are.
    if !view.is_virtual(cache) && view.seen() && view.step().is_none() {
        return None;
    }
    let conflicts = percent(conflicts);
    let found = |kind, why, change: Option<String>| Finding {
        kind,
        evidence: view.evidence(),
        why,
        change,
        hint: None,
        simulated: Vec::new(),
    };
    Some(match view.is_virtual(cache) {
        true => found(
            CauseKind::ArraysCollide,
            format!(
                "{conflicts} of the {} misses are conflicts: what is used together begins in the same sets",
                cache.name
            ),
            Some(format!(
                "let what is used together begin at different offsets modulo {}, a few lines apart",
                bytes(cache.bytes / u64::from(cache.ways))
            )),
        ),
        false => found(
            CauseKind::PagesCollide,
            format!(
                "{conflicts} of the {} misses are conflicts between pages that happen to be of one color",
                cache.name
            ),
            // Other colors have their own simulations.
            None,
        ),
    })
}

/// The competing structures, each some lines further than the one before it.
pub fn shifted(cause: &Cause, line_bytes: u64) -> Vec<ProgramChange> {
    let others = cause.other_structures.iter().zip(1..);
    let shift = |(data, lines): (&String, u64)| ProgramChange::Shift {
        data: data.clone(),
        bytes: lines * line_bytes,
    };
    match cause.other_structures.is_empty() {
        // The blocks of one name, against each other.
        true => vec![shift((&cause.structure, 1))],
        false => others.map(shift).collect(),
    }
}

fn conflicts<'a>(view: &View<'a>) -> Option<(&'a Cache, f64)> {
    let conflicts = view.classes[2];
    (conflicts >= CONFLICTS).then_some((view.cache?, conflicts))
}

/// How many sets steps through memory reach, and how many there are. If frames are arbitrary, a step that stays at one
/// place of its page reaches that place of every color.
fn covered(view: &View, cache: &Cache, step: u64) -> (u64, u64) {
    let page = view.machine.page_bytes;
    let sets = cache.sets();
    if view.is_virtual(cache) || step < page {
        let met: HashSet<u64> = (0..STEPS).map(|at| cache.set_of(at.wrapping_mul(step))).collect();
        return (met.len() as u64, sets);
    }
    let line = u64::from(cache.line_bytes);
    let offsets: HashSet<u64> = (0..STEPS).map(|at| at.wrapping_mul(step) % page / line).collect();
    let of_page = (page / line).max(1);
    ((sets / of_page).max(1) * offsets.len() as u64, sets)
}
