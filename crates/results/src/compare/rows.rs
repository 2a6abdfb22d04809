//! Rows that belong together before and after: parts of the time, structures, lines of the source, causes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Counted, Recordings};
use crate::comparison::{ComparedRow, Difference};
use crate::detail::SourceLine;
use crate::outcome::Outcome;
use crate::short::without_hashes;
use crate::site::base;

/// The noise in a list.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Of each figure.
    pub part: f64,
    /// Nanoseconds.
    pub least: u64,
}

/// Lines with a smaller part of their function's stall do not matter there: such are where the loop was, after it has moved.
const HEAVY: f64 = 0.01;

/// Nanoseconds of one thing, in each recording of either side; 0 if a recording does not have it.
#[derive(Clone, Debug)]
struct Pair {
    before: Vec<u64>,
    after: Vec<u64>,
}

impl Pair {
    fn none(before: &Recordings, after: &Recordings) -> Pair {
        Pair {
            before: vec![0; before.recordings.len()],
            after: vec![0; after.recordings.len()],
        }
    }

    fn add(&mut self, other: &Pair) {
        let sum = |own: &mut [u64], other: &[u64]| {
            own.iter_mut()
                .zip(other)
                .for_each(|(own, other)| *own = own.saturating_add(*other));
        };
        sum(&mut self.before, &other.before);
        sum(&mut self.after, &other.after);
    }

    fn is_before(&self) -> bool {
        self.before.iter().any(|ns| *ns > 0)
    }

    fn is_after(&self) -> bool {
        self.after.iter().any(|ns| *ns > 0)
    }

    fn difference(&self, scale: Scale) -> Difference {
        Difference::new(&self.before, &self.after, scale.part, scale.least)
    }
}

/// All things of both sides, by a key.
type Tally<K> = BTreeMap<K, Pair>;

/// Sums nanoseconds by key; `None` if a recording does not know.
fn tally<K: Ord>(
    before: &Recordings,
    after: &Recordings,
    of: impl Fn(&Counted) -> Option<Vec<(K, u64)>>,
) -> Option<Tally<K>> {
    let none = Pair::none(before, after);
    let mut tally = Tally::new();
    for (is_before, side) in [(true, before), (false, after)] {
        for (at, counted) in side.recordings.iter().enumerate() {
            for (key, ns) in of(counted)? {
                let pair = tally.entry(key).or_insert_with(|| none.clone());
                let own = if is_before {
                    &mut pair.before[at]
                } else {
                    &mut pair.after[at]
                };
                *own = own.saturating_add(ns);
            }
        }
    }
    Some(tally)
}

/// The largest difference first; a row of 0 on both sides is left out.
fn sorted(mut rows: Vec<ComparedRow>) -> Vec<ComparedRow> {
    rows.retain(|row| row.time_ns.before > 0 || row.time_ns.after > 0);
    rows.sort_by_key(|row| Reverse((row.time_ns.size(), row.time_ns.before)));
    rows
}

/// The parts of the time of all cpus.
pub fn parts(before: &Recordings, after: &Recordings, scale: Scale) -> Vec<ComparedRow> {
    let classed = |side: &Recordings| {
        let mut outcomes = side.recordings.iter().map(|counted| &counted.outcome);
        outcomes.all(|outcome| outcome.time_ns.stall_by_class.is_some())
    };
    let classed = classed(before) && classed(after);
    let of = |counted: &Counted| Some(parts_of(&counted.outcome, classed));
    let rows = tally(before, after, of).unwrap_or_default();
    let row = |(name, pair): (String, Pair)| ComparedRow {
        name,
        time_ns: pair.difference(scale),
        ..ComparedRow::default()
    };
    sorted(rows.into_iter().map(row).collect())
}

fn parts_of(outcome: &Outcome, classed: bool) -> Vec<(String, u64)> {
    let time = &outcome.time_ns;
    let mut parts = vec![("computing".to_string(), time.busy)];
    match time.stall_by_class.filter(|_| classed) {
        Some(classes) => {
            let known = classes.parts().into_iter().filter_map(|(name, ns)| Some((name, ns?)));
            parts.extend(known.map(|(name, ns)| match name {
                "cold" | "capacity" | "conflict" | "true sharing" | "false sharing" => (format!("{name} misses"), ns),
                "missed" => ("misses".to_string(), ns),
                name => (name.to_string(), ns),
            }));
        }
        None => parts.extend([
            ("found in caches".to_string(), time.cache_stall),
            ("local memory".to_string(), time.local_stall),
            ("remote memory".to_string(), time.remote_stall),
        ]),
    }
    parts.extend([
        ("TLB misses".to_string(), time.tlb_stall),
        ("work of the policy".to_string(), time.policy_overhead),
        ("page faults".to_string(), time.page_faults),
        ("room for prefetches".to_string(), time.prefetch_stall),
        ("waiting for other threads".to_string(), time.imbalance),
        ("waiting while one thread works alone".to_string(), time.sequential),
        ("locks and barriers".to_string(), time.synchronization),
    ]);
    parts
}

