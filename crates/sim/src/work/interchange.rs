//! The iterations of a loop nest in another order: what a change `interchange` puts in order.
//!
//! README.md, "Changes", says what an iteration and a sweep are. An iteration begins with each reference of the instruction that
//! walks; a sweep is as long as that comes to no element twice. One pass over the input finds them, in recorded order, because
//! which data an address is depends on what all threads allocated so far.

use rustc_hash::{FxHashMap, FxHashSet};
use trace::Ref;

use super::marks::At;
use super::recorded::{self, Listener};
use crate::error::SimError;
use crate::input::Input;
use crate::structures::{StructureId, Structures};

/// References without the walk between two iterations, beyond which what follows is other work.
const GAP: u64 = 1 << 16;
/// Iterations that are kept in memory, 24 bytes each, of all instructions that may be the one that walks.
const MOST: usize = 1 << 25;
/// References after which it is decided which instruction walks.
const DECIDED: u64 = 1 << 20;
/// A page, one bit a byte.
const PAGE: u64 = 4096;

/// Loops whose iterations are to be ordered.
pub struct Interchange {
    /// What is walked over.
    pub data: FxHashSet<StructureId>,
    /// What the input's addresses are called.
    pub structures: Structures,
    /// The instructions of the line that walks, by site.
    pub sites: FxHashSet<u32>,
}

/// One thread's iterations: where each begins and what it comes to first; where sweeps end.
#[derive(Debug, Default)]
pub struct Sweeps {
    begins: Vec<(At, u64)>,
    /// After so many iterations, and where.
    ends: Vec<(usize, At)>,
    /// How long the stream is.
    pub all: At,
}

impl Sweeps {
    /// The sweeps, each with its iterations in the order of the stream, and its end.
    pub fn each(&self) -> impl Iterator<Item = (&[(At, u64)], At)> {
        let froms = std::iter::once(0).chain(self.ends.iter().map(|(to, _)| *to));
        let sweep = |(from, (to, end)): (usize, &(usize, At))| (&self.begins[from..*to], *end);
        froms.zip(&self.ends).map(sweep)
    }
}

/// What one instruction does in one thread.
#[derive(Debug, Default)]
struct Walk {
    sweeps: Sweeps,
    /// Where it was last, in the sweep at hand.
    last: Option<At>,
    /// By page, in which sweep, and which bytes it came to.
    visited: FxHashMap<u64, (usize, Box<[u64; (PAGE / 64) as usize]>)>,
    sweep: usize,
}

impl Walk {
    /// The instruction comes to an address.
    fn comes(&mut self, here: At, address: u64) {
        let far = self.last.is_some_and(|last| here.refs - last.refs > GAP);
        if far || !self.is_new(address) {
            self.end();
            self.is_new(address);
        }
        self.sweeps.begins.push((here, address));
        self.last = Some(At {
            refs: here.refs + 1,
            ..here
        });
    }

    /// Whether the sweep was not there yet; it was, from now on.
    fn is_new(&mut self, address: u64) -> bool {
        let page = self.visited.entry(address / PAGE);
        let (sweep, bytes) = page.or_insert_with(|| (self.sweep, Box::new([0; (PAGE / 64) as usize])));
        if *sweep != self.sweep {
            (*sweep, **bytes) = (self.sweep, [0; (PAGE / 64) as usize]);
        }
        let (word, bit) = ((address % PAGE / 64) as usize, 1 << (address % 64));
        let new = bytes[word] & bit == 0;
        bytes[word] |= bit;
        new
    }

    fn end(&mut self) {
        if let Some(last) = self.last.take() {
            self.sweeps.ends.push((self.sweeps.begins.len(), last));
            self.sweep += 1;
        }
    }
}

/// What is found in a pass.
struct Finder<'a> {
    of: &'a Interchange,
    threads: usize,
    /// By site of the line, what it does in each thread.
    walks: FxHashMap<u32, Vec<Walk>>,
    chosen: Option<u32>,
    /// Accesses of these sites to the data, and iterations that are kept.
    seen: u64,
    kept: usize,
}

impl Listener for Finder<'_> {
    fn reference(&mut self, thread: usize, here: At, space: u32, r: &Ref, structures: &mut Structures) {
        let of_line = match self.chosen {
            Some(site) => r.site == site,
            None => self.of.sites.contains(&r.site),
        };
        if of_line && self.of.data.contains(&structures.lookup(space, r.addr)) {
            let all = || (0..self.threads).map(|_| Walk::default()).collect();
            self.walks.entry(r.site).or_insert_with(all)[thread].comes(here, r.addr);
            self.seen += 1;
            self.kept += 1;
        }
    }

    fn meets(&mut self, thread: usize) {
        self.walks.values_mut().for_each(|threads| threads[thread].end());
    }

    fn ran(&mut self) -> Result<(), SimError> {
        if self.chosen.is_none() && self.seen > DECIDED {
            self.chosen = which(&self.walks);
            self.walks.retain(|site, _| Some(*site) == self.chosen);
            self.kept = self.walks.values().flatten().map(|walk| walk.sweeps.begins.len()).sum();
        }
        match self.kept > MOST {
            true => Err(SimError::Order(format!(
                "the loop has more than {MOST} iterations, which cannot be put in order: take windows of the run"
            ))),
            false => Ok(()),
        }
    }
}

impl Interchange {
    /// The iterations of all threads.
    pub fn find(&self, input: &mut dyn Input) -> Result<Vec<Sweeps>, SimError> {
        let mut finder = Finder {
            of: self,
            threads: input.threads().len(),
            walks: FxHashMap::default(),
            chosen: None,
            seen: 0,
            kept: 0,
        };
        let all = recorded::pass(input, self.structures.clone(), &mut finder)?;
        let chosen = finder.chosen.or_else(|| which(&finder.walks));
        let walks = chosen.and_then(|site| finder.walks.remove(&site)).unwrap_or_default();
        let mut walks = walks.into_iter();
        let sweeps = |all: At| {
            let mut walk = walks.next().unwrap_or_default();
            walk.end();
            Sweeps { all, ..walk.sweeps }
        };
        Ok(all.into_iter().map(sweeps).collect())
    }
}

/// The instruction that walks farthest before it comes back; of those that walk as far, the first.
fn which(walks: &FxHashMap<u32, Vec<Walk>>) -> Option<u32> {
    let length = |threads: &Vec<Walk>| {
        let iterations: usize = threads.iter().map(|walk| walk.sweeps.begins.len()).sum();
        let sweeps: usize = threads
            .iter()
            .map(|walk| walk.sweep + usize::from(walk.last.is_some()))
            .sum();
        iterations / sweeps.max(1)
    };
    let best = walks
        .iter()
        .max_by_key(|(site, threads)| (length(threads), std::cmp::Reverse(**site)));
    best.map(|(site, _)| *site)
}
