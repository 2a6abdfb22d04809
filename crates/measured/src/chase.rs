//! Loads that each wait for the one before, over a working set of a given size.
//!
//! Pages are visited in random order, in groups, and the lines of a group in random order: a page's translation is
//! needed but once a visit. Groups are as large as second-level TLBs allow: processors learn which lines of a page are used, and memory
//! answers sooner where neighbouring lines were just read. Page by page AMD's Zen 5 takes half of the time that it takes for a list in
//! random places. With 32 pages in a group a Granite Rapids takes 90 ns for a load from memory, and 155 with 512. In random order over all
//! pages it takes 165, of which 10 are page walks of a guest whose host keeps huge pages in small ones.
//!
//! Huge pages are used where the system gives them: a first-level TLB has too few entries for a group of small ones. Else working sets
//! within a group's size are visited in smaller groups.
//!
//! Processors bring the other line of a pair along (AMD's up/down prefetcher, Intel's adjacent-line prefetcher), so
//! that half of a walk over all lines finds its line brought already: on a Zen 3 a load from memory seems to take 90 ns
//! then, and takes 125 in a list in random places. So memory is timed by every other line ([`lines_apart`]). The
//! capacity of caches is found with all lines ([`lines`]): lines that are brought and never used take half of a cache.

use std::hint::black_box;
use std::iter;

use sys::arrays::Array;
use sys::clock::thread_time;
use sys::mappings::{Details, details};
use sys::memory::Span;

use super::{Effort, Point};
use crate::rounds::{median, rounds};

/// Bytes from one load to the next: no load finds its line fetched by another.
const LINE: u64 = 64;
/// Indices in a line.
const STEP: usize = LINE as usize / 4;
/// The lines of a page that are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    /// Every other one: the even ones of even pages, the odd ones of odd pages, so that all sets of a cache get as many.
    Apart,
    /// Every fourth line, with the same numbers modulo 4 in all pages: lines of one bank, for cores that have banks.
    OfBank,
}

impl Lines {
    /// One of this many lines is visited.
    fn step(self) -> u64 {
        match self {
            Lines::All => 1,
            Lines::Apart => 2,
            Lines::OfBank => 4,
        }
    }
}

/// An area for walks, on huge pages where the system gives them.
pub(super) struct Room {
    /// Each leads to the next one of a walk.
    pub places: Array<u32>,
    is_huge: bool,
}

impl Room {
    /// For working sets of up to `bytes` bytes of such lines.
    pub fn of(lines: Lines, bytes: u64) -> Room {
        let mut places = Array::<u32>::new((lines.step() * bytes / 4) as usize);
        places.fill(0);
        let is_huge = is_on_huge(&places);
        Room { places, is_huge }
    }

    /// Lines of `bytes` bytes in the order of a walk.
    pub fn order(&self, lines: Lines, bytes: u64, page_bytes: u64, random: &mut Random) -> Vec<u32> {
        let fits = bytes * lines.step() <= GROUP as u64 * page_bytes;
        let group = if fits && !self.is_huge { SMALL_GROUP } else { GROUP };
        shuffled(lines, bytes, page_bytes, group, random)
    }

    /// The same for several walks side by side, each of which is in another group.
    pub fn order_of_several(&self, lines: Lines, bytes: u64, page_bytes: u64, random: &mut Random) -> Vec<u32> {
        let group = if self.is_huge { GROUP } else { SMALL_GROUP };
        shuffled(lines, bytes, page_bytes, group, random)
    }
}

/// True if all of it, and of the mappings that it is part of, is on huge pages.
fn is_on_huge(places: &Array<u32>) -> bool {
    let found = details(Span::new(places.as_ptr() as usize, size_of_val(&places[..])));
    found.is_ok_and(|found| {
        let is_huge = |of: &Details| of.huge_bytes as usize >= of.mapping.span.bytes;
        !found.is_empty() && found.iter().all(is_huge)
    })
}

/// Time a load over each working set, with every line of each page.
pub fn lines(sizes: &[u64], page_bytes: u64, effort: Effort) -> Vec<Point> {
    walked(Lines::All, sizes, page_bytes, effort)
}

/// Time of a load over a working set of `bytes` bytes of lines, with every other line of each page.
pub fn lines_apart(bytes: u64, page_bytes: u64, effort: Effort) -> f64 {
    walked(Lines::Apart, &[bytes], page_bytes, effort)[0].ns
}

