//! Homes for the arrays of a parallel program, from its compiler's descriptions of its loops: policy `summary-homes` on
//! a running program.
//!
//! [`policy::cdpc::Program::homes`] decides, as it does in the simulator: a page lives on the node whose cpus'
//! iterations touch it most. Thread `t` of a team is taken to be on the `t`-th of the [`seats`]. Here a memory policy
//! tells the kernel the node of each page before it is touched (`mbind(2)`), and pages that are present already move
//! (`move_pages(2)`). The node is preferred and not bound: if it has no memory left, the page lies elsewhere and the
//! program goes on.
//!
//! Loops come one by one, as for [`crate::cdpc`], and the same bounds hold. Loops described before `main` are placed
//! together. New arrays of a later loop are placed then; existing homes of pages change only within a budget. A known
//! loop is checked again from time to time: memory that was unmapped and mapped again has lost its home.

mod linux;
mod map;
mod outcome;
mod placing;
mod seats;
#[cfg(test)]
mod tests;
mod wishes;

use std::ops::Range;
use std::time::{Duration, Instant};

use policy::Name;
use policy::cdpc::{Added, Loop, Machine, Program, Room};
use results::run::Seat;

use crate::PAGE_BYTES;
use crate::cdpc::{Budget, MOST_LOOPS, MOST_NOTES, MOST_SUMMARIES, PATIENCE, REST, beyond};
use linux::{Here, Linux};
use map::PageMap;
pub use seats::seats;

/// Memory that the work takes at most: always; for each page of the arrays; for each of those and each node, while the
/// threads that touch it are counted; for each summary and thread.
const ALWAYS: u64 = 12 << 20;
const PAGE: u64 = 256;
const COUNT: u64 = 16;
const COUNTED: u64 = 1 << 21;
const SUMMARY: u64 = 1 << 10;

/// The homes of one process's arrays.
pub struct SummaryHomes {
    policy: String,
    /// The node of each seat, as Linux numbers it.
    nodes: Vec<u32>,
    linux: Box<dyn Linux + Send>,
    program: Program,
    room: Room,
    budget: Budget,
    /// The node that each page was last meant to be on.
    homes: PageMap<u32>,
    /// Pages that the kernel was not told of, or that could not move, and why.
    left: PageMap<String>,
    started: bool,
    /// Loops that were described since the homes of all were last computed together.
    pending: usize,
    next_look: Option<Instant>,
    start: Moment,
    later: Moment,
    again: u64,
    refused: u64,
    notes: Vec<String>,
}

/// The work done at one time, or at several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Moment {
    times: u64,
    /// Pages that were given a home; those of them that were there already and had to move, and did.
    pages: u64,
    moved: u64,
    duration: Duration,
}

impl SummaryHomes {
    /// For a program whose thread `t` is on the `t`-th of these seats, of which there is at least one.
    pub fn new(policy: &Name, seats: &[Seat]) -> SummaryHomes {
        SummaryHomes::with(policy, seats, Box::new(Here))
    }

    fn with(policy: &Name, seats: &[Seat], linux: Box<dyn Linux + Send>) -> SummaryHomes {
        SummaryHomes {
            policy: policy.to_string(),
            nodes: seats.iter().map(|seat| seat.node).collect(),
            linux,
            program: Program::default(),
            room: Room::new(MOST_LOOPS, MOST_SUMMARIES, u128::MAX),
            budget: Budget::default(),
            homes: PageMap::default(),
            left: PageMap::default(),
            started: false,
            pending: 0,
            next_look: None,
            start: Moment::default(),
            later: Moment::default(),
            again: 0,
            refused: 0,
            notes: Vec::new(),
        }
    }

    /// The loops so far.
    pub fn loops(&self) -> &[Loop] {
        self.program.loops()
    }

    /// Returns whether a loop was described before. Describing such a loop again changes nothing.
    pub fn knows(&self, described: &Loop) -> bool {
        self.program.find(described).is_some()
    }

    /// Returns whether [`SummaryHomes::start`] is over.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Before `main`: the pages of all loops that were described get their homes.
    pub fn start(&mut self) {
        let first = !std::mem::replace(&mut self.started, true);
        if first && !self.program.loops().is_empty() {
            let began = Instant::now();
            let mut wanted = PageMap::default();
            let threads = self.all(&[], &mut wanted);
            let moment = self.give(&wanted, threads);
            self.start.add(moment, began);
        }
    }

