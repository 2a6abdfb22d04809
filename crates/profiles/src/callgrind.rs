//! Callgrind's format: costs by line, and the cost of each call, for KCachegrind and `callgrind_annotate`.
//!
//! A reader adds the costs of the calls to a function to its inclusive cost. That is right only if each stack counts
//! once for each function: so a stack counts for the outermost call of a function, and recursive calls are left out. It
//! is also right only if each function is called: so all stacks begin in [`ALL`]. The format has neither data
//! structures nor negative costs: stacks that a change makes wait longer avoid 0.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use results::TOOL;

use crate::Value;
use crate::runs::Run;
use crate::stacks::{Stack, Stacks, UNKNOWN, clean};

/// The caller of the outermost functions.
const ALL: &str = "[all]";

/// For each known value.
type Costs = Vec<i64>;

/// A function in this module: its index, or `None` for [`ALL`]; and the line of the cost; 0: unknown.
type Place = (Option<usize>, u32);

pub fn profile(run: &Run, of: &Stacks) -> Vec<u8> {
    let mut values = vec![(Value::Stall, "Stall"), (Value::Misses, "Misses")];
    values.extend(of.change.map(|_| (Value::Avoided, "Avoided")));
    let costs = Sums::of(of, &values);
    let names: Vec<_> = values.iter().map(|(_, name)| *name).collect();
    let mut file = File::default();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        file.text,
        "# callgrind format\nversion: 1\ncreator: {TOOL}\ncmd: {}\n",
        clean(&run.command())
    );
    for about in run.about() {
        let _ = writeln!(file.text, "desc: {}", clean(&about));
    }
    if let Some(change) = of.change {
        let _ = writeln!(
            file.text,
            "desc: Avoided: the part of the waiting that this change avoids: \"{}\"",
            clean(change)
        );
    }
    let total = words(&costs.total);
    let _ = write!(
        file.text,
        "positions: line\nevents: {}\nsummary: {total}\n",
        names.join(" ")
    );
    file.functions(of, &costs);
    let _ = write!(file.text, "\ntotals: {total}\n");
    file.text.into_bytes()
}

struct Sums {
    own: BTreeMap<Place, Costs>,
    /// By place of the call and called function.
    calls: BTreeMap<(Place, usize), Costs>,
    total: Costs,
}

impl Sums {
    fn of(of: &Stacks, values: &[(Value, &str)]) -> Sums {
        let mut sums = Sums {
            own: BTreeMap::new(),
            calls: BTreeMap::new(),
            total: vec![0; values.len()],
        };
        for stack in &of.stacks {
            let costs: Costs = values.iter().map(|(value, _)| stack.weight(*value).max(0)).collect();
            sums.stack(of, stack, &costs);
        }
        sums
    }

    fn stack(&mut self, of: &Stacks, stack: &Stack, costs: &[i64]) {
        let mut from = (None, 0);
        let mut running = HashSet::new();
        for frame in stack.frames.iter().rev().map(|frame| of.frames[*frame]) {
            if running.insert(frame.function) {
                add(self.calls.entry((from, frame.function)).or_default(), costs);
            }
            from = (Some(frame.function), frame.line.unwrap_or(0));
        }
        add(self.own.entry(from).or_default(), costs);
        add(&mut self.total, costs);
    }
}

fn add(sum: &mut Costs, costs: &[i64]) {
    sum.resize(costs.len(), 0);
    for (sum, cost) in sum.iter_mut().zip(costs) {
        *sum = sum.saturating_add(*cost);
    }
}

fn words(costs: &[i64]) -> String {
    costs.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct File {
    text: String,
    /// Numbers of the names that were written. After its first use a number stands for the name, and a name in brackets
    /// is never mistaken for a number.
    files: BTreeMap<String, usize>,
    functions: BTreeMap<String, usize>,
}

impl File {
    fn functions(&mut self, of: &Stacks, sums: &Sums) {
        let all = std::iter::once(None).chain((0..of.functions.len()).map(Some));
        for function in all {
            let lines = (function, 0)..=(function, u32::MAX);
            let own = sums.own.range(lines.clone());
            let calls = sums.calls.range((*lines.start(), 0)..=(*lines.end(), usize::MAX));
            if own.clone().next().is_none() && calls.clone().next().is_none() {
                continue;
            }
            self.text.push('\n');
            self.function(of, function, ["fl", "fn"]);
            for ((_, line), costs) in own {
                let _ = writeln!(self.text, "{line} {}", words(costs));
            }
            for (((_, line), callee), costs) in calls {
                self.function(of, Some(*callee), ["cfi", "cfn"]);
                // The number of calls is unknown. Once is the least, and the function's first line is also unknown.
                let _ = writeln!(self.text, "calls=1 0\n{line} {}", words(costs));
            }
        }
    }

    /// The lines that name a function's file and the function.
    fn function(&mut self, of: &Stacks, function: Option<usize>, [file_key, key]: [&str; 2]) {
        let (name, file) = match function.map(|function| &of.functions[function]) {
            None => (ALL, None),
            Some(function) => (&*function.name, function.file.as_deref()),
        };
        let file = numbered(&mut self.files, file.unwrap_or(UNKNOWN));
        let name = numbered(&mut self.functions, name);
        let _ = writeln!(self.text, "{file_key}={file}\n{key}={name}");
    }
}

fn numbered(names: &mut BTreeMap<String, usize>, name: &str) -> String {
    if let Some(number) = names.get(name) {
        return format!("({number})");
    }
    let number = names.len() + 1;
    names.insert(name.to_string(), number);
    format!("({number}) {name}")
}
