//! The home of each page of the arrays: the node whose cpus touch it most in the loops.
//!
//! No paper has this step. It takes the first one of page coloring (which cpus touch which pages, [`segments`]) for
//! homes instead of colors. Pages that only cpus of one node touch live on that node. For the others it counts the
//! bytes that the iterations of each node's cpus touch. It counts each loop once, since nothing says how often it runs.
//!
//! - *As many from several nodes*: the first of them has the page.
//! - *As many from all nodes that take part*, as of tables that all cpus read: the pages go round the nodes by their
//!   number, as under policy `interleave`. No place is better than another, and one node's memory would have to serve
//!   all.
//! - *Pages of arrays that no loop touches* have no home here.

use std::ops::Range;

use super::bytes::Bytes;
use super::segments::{different, segments};
use super::touched::{bounds, parts};
use super::{Loop, Machine, Malformed};

/// Pages that are to live on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Addresses divided by the bytes of a page; not empty.
    pub pages: Range<u64>,
    pub node: u32,
}

/// The most counts of a page in a nest, some seconds of work, and the most pages that are counted by themselves. In
/// larger programs pages are counted in blocks.
const COUNTS: u64 = 1 << 22;
const BLOCKS: u64 = 1 << 20;

/// The homes of all pages that the loops touch: ascending, no two overlap. `node_of` says which node a cpu is on; thread `t` of a
/// loop runs on cpu `t`, modulo the cpus. Of the machine only the pages and the cpus matter.
pub fn homes(loops: &[Loop], machine: &Machine, node_of: impl Fn(u32) -> u32) -> Result<Vec<Home>, Malformed> {
    let nodes: Vec<u32> = (0..machine.cpus).map(node_of).collect();
    let (mut homes, mut contested) = (Vec::new(), Vec::new());
    for segment in segments(loops, machine)?.segments {
        let users = (0..machine.cpus).filter(|cpu| segment.cpus >> cpu & 1 == 1);
        let mut users = users.map(|cpu| nodes[cpu as usize]);
        let pages = segment.pages;
        match users.next() {
            None => {}
            Some(node) if users.all(|other| other == node) => homes.push(Home { pages, node }),
            Some(_) => contested.push(pages),
        }
    }
    homes.extend(settled(&contested, loops, machine, &nodes));
    homes.sort_unstable_by_key(|home| home.pages.start);
    homes.dedup_by(|next, last| {
        let joined = next.pages.start == last.pages.end && next.node == last.node;
        if joined {
            last.pages.end = next.pages.end;
        }
        joined
    });
    Ok(homes)
}

/// The homes of pages that cpus of several nodes touch.
fn settled(contested: &[Range<u64>], loops: &[Loop], machine: &Machine, nodes: &[u32]) -> Vec<Home> {
    let pages: u64 = contested.iter().map(|pages| pages.end - pages.start).sum();
    if pages == 0 {
        return Vec::new();
    }
    let page = machine.page_bytes;
    let mut counts = 0u64;
    each_part(loops, machine, |part, _| {
        let at = met(contested, page, &part.hull());
        let met = contested[at].iter().map(|pages| pages.end - pages.start).sum::<u64>();
        let long = (part.hull().end - part.hull().start) / i128::from(page) + 2;
        counts += met.min(u64::try_from(long).unwrap_or(u64::MAX));
    });
    let grain = counts.div_ceil(COUNTS).max(pages.div_ceil(BLOCKS)).next_power_of_two();
    let blocks: Vec<Range<u64>> = contested
        .iter()
        .flat_map(|pages| {
            let starts = (pages.start..pages.end).step_by(grain as usize);
            starts.map(|start| start..pages.end.min(start.saturating_add(grain)))
        })
        .collect();
    // Nodes that take part, in their order, and the bytes that each touches of each block.
    let team = loops.iter().map(|a_loop| a_loop.threads).max().unwrap_or(0);
    let mut active: Vec<u32> = nodes[..nodes.len().min(team as usize)].to_vec();
    active.sort_unstable();
    active.dedup();
    let mut touched = vec![0u128; blocks.len() * active.len()];
    each_part(loops, machine, |part, cpu| {
        let Ok(node) = active.binary_search(&nodes[cpu as usize]) else {
            return;
        };
        for at in met(&blocks, page, &part.hull()) {
            let bytes = &mut touched[at * active.len() + node];
            *bytes = bytes.saturating_add(part.within(&window(&blocks[at], page)));
        }
    });
    let homes = blocks.iter().zip(touched.chunks(active.len()));
    homes
        .flat_map(|(block, bytes)| homes_of(block, bytes, &active))
        .collect()
}

/// The homes of the pages of a block, given the bytes of it that each of `nodes` touches.
fn homes_of(block: &Range<u64>, bytes: &[u128], nodes: &[u32]) -> Vec<Home> {
    let most = bytes.iter().max();
    let first = bytes.iter().position(|bytes| Some(bytes) == most).unwrap_or(0);
    if bytes.iter().any(|bytes| Some(bytes) != most) {
        let (pages, node) = (block.clone(), nodes[first]);
        return vec![Home { pages, node }];
    }
    let in_turn = |page: u64| Home {
        pages: page..page + 1,
        node: nodes[(page % nodes.len() as u64) as usize],
    };
    block.clone().map(in_turn).collect()
}

