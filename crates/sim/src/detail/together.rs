//! The threads that use the same lines, and how often one needs a line that another one has.
//!
//! Each line of data has three sets of threads: those that touched it, those that wrote it, and those that have its
//! contents since the last write. A thread that touches a line and is not in the third set gets it from the one that
//! got it last: that is a miss of sharing if every thread has an infinite cache of its own. So the graph depends on the
//! order of the references, and on no cache. Fetches of instructions do not count.

use std::cmp::Reverse;
use std::collections::HashMap;

use results::{SharedStructure, SharingEdge, SharingGraph, SharingThread};
use rustc_hash::FxHashMap;

use crate::detail::Names;
use crate::layout::Layout;
use crate::outcome::ThreadSet;
use crate::structures::{StructureId, Structures, UNKNOWN};

/// Threads that are told apart: a line takes three bits for each.
pub const MOST: usize = 256;
/// Structures of an edge that are reported.
const NAMED: usize = 5;

/// The last word of a line: the thread that got it last, plus one, and the structure.
const HOLDER: u64 = 0xffff_ffff;

/// The lines of a run.
pub struct Together {
    threads: usize,
    left_out: u64,
    /// Words of a set of threads.
    words: usize,
    line_bits: u32,
    /// Lines of a page, as a power of two.
    page_lines: u32,
    /// By line: three sets, and its last word.
    lines: Vec<u64>,
    /// By the two threads and the structure.
    misses: FxHashMap<(u32, u32, StructureId), u64>,
}

/// A touch of a line.
#[derive(Clone, Copy)]
pub struct Touch {
    pub space: u32,
    pub thread: u32,
    pub page: u32,
    /// The address as the program has it, and where it lies.
    pub named: u64,
    pub address: u64,
    pub write: bool,
}

impl Together {
    pub fn new(threads: usize, layout: &Layout) -> Together {
        Together {
            threads: threads.min(MOST),
            left_out: threads.saturating_sub(MOST) as u64,
            words: threads.clamp(1, MOST).div_ceil(64),
            line_bits: layout.block_bits,
            page_lines: layout.page_bits - layout.block_bits,
            lines: Vec::new(),
            misses: FxHashMap::default(),
        }
    }

    /// Counts begin here, and earlier touches are forgotten.
    pub fn restart(&mut self) {
        self.lines.fill(0);
        self.misses.clear();
    }

    /// A thread touches a line.
    #[inline(always)]
    pub fn touched(&mut self, touch: &Touch, structures: &mut Structures) {
        let thread = touch.thread as usize;
        if thread >= self.threads {
            return;
        }
        let within = (touch.address >> self.line_bits) as usize & ((1 << self.page_lines) - 1);
        let line = (touch.page as usize) << self.page_lines | within;
        let (words, word, bit) = (self.words, thread / 64, 1 << (thread % 64));
        let at = line * (3 * words + 1);
        if let Some(of) = self.lines.get(at..at + 3 * words) {
            let has = of[2 * words + word] & bit != 0;
            // A thread that is alone with it and wrote it before may write it without notice to others.
            let alone = || {
                of[2 * words + word] == bit
                    && (words == 1 || of[2 * words..].iter().filter(|set| **set != 0).count() == 1)
            };
            if has && (!touch.write || (of[words + word] & bit != 0 && alone())) {
                return;
            }
        }
        self.gets(touch, line, structures);
    }

    #[inline(never)]
    fn gets(&mut self, touch: &Touch, line: usize, structures: &mut Structures) {
        let (words, stride) = (self.words, 3 * self.words + 1);
        let (word, bit) = (touch.thread as usize / 64, 1 << (touch.thread % 64));
        let at = line * stride;
        if self.lines.len() < at + stride {
            let pages = (touch.page as usize + 1).next_power_of_two().max(64);
            self.lines.resize((pages << self.page_lines) * stride, 0);
        }
        let of = &mut self.lines[at..at + stride];
        let holder = of[3 * words] & HOLDER;
        if of[2 * words + word] & bit == 0 {
            let known = (of[3 * words] >> 32) as StructureId;
            let mut structure = structures.lookup(touch.space, touch.named);
            // An allocator may clear a block before it has a name (`calloc`), and puts it into a list when it comes
            // back: threads share the block.
            if known != UNKNOWN && known != structure && (structure == UNKNOWN || structures.is_of_malloc(structure)) {
                structure = known;
            }
            if holder != 0 && holder != u64::from(touch.thread) + 1 {
                let other = (holder - 1) as u32;
                let (a, b) = (other.min(touch.thread), other.max(touch.thread));
                *self.misses.entry((a, b, structure)).or_default() += 1;
            }
            of[3 * words] = u64::from(structure) << 32 | (u64::from(touch.thread) + 1);
        }
        of[word] |= bit;
        if touch.write {
            of[words + word] |= bit;
            of[2 * words..3 * words].fill(0);
            of[3 * words] = of[3 * words] & !HOLDER | (u64::from(touch.thread) + 1);
        }
        of[2 * words + word] |= bit;
    }

