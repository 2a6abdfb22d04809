//! Sets the homes of pages in the kernel, and moves the pages that are present already.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use sys::mappings::{Kind, Mapping};
use sys::memory::Span;
use sys::move_pages::PageError;

use super::map::PageMap;
use super::wishes::{To, Wished, wishes};
use super::{Moment, SummaryHomes, length};
use crate::PAGE_BYTES;

/// Pages that are asked for at once.
pub(super) const BATCH: u64 = 4096;

/// Why a page is left where there is no memory: there may be some when its loop is described again.
const UNMAPPED: &str = "nothing is mapped there";
const TOO_MANY: &str = "so many parts would need more mappings than the kernel lets a process have (vm.max_map_count)";

impl SummaryHomes {
    /// Gives pages their homes, those of a team of so many threads.
    pub(super) fn give(&mut self, wanted: &PageMap<u32>, threads: u32) -> Moment {
        let mut moment = Moment::default();
        let wanted: Vec<(Range<u64>, u32)> = wanted.iter().map(|(pages, node)| (pages, *node)).collect();
        if wanted.is_empty() {
            return moment;
        }
        let mappings = match self.linux.mappings() {
            Ok(mappings) => mappings,
            Err(error) => {
                self.note(format!("nothing was placed: /proc/self/maps: {error}"));
                return moment;
            }
        };
        // A wish divides a mapping where it begins and where it ends, unless a mapping does there already. The program needs some
        // mappings for itself.
        let most = self.linux.most_mappings();
        let mut room = (most - most / 4).saturating_sub(mappings.len());
        let ends = mappings
            .iter()
            .flat_map(|mapping| [mapping.span.start, mapping.span.end()]);
        let mut divided: HashSet<u64> = ends.map(|end| (end / PAGE_BYTES) as u64).collect();
        let mut new = PageMap::default();
        for (pages, node) in &wanted {
            for part in self.homes.differing(pages, node) {
                moment.pages += length(&part);
                new.set(part, ());
            }
            self.homes.set(pages.clone(), *node);
            self.left.clear(pages);
        }
        let mut left = Vec::new();
        for part in fitting(&wishes(&wanted, &self.in_turn(threads)), &mappings, &mut left) {
            let cuts: Vec<u64> = [part.pages.start, part.pages.end]
                .into_iter()
                .filter(|at| !divided.contains(at))
                .collect();
            if cuts.len() > room {
                left.push((part.pages, TOO_MANY));
                continue;
            }
            room -= cuts.len();
            divided.extend(cuts);
            for page in self.place(&part) {
                moment.moved += 1;
                moment.pages += u64::from(new.within(&(page..page + 1)).next().is_none());
            }
        }
        for (pages, why) in left {
            self.left.set(pages, why.to_string());
        }
        moment
    }

    /// Tells the kernel; the pages that were elsewhere, and have moved.
    fn place(&mut self, part: &Wished) -> Vec<u64> {
        let Range { start, end } = part.pages;
        let span = Span::new(address(start), length(&part.pages) as usize * PAGE_BYTES);
        if let Err(error) = self.linux.wish(span, &part.to.wish()) {
            let why = format!("the kernel takes no wish for their node (mbind): {error}");
            self.left.set(part.pages.clone(), why);
            return Vec::new();
        }
        let mut moved = Vec::new();
        for first in (start..end).step_by(BATCH as usize) {
            let addresses: Vec<usize> = (first..end.min(first + BATCH)).map(address).collect();
            let Ok(now) = self.linux.nodes_of(&addresses) else {
                self.note(
                    "where pages are may not be asked (move_pages): those that were there already stay".to_string(),
                );
                return moved;
            };
            let astray = |(at, now): (u64, Result<u32, PageError>)| {
                let wanted = part.to.node(first + at);
                now.is_ok_and(|now| now != wanted).then_some((first + at, wanted))
            };
            let astray: Vec<(u64, u32)> = (0..).zip(now).filter_map(astray).collect();
            if !astray.is_empty() {
                moved.extend(self.carry(&astray));
            }
        }
        moved
    }

