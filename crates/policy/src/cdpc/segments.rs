//! Step 1 (Bugnion96, section 5.2): uniform access segments, maximal runs of pages within one array that the same cpus
//! touch.
//!
//! Cases about which the paper is silent:
//! - *Arrays that overlap* (unions, commons seen twice, section 5.1 "overlapping array partitions"): split at the boundaries
//!   of all, so that no byte is in two arrays. A piece is used together with all that its covering arrays are used with.
//! - *A page in which one array ends and the next begins* has one color, so it is in one array: the one that has most of
//!   its bytes, the first of those. Its cpus are those that touch any part of it.
//! - *Pages of an array that no cpu touches* are segments without cpus. They come last in the coloring order, so that
//!   they take no color from pages that are used. If the size of an array is not known, only its touched pages count.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::hints::{Array, Machine};
use super::touched::{hull, join, pages};
use super::{Access, Communication, Loop, Malformed, Summary};

/// Pages of one array that the same cpus touch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Number of the array.
    pub array: u32,
    /// Addresses divided by the bytes of a page; not empty.
    pub pages: Range<u64>,
    /// Bit `c`: cpu `c`.
    pub cpus: u128,
}

/// Step 1: the segments of the summaries of a program's loops.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// The arrays, by address; no two overlap. A segment's array is an index.
    pub arrays: Vec<Array>,
    /// By address; no two overlap.
    pub segments: Vec<Segment>,
    /// Arrays that loops use together, a list for each kind of loop.
    pub together: Vec<Vec<u32>>,
}

/// Uniform access segments of all arrays that the loops use. Thread `t` of a loop runs on cpu `t`, modulo the cpus.
pub fn segments(loops: &[Loop], machine: &Machine) -> Result<Segments, Malformed> {
    machine.check()?;
    let mut extents = Extents::new();
    for a_loop in loops {
        a_loop.check()?;
        for summary in &a_loop.summaries {
            let hull = || hull(a_loop, summary);
            let known = (summary.bytes > 0).then(|| summary.start..summary.start + summary.bytes);
            if let Some(bytes) = known.or_else(hull) {
                let extent = extents.entry(id(summary)).or_insert((bytes.clone(), &summary.name));
                extent.0 = extent.0.start.min(bytes.start)..extent.0.end.max(bytes.end);
            }
        }
    }
    let (arrays, covering) = split(&extents);
    let owners = owners(&arrays, machine.page_bytes);
    let most: u64 = arrays
        .iter()
        .filter(|array| array.known)
        .map(|array| array.bytes / machine.page_bytes)
        .sum();
    machine.fits(most)?;
    let users = users(loops, machine)?;
    let mut together: Vec<Vec<u32>> = loops.iter().map(|a_loop| used_by(a_loop, &covering)).collect();
    together.sort_unstable();
    together.dedup();
    Ok(Segments {
        segments: cut(&owners, &users),
        arrays,
        together,
    })
}

/// The array that a summary is about.
type Id = (u64, u64);

fn id(summary: &Summary) -> Id {
    (summary.start, summary.bytes)
}

/// Bytes and name of each array, as the summaries describe them: they may overlap.
type Extents<'a> = BTreeMap<Id, (Range<u64>, &'a str)>;

