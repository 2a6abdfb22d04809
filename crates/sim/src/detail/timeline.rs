//! Waiting over time: by data structure, by thread, and by place among the addresses.
//!
//! Memory grows neither with the length of a run nor with the memory it touches. Time goes into [`INTERVALS`] of one
//! length; a run that goes beyond the last makes each two of them one, twice as long. Pages go into at most [`BLOCKS`]
//! of one length in the same way. Both lengths are powers of two, so that sums in two steps equal sums in one.

use std::collections::HashMap;

use results::{TimelineBlock, TimelinePhase, TimelineRow};

use super::{Names, thread_name};
use crate::clock::{Units, whole_ns};
use crate::engine::Engine;
use crate::pieces::Access;
use crate::structures::{StructureId, Structures, UNKNOWN};

const INTERVALS: usize = 128;
const BLOCKS: usize = 192;
/// Structures and threads that have a row of their own; the others have one together.
const STRUCTURES: usize = 16;
const THREADS: usize = 63;
/// Rows of colors, at most: neighbors have one together.
const COLORS: u32 = 64;
const PHASES: usize = 256;
/// The space and number of the block of processes that are too many.
const OTHERS: (u32, u64) = (u32::MAX, 0);
/// The first intervals are of 2^30 units: 1024 ns.
const SHORTEST: u32 = 30;

type Intervals = [u64; INTERVALS];

pub struct Timeline {
    page_bits: u32,
    /// Page colors of the machine, and how many have a row together.
    colors: u32,
    together: u32,
    /// The moment of the first piece, and the length of an interval: 2 to this power, in units.
    begin: Option<Units>,
    length: u32,
    structures: Vec<Option<Box<Intervals>>>,
    threads: Vec<Option<Box<Intervals>>>,
    by_color: Vec<Option<Box<Intervals>>>,
    moved: Box<Intervals>,
    /// Each with the moment at which a thread entered it.
    phases: Vec<(Units, String)>,
    blocks: Vec<Block>,
    /// Pages of a block: 2 to this power.
    pages: u32,
    /// The block's number: by space and number of the block, and by page.
    numbers: HashMap<(u32, u64), u32>,
    of_page: Vec<Option<u32>>,
}

/// Some pages side by side.
struct Block {
    space: u32,
    number: u64,
    stall: Box<Intervals>,
    misses: Box<Intervals>,
    threads: Vec<Units>,
    /// The structure that has most of it, and by how much (Boyer and Moore's vote).
    tenant: (StructureId, Units),
}

/// The address of a piece, its thread, and its time.
#[derive(Clone, Copy)]
pub struct Place {
    pub now: Units,
    pub thread: u32,
    pub space: u32,
    /// The page's dense number.
    pub page: u32,
    pub address: u64,
    /// Its physical address.
    pub physical: u64,
}

impl Place {
    pub fn of(a: &Access, now: Units) -> Place {
        Place {
            now,
            thread: a.who.thread,
            space: a.who.space,
            page: a.page,
            address: a.virtual_address,
            physical: a.physical_address,
        }
    }
}

impl Timeline {
    /// A new one with empty counts; the current phase goes on.
    pub fn anew(&self) -> Timeline {
        Timeline {
            phases: self
                .phases
                .last()
                .map(|(_, name)| (0, name.clone()))
                .into_iter()
                .collect(),
            ..Timeline::new(self.page_bits, self.colors)
        }
    }

    /// `colors`: page colors of the machine.
    pub fn new(page_bits: u32, colors: u32) -> Timeline {
        Timeline {
            page_bits,
            colors,
            together: colors.div_ceil(COLORS).max(1),
            begin: None,
            length: SHORTEST,
            structures: Vec::new(),
            threads: Vec::new(),
            by_color: Vec::new(),
            moved: Box::new([0; INTERVALS]),
            phases: Vec::new(),
            blocks: Vec::new(),
            pages: 0,
            numbers: HashMap::new(),
            of_page: Vec::new(),
        }
    }

    /// A piece missed the first cache.
    #[inline]
    pub fn missed(&mut self, place: Place, structure: impl FnOnce() -> StructureId) {
        let interval = self.interval(place.now);
        let block = self.block(place);
        let block = &mut self.blocks[block];
        block.misses[interval] += 1;
        // Next to nothing compared with waits: it names places without any wait.
        if block.tenant.0 == UNKNOWN {
            block.lives((structure(), 1));
        }
    }

    /// A cpu waited for a piece.
    #[inline]
    pub fn waited(&mut self, place: Place, structure: StructureId, stall: Units) {
        let interval = self.interval(place.now);
        row(&mut self.structures, structure)[interval] += stall;
        row(&mut self.threads, place.thread)[interval] += stall;
        if self.colors > 1 {
            let color = (place.physical >> self.page_bits) % u64::from(self.colors);
            row(&mut self.by_color, color as u32 / self.together)[interval] += stall;
        }
        let block = self.block(place);
        let block = &mut self.blocks[block];
        block.stall[interval] += stall;
        let thread = place.thread as usize;
        if block.threads.len() <= thread {
            block.threads.resize(thread + 1, 0);
        }
        block.threads[thread] += stall;
        block.lives((structure, stall));
    }

