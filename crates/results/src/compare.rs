//! The rule by which two versions of a program are compared. It only uses its arguments: nothing is read, run or
//! printed here.

mod rows;

use crate::advice::{Advice, MachineFacts};
use crate::causes::Cause;
use crate::comparison::{
    ALONE, ComparedMisses, ComparedRow, ComparedSide, Comparison, Difference, LEAST, SideKind, Verdict,
};
use crate::document::Document;
use crate::number::count;
use crate::outcome::Outcome;
use rows::Scale;

/// One side of a comparison: a version of a program, as often as it was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recordings {
    /// The file, or the command.
    pub name: String,
    pub kind: SideKind,
    pub recordings: Vec<Counted>,
}

/// The counts of one recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    pub outcome: Outcome,
    /// Why data misses, if that was examined.
    pub causes: Option<Vec<Cause>>,
    /// The machine, where more than its name is known.
    pub machine: Option<MachineFacts>,
    /// Why the run does not count as whole.
    pub broke: Option<String>,
    /// Each load waits by itself, though the machine's overlap: the clock was nearer to that.
    pub one_by_one: bool,
}

/// Why two results are not compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incomparable {
    #[error("{0} has nothing that was counted")]
    Nothing(String),
    #[error("{side} is of policies {}: say which by `--policy`", policies.join(", "))]
    Several { side: String, policies: Vec<String> },
    #[error("{side} has no policy `{wanted}`; it has {}", policies.join(", "))]
    NoPolicy {
        side: String,
        wanted: String,
        policies: Vec<String>,
    },
    #[error("they are of different machines, {one} and {other}: simulate both on one (`--machine`)")]
    Machines { one: String, other: String },
    #[error("machine {name} is not the same in both ({what}): simulate both on one machine again")]
    Described { name: String, what: String },
    #[error("they are of different policies, {one} and {other}: name one that both have (`--policy`)")]
    Policies { one: String, other: String },
    #[error("one is a replay of misses (`simulate --fast`), and the other is not: simulate both in the same way")]
    Replayed,
    #[error(
        "in one each load waits by itself, and in the other loads overlap, because the clock was nearer to that: simulate both \
         alike (`advise --no-native`)"
    )]
    Models,
    #[error("one is of windows of a run, and the other of all of it: record both in the same way")]
    Windows,
    #[error("one is not a whole run ({0}), and the other is: record it again")]
    Broke(String),
}

impl Counted {
    /// The outcome of one policy out of a saved result: of the one named, else of an advice's baseline, else of the
    /// only one. `side` names the result in the error if there is none.
    pub fn of(document: Document, policy: Option<&str>, side: &str) -> Result<Counted, Incomparable> {
        match document {
            Document::Advice(advice) => Counted::of_advice(*advice, policy, side),
            Document::Outcomes(outcomes) => Ok(Counted {
                outcome: chosen(outcomes, policy, side)?,
                ..Counted::default()
            }),
            Document::Comparison(_) => Err(Incomparable::Nothing(format!("{side} is a comparison already, and"))),
        }
    }

    fn of_advice(advice: Advice, policy: Option<&str>, side: &str) -> Result<Counted, Incomparable> {
        let wanted = policy.unwrap_or(&advice.baseline);
        // Causes are those of the baseline.
        let causes = (wanted == advice.baseline).then_some(advice.causes);
        Ok(Counted {
            outcome: chosen(advice.policies, Some(wanted), side)?,
            causes,
            machine: Some(advice.machine),
            broke: advice.broke,
            one_by_one: advice.native.is_some_and(|native| native.overlapping_ns.is_some()),
        })
    }
}

fn chosen(mut outcomes: Vec<Outcome>, policy: Option<&str>, side: &str) -> Result<Outcome, Incomparable> {
    let policies = |outcomes: &[Outcome]| outcomes.iter().map(Outcome::name).collect();
    let Some(wanted) = policy else {
        return match outcomes.len() {
            0 => Err(Incomparable::Nothing(side.to_string())),
            1 => Ok(outcomes.swap_remove(0)),
            _ => Err(Incomparable::Several {
                side: side.to_string(),
                policies: policies(&outcomes),
            }),
        };
    };
    let is = |outcome: &Outcome| outcome.policy == wanted || outcome.name() == wanted;
    match outcomes.iter().position(is) {
        Some(at) => Ok(outcomes.swap_remove(at)),
        None => Err(Incomparable::NoPolicy {
            side: side.to_string(),
            wanted: wanted.to_string(),
            policies: policies(&outcomes),
        }),
    }
}