/// The arrays cut at each other's boundaries, and of which of them each array is made.
fn split<'a>(extents: &Extents<'a>) -> (Vec<Array>, BTreeMap<Id, Range<u32>>) {
    let mut boundaries: Vec<u64> = extents
        .values()
        .flat_map(|(bytes, _)| [bytes.start, bytes.end])
        .collect();
    boundaries.sort_unstable();
    boundaries.dedup();
    // For each gap between boundaries the shortest array that covers it, which is the one that people mean; the order
    // of writing does that, from the longest on. Those that nothing covers are left out.
    let at = |address: u64| boundaries.partition_point(|&boundary| boundary < address);
    let mut longest: Vec<_> = extents.iter().collect();
    longest.sort_by_key(|(id, (bytes, _))| (std::cmp::Reverse(bytes.end - bytes.start), **id));
    let mut names: Vec<Option<(&'a str, bool)>> = vec![None; boundaries.len()];
    let mut free = Unwritten::new(boundaries.len());
    for (id, (bytes, name)) in longest.iter().rev() {
        free.each(at(bytes.start)..at(bytes.end), |gap| {
            names[gap] = Some((name, id.1 > 0))
        });
    }
    // A gap is known to be memory where any array of known size covers it.
    let mut free = Unwritten::new(boundaries.len());
    for (_, (bytes, _)) in longest.iter().filter(|(id, _)| id.1 > 0) {
        free.each(at(bytes.start)..at(bytes.end), |gap| {
            if let Some(name) = &mut names[gap] {
                name.1 = true;
            }
        });
    }
    let mut arrays = Vec::new();
    let mut numbers = vec![0u32; boundaries.len() + 1];
    for (gap, name) in names.iter().enumerate() {
        numbers[gap] = arrays.len() as u32;
        if let Some((name, known)) = *name {
            arrays.push(Array {
                name: name.to_owned(),
                start: boundaries[gap],
                bytes: boundaries[gap + 1] - boundaries[gap],
                known,
            });
        }
    }
    numbers[boundaries.len()] = arrays.len() as u32;
    let covering = extents
        .iter()
        .map(|(&id, (bytes, _))| (id, numbers[at(bytes.start)]..numbers[at(bytes.end)]));
    let covering = covering.collect();
    (arrays, covering)
}

/// The places of a row that have not been visited; visiting all costs little more than the places.
struct Unwritten {
    /// For each place the next one that may not have been visited: itself, if so.
    next: Vec<usize>,
}

impl Unwritten {
    fn new(places: usize) -> Unwritten {
        Unwritten {
            next: (0..=places).collect(),
        }
    }

    fn each(&mut self, places: Range<usize>, mut visit: impl FnMut(usize)) {
        let mut place = self.from(places.start);
        while place < places.end {
            visit(place);
            self.next[place] = place + 1;
            place = self.from(place + 1);
        }
    }

    fn from(&mut self, place: usize) -> usize {
        let mut end = place;
        while self.next[end] != end {
            end = self.next[end];
        }
        let mut at = place;
        while self.next[at] != end {
            at = std::mem::replace(&mut self.next[at], end);
        }
        end
    }
}

/// The arrays that a loop uses, by number.
fn used_by(a_loop: &Loop, covering: &BTreeMap<Id, Range<u32>>) -> Vec<u32> {
    let arrays = a_loop.summaries.iter().filter_map(|summary| covering.get(&id(summary)));
    let mut arrays: Vec<u32> = arrays.flat_map(Clone::clone).collect();
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

/// Pages of one array, and whether any array of known size has a part of them.
type Owned = (Range<u64>, u32, bool);

/// The pages of each array, by page: a page that several arrays have is with the one that has most of it.
fn owners(arrays: &[Array], page_bytes: u64) -> Vec<Owned> {
    let mut owners = Vec::with_capacity(arrays.len());
    // Pages of which an array has a part: page, bytes that are not its own, array.
    let mut parts = Vec::new();
    for (number, array) in (0u32..).zip(arrays) {
        let (start, end) = (array.start, array.start + array.bytes);
        let (first, last) = (start / page_bytes, (end - 1) / page_bytes);
        let mut part = |page: u64| {
            let own = end.min((page * page_bytes).saturating_add(page_bytes)) - start.max(page * page_bytes);
            parts.push((page, page_bytes - own, number));
        };
        part(first);
        if last > first {
            part(last);
        }
        if last > first + 1 {
            owners.push((first + 1..last, number, array.known));
        }
    }
    parts.sort_unstable();
    for parts in parts.chunk_by(|a, b| a.0 == b.0) {
        let (page, _, most) = parts[0];
        let known = parts.iter().any(|&(.., number)| arrays[number as usize].known);
        owners.push((page..page + 1, most, known));
    }
    owners.sort_unstable_by_key(|(pages, ..)| pages.start);
    owners
}

/// Ranges of pages that all cpus together may touch: 512 MiB of them.
const PIECES: usize = 1 << 25;

/// Runs of pages that the same cpus touch, by page, in any loop and array.
fn users(loops: &[Loop], machine: &Machine) -> Result<Vec<(Range<u64>, u128)>, Malformed> {
    let mut of: Vec<(Vec<Range<u64>>, usize)> = vec![(Vec::new(), 1024); machine.cpus as usize];
    for a_loop in loops {
        let different = different(a_loop);
        for thread in 0..a_loop.threads {
            let (touched, limit) = &mut of[(thread % machine.cpus) as usize];
            for &summary in &different {
                touched.extend(pages(a_loop, summary, thread, machine.page_bytes)?);
                // Many loops touch the same pages: keep their union, not the pages of each summary.
                if touched.len() > *limit {
                    join(touched);
                    *limit = 2 * touched.len() + 1024;
                    if touched.len() > PIECES / machine.cpus as usize {
                        return Err(Malformed {
                            place: a_loop.place.clone(),
                            why: format!("cpu {thread} touches more pieces than there is room for"),
                        });
                    }
                }
            }
        }
    }
    let mut turns: Vec<(u64, u32)> = Vec::new();
    for (cpu, (touched, _)) in (0u32..).zip(&mut of) {
        join(touched);
        turns.extend(touched.iter().flat_map(|pages| [(pages.start, cpu), (pages.end, cpu)]));
    }
    // The sort that makes use of existing order: the turns of each cpu are in order.
    turns.sort();
    let mut users: Vec<(Range<u64>, u128)> = Vec::new();
    let (mut cpus, mut since) = (0u128, 0);
    for (page, cpu) in turns {
        if cpus != 0 && since < page {
            users.push((since..page, cpus));
        }
        cpus ^= 1 << cpu;
        since = page;
    }
    Ok(users)
}

/// Summaries of a loop that describe different bytes: bytes that are read and then written are described twice.
pub(super) fn different(a_loop: &Loop) -> Vec<&Summary> {
    let mut seen = HashSet::new();
    let bytes = |summary: &&Summary| Summary {
        name: String::new(),
        access: Access::ReadWrite,
        communication: match summary.communication {
            Communication::Shift(0) | Communication::Rotate(0) => Communication::None,
            other => other,
        },
        ..(*summary).clone()
    };
    a_loop
        .summaries
        .iter()
        .filter(|summary| seen.insert(bytes(summary)))
        .collect()
}

/// Both cuts at once: at boundaries of arrays, and where the cpus change.
fn cut(owners: &[Owned], users: &[(Range<u64>, u128)]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut push = |pages: Range<u64>, array: u32, cpus: u128| {
        if pages.is_empty() {
            return;
        }
        match segments.last_mut() {
            Some(last) if last.pages.end == pages.start && last.array == array && last.cpus == cpus => {
                last.pages.end = pages.end;
            }
            _ => segments.push(Segment { array, pages, cpus }),
        }
    };
    let mut users = users.iter().peekable();
    for (owned, array, known) in owners {
        let mut page = owned.start;
        while let Some((used, cpus)) = users.peek() {
            if used.start >= owned.end {
                break;
            }
            if *known {
                push(page..used.start.max(page), *array, 0);
            }
            let (from, to) = (used.start.max(page), used.end.min(owned.end));
            push(from..to, *array, *cpus);
            page = to.max(page);
            if used.end > owned.end {
                break;
            }
            users.next();
        }
        if *known {
            push(page..owned.end, *array, 0);
        }
    }
    segments
}