/// The part of an array that a cpu touches in one progression of its iterations of a loop.
struct Part {
    bytes: Bytes,
    array: Range<i128>,
}

impl Part {
    fn hull(&self) -> Range<i128> {
        clipped(&self.bytes.hull(), &self.array)
    }

    fn within(&self, window: &Range<i128>) -> u128 {
        self.bytes.within(&clipped(window, &self.array))
    }
}

fn clipped(one: &Range<i128>, other: &Range<i128>) -> Range<i128> {
    let start = one.start.max(other.start);
    start..one.end.min(other.end).max(start)
}

/// Visits the touched parts of all threads, with the cpu of each. Data that a loop reads and then writes is touched once, as in
/// [`segments`].
fn each_part(loops: &[Loop], machine: &Machine, mut visit: impl FnMut(&Part, u32)) {
    for a_loop in loops {
        for summary in different(a_loop) {
            for thread in 0..a_loop.threads {
                for (base, span, loops) in parts(a_loop, summary, thread) {
                    let part = Part {
                        bytes: Bytes::new(base, span, loops),
                        array: bounds(summary),
                    };
                    visit(&part, thread % machine.cpus);
                }
            }
        }
    }
}

fn window(pages: &Range<u64>, page: u64) -> Range<i128> {
    i128::from(pages.start) * i128::from(page)..i128::from(pages.end) * i128::from(page)
}

/// The ascending ranges of pages that have a part of `bytes`.
fn met(ranges: &[Range<u64>], page: u64, bytes: &Range<i128>) -> Range<usize> {
    let first = ranges.partition_point(|pages| window(pages, page).end <= bytes.start);
    let end = ranges.partition_point(|pages| window(pages, page).start < bytes.end);
    first..end.max(first)
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Communication, Direction, Schedule, Summary};
    use super::*;

    const MACHINE: Machine = Machine {
        page_bytes: 4096,
        colors: 1,
        cpus: 4,
        fit: false,
    };

    /// An array of `pages` whose rows of `unit` bytes are dealt to four threads.
    fn rows(start: u64, pages: u64, unit: i64, span: u64) -> Loop {
        let iterations = match unit {
            0 => 4,
            unit => pages * 4096 / unit as u64,
        };
        Loop {
            place: format!("{start:#x}"),
            threads: 4,
            iterations,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: vec![Summary {
                name: "a".into(),
                start,
                bytes: pages * 4096,
                offset: 0,
                unit,
                span,
                inner: Vec::new(),
                communication: Communication::None,
                access: Access::ReadWrite,
            }],
        }
    }

    fn of(loops: &[Loop], node_of: impl Fn(u32) -> u32) -> Vec<(u64, u64, u32)> {
        let homes = homes(loops, &MACHINE, node_of).unwrap();
        homes
            .iter()
            .map(|home| (home.pages.start, home.pages.end, home.node))
            .collect()
    }

    #[test]
    fn each_part_is_with_its_cpu() {
        let loops = [rows(16 << 12, 8, 4096, 4096)];
        assert_eq!(
            of(&loops, |cpu| cpu),
            [(16, 18, 0), (18, 20, 1), (20, 22, 2), (22, 24, 3)]
        );
        assert_eq!(of(&loops, |cpu| cpu / 2), [(16, 20, 0), (20, 24, 1)]);
        assert_eq!(of(&loops, |_| 3), [(16, 24, 3)]);
    }

    #[test]
    fn the_page_between_two_parts_is_with_the_larger_one() {
        // Each thread has 1.25 pages: 1 + 1/4, 3/4 + 1/2, 1/2 + 3/4, 1/4 + 1.
        let loops = [rows(16 << 12, 5, 5120, 5120)];
        assert_eq!(
            of(&loops, |cpu| cpu),
            [(16, 17, 0), (17, 19, 1), (19, 20, 2), (20, 21, 3)]
        );
    }

    #[test]
    fn what_all_read_alike_goes_round_and_what_one_writes_too_stays_with_it() {
        let table = rows(16 << 12, 8, 0, 8 << 12);
        let round: Vec<_> = (16..24).map(|page| (page, page + 1, page as u32 % 4)).collect();
        assert_eq!(of(std::slice::from_ref(&table), |cpu| cpu), round);
        let written = rows(16 << 12, 8, 4096, 4096);
        assert_eq!(
            of(&[table, written], |cpu| cpu),
            [(16, 18, 0), (18, 20, 1), (20, 22, 2), (22, 24, 3)]
        );
    }

    #[test]
    fn large_programs_are_counted_in_blocks() {
        // 2^24 pages of which all read all, and each writes its own quarter.
        let pages = 1 << 24;
        let loops = [rows(16 << 12, pages, 0, pages << 12), rows(16 << 12, pages, 4096, 4096)];
        let quarter = pages / 4;
        let expected: Vec<_> = (0..4)
            .map(|cpu| (16 + cpu * quarter, 16 + (cpu + 1) * quarter, cpu as u32))
            .collect();
        assert_eq!(of(&loops, |cpu| cpu), expected);
    }
}
