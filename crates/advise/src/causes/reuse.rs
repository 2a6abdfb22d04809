//! Whole lines, in order: used for the first time, or used again too late.

use results::{CauseEvidence, CauseKind, ProgramChange, bytes, percent};

use super::Finding;
use super::prefetch::prefetch;
use super::view::View;

/// From this part of first uses on, misses count as first uses.
const FIRST: f64 = 0.5;
/// This part of a line counts as the whole line.
const WHOLE: f64 = 0.75;
/// A cache is large enough if at least this part of the reuses falls within it.
const ENOUGH: f64 = 0.9;

/// True if most misses are first uses.
pub fn is_first(view: &View) -> bool {
    view.classes[0] >= FIRST
}

/// True if memory delivers line after line, and each line is used completely: no layout reduces that.
fn is_streamed(view: &View) -> bool {
    let in_order = view
        .step()
        .is_some_and(|step| step.bytes.unsigned_abs() <= view.line_bytes);
    let whole = view.used().is_some_and(|used| used >= WHOLE * view.line_bytes as f64);
    view.outermost && in_order && whole
}

pub fn streamed(view: &View) -> Option<Finding> {
    if !is_streamed(view) {
        return None;
    }
    let again = match is_first(view) {
        true => "for the first time",
        false => "each time anew",
    };
    Some(Finding {
        kind: CauseKind::Bandwidth,
        evidence: view.evidence(),
        why: format!(
            "lines come from memory in order, {again}, and are used whole: the bandwidth of memory bounds it, and only fewer \
             bytes help (smaller types, loops fused)"
        ),
        change: None,
        hint: prefetch(view),
        simulated: Vec::new(),
    })
}

pub fn first(view: &View) -> Option<Finding> {
    let cold = view.classes[0];
    if !is_first(view) {
        return None;
    }
    Some(Finding {
        kind: CauseKind::FirstUse,
        evidence: view.evidence(),
        why: format!("{} of the misses are first uses of lines", percent(cold)),
        change: None,
        hint: prefetch(view),
        simulated: Vec::new(),
    })
}

pub fn late(view: &View) -> Option<Finding> {
    let cache = view.cache?;
    let enough = view.structure.enough(ENOUGH);
    let how_late = enough.map_or_else(String::new, |enough| {
        format!(": nine of ten reuses come within {} of other data", bytes(enough))
    });
    Some(Finding {
        kind: CauseKind::LateReuse,
        evidence: CauseEvidence {
            enough_cache_bytes: enough,
            ..view.evidence()
        },
        why: format!(
            "lines {}are used again when {} ({}) has lost them{how_late}",
            if is_streamed(view) {
                "come at the bandwidth of memory, and "
            } else {
                ""
            },
            cache.name,
            bytes(cache.bytes)
        ),
        change: view.can_change().then(|| {
            format!(
                "tile the loops: do all work on a part of at most {} before the next part",
                bytes(cache.bytes / 2)
            )
        }),
        hint: prefetch(view),
        simulated: vec![ProgramChange::Tile {
            data: view.structure.what.name.clone(),
            bytes: cache.bytes / 2,
        }],
    })
}