/// Holds two versions of a program against each other, without any conditions.
pub fn compare(before: &Recordings, after: &Recordings) -> Result<Comparison, Incomparable> {
    for side in [before, after] {
        if side.recordings.is_empty() {
            return Err(Incomparable::Nothing(side.name.clone()));
        }
    }
    let all = || before.recordings.iter().chain(&after.recordings);
    let first = &before.recordings[0];
    for other in all() {
        alike(first, other)?;
    }
    let by_chance = by_chance(before, after);
    let difference = |of: &dyn Fn(&Outcome) -> u64| {
        let [before, after] = [before, after].map(|side| each(side, of));
        Difference::new(&before, &after, by_chance, 0)
    };
    let time = difference(&|outcome| outcome.time_ns.wall);
    let counted = all().all(|of| of.outcome.instructions.is_some());
    let total = difference(&|outcome| outcome.time_ns.total);
    let scale = Scale {
        // The parts vary at least as much as the whole.
        part: spread(before).max(spread(after)).max(by_chance),
        least: (total.before.max(total.after) as f64 * LEAST) as u64,
    };
    let mut comparison = Comparison {
        machine: first.outcome.machine.clone(),
        policy: first.outcome.name(),
        before: side(before),
        after: side(after),
        time,
        stall: difference(&Outcome::stall_ns),
        references: difference(&|outcome| outcome.references),
        instructions: counted.then(|| difference(&|outcome| outcome.instructions.unwrap_or(0))),
        misses: misses(before, after, by_chance),
        parts: rows::parts(before, after, scale),
        source_lines: rows::source_lines(before, after, scale),
        structures: rows::structures(before, after, scale),
        causes: rows::causes(before, after, scale),
        ..Comparison::default()
    };
    comparison.notes = notes(before, after, by_chance, &comparison);
    Ok(comparison)
}

/// A figure of each recording of a side.
fn each(side: &Recordings, of: &dyn Fn(&Outcome) -> u64) -> Vec<u64> {
    side.recordings.iter().map(|counted| of(&counted.outcome)).collect()
}

/// How far the times of a side's recordings lie apart, as a part of the shortest.
fn spread(side: &Recordings) -> f64 {
    let times = each(side, &|outcome| outcome.time_ns.wall);
    match (times.iter().min(), times.iter().max()) {
        (Some(&least @ 1..), Some(most)) => (most - least) as f64 / least as f64,
        _ => 0.0,
    }
}

/// The distance, as a part of the time, that two equal runs may lie apart because windows stand for the run: the part
/// that the intervals of both sides leave open. Several recordings of a side may have their windows at the same places,
/// so they are no more certain together.
fn by_chance(before: &Recordings, after: &Recordings) -> f64 {
    let of = |side: &Recordings| {
        let windows = side
            .recordings
            .iter()
            .filter_map(|counted| counted.outcome.windows.as_ref());
        windows
            .filter_map(|windows| windows.ns_per_reference.relative())
            .fold(0.0, f64::max)
    };
    of(before).hypot(of(after))
}

fn side(side: &Recordings) -> ComparedSide {
    ComparedSide {
        name: side.name.clone(),
        kind: side.kind,
        recordings: side.recordings.len() as u64,
    }
}

/// Checks that two are of one machine under one policy.
fn alike(one: &Counted, other: &Counted) -> Result<(), Incomparable> {
    let (was, is) = (&one.outcome, &other.outcome);
    if was.machine != is.machine {
        return Err(Incomparable::Machines {
            one: was.machine.clone(),
            other: is.machine.clone(),
        });
    }
    if let (Some(was), Some(is)) = (&one.machine, &other.machine)
        && let Some(what) = unlike(was, is)
    {
        let name = was.name.clone();
        return Err(Incomparable::Described { name, what });
    }
    let caches = |outcome: &Outcome| {
        let names: Vec<&str> = outcome.caches.iter().map(|cache| &*cache.name).collect();
        names.join(", ")
    };
    if caches(was) != caches(is) {
        return Err(Incomparable::Described {
            name: was.machine.clone(),
            what: format!("caches {} and {}", caches(was), caches(is)),
        });
    }
    if was.name() != is.name() {
        return Err(Incomparable::Policies {
            one: was.name(),
            other: is.name(),
        });
    }
    if was.replayed_misses.is_some() != is.replayed_misses.is_some() {
        return Err(Incomparable::Replayed);
    }
    if one.one_by_one != other.one_by_one {
        return Err(Incomparable::Models);
    }
    if was.windows.is_some() != is.windows.is_some() {
        return Err(Incomparable::Windows);
    }
    match (&one.broke, &other.broke) {
        (Some(broke), None) | (None, Some(broke)) => Err(Incomparable::Broke(broke.clone())),
        _ => Ok(()),
    }
}

