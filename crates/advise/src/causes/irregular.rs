//! Walks without a pattern: code that follows pointers or indices.

use results::{CauseKind, ProgramChange, percent};
use sim::Addresses;

use super::Finding;
use super::prefetch::prefetch;
use super::view::{View, in_bytes};

/// A step with at least this part of all steps is a pattern.
const FREQUENT: f64 = 0.5;
/// This part of a line counts as the whole line.
const WHOLE: f64 = 0.9;
/// Up to this part of a line counts as little.
const LITTLE: f64 = 0.5;

/// Chains that are simulated in turn, and iterations between a prefetch and its use.
const CHAINS: u64 = 4;
const AHEAD: u64 = 16;
/// More arrays than this at one index hardly belong together.
const MEMBERS: usize = 16;

const IN_ORDER: &str = "allocate the blocks in the order in which they are walked, or keep them in one array";

/// Each address comes from the load before it.
pub fn chased(view: &View) -> Option<Finding> {
    if view.place.addresses != Addresses::Chased {
        return None;
    }
    let element = view.structure.element.filter(|_| view.structure.blocks);
    let of = element.map_or_else(String::new, |bytes| {
        format!(" from one block of {bytes} bytes to the next")
    });
    Some(Finding {
        kind: CauseKind::PointerChasing,
        evidence: view.evidence_of_elements(),
        why: format!(
            "pointers are followed{of}: each load waits for the one before it, and none overlaps{}",
            used(view)
        ),
        change: view.can_change().then(|| match element {
            Some(_) => IN_ORDER.to_string(),
            None => "keep together what is visited one after the other".to_string(),
        }),
        hint: prefetch(view),
        simulated: Vec::new(),
    })
}

/// Several chains followed in turn, if there are several.
pub fn in_turn(view: &View, found: &Finding) -> Option<Finding> {
    let line = view.source()?;
    Some(Finding {
        kind: found.kind,
        evidence: found.evidence.clone(),
        why: found.why.clone(),
        change: Some(format!("follow {CHAINS} chains in turn, where there are so many")),
        hint: found.hint.clone(),
        simulated: vec![ProgramChange::Chains {
            data: view.structure.what.name.clone(),
            line,
            chains: CHAINS,
        }],
    })
}

/// Loads prefetched ahead, if their addresses come from loads in random order. If these loads walk, or there are none,
/// a processor that overlaps runs ahead by itself, and a prefetch only adds to its work.
pub fn ahead(view: &View, found: &Finding) -> Option<Finding> {
    if !matches!(view.place.addresses, Addresses::Loaded(_)) || view.place.loaded_in_order {
        return None;
    }
    let line = view.source()?;
    Some(Finding {
        kind: found.kind,
        evidence: found.evidence.clone(),
        why: found.why.clone(),
        change: Some(format!("prefetch {AHEAD} iterations ahead (__builtin_prefetch)")),
        hint: found.hint.clone(),
        simulated: vec![ProgramChange::Prefetch {
            data: view.structure.what.name.clone(),
            line,
            ahead: AHEAD,
        }],
    })
}

/// Arrays that are used at one index: parts of one block, or separate blocks.
pub fn same_index(view: &View) -> Option<Finding> {
    let frequent = view.place.steps.first().map_or(0.0, |step| step.share);
    let element_bytes = u64::from(view.place.access_bytes);
    if !view.seen() || frequent >= FREQUENT || element_bytes == 0 || view.used()? > LITTLE * view.line_bytes as f64 {
        return None;
    }
    let (arrays, simulated) = in_one_block(view, element_bytes).or_else(|| in_several(view, element_bytes))?;
    Some(Finding {
        kind: CauseKind::SameIndex,
        evidence: view.evidence_of_elements(),
        why: format!(
            "{arrays} are used at one index, in no order: each brings a line of its own{}",
            used(view)
        ),
        change: view.can_change().then(|| {
            format!("store what is used at one index together: one array of elements that have {element_bytes} bytes of each array")
        }),
        hint: prefetch(view),
        simulated: vec![simulated],
    })
}

/// The data at a constant distance in the same block, and the way to put it together.
fn in_one_block(view: &View, element_bytes: u64) -> Option<(String, ProgramChange)> {
    let apart = view.place.beside?.bytes.unsigned_abs();
    let what = &view.structure.what;
    // Data in one line already lies together.
    let far = apart > view.line_bytes && apart.is_multiple_of(element_bytes);
    (far && apart < what.bytes / what.blocks.max(1)).then(|| {
        let change = ProgramChange::Interleave {
            data: what.name.clone(),
            element_bytes,
            part_bytes: Some(apart),
            with: Vec::new(),
        };
        (format!("arrays {apart} bytes apart"), change)
    })
}

/// The same for other blocks: of the same structure, or of others. The change is the same for each of the arrays.
fn in_several(view: &View, element_bytes: u64) -> Option<(String, ProgramChange)> {
    let what = &view.structure.what;
    let of_it = view.place.arrays.clamp(1, what.blocks.max(1));
    let others = view.together();
    let mut names: Vec<String> = others.iter().map(|other| other.name.clone()).collect();
    names.extend((0..of_it).map(|_| what.name.clone()));
    if names.len() < 2 || names.len() > MEMBERS {
        return None;
    }
    let text = format!("{} arrays", names.len());
    names.sort();
    let data = names.remove(0);
    let change = ProgramChange::Interleave {
        data,
        element_bytes,
        part_bytes: None,
        with: names,
    };
    Some((text, change))
}

pub fn irregular(view: &View) -> Option<Finding> {
    let frequent = view.place.steps.first().map_or(0.0, |step| step.share);
    // If a line is used completely, no order uses more of it.
    let whole = view.used().is_some_and(|used| used >= WHOLE * view.line_bytes as f64);
    if !view.seen() || frequent >= FREQUENT || whole {
        return None;
    }
    let element = view.structure.element.filter(|_| view.structure.blocks);
    let why = match view.place.addresses {
        Addresses::Loaded(_) => {
            let from = view.place.loaded_at.as_deref().unwrap_or("another load");
            format!("indices or pointers from {from} in no order")
        }
        Addresses::Computed => "no order".to_string(),
        Addresses::Unknown | Addresses::Chased => "no order (pointer chasing or indices)".to_string(),
    };
    let blocks = element.map_or_else(String::new, |bytes| format!("blocks of {bytes} bytes, "));
    let change = match element {
        Some(_) => IN_ORDER,
        None => "sort the accesses, or the data, by address, or work on a part at a time that fits into the cache",
    };
    Some(Finding {
        kind: CauseKind::Irregular,
        evidence: view.evidence_of_elements(),
        why: format!(
            "{blocks}{why}: the most frequent step is {} of all{}",
            percent(frequent),
            used(view)
        ),
        change: view.can_change().then(|| change.to_string()),
        hint: prefetch(view),
        simulated: Vec::new(),
    })
}

fn used(view: &View) -> String {
    view.used().map_or_else(String::new, |used| {
        format!(
            "; {} of {} bytes are used of each line",
            in_bytes(used),
            view.line_bytes
        )
    })
}
