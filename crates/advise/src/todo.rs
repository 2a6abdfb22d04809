//! The list of things to do about a program, the largest gain first: the conclusion from all parts of an advice.
//!
//! A change counts only if its simulation gained something. A cause whose cure cannot be simulated counts by its
//! waiting time, and says so. The rest is one sentence.

mod colors;
mod homes;
mod otherwise;

use std::iter::once;

use results::allocators::is_library_source;
use results::{Advice, Cause, CauseKind, Instead, Side, Todo, short};

use crate::words::{NOTHING, saved};
use crate::{faults, range, sharing};
pub use otherwise::otherwise;

/// A cure that was not simulated is worth naming from this share of the time on.
const WORTH: f64 = 0.05;
/// Its expected saving, as a part of the most that it could save.
const EXPECTED: f64 = 0.5;

/// Everything worth doing. `huge_pages`: for the page faults that they save. `has_ranges`: the machine's times are
/// compared with clocks.
pub fn todo(advice: &Advice, huge_pages: Option<Todo>, has_ranges: bool) -> Vec<Todo> {
    let Some(base) = advice.base().filter(|base| base.references > 0) else {
        return Vec::new();
    };
    let mut all: Vec<Todo> = Vec::new();
    let mut known: Vec<&Cause> = Vec::new();
    // Colors of pages have a separate entry.
    for cause in advice
        .causes
        .iter()
        .filter(|cause| cause.kind != CauseKind::PagesCollide)
    {
        // One change may be the cure of several causes.
        let same = |other: &&Cause| !cause.simulated.is_empty() && other.simulated == cause.simulated;
        if known.iter().any(same) {
            continue;
        }
        if let Some(todo) = of_cause(advice, cause) {
            known.push(cause);
            match all.iter_mut().find(|other| is_same(other, &todo)) {
                Some(other) => other.share += todo.share,
                None => all.push(todo),
            }
        }
    }
    all.extend(homes::homes(advice));
    all.extend(threads(advice));
    all.extend(order(advice));
    all.extend(colors::colors(advice, base));
    all.extend(faults::todo(advice, NOTHING));
    all.extend(huge_pages);
    let rank = |todo: &Todo| todo.gain.unwrap_or(EXPECTED * todo.share);
    all.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    let command = command(advice);
    for todo in &mut all {
        let others = todo.instead.iter_mut().map(|other| &mut other.action);
        for action in once(&mut todo.action).chain(others) {
            *action = action.replace(PROGRAM, &command);
        }
        let varied = todo.gain.map(|gain| todo.range.unwrap_or([gain; 2]));
        todo.range = varied
            .filter(|_| has_ranges)
            .map(|gains| range::of_varied(gains, advice));
        for other in todo.instead.iter_mut().filter(|_| has_ranges) {
            other.range = Some(range::range(other.gain, advice));
        }
    }
    all
}

/// Stands for the program and its arguments.
const PROGRAM: &str = "PROGRAM";
/// A longer command would push the saving off the screen.
const COMMAND: usize = 24;

/// The command that was recorded, to be typed again.
fn command(advice: &Advice) -> String {
    let words = once(&advice.program).chain(&advice.arguments).map(String::as_str);
    let command = shlex::try_join(words).unwrap_or_default();
    match advice.program.is_empty() || command.is_empty() || command.chars().count() > COMMAND {
        true => PROGRAM.to_string(),
        false => command,
    }
}

/// True if one sentence covers both, neither of which was simulated: the place that waits longer represents the other.
fn is_same(one: &Todo, other: &Todo) -> bool {
    one.gain.is_none() && other.gain.is_none() && one.kind == other.kind && one.action == other.action
}

fn of_cause(advice: &Advice, cause: &Cause) -> Option<Todo> {
    // The user does not change the C library for one program.
    if cause.file.as_deref().is_some_and(is_library_source) {
        return None;
    }
    let action = cause.change.clone()?;
    let gain = match cause.gain {
        Some(gain) if gain >= NOTHING => Some(gain),
        Some(_) => return None,
        None if cause.share >= WORTH => None,
        None => return None,
    };
    let instead = cause.alternatives.iter().filter_map(|other| {
        let gain = other.gain.filter(|gain| *gain >= NOTHING)?;
        let action = other.change.clone()?;
        Some(Instead {
            action,
            gain,
            ..Instead::default()
        })
    });
    let mut data = cause.structure.clone();
    if let [other] = &cause.other_structures[..] {
        data += &format!(" and {other}");
    } else if !cause.other_structures.is_empty() {
        data += &format!(" and {} others", cause.other_structures.len());
    }
    Some(Todo {
        source: cause.source.clone().or_else(|| named(&cause.function)),
        other_lines: cause.other_lines,
        file: cause.file.clone(),
        code: None,
        data: Some(data),
        kind: cause.kind.to_string(),
        because: cause.why.clone() + &sides(advice, cause),
        action,
        conditions: String::new(),
        instead: instead.collect(),
        // A change may cure more than its cause: huge pages also leave fewer conflicts.
        share: cause.share.max(gain.unwrap_or(0.0)),
        gain,
        // Only of the simulation; the range of its errors is added.
        range: cause.gain_varied,
    })
}

