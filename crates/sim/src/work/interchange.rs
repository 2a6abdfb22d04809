//! The iterations of a loop nest in another order: the work of a change `interchange`.
//!
//! README.md, "Changes", defines an iteration and a sweep. An iteration begins with each reference of the instruction
//! that walks, or, in an unrolled loop, of those that do; a sweep lasts until these reach an element a second time. One
//! pass over the input finds them, in recorded order, because the data at an address depends on the allocations of all
//! threads so far.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use trace::Ref;

use super::marks::At;
use super::recorded::{self, Listener};
use crate::error::SimError;
use crate::input::Input;
use crate::structures::{StructureId, Structures};

/// References without the walk between two iterations, beyond which other work follows.
const GAP: u64 = 1 << 16;
/// Iterations that are kept in memory, 24 bytes each, of all instructions that may be the one that walks.
const MOST: usize = 1 << 25;
/// References after which it is decided which instruction walks.
const DECIDED: u64 = 1 << 20;
/// A step, or a distance between two instructions, is the usual one if so large a part is.
const USUAL: f64 = 0.75;
/// A page, one bit a byte.
const PAGE: u64 = 4096;

/// Loops whose iterations are to be ordered.
pub struct Interchange {
    /// The data walked over.
    pub data: FxHashSet<StructureId>,
    /// The names of the input's addresses.
    pub structures: Structures,
    /// The instructions of the line that walks, by site.
    pub sites: FxHashSet<u32>,
}

/// One thread's iterations: the start of each and its first access; the ends of sweeps.
#[derive(Debug, Default)]
pub struct Sweeps {
    begins: Vec<(At, u64)>,
    /// The number of iterations before each end, and its place.
    ends: Vec<(usize, At)>,
    /// The length of the stream.
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

/// The accesses of one instruction in one thread.
#[derive(Debug, Default)]
struct Walk {
    sweeps: Sweeps,
    /// Its last place in the current sweep.
    last: Option<At>,
    /// By page, in which sweep, and which bytes it came to.
    visited: FxHashMap<u64, (usize, Box<[u64; (PAGE / 64) as usize]>)>,
    sweep: usize,
    /// By the number of the meeting, its last place before threads met.
    met: BTreeMap<u64, At>,
}

impl Walk {
    /// The instruction accesses an address.
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

    /// Returns whether the sweep was not there yet; it was, from now on.
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

    /// From each access to the next one.
    fn steps(&self) -> impl Iterator<Item = i64> {
        let begins = self.sweeps.begins.windows(2);
        begins.map(|two| two[1].1.wrapping_sub(two[0].1) as i64)
    }

    /// From its last access to each of another instruction.
    fn to(&self, other: &Walk) -> impl Iterator<Item = i64> {
        let mut own = self.sweeps.begins.iter().peekable();
        let mut last = None;
        other.sweeps.begins.iter().filter_map(move |(here, address)| {
            while let Some((_, before)) = own.next_if(|(before, _)| before < here) {
                last = Some(*before);
            }
            Some(address.wrapping_sub(last?) as i64)
        })
    }

    /// Threads meet.
    fn meets(&mut self, meeting: u64) {
        self.met.extend(self.last.map(|last| (meeting, last)));
        self.end();
    }

    fn end(&mut self) {
        if let Some(last) = self.last.take() {
            self.sweeps.ends.push((self.sweeps.begins.len(), last));
            self.sweep += 1;
        }
    }
}

/// The findings of a pass.
struct Finder<'a> {
    of: &'a Interchange,
    threads: usize,
    /// By site of the line, its accesses in each thread.
    walks: FxHashMap<u32, Vec<Walk>>,
    /// The instruction that walks, and then those of the same unrolled loop.
    chosen: Vec<u32>,
    /// Accesses of these sites to the data, and iterations that are kept.
    seen: u64,
    kept: usize,
    meetings: u64,
}

