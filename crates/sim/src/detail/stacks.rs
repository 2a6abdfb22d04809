//! Stall by call stack.
//!
//! The sums by instruction and structure are exact ([`Lines`]). Who called the function that the instruction is in is known from
//! samples (`Event::Called`): after each, what the thread waits for in the sampled function is counted for its callers, until the
//! function returns or [`REACH`] references were made. At the end each exact sum is divided as the samples say.
//!
//! A function is one of the machine's code: what the compiler inlined belongs to the function that it was put into.

use std::collections::HashMap;

use results::{Profile, ProfileFrame, ProfileStack};
use trace::{Location, StackId};

use super::Names;
use super::code::{Code, Spot};
use super::lines::Lines;
use crate::clock::{Units, whole_ns};
use crate::structures::Structures;

/// References after a sample for which it counts.
const REACH: u32 = 256;
/// Stacks that are reported; what the others come to is reported without callers.
const MOST: usize = 4096;
/// No function that is known.
const NONE: u32 = 0;

pub struct Stacks {
    /// The function of each site, and of the innermost frame and its caller of each stack.
    of_site: Vec<u32>,
    of_stack: Vec<[u32; 2]>,
    /// By thread: the last sample.
    samples: Vec<Sample>,
    taken: u64,
    /// What was waited for within the samples' reach, by row of [`Lines`] and stack.
    waited: HashMap<(u32, StackId), Units>,
    /// How often each stack was sampled.
    seen: HashMap<StackId, u64>,
}

#[derive(Clone, Copy, Default)]
struct Sample {
    stack: StackId,
    function: u32,
    caller: u32,
    /// References for which it still counts.
    left: u32,
    /// Whether the reference at hand is of the sampled function.
    here: bool,
}

impl Stacks {
    pub fn new(names: &Names) -> Stacks {
        let mut functions = Functions::default();
        let locations = names.tables.locations;
        let by_place: HashMap<(u32, u64), &Location> = locations.iter().map(|of| ((of.process, of.pc), of)).collect();
        // Sites are of no process: functions are told apart by their names.
        let by_pc: HashMap<u64, &Location> = locations.iter().rev().map(|of| (of.pc, of)).collect();
        let of_site = names
            .sites
            .iter()
            .map(|site| functions.number(by_pc.get(&site.pc).copied()));
        let of_site = of_site.collect();
        let stacks = names.tables.stacks.iter();
        let of_stack = stacks.map(|stack| {
            let of = |frame: usize| {
                let pc = stack.frames.get(frame)?.pc;
                by_place.get(&(stack.process, pc)).copied()
            };
            [functions.number(of(0)), functions.number(of(1))]
        });
        Stacks {
            of_stack: of_stack.collect(),
            of_site,
            samples: Vec::new(),
            taken: 0,
            waited: HashMap::new(),
            seen: HashMap::new(),
        }
    }

    /// Counts begin here.
    pub fn restart(&mut self) {
        self.taken = 0;
        self.waited.clear();
        self.seen.clear();
    }

    /// A thread is at its next reference with this stack.
    pub fn called(&mut self, thread: u32, stack: StackId, quiet: bool) {
        let thread = thread as usize;
        if self.samples.len() <= thread {
            self.samples.resize(thread + 1, Sample::default());
        }
        let Some(&[function, caller]) = self.of_stack.get(stack as usize) else {
            return;
        };
        self.samples[thread] = Sample {
            stack,
            function,
            caller,
            left: if function == NONE { 0 } else { REACH },
            here: false,
        };
        if !quiet {
            self.taken += 1;
            *self.seen.entry(stack).or_default() += 1;
        }
    }

    /// A thread makes a reference.
    #[inline(always)]
    pub fn passed(&mut self, thread: u32, site: u32) {
        let Some(sample) = self.samples.get_mut(thread as usize).filter(|sample| sample.left > 0) else {
            return;
        };
        let function = self.of_site.get(site as usize).copied().unwrap_or(NONE);
        sample.here = function == sample.function;
        // It has returned. Of a function that calls itself nobody knows.
        let returned = function == sample.caller && function != NONE && !sample.here;
        sample.left = if returned { 0 } else { sample.left - 1 };
        sample.here &= sample.left > 0;
    }

    /// A thread waited at a row of [`Lines`].
    #[inline]
    pub fn waited(&mut self, thread: u32, row: u32, stall: Units) {
        if let Some(sample) = self.samples.get(thread as usize).filter(|sample| sample.here) {
            *self.waited.entry((row, sample.stack)).or_default() += stall;
        }
    }