/// The two accesses that most often take a line from each other.
fn sides(advice: &Advice, cause: &Cause) -> String {
    let lines = advice
        .false_sharing
        .iter()
        .filter(|_| cause.kind == CauseKind::FalseSharing);
    let worst = lines.max_by_key(|line| (line.structure == cause.structure, line.misses));
    let Some([one, other]) = worst
        .filter(|line| line.structure == cause.structure)
        .map(|line| &line.sides[..])
    else {
        return String::new();
    };
    let side = |side: &Side| match &side.source {
        Some(source) => format!("{} at {}", side.field, short(source)),
        None => side.field.clone(),
    };
    format!(": {} and {}", side(one), side(other))
}

/// A function, if it is known.
fn named(function: &str) -> Option<String> {
    (function != sim::UNKNOWN_CODE).then(|| function.to_string())
}

/// The placement of threads.
fn threads(advice: &Advice) -> Option<Todo> {
    let sharing = advice.sharing.as_ref().filter(|sharing| sharing::matters(sharing))?;
    let (best, now) = (sharing.placements.first()?, advice.base()?.time_ns.wall);
    let gain = saved(now, best.wall_ns);
    (gain >= NOTHING).then(|| Todo {
        kind: "threads-apart".to_string(),
        because: sharing.verdict.clone(),
        action: format!(
            "repeat this with `--write-placement t.toml`, then `domicile run --placement t.toml -- {PROGRAM}`"
        ),
        share: gain,
        gain: Some(gain),
        ..Todo::default()
    })
}

/// Another order of the marked work.
fn order(advice: &Advice) -> Option<Todo> {
    let work = advice.work.as_ref().filter(|work| work.gain >= NOTHING)?;
    Some(Todo {
        kind: "order-of-work".to_string(),
        because: work.verdict.clone(),
        action: format!(
            "run the marked items in the order of `{}` (libdomicile's threads do it)",
            work.policy
        ),
        share: work.gain,
        gain: Some(work.gain),
        ..Todo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Collision;

    #[test]
    fn a_command_is_typed_again_as_it_was() {
        let advice = |program: &str, arguments: &[&str]| Advice {
            program: program.to_string(),
            arguments: arguments.iter().map(|word| (*word).to_string()).collect(),
            ..Advice::default()
        };
        assert_eq!(command(&advice("./a", &["two words", "3"])), "./a 'two words' 3");
        // Imported traces name no program; long commands would fill the screen.
        assert_eq!(command(&advice("", &[])), PROGRAM);
        assert_eq!(command(&advice("./a", &["x".repeat(COMMAND).as_str()])), PROGRAM);
    }

    #[test]
    fn false_sharing_names_both_accesses() {
        let side = |field: &str, source: &str| Side {
            field: field.to_string(),
            source: Some(source.to_string()),
            ..Side::default()
        };
        let line = |structure: &str, misses, fields: [&str; 2]| Collision {
            structure: structure.to_string(),
            misses,
            sides: vec![side(fields[0], "a.c:1"), side(fields[1], "a.c:2")],
            ..Collision::default()
        };
        let advice = Advice {
            false_sharing: vec![
                line("other", 90, ["x", "y"]),
                line("counters", 20, ["hits", "misses"]),
                line("counters", 10, ["hits", "spare"]),
            ],
            ..Advice::default()
        };
        let cause = |kind, structure: &str| Cause {
            kind,
            structure: structure.to_string(),
            ..Cause::default()
        };
        let of = |kind, structure| sides(&advice, &cause(kind, structure));
        assert_eq!(
            of(CauseKind::FalseSharing, "counters"),
            ": hits at a.c:1 and misses at a.c:2"
        );
        assert_eq!(of(CauseKind::FalseSharing, "third"), "");
        assert_eq!(of(CauseKind::TrueSharing, "counters"), "");
    }
}