    /// Moves pages, each to its node; those that did.
    fn carry(&mut self, pages: &[(u64, u32)]) -> Vec<u64> {
        let (addresses, nodes): (Vec<usize>, Vec<u32>) =
            pages.iter().map(|&(page, node)| (address(page), node)).unzip();
        let now = match self.linux.move_to(&addresses, &nodes) {
            Ok(now) => now,
            Err(error) => {
                for &(page, _) in pages {
                    self.left.set(
                        page..page + 1,
                        format!("they were there already and cannot move: {error}"),
                    );
                }
                return Vec::new();
            }
        };
        let mut moved = Vec::new();
        for (&(page, node), now) in pages.iter().zip(now) {
            let why = match now {
                Ok(now) if now == node => {
                    moved.push(page);
                    continue;
                }
                // The page was unmapped meanwhile, and will come back on the node that is wished
                // for.
                Err(PageError::ABSENT) => continue,
                Ok(_) | Err(PageError::NO_MEMORY) => "their node has no memory left",
                Err(PageError::SHARED) => "they were there already and other processes have them",
                Err(PageError::BUSY) => "they were there already and somebody holds them",
                Err(_) => "they were there already and did not move",
            };
            self.left.set(page..page + 1, why.to_string());
        }
        moved
    }
}

/// The parts of wishes that mappings can take, each in one of them; the others, and why not, go to `left`.
fn fitting(wished: &[Wished], mappings: &[Mapping], left: &mut Vec<(Range<u64>, &'static str)>) -> Vec<Wished> {
    let page = PAGE_BYTES as u64;
    let of: BTreeMap<u64, &Mapping> = mappings
        .iter()
        .map(|mapping| (mapping.span.start as u64 / page, mapping))
        .collect();
    let mut fitting = Vec::new();
    for Wished { pages, to } in wished {
        let mut at = pages.start;
        while at < pages.end {
            let here = of.range(..=at).next_back().map(|(_, mapping)| *mapping);
            let here = here.filter(|mapping| mapping.span.contains(address(at)));
            let next = of.range(at + 1..).next().map_or(u64::MAX, |(&start, _)| start);
            let end = here
                .map_or(next, |mapping| mapping.span.end() as u64 / page)
                .min(pages.end);
            match here.map_or(Err(UNMAPPED), takes) {
                Err(why) => left.push((at..end, why)),
                // The kernel counts pages of a file from the file's start.
                Ok(Behind::File) if matches!(to, To::InTurn(_)) => fitting.extend((at..end).map(|page| Wished {
                    pages: page..page + 1,
                    to: To::Node(to.node(page)),
                })),
                Ok(_) => fitting.push(Wished {
                    pages: at..end,
                    to: to.clone(),
                }),
            }
            at = end;
        }
    }
    fitting
}

enum Behind {
    Nothing,
    File,
}

/// The backing of a mapping that takes a wish, or the reason why it takes none.
fn takes(mapping: &Mapping) -> Result<Behind, &'static str> {
    match &mapping.kind {
        _ if mapping.shared => Err("it is shared memory, or a file's own pages"),
        Kind::Special(_) => Err("it belongs to the kernel"),
        Kind::File(path) if path.starts_with("/anon_hugepage") || path.starts_with("/dev/hugepages/") => {
            Err("it is an explicit huge page")
        }
        Kind::File(_) if !mapping.write => Err("it is constant: the file's own pages, which all processes have"),
        Kind::File(_) => Ok(Behind::File),
        Kind::Anonymous | Kind::Heap | Kind::Stack => Ok(Behind::Nothing),
    }
}

pub(super) fn address(page: u64) -> usize {
    (page as usize).saturating_mul(PAGE_BYTES)
}