    /// A page was moved to another node, or copied to it.
    pub fn moved(&mut self, now: Units) {
        let interval = self.interval(now);
        self.moved[interval] += 1;
    }

    /// A thread enters a phase. Threads that enter it together are reported once.
    pub fn entered(&mut self, now: Units, name: &str) {
        let is_new = self.phases.last().is_none_or(|(_, last)| last != name);
        if is_new && self.phases.len() < PHASES {
            self.phases.push((now, name.to_string()));
        }
    }

    /// The interval of a moment; cpus whose clocks are before the first piece's are in the first.
    fn interval(&mut self, now: Units) -> usize {
        let since = now.saturating_sub(*self.begin.get_or_insert(now));
        while since >> self.length >= INTERVALS as u64 {
            self.length += 1;
            let rows = self
                .structures
                .iter_mut()
                .chain(&mut self.threads)
                .chain(&mut self.by_color);
            rows.flatten().for_each(|row| halve(row));
            halve(&mut self.moved);
            for block in &mut self.blocks {
                halve(&mut block.stall);
                halve(&mut block.misses);
            }
        }
        (since >> self.length) as usize
    }

    fn block(&mut self, place: Place) -> usize {
        let page = place.page as usize;
        if self.of_page.len() <= page {
            self.of_page.resize(page + 1, None);
        }
        if let Some(known) = self.of_page[page] {
            return known as usize;
        }
        let number = place.address >> self.page_bits;
        let mut block = self.numbered(place.space, number >> self.pages);
        while self.blocks.len() > BLOCKS && !self.is_whole() {
            self.merge();
            block = self.numbered(place.space, number >> self.pages);
        }
        self.of_page[page] = Some(block);
        block as usize
    }

    /// Returns whether each block is all of a process.
    fn is_whole(&self) -> bool {
        self.pages + self.page_bits >= u64::BITS
    }

    fn numbered(&mut self, space: u32, number: u64) -> u32 {
        let is_full = self.is_whole() && self.blocks.len() >= BLOCKS && !self.numbers.contains_key(&(space, number));
        let (space, number) = if is_full { OTHERS } else { (space, number) };
        *self.numbers.entry((space, number)).or_insert_with(|| {
            self.blocks.push(Block::new(space, number));
            self.blocks.len() as u32 - 1
        })
    }

    /// Makes each two neighboring blocks one.
    fn merge(&mut self) {
        self.pages += 1;
        self.numbers.clear();
        self.of_page.fill(None);
        for old in std::mem::take(&mut self.blocks) {
            let block = self.numbered(old.space, old.number >> 1) as usize;
            self.blocks[block].add(&old);
        }
    }