impl Listener for Finder<'_> {
    fn reference(&mut self, thread: usize, here: At, space: u32, r: &Ref, structures: &mut Structures) {
        let of_line = match self.chosen.is_empty() {
            true => self.of.sites.contains(&r.site),
            false => self.chosen.contains(&r.site),
        };
        if of_line && self.of.data.contains(&structures.lookup(space, r.addr)) {
            let all = || (0..self.threads).map(|_| Walk::default()).collect();
            self.walks.entry(r.site).or_insert_with(all)[thread].comes(here, r.addr);
            self.seen += 1;
            self.kept += 1;
        }
    }

    fn meets(&mut self, thread: usize) {
        self.walks
            .values_mut()
            .for_each(|threads| threads[thread].meets(self.meetings));
        self.meetings += 1;
    }

    fn ran(&mut self) -> Result<(), SimError> {
        if self.chosen.is_empty() && self.seen > DECIDED {
            self.chosen = which(&self.walks);
            self.walks.retain(|site, _| self.chosen.contains(site));
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
            chosen: Vec::new(),
            seen: 0,
            kept: 0,
            meetings: 0,
        };
        let all = recorded::pass(input, self.structures.clone(), &mut finder)?;
        if finder.chosen.is_empty() {
            finder.chosen = which(&finder.walks);
        }
        let of_sites = finder.chosen.iter().filter_map(|site| finder.walks.remove(site));
        let mut walks = together(of_sites.collect()).into_iter();
        let sweeps = |all: At| {
            let mut walk = walks.next().unwrap_or_default();
            walk.end();
            Sweeps { all, ..walk.sweeps }
        };
        Ok(all.into_iter().map(sweeps).collect())
    }
}

/// The instruction that walks farthest before it comes back, and then those of the same unrolled loop; of those that walk as far,
/// the first.
fn which(walks: &FxHashMap<u32, Vec<Walk>>) -> Vec<u32> {
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
        .max_by_key(|(site, threads)| (length(threads), Reverse(**site)));
    let Some((&walking, of)) = best else {
        return Vec::new();
    };
    let mut all = vec![walking];
    all.extend(unrolled(walking, of, walks));
    all
}

/// The other instructions of an unrolled loop: each accesses one place between two of the walk's, and all of them
/// divide its step into equal parts.
fn unrolled(walking: u32, of: &[Walk], walks: &FxHashMap<u32, Vec<Walk>>) -> Vec<u32> {
    let Some(step) = usual(of.iter().flat_map(Walk::steps)) else {
        return Vec::new();
    };
    let between = |(site, threads): (&u32, &Vec<Walk>)| {
        let apart = usual(of.iter().zip(threads).flat_map(|(walk, other)| walk.to(other)))?;
        let within = apart.signum() == step.signum() && apart.unsigned_abs() < step.unsigned_abs();
        (*site != walking && within).then_some((apart.unsigned_abs(), *site))
    };
    let mut others: Vec<(u64, u32)> = walks.iter().filter_map(between).collect();
    others.sort_unstable();
    // A read and a write of the same place are one access of the loop.
    others.dedup_by_key(|(apart, _)| *apart);
    let parts = others.len() as u64 + 1;
    let equal = (1..)
        .zip(&others)
        .all(|(part, (apart, _))| apart * parts == step.unsigned_abs() * part);
    match equal {
        true => others.into_iter().map(|(_, site)| site).collect(),
        false => Vec::new(),
    }
}

/// The difference that nearly all are.
fn usual(differences: impl Iterator<Item = i64>) -> Option<i64> {
    let mut counts: FxHashMap<i64, u64> = FxHashMap::default();
    let mut all = 0;
    for difference in differences {
        *counts.entry(difference).or_default() += 1;
        all += 1;
    }
    let (&difference, &count) = counts
        .iter()
        .max_by_key(|(difference, count)| (**count, **difference))?;
    (count as f64 >= USUAL * f64::from(all)).then_some(difference)
}