    /// A loop is about to run, or will one day. Before [`SummaryHomes::start`] it is kept for that.
    pub fn hear(&mut self, described: Loop) {
        if let Some(why) = beyond(&described) {
            return self.refuse(why);
        }
        let (at, fresh) = match self.program.add(described, &mut self.room) {
            Err(why) => return self.refuse(why.to_string()),
            Ok(Added::Known { at }) => {
                self.again += 1;
                (at, None)
            }
            Ok(Added::New { at, fresh }) => {
                self.pending += 1;
                (at, Some(fresh.into_iter().map(pages).collect::<Vec<_>>()))
            }
        };
        if !self.started {
            return;
        }
        self.budget.heard(self.program.loops().len(), fresh.is_none());
        let (began, may_look) = (Instant::now(), self.may_look());
        let mut wanted = PageMap::default();
        if may_look {
            self.again_of(at, &mut wanted);
        }
        let threads = match fresh {
            Some(fresh) if !self.may_compute() => self.alone(at, &fresh, &mut wanted),
            fresh if self.may_compute() => self.all(&fresh.unwrap_or_default(), &mut wanted),
            _ => self.program.threads(),
        };
        let moment = self.give(&wanted, threads);
        self.later.add(moment, began);
        if may_look {
            self.next_look = Some(Instant::now() + PATIENCE.max(began.elapsed() * REST));
        }
    }

    /// Returns whether describing this loop now would do more than count it.
    pub fn has_work(&mut self, described: &Loop) -> bool {
        if !self.started {
            return false;
        }
        let known = self.knows(described);
        self.budget.heard(self.program.loops().len(), known);
        !known || self.may_compute() || self.may_look()
    }

    /// A loop that is known was described, and [`SummaryHomes::has_work`] says that nothing is to be done.
    pub fn heard_again(&mut self) {
        self.again += 1;
    }

    /// A loop, or those that were described before [`SummaryHomes::start`], for which nothing can be done now, and why.
    pub fn pass_over(&mut self, described: Option<Loop>, why: &str) {
        let fresh: Vec<Range<u64>> = match described {
            None => {
                self.started = true;
                self.pending = self.program.loops().len();
                self.program.extents().map(pages).collect()
            }
            Some(described) => match self.program.add(described, &mut self.room) {
                Err(refused) => return self.refuse(refused.to_string()),
                Ok(Added::Known { .. }) => return self.heard_again(),
                Ok(Added::New { fresh, .. }) => {
                    self.pending += 1;
                    fresh.into_iter().map(pages).collect()
                }
            },
        };
        for pages in fresh {
            self.left.set(pages, why.to_string());
        }
    }

    /// Counts a summary that was not understood, and notes why.
    pub fn refuse(&mut self, why: String) {
        self.refused += 1;
        self.note(why);
    }