/// Structures by name. A structure of only one side is matched with one of only the other side that has the same name
/// but for the line.
pub fn structures(before: &Recordings, after: &Recordings, scale: Scale) -> Option<Vec<ComparedRow>> {
    let exact = tally(before, after, |counted| {
        let structures = counted.outcome.structures.as_ref()?;
        let of = structures
            .iter()
            .map(|structure| (lasting(&structure.name), structure.stall_ns));
        Some(of.collect())
    })?;
    let rows = by_line_or_not(exact, |name| without_line(name));
    let row = |((name, moved), pair): ((String, bool), Pair)| ComparedRow {
        name,
        moved,
        time_ns: pair.difference(scale),
        ..ComparedRow::default()
    };
    Some(sorted(rows.into_iter().map(row).collect()))
}

/// Causes by their kind and structure, of the recordings where they were looked for.
pub fn causes(before: &Recordings, after: &Recordings, scale: Scale) -> Option<Vec<ComparedRow>> {
    let looked = |side: &Recordings| {
        let found = side.recordings.iter().filter(|counted| counted.causes.is_some());
        let recordings: Vec<Counted> = found
            .map(|counted| Counted {
                causes: counted.causes.clone(),
                ..Counted::default()
            })
            .collect();
        (!recordings.is_empty()).then_some(Recordings {
            recordings,
            ..Recordings::default()
        })
    };
    let (before, after) = (&looked(before)?, &looked(after)?);
    let exact = tally(before, after, |counted| {
        let causes = counted.causes.as_ref()?.iter();
        let of = causes.map(|cause| ((cause.kind.name(), lasting(&cause.structure)), cause.stall_ns));
        Some(of.collect())
    })?;
    let rows = by_line_or_not(exact, |(kind, structure)| (*kind, without_line(structure)));
    let row = |(((kind, structure), moved), pair): (((&str, String), bool), Pair)| ComparedRow {
        name: kind.to_string(),
        structure: Some(structure),
        moved,
        time_ns: pair.difference(scale),
        ..ComparedRow::default()
    };
    Some(sorted(rows.into_iter().map(row).collect()))
}

/// Joins rows of only one side with rows of only the other that have the same looser key. A row's flag tells that it
/// was joined.
fn by_line_or_not<K: Ord + Clone>(exact: Tally<K>, looser: impl Fn(&K) -> K) -> Vec<((K, bool), Pair)> {
    let one_sided = |pair: &Pair| pair.is_before() != pair.is_after();
    let mut sides: BTreeMap<K, (bool, bool)> = BTreeMap::new();
    for (key, pair) in exact.iter().filter(|(_, pair)| one_sided(pair)) {
        let (before, after) = sides.entry(looser(key)).or_default();
        *before |= pair.is_before();
        *after |= pair.is_after();
    }
    let mut joined: Tally<K> = Tally::new();
    let mut rows = Vec::new();
    for (key, pair) in exact {
        let loose = looser(&key);
        match one_sided(&pair) && sides.get(&loose) == Some(&(true, true)) {
            true => joined.entry(loose).and_modify(|sum| sum.add(&pair)).or_insert(pair),
            false => {
                rows.push(((key, false), pair));
                continue;
            }
        };
    }
    rows.extend(joined.into_iter().map(|(key, pair)| ((key, true), pair)));
    rows
}

/// A structure's name without the parts that differ from run to run: compilers' hashes, and the numbers of threads,
/// whose stacks count as one.
fn lasting(name: &str) -> String {
    let stack = name.strip_prefix("stack of thread ");
    match stack.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit())) {
        Some(named) => format!("stacks of threads{named}"),
        None => without_hashes(name),
    }
}

