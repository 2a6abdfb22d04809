//! The reasons why the worst data structures miss, and the cures: rules over the simulation's measurements.
//!
//! Each place of the evidence, a source line and one structure, is checked from the most specific cause to the least: a
//! lock, sharing, conflicts, walks without a pattern, lines with little use, and the rest, late reuse and first uses.
//! The cost of the TLB is a separate cause.

mod collide;
mod gains;
mod irregular;
mod pages;
mod prefetch;
mod reuse;
mod sharing;
mod varied;
mod view;
mod walk;

use std::cmp::Reverse;

use machine::Machine;
use results::{Alternative, Cause, CauseEvidence, CauseKind, Outcome, ProgramChange};
use sim::Evidence;

use crate::words::NOTHING;
pub use gains::gains;
use view::View;

/// Causes that an advice names.
const MOST: usize = 10;

/// The finding of a rule.
struct Finding {
    kind: CauseKind,
    evidence: CauseEvidence,
    why: String,
    change: Option<String>,
    hint: Option<String>,
    /// The change as it can be simulated.
    simulated: Vec<ProgramChange>,
}

impl From<Finding> for Alternative {
    fn from(found: Finding) -> Alternative {
        Alternative {
            kind: found.kind,
            evidence: found.evidence,
            why: found.why,
            change: found.change,
            hint: found.hint,
            simulated: found.simulated,
            gain: None,
            gain_varied: None,
        }
    }
}

/// A rule: its finding on a place, if it is the place's cause.
type Rule = fn(&View) -> Option<Finding>;

/// The first rule that applies is right, except for colors of pages on a machine with only one color: these come last
/// there.
const RULES: &[Rule] = &[
    sharing::lock,
    sharing::shared,
    collide::power_of_two,
    collide::arrays,
    irregular::chased,
    irregular::same_index,
    irregular::irregular,
    walk::across,
    walk::fields,
    reuse::streamed,
    reuse::first,
    reuse::late,
];

/// The causes that cost at least one percent of the time, the worst first; their parts of the waiting do not overlap.
/// `colored`: whether page colors have an effect on the machine.
pub fn causes(evidence: &Evidence, machine: &Machine, colored: bool, base: &Outcome) -> Vec<Cause> {
    // Changes of data cannot shorten the time spent waiting for other threads or children.
    let total = base.time_ns.worked();
    let mut causes: Vec<Cause> = Vec::new();
    for place in &evidence.places {
        let view = View::new(evidence, place, machine);
        let waiting = found(&view, colored);
        let alternative = waiting.as_ref().and_then(|found| alternative(&view, found));
        // The same walk is also the reason why pages are used thinly, and the same change cures both.
        let mut tlb = pages::pages(&view);
        let mut stall_ns = place.stall_ns;
        if waiting
            .as_ref()
            .is_some_and(|found| found.kind == CauseKind::WalksAcross)
            && tlb.take().is_some()
        {
            stall_ns += place.tlb_ns;
        }
        if let Some(found) = waiting {
            add(&mut causes, &view, found, alternative, stall_ns);
        }
        if let Some(found) = tlb {
            add(&mut causes, &view, found, None, place.tlb_ns);
        }
    }
    for cause in &mut causes {
        if cause.kind == CauseKind::ArraysCollide {
            cause.simulated = collide::shifted(cause, evidence.line_bytes);
        }
        cause.share = match total {
            0 => 0.0,
            total => cause.stall_ns as f64 / total as f64,
        };
    }
    causes.retain(|cause| cause.share >= NOTHING);
    causes.sort_by_key(|cause| Reverse(cause.stall_ns));
    causes.truncate(MOST);
    causes
}

/// The cause of the waiting at a place.
fn found(view: &View, colored: bool) -> Option<Finding> {
    let mut all = RULES.iter().filter_map(|rule| rule(view));
    let first = all.next()?;
    match first.kind {
        CauseKind::PagesCollide if !colored => all.next().or(Some(first)),
        _ => Some(first),
    }
}

/// Another cure of the finding.
fn alternative(view: &View, found: &Finding) -> Option<Finding> {
    match found.kind {
        // Arrays that collide, and are walked across, can also be walked along.
        CauseKind::PowerOfTwo | CauseKind::ArraysCollide => walk::across(view),
        CauseKind::PagesCollide => walk::across(view).or_else(|| walk::fields(view)),
        CauseKind::PointerChasing => irregular::in_turn(view, found),
        CauseKind::Irregular => irregular::ahead(view, found),
        CauseKind::Bandwidth => reuse::late(view).filter(|_| !reuse::is_first(view)),
        _ => None,
    }
}

/// Lines that wait for one structure for one reason share a cause: that of the line that waits longest, which comes
/// first.
fn add(causes: &mut Vec<Cause>, view: &View, found: Finding, alternative: Option<Finding>, stall_ns: u64) {
    let structure = &view.structure.what.name;
    let same = |cause: &&mut Cause| cause.kind == found.kind && cause.structure == *structure;
    if let Some(cause) = causes.iter_mut().find(same) {
        cause.stall_ns += stall_ns;
        cause.other_lines += 1;
        return;
    }
    // Data that competes for the same sets, or is used at one index, waits together: one change cures both.
    let together = |cause: &&mut Cause| {
        let place = cause.kind == found.kind && cause.source == view.source() && cause.function == view.place.function;
        place
            && match found.kind {
                CauseKind::ArraysCollide | CauseKind::PagesCollide => true,
                CauseKind::SameIndex => cause.simulated == found.simulated,
                _ => false,
            }
    };
    if let Some(cause) = causes.iter_mut().find(together) {
        cause.stall_ns += stall_ns;
        cause.other_structures.push(structure.clone());
        return;
    }
    causes.push(Cause {
        structure: structure.clone(),
        other_structures: Vec::new(),
        source: view.source(),
        file: view.place.file.clone(),
        function: view.place.function.clone(),
        other_lines: 0,
        kind: found.kind,
        stall_ns,
        share: 0.0,
        evidence: found.evidence,
        why: found.why,
        change: found.change,
        hint: found.hint,
        simulated: found.simulated,
        gain: None,
        gain_varied: None,
        alternatives: alternative.into_iter().map(Alternative::from).collect(),
    });
}