    /// Bytes that may be needed, beside live data, to describe a loop, to place all known loops together, or to look at
    /// all pages.
    pub fn memory(&self, described: Option<&Loop>) -> usize {
        let page = PAGE_BYTES as u64;
        let arrays = self.program.extents().map(|bytes| bytes.end - bytes.start);
        let new = described.filter(|described| !self.knows(described));
        let more = new.iter().flat_map(|new| &new.summaries).map(|summary| summary.bytes);
        let pages = arrays
            .chain(more)
            .fold(0, |pages: u64, bytes| pages.saturating_add(bytes / page + 2));
        let loops = self.program.loops().iter().chain(described);
        let parts: u64 = loops
            .map(|known| (known.summaries.len() as u64 + u64::from(known.threads)) * SUMMARY)
            .sum();
        let counts = pages.min(COUNTED) * COUNT * self.in_turn(u32::MAX).len() as u64;
        let bytes = pages.saturating_mul(PAGE).saturating_add(ALWAYS + parts + counts);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns whether the homes of all loops together may be computed, and anything in them is
    /// new.
    fn may_compute(&self) -> bool {
        self.pending > 0 && self.budget.may_compute(self.homes.pages() as usize)
    }

    fn may_look(&self) -> bool {
        self.next_look.is_none_or(|at| Instant::now() >= at)
    }

    /// Finds the homes of all loops together, for pages that have another one or none. Pages that are not `fresh` and
    /// have a home change it if the budget allows. Returns the number of threads of the largest team.
    fn all(&mut self, fresh: &[Range<u64>], wanted: &mut PageMap<u32>) -> u32 {
        let machine = self.machine(&self.program);
        let nodes = &self.nodes;
        let made = self.program.homes(&machine, |cpu| nodes[cpu as usize]);
        let (made, dropped) = match made {
            Ok(made) => made,
            Err(error) => {
                self.note(error.to_string());
                return self.program.threads();
            }
        };
        dropped.into_iter().for_each(|wrong| self.refuse(wrong.to_string()));
        let (mut changed, mut all) = (0, 0);
        for home in &made {
            all += length(&home.pages) as usize;
            for part in self.homes.differing(&home.pages, &home.node) {
                let had = self.homes.within(&part).map(|(part, _)| length(&part) as usize);
                changed += had.sum::<usize>();
            }
        }
        self.budget.computed(all);
        let may_change = self.budget.may_change(changed, self.homes.pages() as usize);
        if may_change {
            self.pending = 0;
            self.budget.changed(changed, self.program.loops().len());
        }
        for home in made {
            let parts = match may_change {
                true => self.homes.differing(&home.pages, &home.node),
                false => self.without_home(&home.pages, fresh),
            };
            parts.into_iter().for_each(|part| wanted.set(part, home.node));
        }
        self.program.threads()
    }

    /// The homes of the new pages of a loop, as if it were the only one. Its threads.
    fn alone(&mut self, at: usize, fresh: &[Range<u64>], wanted: &mut PageMap<u32>) -> u32 {
        let mut alone = Program::default();
        let added = alone.add(self.program.loops()[at].clone(), &mut Room::endless());
        let machine = self.machine(&alone);
        let nodes = &self.nodes;
        match added.and_then(|_| alone.homes(&machine, |cpu| nodes[cpu as usize])) {
            Ok((made, _)) => {
                for home in made {
                    let parts = self.without_home(&home.pages, fresh);
                    parts.into_iter().for_each(|part| wanted.set(part, home.node));
                }
            }
            Err(error) => self.note(error.to_string()),
        }
        alone.threads()
    }

    /// The homes that the arrays of a loop have already, once more: memory that is new at an old address has lost its.
    fn again_of(&self, at: usize, wanted: &mut PageMap<u32>) {
        for summary in &self.program.loops()[at].summaries {
            let array = pages(summary.start..summary.start.saturating_add(summary.bytes));
            self.homes
                .within(&array)
                .for_each(|(part, &node)| wanted.set(part, node));
        }
    }

    /// Parts of `pages` that have no home, or are among those that are new.
    fn without_home(&self, pages: &Range<u64>, fresh: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut parts = self.homes.gaps(pages);
        for new in fresh {
            let new = new.start.max(pages.start)..new.end.min(pages.end);
            parts.extend(self.homes.within(&new).map(|(part, _)| part));
        }
        parts
    }

    fn machine(&self, program: &Program) -> Machine {
        Machine {
            page_bytes: PAGE_BYTES as u64,
            colors: 1,
            cpus: program.threads().min(self.nodes.len() as u32),
            fit: false,
        }
    }

    /// The nodes round which pages go that a team of so many threads uses alike, as the policy has them: ascending.
    fn in_turn(&self, threads: u32) -> Vec<u32> {
        let mut nodes = self.nodes[..self.nodes.len().min(threads as usize)].to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Moment {
    fn add(&mut self, other: Moment, began: Instant) {
        self.times += u64::from(other.pages > 0);
        self.pages += other.pages;
        self.moved += other.moved;
        self.duration += began.elapsed();
    }
}

/// The pages that bytes lie on.
fn pages(bytes: Range<u64>) -> Range<u64> {
    let page = PAGE_BYTES as u64;
    bytes.start / page..bytes.end.div_ceil(page)
}

fn length(pages: &Range<u64>) -> u64 {
    pages.end.saturating_sub(pages.start)
}
