//! The pages that a thread touches in a parallel loop, as the summaries of the loop describe it (Bugnion96, section 5.1).
//!
//! Exact to the page: it names no page that the thread leaves alone, and leaves out none that the thread touches, if the summaries are
//! right. The time depends on the pages that a thread touches, not on its iterations.

use std::ops::Range;

use super::nest::{Nest, Scattered};
use super::{Access, Communication, Loop, Malformed, Summary, iterations};

/// Pages (addresses divided by the bytes of a page) that a thread touches: ascending ranges with gaps between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Touched {
    pub read: Vec<Range<u64>>,
    pub written: Vec<Range<u64>>,
}

/// All that `thread` reads and writes in a loop. A thread that the team does not have touches nothing.
///
/// Fails for summaries that cannot be, and for those that scatter over more pages than memory could have.
pub fn touched(a_loop: &Loop, thread: u32, page_bytes: u64) -> Result<Touched, Malformed> {
    a_loop.check()?;
    let mut all = Touched::default();
    for summary in &a_loop.summaries {
        let pages = pages(a_loop, summary, thread, page_bytes)?;
        if summary.access != Access::Write {
            all.read.extend_from_slice(&pages);
        }
        if summary.access != Access::Read {
            all.written.extend(pages);
        }
    }
    join(&mut all.read);
    join(&mut all.written);
    Ok(all)
}

/// The pages that `thread` touches, in any way, of the array of one of the loop's summaries. [`Loop::check`] must have
/// accepted the loop.
pub fn pages(a_loop: &Loop, summary: &Summary, thread: u32, page_bytes: u64) -> Result<Vec<Range<u64>>, Malformed> {
    let page = page_bytes.max(1);
    let array = bounds(summary);
    let mut all = Vec::new();
    for nest in nests(a_loop, summary, thread) {
        let ranges = nest.ranges(page).map_err(|Scattered| Malformed {
            place: a_loop.place.clone(),
            why: format!("{}: touches more pieces than memory has pages", summary.name),
        })?;
        let first = nest.hull().start;
        let ranges = ranges
            .into_iter()
            .map(|range| first + i128::from(range.start)..first + i128::from(range.end));
        all.extend(ranges.filter_map(|range| clipped(range, &array, &nest, page)));
    }
    join(&mut all);
    Ok(all)
}

/// The first byte that any thread touches of the array, to the last.
pub(super) fn hull(a_loop: &Loop, summary: &Summary) -> Option<Range<u64>> {
    let array = bounds(summary);
    let hulls = (0..a_loop.threads).flat_map(|thread| nests(a_loop, summary, thread));
    let hull = hulls
        .map(|nest| nest.hull())
        .reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))?;
    let (start, end) = (hull.start.max(array.start), hull.end.min(array.end));
    // Offsets within an array are addresses.
    (start < end).then_some(start as u64..end as u64)
}

/// The bytes of the array; if its size is not known, the whole address space except its last byte: ends have numbers.
pub(super) fn bounds(summary: &Summary) -> Range<i128> {
    match summary.bytes {
        0 => 0..i128::from(u64::MAX),
        bytes => i128::from(summary.start)..i128::from(summary.start) + i128::from(bytes),
    }
}

/// The accesses of a thread without bounds: a nest for each progression of its iterations.
fn nests(a_loop: &Loop, summary: &Summary, thread: u32) -> impl Iterator<Item = Nest> {
    parts(a_loop, summary, thread).map(|(base, span, loops)| Nest::new(base, span, loops))
}

/// The same as it is described: the start of the first piece, the bytes of a piece, and strides and counts of loops in
/// any order.
pub(super) fn parts(
    a_loop: &Loop,
    summary: &Summary,
    thread: u32,
) -> impl Iterator<Item = (i128, u64, impl Iterator<Item = (i128, u64)>)> {
    let (shift, rotate) = match summary.communication {
        Communication::None => (0, 0),
        Communication::Shift(bytes) => (bytes, 0),
        Communication::Rotate(iterations) => (0, iterations),
    };
    let base = i128::from(summary.start) + i128::from(summary.offset) + i128::from(shift);
    let unit = i128::from(summary.unit);
    iterations::of(a_loop, thread, rotate).into_iter().map(move |pieces| {
        let parallel = [
            (unit, pieces.length),
            // A lone piece has no next one, however far that would be.
            (
                if pieces.count > 1 {
                    unit * i128::from(pieces.every)
                } else {
                    0
                },
                pieces.count,
            ),
        ];
        let inner = summary
            .inner
            .iter()
            .map(|inner| (i128::from(inner.stride), inner.count));
        let first = base + unit * i128::from(pieces.first);
        (first, summary.span, parallel.into_iter().chain(inner))
    })
}

/// The pages of the part of `range` in the array.
///
/// Within the range there may be gaps that are smaller than a page. So the page in which the array begins, or ends,
/// must be checked for touches on this side of the border.
fn clipped(range: Range<i128>, array: &Range<i128>, nest: &Nest, page: u64) -> Option<Range<u64>> {
    let (start, end) = (range.start.max(array.start), range.end.min(array.end));
    if start >= end {
        return None;
    }
    // Offsets within an array are addresses.
    let (mut first, mut last) = (start as u64 / page, (end - 1) as u64 / page);
    let meets = |number: u64| {
        let page = i128::from(number) * i128::from(page)..(i128::from(number) + 1) * i128::from(page);
        nest.meets(&(page.start.max(array.start)..page.end.min(array.end)))
    };
    if range.start < array.start && !meets(first) {
        first += 1;
    }
    if range.end > array.end && first <= last && !meets(last) {
        // If that was page 0, nothing is left.
        last = last.checked_sub(1)?;
    }
    (first <= last).then(|| first..last + 1)
}

/// Sorts ranges, and joins those that overlap or touch.
pub(super) fn join(ranges: &mut Vec<Range<u64>>) {
    // The sort that makes use of existing order: most is in order.
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joined = next.start <= last.end;
        if joined {
            last.end = last.end.max(next.end);
        }
        joined
    });
}
