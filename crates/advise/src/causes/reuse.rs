//! Whole lines, in order: used for the first time, or used again too late.

use results::{CauseEvidence, CauseKind, ProgramChange, bytes, percent};

use super::Finding;
use super::prefetch::prefetch;
use super::view::View;

/// Misses of which so large a part are first uses are first uses.
const FIRST: f64 = 0.5;
/// A cache is enough within which so large a part of the reuses comes.
const ENOUGH: f64 = 0.9;

pub fn first(view: &View) -> Option<Finding> {
    let cold = view.classes[0];
    if cold < FIRST {
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
            "lines are used again when {} ({}) has lost them{how_late}",
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
