//! The cost of the TLB.

use results::{CauseEvidence, CauseKind, ProgramChange, bytes, count, percent};

use super::Finding;
use super::view::View;

/// Up to this part of a page counts as little.
const LITTLE: f64 = 0.25;

/// The change to huge pages.
fn huge_pages(view: &View) -> Vec<ProgramChange> {
    vec![ProgramChange::HugePages {
        data: Some(view.structure.what.name.clone()),
    }]
}

pub fn pages(view: &View) -> Option<Finding> {
    let place = view.place;
    let reach = view
        .machine
        .tlb
        .as_ref()
        .map(|tlb| u64::from(tlb.entries.saturating_sub(tlb.wired)) * view.machine.page_bytes)?;
    if place.tlb_misses == 0 {
        return None;
    }
    let evidence = CauseEvidence {
        tlb_misses: Some(place.tlb_misses),
        used_of_page: place.used_page,
        ..view.evidence()
    };
    let huge = "huge pages (madvise, or THP=always)";
    Some(match place.used_page.filter(|used| *used <= LITTLE) {
        Some(used) => Finding {
            kind: CauseKind::ThinPages,
            evidence,
            why: format!(
                "{} of a page is used for each of {} TLB misses",
                percent(used),
                count(place.tlb_misses)
            ),
            change: view
                .can_change()
                .then(|| format!("store what is used close together, or use {huge}")),
            hint: None,
            simulated: huge_pages(view),
        },
        None => Finding {
            kind: CauseKind::TlbReach,
            evidence,
            why: format!(
                "{} TLB misses: more is in use than the {} that the TLB reaches",
                count(place.tlb_misses),
                bytes(reach)
            ),
            change: view.can_change().then(|| format!("use {huge}")),
            hint: None,
            simulated: huge_pages(view),
        },
    })
}