fn walked(lines: Lines, sizes: &[u64], page_bytes: u64, effort: Effort) -> Vec<Point> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let most = sizes.iter().copied().max().unwrap_or(0);
    let mut room = Room::of(lines, most);
    let loads = match effort {
        Effort::Quick => LOADS_MIN,
        Effort::Careful => LOADS_MAX,
    };
    curve(sizes, effort, |bytes| {
        let ring = room.order(lines, bytes, page_bytes, &mut random);
        link(&mut room.places, &ring);
        time(&room.places, ring[0], ring.len() as u64, loads)
    })
}

/// Time that the TLB adds to a load, over the bytes of the pages used: loads of one line a page,
/// less loads of as many lines side by side, which the caches serve as well.
///
/// Of `most` bytes at most, or of as many as any TLB reaches.
pub fn pages(page_bytes: u64, most: u64, effort: Effort) -> Vec<Point> {
    let mut random = Random(0xd1b5_4a32_d192_ed03);
    let counts = page_counts((most / page_bytes).max(SMALL));
    let most = counts.iter().max().map_or(0, |count| count * page_bytes);
    let mut room = vec![0u32; (most / 4) as usize];
    let sizes: Vec<u64> = counts.iter().map(|count| count * page_bytes).collect();
    curve(&sizes, effort, |bytes| {
        beyond_close(&mut room, bytes / page_bytes, page_bytes, &mut random)
    })
}

/// More pages than any TLB has entries.
const SMALL: u64 = 1 << 14;

/// From fewer pages than any TLB has entries up to enough that their tables leave the caches, but `most` at most; steps
/// of a quarter octave near the end of second-level TLBs and of tables.
fn page_counts(most: u64) -> Vec<u64> {
    let quarters = (8..15).flat_map(|bits| (4..8).map(move |quarters| quarters << (bits - 2)));
    let counts = (4..8).map(|bits| 1 << bits).chain(quarters).chain([1 << 15, 1 << 16]);
    counts.filter(|&count| count <= most).collect()
}

/// The same for `bytes` bytes in huge pages, if the system gives them: the time that translation adds to a load of one
/// line of each small page in them. None if it gives none.
pub fn huge_pages(page_bytes: u64, bytes: u64, effort: Effort) -> Option<f64> {
    let mut random = Random(0x8538_ecb5_bd45_6ea3);
    // Large arrays are on huge pages where there are any.
    let mut room = Array::<u32>::new((bytes / 4) as usize);
    room.fill(1);
    if !is_on_huge(&room) {
        return None;
    }
    let count = bytes / page_bytes;
    let timed = curve(&[bytes], effort, |_| {
        beyond_close(&mut room, count, page_bytes, &mut random)
    });
    Some(timed[0].ns)
}

/// How much longer loads of one line a page take than those of as many lines side by side.
fn beyond_close(room: &mut [u32], count: u64, page_bytes: u64, random: &mut Random) -> f64 {
    let dense = shuffled(Lines::All, count * LINE, page_bytes, SMALL_GROUP, random);
    link(room, &dense);
    let close = time(room, dense[0], count, LOADS_MIN);
    let mut sparse: Vec<u32> = (0..count).map(|page| apart(page, page_bytes)).collect();
    random.shuffle(&mut sparse);
    link(room, &sparse);
    (time(room, sparse[0], count, LOADS_MIN) - close).max(0.0)
}

/// The ratio of the time of translations one after the other to that of translations side by side. Loads read one line
/// of each of `count` pages, in random order: each waits for the one before, or none waits for another. A processor
/// that walks page tables for several loads at once has that many. Both are timed in the same moment, since neighbours
/// make either slower from one moment to the next.
pub fn pages_at_once(page_bytes: u64, count: u64, effort: Effort) -> f64 {
    let mut random = Random(0x94d0_49bb_1331_11eb);
    let mut room = vec![1u32; (count * page_bytes / 4) as usize];
    let mut places: Vec<u32> = (0..count).map(|page| apart(page, page_bytes)).collect();
    let passes = LOADS_MIN.div_ceil(count);
    let times = || {
        let one = beyond_close(&mut room, count, page_bytes, &mut random);
        random.shuffle(&mut places);
        let begin = thread_time();
        for _ in 0..passes {
            black_box(
                places
                    .iter()
                    .map(|&place| room[place as usize])
                    .fold(0, u32::wrapping_add),
            );
        }
        let each = (thread_time() - begin).as_secs_f64() * 1e9 / (passes * count) as f64;
        one / each
    };
    median(iter::repeat_with(times).take(rounds(effort)).collect())
}

/// The load of a page: a different line in each, so that the pages do not fight for one cache set.
fn apart(page: u64, page_bytes: u64) -> u32 {
    let line = page % (page_bytes / LINE);
    ((page * page_bytes + line * LINE) / 4) as u32
}