/// `heap: makea (cg.c:412)` without its line: `heap: makea (cg.c)`.
fn without_line(name: &str) -> String {
    let inside = name.strip_suffix(')').and_then(|open| open.rsplit_once(':'));
    match inside {
        Some((rest, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => format!("{rest})"),
        _ => name.to_string(),
    }
}

/// A function: the last part of its file's path, where that is known, and its name.
type Function = (Option<String>, String);

/// Lines by file, line and function. A function whose file has another name before is that of the file after. If a
/// function's lines differ between the sides, they are summed by data structure.
pub fn source_lines(before: &Recordings, after: &Recordings, scale: Scale) -> Option<Vec<ComparedRow>> {
    let renamed = renamed(before, after);
    let function = |line: &SourceLine| {
        let own = function(line);
        renamed.get(&own).cloned().unwrap_or(own)
    };
    let by_line = tally(before, after, |counted| {
        let lines = counted.outcome.source_lines.as_ref()?.iter();
        Some(lines.map(|line| ((function(line), line.line), line.stall_ns)).collect())
    })?;
    let by_structure = tally(before, after, |counted| {
        let lines = counted.outcome.source_lines.as_ref()?.iter();
        Some(lines.flat_map(|line| of_structures(line, &function(line))).collect())
    })?;
    let mut functions: BTreeMap<&Function, Vec<(Option<u32>, &Pair)>> = BTreeMap::new();
    for ((function, line), pair) in &by_line {
        functions.entry(function).or_default().push((*line, pair));
    }
    let moved: BTreeSet<&Function> = functions
        .iter()
        .filter(|(_, lines)| have_moved(lines))
        .map(|(function, _)| *function)
        .collect();
    let mut rows = Vec::new();
    for ((function, line), pair) in by_line.iter().filter(|((function, _), _)| !moved.contains(function)) {
        let name = match (&function.0, line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => function.1.clone(),
        };
        rows.push(ComparedRow {
            name,
            function: Some(function.1.clone()),
            time_ns: pair.difference(scale),
            ..ComparedRow::default()
        });
    }
    let summed = by_structure
        .into_iter()
        .filter(|((function, _), _)| moved.contains(function));
    let summed = by_line_or_not(summed.collect(), |(function, structure)| {
        (function.clone(), without_line(structure))
    });
    for ((((file, function), structure), _), pair) in summed {
        rows.push(ComparedRow {
            name: file.unwrap_or_else(|| function.clone()),
            function: Some(function),
            structure: (!structure.is_empty()).then_some(structure),
            moved: true,
            time_ns: pair.difference(scale),
        });
    }
    Some(sorted(rows))
}

fn function(line: &SourceLine) -> Function {
    let file = line.file.as_ref().map(|file| base(file).to_string());
    (file, without_hashes(&line.function))
}

/// Functions that only one side has, in one file, and only the other in another one, as the latter has them.
fn renamed(before: &Recordings, after: &Recordings) -> BTreeMap<Function, Function> {
    let functions = |side: &Recordings| {
        let outcomes = side.recordings.iter().map(|counted| &counted.outcome);
        let lines = outcomes.flat_map(|outcome| outcome.source_lines.iter().flatten());
        lines.map(function).collect::<BTreeSet<Function>>()
    };
    let (before, after) = (functions(before), functions(after));
    let mut names: BTreeMap<&str, (Vec<&Function>, Vec<&Function>)> = BTreeMap::new();
    for gone in before.difference(&after) {
        names.entry(&gone.1).or_default().0.push(gone);
    }
    for new in after.difference(&before) {
        names.entry(&new.1).or_default().1.push(new);
    }
    let pairs = names
        .into_values()
        .filter_map(|(gone, new)| match (&gone[..], &new[..]) {
            ([gone], [new]) => Some(((*gone).clone(), (*new).clone())),
            _ => None,
        });
    pairs.collect()
}

/// A line's stall by data structure. The stall outside its worst structures gets an empty name.
fn of_structures(line: &SourceLine, function: &Function) -> Vec<((Function, String), u64)> {
    let of = line.structures.iter();
    let named: Vec<_> = of
        .map(|of| ((function.clone(), lasting(&of.name)), of.stall_ns))
        .collect();
    let rest = line
        .stall_ns
        .saturating_sub(named.iter().map(|(_, ns)| *ns).sum::<u64>());
    let rest = (rest > 0).then(|| ((function.clone(), String::new()), rest));
    named.into_iter().chain(rest).collect()
}

/// Returns whether the lines of a function that matter have moved: one counts before alone, and another after alone.
fn have_moved(lines: &[(Option<u32>, &Pair)]) -> bool {
    let sum = |of: fn(&Pair) -> &Vec<u64>| lines.iter().flat_map(|(_, pair)| of(pair)).sum::<u64>();
    let (before, after) = (sum(|pair| &pair.before), sum(|pair| &pair.after));
    let heavy = |of: &[u64], all: u64| all > 0 && of.iter().sum::<u64>() as f64 >= HEAVY * all as f64;
    let matters = |pair: &Pair| (heavy(&pair.before, before), heavy(&pair.after, after));
    let is = |sides| lines.iter().any(|(_, pair)| matters(pair) == sides);
    is((true, false)) && is((false, true))
}