    /// The graph, and how many lines each set of threads touched.
    pub fn report(&self, structures: &Structures, names: &Names) -> (SharingGraph, Vec<(ThreadSet, u64)>) {
        let words = self.words;
        // By the threads that touched, those that wrote, and the structure.
        let mut classes: HashMap<(&[u64], StructureId), u64> = HashMap::new();
        for of in self.lines.chunks_exact(3 * words + 1) {
            if of[..words].iter().any(|set| *set != 0) {
                *classes
                    .entry((&of[..2 * words], (of[3 * words] >> 32) as StructureId))
                    .or_default() += 1;
            }
        }
        let line_bytes = 1u64 << self.line_bits;
        let mut sets: HashMap<ThreadSet, u64> = HashMap::new();
        let mut edges: HashMap<(u32, u32), Edge> = HashMap::new();
        let mut threads: Vec<SharingThread> = (0..self.threads as u32).map(|thread| about(thread, names)).collect();
        for ((of, structure), lines) in classes {
            let (touched, written) = of.split_at(words);
            let touched = ThreadSet::of_words(touched);
            let written = ThreadSet::of_words(written);
            *sets.entry(touched).or_default() += lines;
            let bytes = lines * line_bytes;
            let members: Vec<u32> = touched.iter().collect();
            for (place, &a) in members.iter().enumerate() {
                threads[a as usize].bytes += bytes;
                threads[a as usize].shared += if members.len() > 1 { bytes } else { 0 };
                for &b in &members[place + 1..] {
                    let edge = edges.entry((a, b)).or_default();
                    edge.bytes += bytes;
                    edge.written += if written.has(a) || written.has(b) { bytes } else { 0 };
                    edge.structures.entry(structure).or_default()[0] += bytes;
                }
            }
        }
        for (&(a, b, structure), &misses) in &self.misses {
            edges
                .entry((a, b))
                .or_default()
                .structures
                .entry(structure)
                .or_default()[1] += misses;
        }
        let mut edges: Vec<SharingEdge> = edges
            .into_iter()
            .map(|((a, b), edge)| edge.report([a, b], structures))
            .collect();
        edges.sort_by_key(|edge| (Reverse((edge.misses, edge.bytes)), edge.a, edge.b));
        let mut sets: Vec<(ThreadSet, u64)> = sets.into_iter().map(|(set, lines)| (set, lines * line_bytes)).collect();
        sets.sort_unstable();
        let graph = SharingGraph {
            line_bytes,
            threads,
            edges,
            left_out: self.left_out,
        };
        (graph, sets)
    }
}

fn about(thread: u32, names: &Names) -> SharingThread {
    let known = names.tables.threads.get(thread as usize);
    let process = known.map_or(0, |known| known.process);
    let program = names.tables.processes.get(process as usize);
    SharingThread {
        thread,
        number: known.map_or(u64::from(thread), |known| known.number),
        name: known.map_or_else(String::new, |known| known.name.clone()),
        process,
        program: program.map_or_else(String::new, |process| process.program.clone()),
        ..SharingThread::default()
    }
}

#[derive(Default)]
struct Edge {
    bytes: u64,
    written: u64,
    /// Bytes and misses.
    structures: HashMap<StructureId, [u64; 2]>,
}

impl Edge {
    fn report(self, [a, b]: [u32; 2], names: &Structures) -> SharingEdge {
        let mut structures: Vec<(StructureId, [u64; 2])> = self.structures.into_iter().collect();
        structures.sort_by_key(|(structure, [bytes, misses])| (Reverse((*misses, *bytes)), *structure));
        SharingEdge {
            a,
            b,
            bytes: self.bytes,
            written: self.written,
            misses: structures.iter().map(|(_, [_, misses])| misses).sum(),
            structures: structures
                .into_iter()
                .take(NAMED)
                .map(|(structure, [bytes, misses])| {
                    let about = names.describe(structure);
                    SharedStructure {
                        name: about.name,
                        kind: about.kind,
                        bytes,
                        misses,
                    }
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::{Allocation, Event, Frame, Location, Stack};

    use super::*;
    use crate::structures::Tables;

    const BLOCK: u64 = 0x5000_0000;

    /// `calloc` touches memory before it is a block, and `free` after that.
    #[test]
    fn a_block_is_named_that_its_allocator_touched_before_and_after() {
        let location = |pc, function: &str, line: Option<u32>| Location {
            pc,
            function: function.to_string(),
            file: line.map(|_| "pair.c".to_string()),
            line,
            ..Location::default()
        };
        let locations = [
            location(0x10, "__brk", None),
            location(0x20, "sysmalloc", None),
            location(0x30, "main", Some(9)),
        ];
        let stacks = [&[0x10, 0x20, 0x30][..], &[0x30]].map(|frames| Stack {
            process: 0,
            frames: frames.iter().map(|&pc| Frame { pc }).collect(),
        });
        let tables = Tables {
            locations: &locations,
            stacks: &stacks,
            ..Tables::default()
        };
        let mut structures = Structures::new(&tables);
        let mut together = Together {
            threads: 2,
            left_out: 0,
            words: 1,
            line_bits: 6,
            page_lines: 6,
            lines: Vec::new(),
            misses: FxHashMap::default(),
        };
        let mut write = |thread, structures: &mut Structures| {
            let touch = Touch {
                space: 0,
                thread,
                page: 0,
                named: BLOCK,
                address: BLOCK,
                write: true,
            };
            together.touched(&touch, structures);
        };
        let alloc = |bytes, stack, kind| Event::Alloc {
            addr: BLOCK,
            bytes,
            stack,
            kind,
        };
        structures.apply(0, 0, &alloc(4096, 0, Allocation::Map));
        write(0, &mut structures);
        structures.apply(0, 0, &alloc(64, 1, Allocation::Heap));
        write(1, &mut structures);
        write(0, &mut structures);
        structures.apply(0, 0, &Event::Free { addr: BLOCK });
        write(1, &mut structures);
        let names = Names {
            tables,
            sites: &[],
            dependences: None,
        };
        let (graph, _) = together.report(&structures, &names);
        let shared: Vec<_> = graph.edges[0]
            .structures
            .iter()
            .map(|of| (&*of.name, of.misses))
            .collect();
        assert_eq!(shared, [("heap: main (pair.c:9)", 3)]);
    }
}
