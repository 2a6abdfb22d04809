//! Stall by call stack.
//!
//! The sums by instruction and structure are exact ([`Lines`]). Samples of call stacks (`Event::Called`) give the
//! callers of the function that an instruction is in. After a sample, the thread's waits in the sampled function are
//! counted for its callers, until the function returns or [`REACH`] references were made. At the end each exact sum is
//! divided in proportion to these waits.
//!
//! A long call is sampled more often than a short one, and each of its samples sees more of it. So a sample counts with its mean
//! wait for each reference of the function: how often a stack is sampled already says how long its calls are.
//!
//! A core that runs ahead waits at few of its misses. If no sample saw a wait, its misses at that instruction and
//! structure count.
//!
//! A function is one of the machine code of a process: inlined code belongs to the function that it was put into.

use std::collections::{BTreeMap, HashMap};

use results::Profile;
use rustc_hash::FxHashMap;
use trace::{Location, StackId};

use super::Names;
use super::code::Code;
use super::lines::Lines;
use crate::clock::Units;
use crate::structures::Structures;
use sums::Sums;

mod sums;

/// References after a sample for which it counts.
const REACH: u32 = 256;
/// No known function.
const NONE: u32 = 0;

/// A function of a process, by its number in [`Functions`].
type InProcess = (u32, u32);

pub struct Stacks {
    /// The function of each site, by process: programs lie at the same addresses.
    of_site: FxHashMap<(u32, u32), u32>,
    of_stack: Vec<Sampled>,
    /// By thread: the last sample.
    samples: Vec<Sample>,
    taken: u64,
    /// The time waited within the samples' reach, by row of [`Lines`] and stack.
    waited: HashMap<(u32, StackId), Units>,
    /// The same of misses.
    missed: HashMap<(u32, StackId), u64>,
    /// The number of samples of each stack.
    seen: HashMap<StackId, u64>,
}

/// The lookups of a stack.
#[derive(Clone, Copy, Default)]
struct Sampled {
    process: u32,
    /// The function that was sampled, and the one that called it.
    function: u32,
    caller: u32,
}

#[derive(Clone, Default)]
struct Sample {
    stack: StackId,
    of: Sampled,
    /// References for which it still counts.
    left: u32,
    /// True if the current reference is of the sampled function.
    here: bool,
    /// References of that function so far, and its waits and misses at rows of [`Lines`].
    own: u32,
    waits: Vec<(u32, Units)>,
    misses: Vec<(u32, u64)>,
}