    /// The profile. `kind`: the caches whose misses it counts.
    pub fn report(self, lines: &Lines, kind: usize, code: &Code, structures: &Structures, names: &Names) -> Profile {
        let mut by_row: HashMap<u32, Vec<(StackId, u64)>> = HashMap::new();
        let mut by_function: HashMap<u32, HashMap<StackId, u64>> = HashMap::new();
        for (&(row, stack), &stall) in &self.waited {
            by_row.entry(row).or_default().push((stack, stall));
            let function = self.of_stack[stack as usize][0];
            *by_function.entry(function).or_default().entry(stack).or_default() += stall;
        }
        // Where nobody waited within reach, a function was called as often as it was seen to be.
        let mut by_times: HashMap<u32, HashMap<StackId, u64>> = HashMap::new();
        for (&stack, &times) in &self.seen {
            let function = self.of_stack[stack as usize][0];
            by_times.entry(function).or_default().insert(stack, times);
        }
        let of_function = |function: u32| {
            let known = by_function.get(&function).or_else(|| by_times.get(&function));
            known.filter(|_| function != NONE).map(|known| {
                let known = known.iter().map(|(&stack, &weight)| (stack, weight));
                known.collect::<Vec<(StackId, u64)>>()
            })
        };

        let mut sums = Sums::default();
        for (row, (space, site, structure)) in lines.places() {
            let Some(of_row) = lines.rows.row_of(row) else { continue };
            let misses = of_row.kinds().nth(kind).map_or(0, |(misses, _)| misses);
            let stall = of_row.stall();
            if stall == 0 && misses == 0 {
                continue;
            }
            let spot = code.spot(space, site);
            let inlined = code.location(space, site).map_or(&[][..], |of| &of.inlined_into);
            let leaf = Leaf {
                frames: leaf(spot, inlined),
                structure: structures.describe(structure).name,
            };
            let function = self.of_site.get(site as usize).copied().unwrap_or(NONE);
            let mut ways = by_row
                .remove(&row)
                .or_else(|| of_function(function))
                .unwrap_or_default();
            ways.retain(|(stack, weight)| *weight > 0 && names.tables.stacks[*stack as usize].process == space);
            ways.sort_unstable();
            sums.divide(&leaf, [stall, misses], &ways);
        }
        sums.report(self.taken, code, names)
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

/// An instruction with what it was inlined into, and a structure.
struct Leaf {
    frames: Vec<ProfileFrame>,
    structure: String,
}

fn leaf(spot: Spot, inlined: &[trace::Inlined]) -> Vec<ProfileFrame> {
    let innermost = ProfileFrame {
        function: spot.function,
        file: spot.file,
        line: spot.line,
    };
    let outer = inlined.iter().map(|of| ProfileFrame {
        function: of.function.clone(),
        file: of.file.clone(),
        line: of.line,
    });
    std::iter::once(innermost).chain(outer).collect()
}

/// Stall and misses by frames, structure and callers.
#[derive(Default)]
struct Sums {
    frames: Vec<ProfileFrame>,
    numbers: HashMap<ProfileFrame, u32>,
    by_way: HashMap<(Vec<u32>, String, Option<StackId>), [u64; 2]>,
}

impl Sums {
    fn number(&mut self, frame: &ProfileFrame) -> u32 {
        if let Some(known) = self.numbers.get(frame) {
            return *known;
        }
        let number = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.numbers.insert(frame.clone(), number);
        number
    }

    /// Divides a sum in the proportion of the weights, to the last unit.
    fn divide(&mut self, leaf: &Leaf, sum: [u64; 2], ways: &[(StackId, u64)]) {
        let frames: Vec<u32> = leaf.frames.iter().map(|frame| self.number(frame)).collect();
        let mut add = |stack: Option<StackId>, part: [u64; 2]| {
            let key = (frames.clone(), leaf.structure.clone(), stack);
            let sums = self.by_way.entry(key).or_default();
            *sums = [sums[0] + part[0], sums[1] + part[1]];
        };
        let total: u128 = ways.iter().map(|(_, weight)| u128::from(*weight)).sum();
        if total == 0 {
            return add(None, sum);
        }
        let upto = |weight: u128| sum.map(|of| (u128::from(of) * weight / total) as u64);
        let mut before = 0;
        for &(stack, weight) in ways {
            let after = before + u128::from(weight);
            let ([a, b], [c, d]) = (upto(before), upto(after));
            add(Some(stack), [c - a, d - b]);
            before = after;
        }
    }

    fn report(mut self, samples: u64, code: &Code, names: &Names) -> Profile {
        let mut callers: HashMap<StackId, Vec<u32>> = HashMap::new();
        let mut sums: HashMap<(Vec<u32>, String), [u64; 2]> = HashMap::new();
        for ((mut frames, structure, stack), [stall, misses]) in std::mem::take(&mut self.by_way) {
            if let Some(stack) = stack {
                let outer = callers.entry(stack).or_insert_with(|| {
                    let of = &names.tables.stacks[stack as usize];
                    let calls = of.frames.iter().skip(1);
                    let named = calls.flat_map(|frame| code.frames(of.process, frame.pc));
                    named.map(|frame| self.number(&frame)).collect()
                });
                frames.extend_from_slice(outer);
            }
            let sum = sums.entry((frames, structure)).or_default();
            *sum = [sum[0] + stall, sum[1] + misses];
        }
        let by_size = |sums: HashMap<(Vec<u32>, String), [u64; 2]>| {
            let mut ranked: Vec<_> = sums.into_iter().collect();
            ranked.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
            ranked
        };
        let mut ranked = by_size(sums);
        if ranked.len() > MOST {
            let rest = ranked.split_off(MOST);
            let mut sums: HashMap<_, _> = ranked.into_iter().collect();
            for ((mut frames, structure), [stall, misses]) in rest {
                frames.truncate(1);
                let sum: &mut [u64; 2] = sums.entry((frames, structure)).or_default();
                *sum = [sum[0] + stall, sum[1] + misses];
            }
            ranked = by_size(sums);
        }
        let stack = |((frames, structure), [stall, misses]): ((Vec<u32>, String), [u64; 2])| ProfileStack {
            frames,
            structure,
            stall_ns: whole_ns(stall),
            misses,
            avoided_ns: None,
        };
        Profile {
            samples,
            frames: self.frames,
            stacks: ranked.into_iter().map(stack).collect(),
            change: None,
        }
    }
}
