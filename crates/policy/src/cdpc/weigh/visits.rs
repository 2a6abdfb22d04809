//! The sequence of each cpu's visits, as the summaries of the loops describe it: the material that colorings are
//! weighed by.
//!
//! A loop is gone through in its own order: iteration by iteration, within an iteration along its outermost inner loop,
//! and at each step through all summaries, since they are used at the same time. A visit is one page with those of
//! its blocks that are used. Reuse that a small first cache would catch is left out: it reaches the external cache once.
//!
//! The work is bounded. Blocks become larger, up to whole pages, until there is room; a program that is larger still is
//! weighed by some of its cpus.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::hints::Machine;
use super::super::iterations::{self, Pieces};
use super::super::{Access, Communication, Loop, Segment, Summary};
use super::pages::Pages;

/// Blocks of a page at the finest: as many as a visit has bits.
const FINEST: u64 = 16;
/// Bytes of the smallest block.
const SMALLEST: u64 = 64;
/// Blocks in all visits that are made, of all loops and cpus: a bound on the time that weighing takes.
const MOST: usize = 1 << 18;
/// Bytes of the first cache that is supposed.
const FIRST: u64 = 16 << 10;
/// Steps that an iteration is divided into.
const STEPS: u64 = 64;

/// A page, and those of its blocks that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// Its number among the pages.
    pub(super) page: u32,
    pub(super) blocks: u16,
    pub(super) write: bool,
}

/// All visits of a program.
#[derive(Debug, Default)]
pub(super) struct Visits {
    /// Blocks of a page; 1, 2, 4, 8 or 16.
    pub(super) blocks: u32,
    pub(super) cpus: u32,
    pub(super) all: Vec<Visit>,
    /// For each loop the cpus that are at work in it, and their visits.
    pub(super) loops: Vec<Vec<(u32, Range<usize>)>>,
}

impl Visits {
    /// The visits of loops that pass [`Loop::check`]; none if they are too many even by whole pages and of few cpus.
    pub(super) fn of_loops(loops: &[Loop], pages: &Pages, machine: &Machine) -> Option<Visits> {
        let finest = (machine.page_bytes / SMALLEST).clamp(1, FINEST) as u32;
        let grains = std::iter::successors(Some((finest, 1)), |&(blocks, every)| match blocks {
            1 => Some((1, every * 2)),
            _ => Some((blocks / 2, 1)),
        });
        for (blocks, every) in grains.take_while(|&(_, every)| every <= machine.cpus) {
            let mut making = Making::new(pages, machine, blocks);
            if loops.iter().all(|a_loop| making.add(a_loop, every)) {
                return Some(making.made);
            }
        }
        None
    }

