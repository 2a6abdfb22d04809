//! Sums by instruction, structure and callers, and the profile that they become.

use std::collections::{BTreeMap, HashMap};

use results::{Profile, ProfileFrame, ProfileStack};
use trace::{Inlined, StackId};

use crate::clock::whole_ns;
use crate::detail::Names;
use crate::detail::code::{Code, Spot};

/// Stall and misses, by leaf and stack. Ordered, so that a run is reported the same each time.
#[derive(Default)]
pub struct Sums {
    frames: Numbers<ProfileFrame>,
    structures: Numbers<String>,
    leaves: Numbers<Leaf>,
    by_way: BTreeMap<(u32, Option<StackId>), [u64; 2]>,
}

/// A line with the functions that it was inlined into, innermost first, and a structure, all by
/// number.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Leaf {
    frames: Vec<u32>,
    structure: u32,
}

impl Sums {
    /// The number of a line and a structure.
    pub fn leaf(&mut self, spot: Spot, inlined: &[Inlined], structure: String) -> u32 {
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
        let frames = std::iter::once(innermost).chain(outer);
        let frames = frames.map(|frame| self.frames.of(frame)).collect();
        let structure = self.structures.of(structure);
        self.leaves.of(Leaf { frames, structure })
    }

    /// Divides a sum in the proportion of the weights, to the last unit.
    pub fn divide(&mut self, leaf: u32, sum: [u64; 2], weights: &BTreeMap<StackId, u64>) {
        let mut add = |stack: Option<StackId>, part: [u64; 2]| {
            if part != [0, 0] {
                let sums = self.by_way.entry((leaf, stack)).or_default();
                *sums = [sums[0] + part[0], sums[1] + part[1]];
            }
        };
        let total: u128 = weights.values().map(|weight| u128::from(*weight)).sum();
        if total == 0 {
            return add(None, sum);
        }
        let upto = |weight: u128| sum.map(|of| (u128::from(of) * weight / total) as u64);
        let mut before = 0;
        for (&stack, &weight) in weights {
            let after = before + u128::from(weight);
            let ([a, b], [c, d]) = (upto(before), upto(after));
            add(Some(stack), [c - a, d - b]);
            before = after;
        }
    }

    pub fn report(mut self, samples: u64, code: &Code, names: &Names) -> Profile {
        let processes = names.tables.processes;
        let first = processes.first().map(|process| &process.program);
        let several = processes.iter().any(|process| Some(&process.program) != first);
        let mut callers: HashMap<StackId, Vec<u32>> = HashMap::new();
        // Stacks that differ in places of one line are one.
        let mut sums: BTreeMap<(u32, Vec<u32>), [u64; 2]> = BTreeMap::new();
        for ((leaf, stack), part) in std::mem::take(&mut self.by_way) {
            let outer = stack.map(|stack| {
                let of = &names.tables.stacks[stack as usize];
                let named = |pc| code.frames(of.process, pc);
                let known = callers.entry(stack).or_insert_with(|| {
                    let calls = of.frames.iter().skip(1).flat_map(|frame| named(frame.pc));
                    let program = processes.get(of.process as usize).filter(|_| several);
                    let program = program.map(|process| ProfileFrame::of_program(&process.program));
                    calls.chain(program).map(|frame| self.frames.of(frame)).collect()
                });
                known.clone()
            });
            let sum = sums.entry((leaf, outer.unwrap_or_default())).or_default();
            *sum = [sum[0] + part[0], sum[1] + part[1]];
        }
        let mut ranked: Vec<_> = sums.into_iter().collect();
        ranked.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let stack = |((leaf, callers), [stall, misses]): ((u32, Vec<u32>), [u64; 2])| {
            let Leaf { frames, structure } = &self.leaves.all[leaf as usize];
            ProfileStack {
                frames: [&frames[..], &callers].concat(),
                inlined: frames.len() as u32 - 1,
                structure: self.structures.all[*structure as usize].clone(),
                stall_ns: whole_ns(stall),
                misses,
                avoided_ns: None,
            }
        };
        let stacks = ranked.into_iter().map(stack).collect();
        Profile {
            samples,
            frames: self.frames.all,
            stacks,
            change: None,
        }
    }
}

/// Values with numbers, each once.
struct Numbers<Value> {
    all: Vec<Value>,
    known: HashMap<Value, u32>,
}

impl<Value> Default for Numbers<Value> {
    fn default() -> Self {
        Numbers {
            all: Vec::new(),
            known: HashMap::new(),
        }
    }
}

impl<Value: Clone + Eq + std::hash::Hash> Numbers<Value> {
    fn of(&mut self, value: Value) -> u32 {
        let all = &mut self.all;
        *self.known.entry(value).or_insert_with_key(|value| {
            all.push(value.clone());
            all.len() as u32 - 1
        })
    }
}
