//! Walks with a step that use little of each line.

use results::{CauseKind, Field, ProgramChange};
use sim::ElementField;

use super::Finding;
use super::prefetch::prefetch;
use super::view::{View, in_bytes};

/// Up to this part of a line counts as little: fetching whole lines costs twice the need.
const LITTLE: f64 = 0.5;
/// The rest counts as used later if this many times as much of a line is used in the end.
const LATER: f64 = 2.0;
/// A walk takes at least this many steps from the beginning of the data to its end.
const FEW: u64 = 8;
/// A field with up to this part of the most accessed field's accesses is cold.
const COLD: f64 = 0.1;
/// The most fields that are named.
const NAMED: usize = 4;

/// A walk that returns for the rest of each line: in the wrong direction.
pub fn across(view: &View) -> Option<Finding> {
    let step = view.step()?.bytes;
    // The nearest cache loses the line first; if a further one still has it, the walk waits for that one.
    let used = view.place.used_near.or(view.used())?;
    let own = view.place.used_own?;
    let comes_back = used <= LITTLE * view.line_bytes as f64 && own >= LATER * used;
    // A step of a large part of the data is no walk: an address computed from a key (a hash) steps like this, and wraps
    // around.
    let few = step.unsigned_abs().saturating_mul(FEW) > view.structure.what.bytes && view.structure.what.bytes > 0;
    if step.unsigned_abs() < view.line_bytes || !comes_back || few {
        return None;
    }
    Some(Finding {
        kind: CauseKind::WalksAcross,
        evidence: view.evidence_of_elements(),
        why: format!(
            "steps of {step} bytes use {} of {} bytes of each line before it is gone, and come back for the rest",
            in_bytes(used),
            view.line_bytes
        ),
        change: Some(format!(
            "interchange the loops, so that the inner one goes along the line ({}), or transpose the array",
            match view.place.access_bytes {
                1 => "byte after byte".to_string(),
                bytes => format!("steps of {bytes} bytes"),
            }
        )),
        hint: prefetch(view),
        simulated: interchanged(view, step.unsigned_abs()),
    })
}

/// The loops around the line interchanged, or around a place without a name. A function without lines may have several
/// loops: there the array is transposed instead.
fn interchanged(view: &View, step: u64) -> Vec<ProgramChange> {
    let nameless = || Some(view.place.function.clone()).filter(|function| function.contains("+0x"));
    if let Some(line) = view.source().or_else(nameless) {
        let data = view.structure.what.name.clone();
        return vec![ProgramChange::Interchange { data, line }];
    }
    let element_bytes = u64::from(view.place.access_bytes);
    let fits = element_bytes > 0 && step.is_multiple_of(element_bytes);
    let change = fits.then(|| ProgramChange::Transpose {
        data: view.structure.what.name.clone(),
        element_bytes,
        columns: step / element_bytes,
    });
    change.into_iter().collect()
}

/// Elements of which this code, or any code, needs little.
pub fn fields(view: &View) -> Option<Finding> {
    let (step, used) = thin(view)?;
    // Shorter steps skip nothing: the walk must jump.
    if step.unsigned_abs() < 2 * u64::from(view.place.access_bytes) {
        return None;
    }
    let ever = view.structure.used_ever.unwrap_or(used);
    let (line, needed) = (view.line_bytes, in_bytes(used));
    let hot = merged(&view.place.fields);
    let found = |kind, why, change: Option<String>, groups| Finding {
        kind,
        evidence: view.evidence_of_elements(),
        why,
        change: change.filter(|_| view.can_change()),
        hint: prefetch(view),
        simulated: split(view, step.unsigned_abs(), groups).into_iter().collect(),
    };
    Some(match ever >= LATER * used {
        true => found(
            CauseKind::FieldsApart,
            format!(
                "steps of {step} bytes use {needed} of {line} bytes of each line; other code uses the rest at other times"
            ),
            Some(
                "store what is used together in an array of its own (struct of arrays), or use all of an element at once"
                    .to_string(),
            ),
            apart(&view.structure.fields),
        ),
        false => found(
            CauseKind::UnusedFields,
            format!("steps of {step} bytes use {needed} of {line} bytes of each line; the rest is not used"),
            one_array(&hot),
            // A change that is not proposed is not simulated.
            one_array(&hot).map_or_else(Vec::new, |_| vec![hot]),
        ),
    })
}