/// The accesses of several instructions in each thread, as if one did them all.
fn together(mut of_sites: Vec<Vec<Walk>>) -> Vec<Walk> {
    if of_sites.len() < 2 {
        return of_sites.pop().unwrap_or_default();
    }
    let threads = of_sites[0].len();
    let one = |thread: usize| {
        let walks = of_sites.iter().map(|threads| &threads[thread]);
        let mut begins: Vec<(At, u64)> = walks.clone().flat_map(|walk| &walk.sweeps.begins).copied().collect();
        begins.sort_unstable();
        let mut met: BTreeMap<u64, At> = BTreeMap::new();
        for (meeting, last) in walks.flat_map(|walk| &walk.met) {
            let latest = met.entry(*meeting).or_default();
            *latest = (*latest).max(*last);
        }
        let mut met = met.into_values().peekable();
        let mut whole = Walk::default();
        for (here, address) in begins {
            while met.next_if(|met| *met <= here).is_some() {
                whole.end();
            }
            whole.comes(here, address);
        }
        whole
    };
    (0..threads).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: u64 = 8;
    const ROWS: u64 = 30;
    const ROW: u64 = 4096;

    fn at(refs: u64) -> At {
        At { refs, events: 0 }
    }

    /// Down each column, by `instructions` instructions in turn; other references come between.
    fn down(instructions: u64) -> FxHashMap<u32, Vec<Walk>> {
        let mut walks: FxHashMap<u32, Vec<Walk>> = FxHashMap::default();
        for iteration in 0..COLUMNS * ROWS {
            let (column, row) = (iteration / ROWS, iteration % ROWS);
            let site = (row % instructions) as u32;
            let threads = walks.entry(site).or_insert_with(|| vec![Walk::default()]);
            threads[0].comes(at(iteration * 3), row * ROW + column * 8);
        }
        walks
    }

    #[test]
    fn instructions_of_an_unrolled_loop_walk_together() {
        for instructions in [1, 2, 3, 5] {
            let mut walks = down(instructions);
            let mut sites = which(&walks);
            let of_sites = sites.iter().filter_map(|site| walks.remove(site)).collect();
            let whole = together(of_sites);
            sites.sort_unstable();
            assert_eq!(sites, (0..instructions as u32).collect::<Vec<_>>());
            let begins = &whole[0].sweeps.begins;
            assert_eq!(begins.len() as u64, COLUMNS * ROWS);
            assert!(
                begins.is_sorted() && whole[0].sweeps.ends.is_empty(),
                "one sweep, in order"
            );
        }
    }

    #[test]
    fn another_operand_begins_no_iteration() {
        let mut walks = down(1);
        // The row above, and each element once more.
        for (site, back) in [(7, ROW), (8, 0)] {
            let mut walk = Walk::default();
            for iteration in 0..COLUMNS * ROWS {
                let (column, row) = (iteration / ROWS, iteration % ROWS);
                walk.comes(at(iteration * 3 + 1), (1 << 20) + row * ROW + column * 8 - back);
            }
            walks.insert(site, vec![walk]);
        }
        let mut twice = Walk::default();
        (0..COLUMNS * ROWS).for_each(|iteration| {
            twice.comes(at(iteration * 3 + 2), iteration % ROWS * ROW + iteration / ROWS * 8);
        });
        walks.insert(9, vec![twice]);
        assert_eq!(which(&walks), [0]);
    }

    #[test]
    fn where_threads_meet_the_sweep_of_all_instructions_ends() {
        let mut walks = down(2);
        for (site, threads) in &mut walks {
            threads[0].meets(0);
            threads[0].comes(at(10_000 + u64::from(*site)), 1 << 30);
        }
        let whole = together(vec![walks.remove(&0).unwrap(), walks.remove(&1).unwrap()]);
        let (first, _) = whole[0].sweeps.each().next().expect("a sweep ended");
        assert_eq!(first.len() as u64, COLUMNS * ROWS);
    }
}