    /// The rows that are reported.
    pub fn report(mut self, structures: &Structures, names: &Names) -> results::Timeline {
        let total = |row: &Intervals| row.iter().sum::<u64>();
        let used = |row: &Intervals| row.iter().rposition(|&of| of > 0).map_or(0, |last| last + 1);
        let rows = self.structures.iter().chain(&self.threads).flatten();
        let of_blocks = self.blocks.iter().flat_map(|block| [&block.stall, &block.misses]);
        let rows = rows.chain(of_blocks).chain([&self.moved]);
        let intervals = rows.map(|row| used(row)).max().unwrap_or(0);
        let in_ns = |row: &Intervals| row[..intervals].iter().map(|&of| whole_ns(of)).collect::<Vec<u64>>();

        let mut ranked: Vec<(StructureId, Box<Intervals>)> = (0..)
            .zip(self.structures)
            .filter_map(|(id, row)| Some((id, row?)))
            .collect();
        ranked.sort_by_key(|(id, row)| (std::cmp::Reverse(total(row)), *id));
        let mut others: Intervals = [0; INTERVALS];
        let left_out = ranked.split_off(ranked.len().min(STRUCTURES));
        left_out.iter().for_each(|(_, row)| plus(&mut others, row));
        let mut by_structure: Vec<TimelineRow> = ranked
            .iter()
            .map(|(id, row)| TimelineRow {
                name: structures.describe(*id).name,
                stall_ns: in_ns(row),
            })
            .collect();
        if !left_out.is_empty() {
            by_structure.push(TimelineRow {
                name: format!("{} others", left_out.len()),
                stall_ns: in_ns(&others),
            });
        }
        let mut worst: Vec<usize> = (0..self.threads.len())
            .filter(|&thread| self.threads[thread].is_some())
            .collect();
        worst.sort_by_key(|&thread| (std::cmp::Reverse(self.threads[thread].as_deref().map(total)), thread));
        let others_of_threads = worst.split_off(worst.len().min(THREADS));
        worst.sort_unstable();
        let mut by_thread: Vec<TimelineRow> = worst
            .iter()
            .filter_map(|&thread| {
                Some(TimelineRow {
                    name: thread_name(names, thread as u32),
                    stall_ns: in_ns(self.threads[thread].as_deref()?),
                })
            })
            .collect();
        if !others_of_threads.is_empty() {
            let mut others: Intervals = [0; INTERVALS];
            let rows = others_of_threads
                .iter()
                .filter_map(|&thread| self.threads[thread].as_deref());
            rows.for_each(|row| plus(&mut others, row));
            by_thread.push(TimelineRow {
                name: format!("{} others", others_of_threads.len()),
                stall_ns: in_ns(&others),
            });
        }
        let of_threads = |block: &Block| {
            let waited = |&thread: &usize| block.threads.get(thread).copied().unwrap_or(0);
            let mut waits: Vec<u64> = worst.iter().map(waited).map(whole_ns).collect();
            if !others_of_threads.is_empty() {
                waits.push(whole_ns(others_of_threads.iter().map(waited).sum()));
            }
            waits
        };
        self.blocks.sort_by_key(|block| (block.space, block.number));
        let block_bits = self.pages + self.page_bits;
        let blocks = self.blocks.iter().map(|block| TimelineBlock {
            process: block.space,
            address: block.number.checked_shl(block_bits).unwrap_or(0),
            bytes: 1u64.checked_shl(block_bits).unwrap_or(u64::MAX),
            structure: structures.describe(block.tenant.0).name,
            stall_ns: in_ns(&block.stall),
            misses: block.misses[..intervals].to_vec(),
            threads_stall_ns: of_threads(block),
        });
        let blocks = blocks.collect();
        let colors = (0..).zip(&self.by_color).filter_map(|(at, row)| {
            let first = at * self.together;
            Some(TimelineRow {
                name: match self.together {
                    1 => format!("color {first}"),
                    _ => format!("colors {first} to {}", (first + self.together).min(self.colors) - 1),
                },
                stall_ns: in_ns(row.as_deref()?),
            })
        });
        let begin = self.begin.unwrap_or(0);
        let phases = self.phases.iter().map(|(at, name)| TimelinePhase {
            name: name.clone(),
            begin_ns: whole_ns(at.saturating_sub(begin)),
        });
        let moved = &self.moved[..intervals];
        results::Timeline {
            interval_ns: whole_ns(1 << self.length),
            structures: by_structure,
            threads: by_thread,
            blocks,
            colors: colors.collect(),
            moved_pages: match moved.iter().any(|pages| *pages > 0) {
                true => moved.to_vec(),
                false => Vec::new(),
            },
            phases: phases.collect(),
        }
    }
}

impl Block {
    fn new(space: u32, number: u64) -> Block {
        Block {
            space,
            number,
            stall: Box::new([0; INTERVALS]),
            misses: Box::new([0; INTERVALS]),
            threads: Vec::new(),
            tenant: (UNKNOWN, 0),
        }
    }

    fn add(&mut self, other: &Block) {
        plus(&mut self.stall, &other.stall);
        plus(&mut self.misses, &other.misses);
        self.threads.resize(self.threads.len().max(other.threads.len()), 0);
        for (sum, of) in self.threads.iter_mut().zip(&other.threads) {
            *sum += of;
        }
        self.lives(other.tenant);
    }

    fn lives(&mut self, (structure, weight): (StructureId, Units)) {
        let (tenant, votes) = &mut self.tenant;
        if *tenant == structure {
            *votes += weight;
        } else if *votes >= weight {
            *votes -= weight;
        } else {
            (*tenant, *votes) = (structure, weight - *votes);
        }
    }
}

fn row(rows: &mut Vec<Option<Box<Intervals>>>, number: u32) -> &mut Intervals {
    let number = number as usize;
    if rows.len() <= number {
        rows.resize(number + 1, None);
    }
    rows[number].get_or_insert_with(|| Box::new([0; INTERVALS]))
}

fn plus(sum: &mut Intervals, row: &Intervals) {
    for (sum, of) in sum.iter_mut().zip(row) {
        *sum += of;
    }
}

/// Makes each two intervals one.
fn halve(row: &mut Intervals) {
    for at in 0..INTERVALS / 2 {
        row[at] = row[2 * at] + row[2 * at + 1];
    }
    row[INTERVALS / 2..].fill(0);
}

/// The engine's reports.
impl Engine {
    /// A page was moved to another node, or copied to it, by this cpu.
    pub fn detail_moved(&mut self, cpu: u32) {
        let now = self.cpus[cpu as usize].clock;
        if let Some(timeline) = self.detail.as_mut().and_then(|detail| detail.timeline.as_mut()) {
            timeline.moved(now);
        }
    }

    /// A thread on this cpu enters a phase.
    pub fn detail_entered(&mut self, cpu: u32, phase: &str) {
        let now = self.cpus[cpu as usize].clock;
        if let Some(timeline) = self.detail.as_mut().and_then(|detail| detail.timeline.as_mut()) {
            timeline.entered(now, phase);
        }
    }
}

#[cfg(test)]
mod tests;