/// The used bytes, in their own array. `None` for a single byte: an array of characters has no elements to split.
fn one_array(hot: &[ElementField]) -> Option<String> {
    match hot {
        [one] if one.bytes <= 1 => None,
        [_, ..] if hot.len() <= NAMED => Some(format!(
            "split the element: keep what is used ({}) in an array of its own",
            in_words(hot)
        )),
        _ => Some("store what is used next to each other".to_string()),
    }
}

/// The step, and the used bytes of a line, if these are few.
fn thin(view: &View) -> Option<(i64, f64)> {
    let used = view.used()?;
    let step = view.step()?.bytes;
    (used <= LITTLE * view.line_bytes as f64).then_some((step, used))
}

/// The frequently accessed fields, each separately; if accesses overlap (a whole element is filled at once), the more
/// frequent ones.
fn apart(fields: &[ElementField]) -> Vec<Vec<ElementField>> {
    let mut by_share: Vec<ElementField> = much_used(fields).copied().collect();
    by_share.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.offset.cmp(&b.offset)));
    let mut kept: Vec<ElementField> = Vec::new();
    for field in by_share {
        if kept
            .iter()
            .all(|other| end(&field) <= other.offset || end(other) <= field.offset)
        {
            kept.push(field);
        }
    }
    kept.sort_by_key(|field| field.offset);
    kept.into_iter().map(|field| vec![field]).collect()
}

/// Each group of fields in its own array, and the rest in another.
fn split(view: &View, step: u64, groups: Vec<Vec<ElementField>>) -> Option<ProgramChange> {
    let field = |field: &ElementField| Field {
        offset: field.offset,
        bytes: field.bytes.max(1).into(),
    };
    let groups: Vec<Vec<Field>> = groups.iter().map(|group| group.iter().map(field).collect()).collect();
    let mut all: Vec<&Field> = groups.iter().flatten().collect();
    all.sort_by_key(|field| field.offset);
    let apart = all.windows(2).all(|two| two[0].offset + two[0].bytes <= two[1].offset);
    let within = all.last().is_some_and(|last| last.offset + last.bytes <= step);
    (apart && within).then(|| ProgramChange::Fields {
        data: view.structure.what.name.clone(),
        element_bytes: step,
        groups,
    })
}

fn much_used(fields: &[ElementField]) -> impl Iterator<Item = &ElementField> {
    let most = fields.iter().map(|field| field.share).fold(0.0, f64::max);
    fields.iter().filter(move |field| field.share > COLD * most)
}

/// The frequently accessed bytes: accesses that overlap are to one field.
fn merged(fields: &[ElementField]) -> Vec<ElementField> {
    let mut hot: Vec<ElementField> = much_used(fields).copied().collect();
    hot.sort_by_key(|field| (field.offset, field.bytes));
    let mut merged: Vec<ElementField> = Vec::new();
    for field in hot {
        match merged.last_mut() {
            Some(before) if field.offset < end(before) => {
                let end = end(before).max(end(&field));
                before.bytes = (end - before.offset) as u32;
                before.share += field.share;
            }
            _ => merged.push(field),
        }
    }
    merged
}

/// The byte after a field.
fn end(field: &ElementField) -> u64 {
    field.offset + u64::from(field.bytes.max(1))
}

/// Fields as `bytes 0 to 7`.
fn in_words(fields: &[ElementField]) -> String {
    let words = fields
        .iter()
        .map(|field| format!("bytes {} to {}", field.offset, end(field) - 1));
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_that_overlap_are_to_one_field() {
        let field = |offset, bytes| ElementField {
            offset,
            bytes,
            share: 0.2,
        };
        let fields = [field(0, 4), field(0, 1), field(64, 8), field(0, 8), field(8, 4)];
        let merged = merged(&fields);
        assert_eq!(in_words(&merged), "bytes 0 to 7, bytes 8 to 11, bytes 64 to 71");
        assert!((merged[0].share - 0.6).abs() < 1e-9);
    }

    #[test]
    fn elements_are_split_by_fields_and_not_by_single_bytes() {
        let field = |offset, bytes| ElementField {
            offset,
            bytes,
            share: 0.2,
        };
        assert_eq!(one_array(&[field(0, 1)]), None);
        assert!(one_array(&[field(0, 1), field(8, 1)]).is_some());
        assert!(one_array(&[field(0, 8)]).unwrap().contains("(bytes 0 to 7)"));
    }
}