    /// Each list of arrays as a loop in which each cpu goes through its own pages of them; whole pages, of which it is
    /// unknown whether they are written.
    pub(super) fn of_segments(
        segments: &[Segment],
        together: &[Vec<u32>],
        pages: &Pages,
        machine: &Machine,
    ) -> Option<Visits> {
        let mut of_array: BTreeMap<u32, Vec<&Segment>> = BTreeMap::new();
        for segment in segments {
            of_array.entry(segment.array).or_default().push(segment);
        }
        for segments in of_array.values_mut() {
            segments.sort_unstable_by_key(|segment| segment.pages.start);
        }
        // Sorts arrays by address and lists by their arrays, so that numbering and order of description do not matter.
        let first = |array: &u32| of_array.get(array).map(|segments| segments[0].pages.start);
        let by_address = |list: &Vec<u32>| {
            let mut list: Vec<(u64, u32)> = list.iter().filter_map(|array| Some((first(array)?, *array))).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        let mut lists: Vec<Vec<(u64, u32)>> = together.iter().map(by_address).collect();
        if together.is_empty() {
            lists = of_array.keys().map(|&array| by_address(&vec![array])).collect();
        }
        lists.sort_unstable();
        lists.dedup();
        let mut made = Visits {
            blocks: 1,
            cpus: machine.cpus,
            ..Visits::default()
        };
        for list in &lists {
            let mut parts = Vec::new();
            for cpu in 0..machine.cpus {
                let from = made.all.len();
                let rows = list
                    .iter()
                    .filter_map(|(_, array)| of_array.get(array))
                    .map(|segments| {
                        let own = segments.iter().filter(|segment| segment.cpus >> cpu & 1 == 1);
                        own.flat_map(|segment| segment.pages.clone()).collect::<Vec<u64>>()
                    });
                let rows: Vec<Vec<u64>> = rows.collect();
                for step in 0..STEPS as usize {
                    for row in &rows {
                        let of = |step: usize| row.len() * step / STEPS as usize;
                        let visited = row[of(step)..of(step + 1)]
                            .iter()
                            .filter_map(|&page| pages.number(page));
                        made.all.extend(visited.map(|page| Visit {
                            page,
                            blocks: 1,
                            write: false,
                        }));
                    }
                }
                if made.all.len() > MOST {
                    return None;
                }
                if made.all.len() > from {
                    parts.push((cpu, from..made.all.len()));
                }
            }
            made.loops.push(parts);
        }
        Some(made)
    }
}

struct Making<'a> {
    pages: &'a Pages,
    page_bytes: u64,
    block_bytes: u64,
    made: Visits,
    /// The first cache: numbers of blocks by their lowest bits.
    first: Vec<u64>,
    /// Blocks that there is room for.
    room: usize,
}

/// One summary as a cpu goes through it.
struct Row<'a> {
    summary: &'a Summary,
    /// The first byte for iteration 0, and the range that may be touched.
    base: i128,
    array: Range<i128>,
    rotate: i128,
    /// Bytes in one piece, strides and counts within an iteration; the outermost apart.
    span: i128,
    inner: Vec<(i128, u64)>,
    outer: (i128, u64),
    write: bool,
}

