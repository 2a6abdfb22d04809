//! A comparison of two versions of a program: the output of `domicile compare --json`.

use serde::{Deserialize, Serialize};

use crate::number::percent;

/// Two versions of a program on one machine under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Comparison {
    pub machine: String,
    pub policy: String,
    pub before: ComparedSide,
    pub after: ComparedSide,
    /// Nanoseconds of the run (`time_ns.wall` of an outcome).
    pub time: Difference,
    /// Nanoseconds that all cpus wait for caches, memory and the TLB.
    pub stall: Difference,
    pub references: Difference,
    /// Absent where one side does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Difference>,
    /// Misses of each kind of cache that both sides have, in the machine's order, and of the TLB.
    pub misses: Vec<ComparedMisses>,
    /// Nanoseconds of all cpus by use: computing, misses by class, waiting for threads. The largest difference comes
    /// first, as in the lists below.
    pub parts: Vec<ComparedRow>,
    /// Stall by line of the source; absent where one side does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_lines: Option<Vec<ComparedRow>>,
    /// Stall by data structure; absent where one side does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structures: Option<Vec<ComparedRow>>,
    /// Stall by why data misses; absent where one side does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes: Option<Vec<ComparedRow>>,
    /// The conditions that were asked for (`--fail-if`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JudgedCondition>,
    /// The limits of these figures, in sentences.
    pub notes: Vec<String>,
}

/// One of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ComparedSide {
    /// The file, or the command.
    pub name: String,
    pub kind: SideKind,
    /// How many recordings the figures come from: each figure is the median.
    pub recordings: u64,
}

/// How a side was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SideKind {
    #[default]
    Result,
    Trace,
    Command,
}

impl SideKind {
    /// Its name in JSON and in sentences.
    pub fn name(self) -> &'static str {
        match self {
            SideKind::Result => "result",
            SideKind::Trace => "trace",
            SideKind::Command => "command",
        }
    }
}

/// A figure of both sides: nanoseconds, or a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Difference {
    pub before: u64,
    pub after: u64,
    /// A difference of up to this, in the figure's own unit, may be chance.
    pub noise: u64,
    /// `after / before - 1`; null where `before` is 0.
    pub change: Option<f64>,
    pub verdict: Verdict,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Less than before, by more than the noise.
    Better,
    /// More than before, by more than the noise.
    Worse,
    #[default]
    Same,
}

/// Misses of a kind of cache, or of the TLB.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ComparedMisses {
    /// The cache's name, or `TLB`.
    pub name: String,
    pub misses: Difference,
}

/// Nanoseconds of one thing: a line, a data structure, a cause, a part of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ComparedRow {
    /// The row's name: `file:line`, the structure's name, the cause's kind, the part.
    pub name: String,
    /// The function, of a line of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The data structure that is waited for, if the row is about only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structure: Option<String>,
    /// True if line numbers differ between before and after: `name` then has none, and all lines that it may stand for
    /// are summed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    pub time_ns: Difference,
}

/// The outcome of a condition ([`crate::Condition`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JudgedCondition {
    /// As it was written, in its usual form.
    pub condition: String,
    pub met: bool,
    /// Why it is met, or is not.
    pub why: String,
}

/// Below this part, figures of one recording each are not told from chance: two predicted times that differ by less are the
/// same for all that the model can tell.
pub const ALONE: f64 = 0.01;

/// The same of several recordings, however little they differ; and rows are of nothing below this part of the time.
pub const LEAST: f64 = 0.001;

impl Difference {
    /// The medians of recordings before and after. A difference up to the largest one within either side, or up to
    /// `part` of the figure, or up to `least`, is noise.
    pub fn new(before: &[u64], after: &[u64], part: f64, least: u64) -> Difference {
        let (was, is) = (median(before), median(after));
        let alone = before.len() < 2 || after.len() < 2;
        let part = if alone { part.max(ALONE) } else { part.max(LEAST) };
        let by_part = (was.max(is) as f64 * part) as u64;
        let noise = range(before).max(range(after)).max(by_part).max(least);
        let verdict = match was.abs_diff(is) > noise {
            true if is < was => Verdict::Better,
            true => Verdict::Worse,
            false => Verdict::Same,
        };
        Difference {
            before: was,
            after: is,
            noise,
            change: (was > 0).then(|| is as f64 / was as f64 - 1.0),
            verdict,
        }
    }

    /// How far apart the two are, in the figure's own unit.
    pub fn size(&self) -> u64 {
        self.before.abs_diff(self.after)
    }

    /// The noise as a part of what was before; nothing of nothing.
    pub fn noise_part(&self) -> f64 {
        match self.before {
            0 => 0.0,
            before => self.noise as f64 / before as f64,
        }
    }

    /// How far recordings of the same differ, as a part of what was before: `0.3%`. The least that counts is `0.1% at most`.
    pub fn noise_in_words(&self) -> String {
        let least = (self.before.max(self.after) as f64 * LEAST) as u64;
        match self.noise <= least {
            true => format!("{} at most", percent(LEAST)),
            false => percent(self.noise_part()),
        }
    }
}

impl Comparison {
    /// Returns true if a side has only one recording, so that the spread is unknown.
    pub fn is_alone(&self) -> bool {
        self.before.recordings < 2 || self.after.recordings < 2
    }

    /// The conditions that are met: the reasons to fail.
    pub fn met(&self) -> impl Iterator<Item = &JudgedCondition> {
        self.conditions.iter().filter(|condition| condition.met)
    }
}

/// The one in the middle, or the mean of the two; of none 0.
fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.len() {
        0 => 0,
        length if length % 2 == 1 => values[middle],
        _ => values[middle - 1] + (values[middle] - values[middle - 1]) / 2,
    }
}

fn range(values: &[u64]) -> u64 {
    let (least, most) = (values.iter().min(), values.iter().max());
    least.zip(most).map_or(0, |(least, most)| most - least)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(before: &[u64], after: &[u64]) -> Verdict {
        Difference::new(before, after, 0.0, 0).verdict
    }

    #[test]
    fn one_recording_each_is_trusted_to_one_percent() {
        assert_eq!(verdict(&[1000], &[1010]), Verdict::Same);
        assert_eq!(verdict(&[1000], &[1012]), Verdict::Worse);
        assert_eq!(verdict(&[1000], &[980]), Verdict::Better);
        assert_eq!(verdict(&[0], &[5]), Verdict::Worse);
        assert_eq!(verdict(&[1000, 1000], &[1009]), Verdict::Same);
        assert_eq!(Difference::new(&[0], &[5], 0.0, 0).change, None);
    }

    #[test]
    fn several_recordings_are_trusted_as_far_as_they_agree() {
        assert_eq!(verdict(&[1000, 1000], &[1005, 1005]), Verdict::Worse);
        assert_eq!(verdict(&[1000, 1000], &[1001, 1001]), Verdict::Same);
        // The noise of one side is that of both.
        assert_eq!(verdict(&[1000, 1000], &[900, 1020]), Verdict::Same);
        let difference = Difference::new(&[1000, 1040, 1010], &[1200, 1200], 0.0, 0);
        assert_eq!((difference.before, difference.noise), (1010, 40));
        assert_eq!(difference.verdict, Verdict::Worse);
        assert_eq!(Difference::new(&[10, 10], &[20, 20], 0.0, 10).verdict, Verdict::Same);
    }
}