impl Stacks {
    pub fn new(names: &Names) -> Stacks {
        let mut functions = Functions::default();
        let locations = names.tables.locations;
        let by_place: HashMap<(u32, u64), &Location> = locations.iter().map(|of| ((of.process, of.pc), of)).collect();
        let mut sites: HashMap<u64, Vec<u32>> = HashMap::new();
        for (number, site) in (0..).zip(names.sites).filter(|(_, site)| site.pc != 0) {
            sites.entry(site.pc).or_default().push(number);
        }
        let mut of_site = FxHashMap::default();
        for location in locations {
            let function = functions.number(Some(location));
            let of_pc = sites.get(&location.pc).into_iter().flatten();
            of_site.extend(of_pc.map(|site| ((location.process, *site), function)));
        }
        let of_stack = names.tables.stacks.iter().map(|stack| {
            let of = |frame: usize| {
                let pc = stack.frames.get(frame)?.pc;
                by_place.get(&(stack.process, pc)).copied()
            };
            Sampled {
                process: stack.process,
                function: functions.number(of(0)),
                caller: functions.number(of(1)),
            }
        });
        Stacks {
            of_stack: of_stack.collect(),
            of_site,
            samples: Vec::new(),
            taken: 0,
            waited: HashMap::new(),
            missed: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    /// Counts begin here.
    pub fn restart(&mut self) {
        for sample in &mut self.samples {
            sample.waits.clear();
            sample.misses.clear();
        }
        self.taken = 0;
        self.waited.clear();
        self.missed.clear();
        self.seen.clear();
    }

    /// A thread is at its next reference with this stack.
    pub fn called(&mut self, thread: u32, stack: StackId, quiet: bool) {
        let thread = thread as usize;
        if self.samples.len() <= thread {
            self.samples.resize(thread + 1, Sample::default());
        }
        let Some(&of) = self.of_stack.get(stack as usize) else {
            return;
        };
        self.end(thread);
        let sample = &mut self.samples[thread];
        (sample.stack, sample.of, sample.own, sample.here) = (stack, of, 0, false);
        sample.left = if of.function == NONE { 0 } else { REACH };
        if !quiet {
            self.taken += 1;
            *self.seen.entry(stack).or_default() += 1;
        }
    }

    /// References of the thread are missing here: the function in which it goes on is unknown.
    pub fn forget(&mut self, thread: u32) {
        if (thread as usize) < self.samples.len() {
            self.end(thread as usize);
        }
    }

    /// The thread's sample counts no longer: its waits are counted.
    fn end(&mut self, thread: usize) {
        let sample = &mut self.samples[thread];
        (sample.left, sample.here) = (0, false);
        let own = u128::from(sample.own.max(1));
        let stack = sample.stack;
        let add = |sums: &mut HashMap<(u32, StackId), u64>, (row, of): (u32, u64)| {
            let weight = u128::from(of) * u128::from(REACH) / own;
            let sum = sums.entry((row, stack)).or_default();
            *sum = sum.saturating_add(weight.try_into().unwrap_or(u64::MAX));
        };
        sample.waits.drain(..).for_each(|of| add(&mut self.waited, of));
        sample.misses.drain(..).for_each(|of| add(&mut self.missed, of));
    }

    /// A thread of a process makes a reference.
    #[inline(always)]
    pub fn passed(&mut self, space: u32, thread: u32, site: u32) {
        let Some(sample) = self.samples.get_mut(thread as usize).filter(|sample| sample.left > 0) else {
            return;
        };
        let function = self.of_site.get(&(space, site)).copied().unwrap_or(NONE);
        sample.here = function == sample.of.function && space == sample.of.process;
        // It has returned. Recursion cannot be told from going on.
        let returned = function == sample.of.caller && function != NONE && !sample.here;
        sample.left -= 1;
        if returned || sample.left == 0 {
            self.end(thread as usize);
        } else {
            sample.own += u32::from(sample.here);
        }
    }

    /// A thread waited at a row of [`Lines`].
    #[inline]
    pub fn waited(&mut self, thread: u32, row: u32, stall: Units) {
        if let Some(sample) = self.sampled(thread) {
            add(&mut sample.waits, row, stall);
        }
    }

    /// A thread missed in a cache at a row of [`Lines`].
    #[inline]
    pub fn missed(&mut self, thread: u32, row: u32) {
        if let Some(sample) = self.sampled(thread) {
            add(&mut sample.misses, row, 1);
        }
    }

    /// The thread's sample, if the current reference is of the sampled function.
    fn sampled(&mut self, thread: u32) -> Option<&mut Sample> {
        self.samples.get_mut(thread as usize).filter(|sample| sample.here)
    }

    /// The profile. `kind`: the caches whose misses it counts.
    pub fn report(
        mut self,
        lines: &Lines,
        kind: usize,
        code: &Code,
        structures: &Structures,
        names: &Names,
    ) -> Profile {
        (0..self.samples.len()).for_each(|thread| self.end(thread));
        let in_process = |stack: StackId| {
            let of = self.of_stack[stack as usize];
            (of.process, of.function)
        };
        let mut by_row: HashMap<u32, BTreeMap<StackId, u64>> = HashMap::new();
        let mut by_function: HashMap<InProcess, BTreeMap<StackId, u64>> = HashMap::new();
        for (&(row, stack), &stall) in self.waited.iter().filter(|(_, stall)| **stall > 0) {
            by_row.entry(row).or_default().insert(stack, stall);
            let of_function = by_function.entry(in_process(stack)).or_default();
            *of_function.entry(stack).or_default() += stall;
        }
        let mut by_miss: HashMap<u32, BTreeMap<StackId, u64>> = HashMap::new();
        for (&(row, stack), &misses) in &self.missed {
            by_miss.entry(row).or_default().insert(stack, misses);
        }
        // If there was no wait within reach, a function was called as often as it was seen to be.
        let mut by_times: HashMap<InProcess, BTreeMap<StackId, u64>> = HashMap::new();
        for (&stack, &times) in &self.seen {
            by_times.entry(in_process(stack)).or_default().insert(stack, times);
        }

        let mut sums = Sums::default();
        let unknown = BTreeMap::new();
        for (row, (space, site, structure)) in lines.places() {
            let Some(of_row) = lines.rows.row_of(row) else { continue };
            let misses = of_row.kinds().nth(kind).map_or(0, |(misses, _)| misses);
            let stall = of_row.stall();
            if stall == 0 && misses == 0 {
                continue;
            }
            let function = self.of_site.get(&(space, site)).copied().unwrap_or(NONE);
            let place = (space, function);
            let of_function = || by_function.get(&place).or_else(|| by_times.get(&place));
            let ways = by_row
                .get(&row)
                .or_else(|| by_miss.get(&row))
                .or_else(|| of_function().filter(|_| function != NONE))
                .unwrap_or(&unknown);
            let inlined = code.location(space, site).map_or(&[][..], |of| &of.inlined_into);
            let leaf = sums.leaf(code.spot(space, site), inlined, structures.describe(structure).name);
            sums.divide(leaf, [stall, misses], ways);
        }
        sums.report(self.taken, code, names)
    }
}

/// Adds to the sum of a row; references come in runs of one row.
fn add(sums: &mut Vec<(u32, u64)>, row: u32, more: u64) {
    match sums.last_mut().filter(|(last, _)| *last == row) {
        Some((_, sum)) => *sum += more,
        None => sums.push((row, more)),
    }
}

/// Numbers of functions, from 1.
#[derive(Default)]
struct Functions<'a>(HashMap<&'a str, u32>);

impl<'a> Functions<'a> {
    fn number(&mut self, of: Option<&'a Location>) -> u32 {
        let Some(of) = of else { return NONE };
        let name = of.inlined_into.last().map_or(&of.function, |outer| &outer.function);
        if name.is_empty() {
            return NONE;
        }
        let next = self.0.len() as u32 + 1;
        *self.0.entry(name).or_insert(next)
    }
}