impl<'a> Making<'a> {
    fn new(pages: &'a Pages, machine: &Machine, blocks: u32) -> Making<'a> {
        let block_bytes = machine.page_bytes / u64::from(blocks);
        Making {
            pages,
            page_bytes: machine.page_bytes,
            block_bytes,
            made: Visits {
                blocks,
                cpus: machine.cpus,
                ..Visits::default()
            },
            first: vec![u64::MAX; (FIRST / block_bytes).max(1) as usize],
            room: MOST,
        }
    }

    /// Returns true if there was room.
    fn add(&mut self, a_loop: &'a Loop, every: u32) -> bool {
        let rows: Vec<Row> = a_loop.summaries.iter().map(|summary| self.row(summary)).collect();
        let steps = rows.iter().map(|row| row.outer.1).max().unwrap_or(1).min(STEPS);
        let unit = rows
            .iter()
            .map(|row| row.summary.unit.unsigned_abs())
            .max()
            .unwrap_or(0);
        let together = match unit {
            0 => u64::MAX,
            unit => (self.block_bytes / unit).max(1),
        };
        let mut parts: Vec<(u32, Range<usize>)> = Vec::new();
        for thread in 0..a_loop.threads {
            let cpu = thread % self.made.cpus;
            if !cpu.is_multiple_of(every) {
                continue;
            }
            let from = self.made.all.len();
            self.first.fill(u64::MAX);
            for pieces in iterations::of(a_loop, thread, 0) {
                if !self.pieces(&rows, &pieces, together, steps, a_loop.iterations) {
                    return false;
                }
            }
            parts.push((cpu, from..self.made.all.len()));
        }
        self.made.loops.push(parts);
        true
    }

    fn row(&self, summary: &'a Summary) -> Row<'a> {
        let (shift, rotate) = match summary.communication {
            Communication::None => (0, 0),
            Communication::Shift(bytes) => (bytes, 0),
            Communication::Rotate(iterations) => (0, iterations),
        };
        let mut base = i128::from(summary.start) + i128::from(summary.offset) + i128::from(shift);
        let mut span = i128::from(summary.span);
        let mut inner: Vec<(i128, u64)> = Vec::new();
        for inside in &summary.inner {
            let stride = i128::from(inside.stride);
            if stride < 0 {
                base += stride * i128::from(inside.count - 1);
            }
            inner.push((stride.abs(), inside.count));
        }
        inner.sort_unstable();
        // Pieces without a whole block in between are one piece.
        while let Some(&(stride, count)) = inner.first()
            && stride <= span + i128::from(self.block_bytes)
        {
            span += stride * i128::from(count - 1);
            inner.remove(0);
        }
        let page = i128::from(self.page_bytes);
        let outer = match inner.pop() {
            Some(outer) => outer,
            None if span > page => {
                let count = (span / page) as u64;
                span = page + span % page;
                (page, count)
            }
            None => (0, 1),
        };
        let array = match summary.bytes {
            0 => 0..i128::from(u64::MAX),
            bytes => i128::from(summary.start)..i128::from(summary.start) + i128::from(bytes),
        };
        Row {
            summary,
            base,
            array,
            rotate: i128::from(rotate),
            span,
            inner,
            outer,
            write: summary.access != Access::Read,
        }
    }

    fn pieces(&mut self, rows: &[Row], pieces: &Pieces, together: u64, steps: u64, total: u64) -> bool {
        for piece in 0..pieces.count {
            let start = pieces.first + piece * pieces.every;
            let mut done = 0;
            while done < pieces.length {
                let count = together.min(pieces.length - done);
                for step in 0..steps {
                    for row in rows {
                        self.step(row, start + done, count, step, steps, total);
                    }
                    if self.room == 0 {
                        return false;
                    }
                }
                done += count;
            }
        }
        true
    }

    /// The visits of a few iterations by one summary, in one of `steps` steps; rotated, they may wrap around to the
    /// beginning.
    fn step(&mut self, row: &Row, iteration: u64, iterations: u64, step: u64, steps: u64, total: u64) {
        let first = (i128::from(iteration) + row.rotate).rem_euclid(i128::from(total.max(1)));
        let whole = i128::from(iterations).min(i128::from(total) - first);
        let (stride, count) = row.outer;
        let of = |step: u64| (u128::from(count) * u128::from(step) / u128::from(steps)) as u64;
        for (first, iterations) in [(first, whole), (0, i128::from(iterations) - whole)] {
            if iterations == 0 {
                continue;
            }
            let unit = i128::from(row.summary.unit);
            let more = unit * (iterations - 1);
            let base = row.base + unit * first + more.min(0);
            let span = row.span + more.abs();
            for outer in of(step)..of(step + 1) {
                self.nest(row, base + stride * i128::from(outer), span, row.inner.len());
            }
        }
    }

    fn nest(&mut self, row: &Row, base: i128, span: i128, depth: usize) {
        match depth.checked_sub(1) {
            None => self.piece(row, base, base + span),
            Some(depth) => {
                let (stride, count) = row.inner[depth];
                for turn in 0..count {
                    self.nest(row, base + stride * i128::from(turn), span, depth);
                }
            }
        }
    }

    fn piece(&mut self, row: &Row, from: i128, to: i128) {
        let (from, to) = (from.max(row.array.start), to.min(row.array.end));
        // Pieces that lie outside are work, too.
        self.room = self.room.saturating_sub(1);
        if from >= to || self.room == 0 {
            return;
        }
        // Offsets within an array are addresses.
        let (from, to) = (from as u64 / self.block_bytes, (to - 1) as u64 / self.block_bytes);
        let blocks = u64::from(self.made.blocks);
        let mut visit: Option<Visit> = None;
        for block in from..=to {
            let place = block as usize % self.first.len();
            if std::mem::replace(&mut self.first[place], block) == block && !row.write {
                continue;
            }
            self.room = self.room.saturating_sub(1);
            let (page, bit) = (block / blocks, 1u16 << (block % blocks));
            let Some(page) = self.pages.number(page) else { continue };
            match &mut visit {
                Some(visit) if visit.page == page => visit.blocks |= bit,
                _ => {
                    self.made.all.extend(visit.replace(Visit {
                        page,
                        blocks: bit,
                        write: row.write,
                    }));
                }
            }
        }
        self.made.all.extend(visit);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::super::{Direction, Inner, Schedule, hints, touched};
    use super::*;

    const PAGE: u64 = 1024;

    fn any_summary() -> impl Strategy<Value = Summary> {
        let inner = prop::collection::vec((-3000i64..3000, 1u64..5), 0..3);
        let communication = prop_oneof![
            Just(Communication::None),
            (-2000i64..2000).prop_map(Communication::Shift),
            (-3i64..3).prop_map(Communication::Rotate),
        ];
        let size = (1u64..40_000, -500i64..500, -2000i64..2000, 1u64..3000);
        (size, inner, communication).prop_map(|((bytes, offset, unit, span), inner, communication)| Summary {
            name: "a".into(),
            start: 100_000,
            bytes,
            offset,
            unit,
            span,
            inner: inner
                .into_iter()
                .map(|(stride, count)| Inner { stride, count })
                .collect(),
            communication,
            access: Access::Read,
        })
    }

    proptest! {
        /// Each cpu visits the pages that it touches, and no other.
        #[test]
        fn visits_are_to_the_pages_that_are_touched(
            summaries in prop::collection::vec(any_summary(), 1..4),
            iterations in 0u64..20,
            schedule in prop_oneof![Just(Schedule::Even), Just(Schedule::Blocked), (1u64..4).prop_map(Schedule::Chunked)],
        ) {
            let machine = Machine { page_bytes: PAGE, colors: 8, cpus: 3, fit: true };
            let a_loop = Loop {
                place: "f".into(), threads: 3, iterations, schedule, direction: Direction::Forward, summaries,
            };
            let made = hints(std::slice::from_ref(&a_loop), &machine).unwrap();
            let pages = Pages::of(&made.segments);
            let visits = Visits::of_loops(std::slice::from_ref(&a_loop), &pages, &machine).unwrap();
            prop_assert_eq!(visits.blocks, 16);
            for (cpu, part) in &visits.loops[0] {
                let visited: BTreeSet<u32> = visits.all[part.clone()].iter().map(|visit| visit.page).collect();
                let touched = touched(&a_loop, *cpu, PAGE).unwrap().read.into_iter().flatten();
                let touched: BTreeSet<u32> = touched.filter_map(|page| pages.number(page)).collect();
                prop_assert_eq!(visited, touched);
            }
        }
    }

    /// One array of `count` pages, dealt to 16 cpus page by page.
    fn of_pages(count: u64) -> (Loop, Machine) {
        let summary = Summary {
            name: "a".into(),
            start: 0,
            bytes: count * PAGE,
            offset: 0,
            unit: PAGE as i64,
            span: PAGE,
            inner: Vec::new(),
            communication: Communication::None,
            access: Access::ReadWrite,
        };
        let a_loop = Loop {
            place: "f".into(),
            threads: 16,
            iterations: count,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: vec![summary],
        };
        let machine = Machine {
            page_bytes: PAGE,
            colors: 256,
            cpus: 16,
            fit: true,
        };
        (a_loop, machine)
    }

    #[test]
    fn large_programs_are_gone_through_in_large_blocks_and_then_by_some_cpus() {
        let seen = |count: u64| {
            let (a_loop, machine) = of_pages(count);
            let made = hints(std::slice::from_ref(&a_loop), &machine).unwrap();
            let pages = Pages::of(&made.segments);
            let visits = Visits::of_loops(&[a_loop], &pages, &machine)?;
            assert!(visits.all.len() <= MOST);
            Some((visits.blocks, visits.loops[0].len()))
        };
        assert_eq!(seen(1000), Some((16, 16)));
        assert_eq!(seen(10_000), Some((16, 16)));
        assert_eq!(seen(60_000), Some((2, 16)));
        assert_eq!(seen(400_000), Some((1, 4)));
        assert_eq!(seen(4_000_000), None);
    }
}