/// The first thing in which two descriptions of a machine differ.
fn unlike(one: &MachineFacts, other: &MachineFacts) -> Option<String> {
    let counted = [
        ("cpus", u64::from(one.cpus), u64::from(other.cpus)),
        ("nodes", u64::from(one.nodes), u64::from(other.nodes)),
        ("colors", u64::from(one.colors), u64::from(other.colors)),
        ("bytes of a page", one.page_bytes, other.page_bytes),
    ];
    let counted = counted.iter().find(|(_, one, other)| one != other);
    if let Some((what, one, other)) = counted {
        return Some(format!("{one} and {other} {what}"));
    }
    let timed = [
        ("MHz", one.clock_mhz, other.clock_mhz),
        ("ns of local memory", one.local_ns, other.local_ns),
        ("ns of remote memory", one.remote_ns, other.remote_ns),
    ];
    if let Some((what, one, other)) = timed.iter().find(|(_, one, other)| one != other) {
        return Some(format!("{one} and {other} {what}"));
    }
    (one.caches != other.caches).then(|| "its caches".to_string())
}

/// Misses of the caches, and of the TLB where all know it.
fn misses(before: &Recordings, after: &Recordings, by_chance: f64) -> Vec<ComparedMisses> {
    let of = |name: String, misses: &dyn Fn(&Outcome) -> u64| ComparedMisses {
        name,
        misses: Difference::new(&each(before, misses), &each(after, misses), by_chance, 0),
    };
    let caches = &before.recordings[0].outcome.caches;
    let mut all: Vec<_> = caches
        .iter()
        .enumerate()
        .map(|(at, cache)| {
            of(cache.name.clone(), &|outcome| {
                outcome.caches.get(at).map_or(0, |cache| cache.misses)
            })
        })
        .collect();
    let mut recordings = before.recordings.iter().chain(&after.recordings);
    if recordings.all(|counted| counted.outcome.tlb.misses.is_some()) {
        all.push(of("TLB".to_string(), &|outcome| outcome.tlb.misses.unwrap_or(0)));
    }
    all
}

fn notes(before: &Recordings, after: &Recordings, by_chance: f64, comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let percent = ALONE * 100.0;
    let alone = format!("differences under {percent}% are not told from chance");
    match (comparison.before.recordings < 2, comparison.after.recordings < 2) {
        _ if by_chance > ALONE => notes.push(format!(
            "windows stand for the runs: differences under {} are not told from chance; more windows narrow it",
            crate::number::percent(by_chance)
        )),
        (true, true) => notes.push(format!("one recording each: {alone}")),
        (true, false) => notes.push(format!("one recording of what was before: {alone}")),
        (false, true) => notes.push(format!("one recording of what came after: {alone}")),
        (false, false) => {}
    }
    for (which, side) in [("before", before), ("after", after)] {
        let broke = side.recordings.iter().find_map(|counted| counted.broke.as_ref());
        if let Some(broke) = broke {
            notes.push(format!("{which} is not a whole run: {broke}"));
        }
    }
    let windows = |side: &Recordings| {
        let mut outcomes = side.recordings.iter().map(|counted| &counted.outcome);
        outcomes.find_map(|outcome| Some((outcome.windows.as_ref()?.counted.len(), outcome.references)))
    };
    for (which, windows) in [("before", windows(before)), ("after", windows(after))] {
        if let Some((windows, references)) = windows {
            notes.push(format!(
                "{which}: figures are of {windows} windows with {} references, and not of a whole run",
                count(references)
            ));
        }
    }
    let mut lines = comparison.source_lines.iter().flatten();
    if lines.any(|row| row.moved && row.time_ns.verdict != Verdict::Same) {
        notes.push(
            "where line numbers are not the same before and after, the lines of a function are summed for each data structure"
                .to_string(),
        );
    }
    if let Some(structures) = &comparison.structures {
        let both = |row: &ComparedRow| row.time_ns.before > 0 && row.time_ns.after > 0;
        let any = |of: &dyn Fn(&Difference) -> u64| structures.iter().any(|row| of(&row.time_ns) > 0);
        if any(&|time| time.before) && any(&|time| time.after) && !structures.iter().any(both) {
            notes.push(
                "no data structure is waited for on both sides: all were renamed, or these are two different programs"
                    .to_string(),
            );
        }
    }
    notes
}

#[cfg(test)]
mod tests;