/// The median over rounds; the sizes take turns, so that a busy moment spoils no size alone.
fn curve(sizes: &[u64], effort: Effort, mut ns: impl FnMut(u64) -> f64) -> Vec<Point> {
    let mut seen = vec![Vec::new(); sizes.len()];
    for _ in 0..rounds(effort) {
        for (times, &bytes) in seen.iter_mut().zip(sizes) {
            times.push(ns(bytes));
        }
    }
    sizes
        .iter()
        .zip(seen)
        .map(|(&bytes, times)| Point {
            bytes,
            ns: median(times),
        })
        .collect()
}

/// Pages of a group: second-level TLBs of x86 and Arm servers have had at least 1024 entries since 2015.
const GROUP: usize = 512;
/// First-level ones have had at least 48. Prefetchers that follow pages one by one gain nothing from 16 at a time.
const SMALL_GROUP: usize = 32;

/// Lines of `bytes` bytes as indices: groups of `group` pages in random order, lines in random order in each group.
fn shuffled(which: Lines, bytes: u64, page_bytes: u64, group: usize, random: &mut Random) -> Vec<u32> {
    let lines = (bytes / LINE).max(1) as u32;
    let step = which.step() as u32;
    let of_a_page = (page_bytes / LINE) as u32 / step;
    let mut pages: Vec<u32> = (0..lines.div_ceil(of_a_page)).collect();
    random.shuffle(&mut pages);
    let mut ring = Vec::with_capacity(lines as usize);
    for group in pages.chunks(group) {
        let from = ring.len();
        let lines_of = |&page: &u32| {
            let ours = page * of_a_page..lines.min((page + 1) * of_a_page);
            let first = if which == Lines::OfBank { 0 } else { page % step };
            ours.map(move |line| (line * step + first) * STEP as u32)
        };
        ring.extend(group.iter().flat_map(lines_of));
        random.shuffle(&mut ring[from..]);
    }
    ring
}

/// Makes each index of the ring lead to the next, and the last to the first.
pub(super) fn link(room: &mut [u32], ring: &[u32]) {
    for (&from, &to) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        room[from as usize] = to;
    }
}

/// Loads that are enough for the clock, and those that are too many to wait for.
const LOADS_MIN: u64 = 1 << 15;
const LOADS_MAX: u64 = 1 << 18;

/// Nanoseconds a load, after a walk that fills the caches as far as they can hold it. In processor time: on a busy
/// machine the time of other processes does not count.
fn time(room: &[u32], start: u32, lines: u64, most: u64) -> f64 {
    let mut at = walk(room, start, lines.min(most * 4));
    let loads = (lines * 2).clamp(LOADS_MIN, most);
    let begin = thread_time();
    at = walk(room, at, loads);
    let taken = thread_time() - begin;
    black_box(at);
    taken.as_secs_f64() * 1e9 / loads as f64
}

pub(super) fn walk(room: &[u32], mut at: u32, loads: u64) -> u32 {
    for _ in 0..loads {
        at = room[at as usize];
    }
    at
}

/// xorshift64 (Marsaglia 2003): an order that no prefetcher knows.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    pub(super) fn shuffle(&mut self, items: &mut [u32]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_visits_every_line_once_and_group_by_group() {
        for (which, of_a_page) in [(Lines::All, 64u32), (Lines::Apart, 32)] {
            let mut random = Random(1);
            let pages = 2 * GROUP as u32 + 1;
            let bytes = u64::from(pages * of_a_page) * LINE;
            let ring = shuffled(which, bytes, 4096, GROUP, &mut random);
            let mut room = Room::of(which, bytes).places;
            link(&mut room, &ring);
            let mut at = ring[0];
            let mut seen = Vec::new();
            for _ in 0..ring.len() {
                seen.push(at);
                at = room[at as usize];
            }
            assert_eq!(at, ring[0]);
            for group in seen.chunks(GROUP * of_a_page as usize) {
                let mut pages: Vec<u32> = group.iter().map(|index| index / 1024).collect();
                let changes = pages.windows(2).filter(|pair| pair[0] != pair[1]).count();
                pages.sort_unstable();
                pages.dedup();
                assert_eq!(
                    pages.len(),
                    group.len() / of_a_page as usize,
                    "a page is met in one group alone"
                );
                assert!(
                    pages.len() == 1 || changes > group.len() / 2,
                    "pages of a group are mixed"
                );
            }
            seen.sort_unstable();
            let visited = |line: &u32| which == Lines::All || line % 2 == line / 64 % 2;
            let expected: Vec<u32> = (0..pages * 64).filter(visited).map(|line| line * 16).collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn sparse_loads_stay_in_their_pages() {
        for page in 0..300 {
            assert_eq!(u64::from(apart(page, 4096)) * 4 / 4096, page);
        }
    }
}
