//! Lines that threads take from each other: locks, different data in one line, and shared data.

use results::{CauseKind, ProgramChange, percent};

use super::Finding;
use super::view::View;

/// The part of the waiting, or of the misses, that makes it the cause.
const MOST: f64 = 0.5;

/// Words of a lock: no layout helps.
pub fn lock(view: &View) -> Option<Finding> {
    let part = view.place.of_locks_ns as f64 / view.place.stall_ns.max(1) as f64;
    if part < MOST {
        return None;
    }
    Some(Finding {
        kind: CauseKind::ContendedLock,
        evidence: view.evidence(),
        why: format!(
            "{} of the waiting is for words of a lock that several threads take: the lock is contended, and its words belong \
             into one line",
            percent(part)
        ),
        change: Some("hold the lock for less, take it less often, or have several locks".to_string()),
        hint: None,
        simulated: Vec::new(),
    })
}

pub fn shared(view: &View) -> Option<Finding> {
    let [.., truly, falsely] = view.classes;
    if truly + falsely < MOST {
        return None;
    }
    // Layout can cure false sharing, so it is named if it is a considerable part of both.
    let (kind, why, change) = match falsely > 0.5 * truly {
        true => (
            CauseKind::FalseSharing,
            format!(
                "{} of the misses are lines lost to writes of other data in them",
                percent(falsely)
            ),
            "put what different threads write into different lines",
        ),
        false => (
            CauseKind::TrueSharing,
            format!("{} of the misses are for what another thread wrote", percent(truly)),
            "let threads share less, or less often",
        ),
    };
    Some(Finding {
        kind,
        evidence: view.evidence(),
        why,
        change: Some(change.to_string()),
        hint: None,
        simulated: match kind {
            CauseKind::FalseSharing => separated(view),
            _ => Vec::new(),
        },
    })
}

/// Each accessed field, in its own line.
fn separated(view: &View) -> Vec<ProgramChange> {
    let element_bytes = u64::from(view.place.access_bytes);
    let change = (1..view.line_bytes)
        .contains(&element_bytes)
        .then(|| ProgramChange::Separate {
            data: view.structure.what.name.clone(),
            element_bytes,
        });
    change.into_iter().collect()
}
