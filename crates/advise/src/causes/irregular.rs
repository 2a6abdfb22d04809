//! Walks without a pattern: pointers that are followed, or indices.

use results::{CauseKind, percent};

use super::Finding;
use super::view::{View, in_bytes};

/// A step that is so large a part of all is a pattern.
const FREQUENT: f64 = 0.5;

pub fn irregular(view: &View) -> Option<Finding> {
    let frequent = view.place.steps.first().map_or(0.0, |step| step.share);
    if !view.seen() || frequent >= FREQUENT {
        return None;
    }
    let element = view.structure.element.filter(|_| view.structure.blocks);
    let used = view.used().map_or_else(String::new, |used| {
        format!(
            "; {} of {} bytes are used of each line",
            in_bytes(used),
            view.line_bytes
        )
    });
    let (how, change) = match element {
        Some(bytes) => (
            format!("blocks of {bytes} bytes in no order (pointer chasing or indices)"),
            "allocate the blocks in the order in which they are walked, or keep them in one array",
        ),
        None => (
            "no order (pointer chasing or indices)".to_string(),
            "sort the accesses, or the data, by address; work on a part that fits into the cache at a time",
        ),
    };
    Some(Finding {
        kind: CauseKind::Irregular,
        evidence: view.evidence_of_elements(),
        why: format!("{how}: the most frequent step is {} of all{used}", percent(frequent)),
        change: view.can_change().then(|| change.to_string()),
        hint: Some(
            "hardware prefetchers do not foresee it; software prefetches help only where addresses are known early"
                .to_string(),
        ),
        simulated: None,
    })
}
