//! Cache slots: what a proposed partition of the outermost cache gains, and why.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::number::{bytes, count, nanoseconds, percent};
use crate::work::Change;

/// Below this, two predicted times are the same for all that the model can tell.
const NOTHING: f64 = 0.01;

/// What policy `slots` did with what it was told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotsTold {
    /// Colors of each outermost cache, and bytes of it that one stands for.
    pub colors: u32,
    pub color_bytes: u64,
    /// Data sets that were given colors, and those of them in private slots.
    pub data_sets: u64,
    pub private: u64,
    /// Pages that were touched first in a data set with colors.
    pub pages: u64,
    /// What was refused: the first of it in words, and how often.
    pub refused: Vec<String>,
    pub refusals: u64,
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl SlotsTold {
    /// In a line for people.
    pub fn in_words(&self) -> String {
        let mut text = match self.data_sets {
            0 => "slots: no data set was given colors".to_string(),
            sets => format!(
                "slots: {} data set{} given colors ({} in private slots), {} pages placed; a color is {} of {}",
                count(sets),
                if sets == 1 { "" } else { "s" },
                count(self.private),
                count(self.pages),
                bytes(self.color_bytes),
                bytes(self.color_bytes * u64::from(self.colors)),
            ),
        };
        if self.refusals > 0 {
            text += &format!("; {} refused: {}", count(self.refusals), self.refused.join("; "));
        }
        text
    }
}

/// A partition that is proposed, and what it was predicted to gain. Without data: nothing is proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotAdvice {
    /// The policy with the proposed plan, as it is called among the policies, and the baseline.
    pub policy: String,
    pub against: String,
    /// The cache that is partitioned, its size, and how much of it one color is.
    pub cache: String,
    pub bytes: u64,
    pub color_bytes: u64,
    /// Predicted time of the whole run with the plan, and as things are.
    pub wall_ns: f64,
    pub against_ns: f64,
    /// The part of the time that is saved; negative where the plan costs time.
    pub gain: f64,
    /// Misses of that cache, of all data.
    pub misses: Change,
    pub data: Vec<SlotData>,
    /// Why nothing is proposed.
    pub why_not: String,
    /// The plan, as a file of `domicile run --slots` and `domicile simulate --slots`; where it was written.
    pub plan: String,
    pub written: Option<String>,
    /// All this in words.
    pub verdict: String,
}

/// One data structure of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotData {
    pub name: String,
    /// `protect`: a private slot; `confine`: a shared one.
    pub role: String,
    /// Bytes of its slot in each cache.
    pub slot_bytes: u64,
    /// Its misses of that cache as things are, and with the plan.
    pub misses: Change,
    /// Those that are first uses of a line.
    pub cold: u64,
    pub why: String,
}

impl SlotAdvice {
    /// Whether the plan is worth anything.
    pub fn gains(&self) -> bool {
        !self.data.is_empty() && self.gain >= NOTHING
    }

    /// Fills in what follows from the rest.
    pub fn finish(mut self) -> SlotAdvice {
        self.gain = if self.against_ns > 0.0 {
            (self.against_ns - self.wall_ns) / self.against_ns
        } else {
            0.0
        };
        self.verdict = self.in_words();
        self
    }

    fn in_words(&self) -> String {
        if self.data.is_empty() {
            return format!("Cache slots would gain nothing: {}.", self.why_not);
        }
        let named = |role: &str| {
            let of = self.data.iter().filter(|data| data.role == role);
            let names: Vec<_> = of.map(|data| format!("`{}`", data.name)).collect();
            list(&names)
        };
        let (protect, confine) = (named("protect"), named("confine"));
        let what = match (protect.is_empty(), confine.is_empty()) {
            (false, false) => format!("Protecting {protect} and confining {confine} by cache slots"),
            (false, true) => format!("Protecting {protect} by cache slots"),
            _ => format!("Confining {confine} by cache slots"),
        };
        let misses = format!(
            "{} misses: {} become {}",
            self.cache,
            count(self.misses.before),
            count(self.misses.after)
        );
        if self.gain >= NOTHING {
            return format!(
                "{what} would save {} of the run time: {} instead of {} under `{}` ({misses}).",
                percent(self.gain),
                nanoseconds(self.wall_ns),
                nanoseconds(self.against_ns),
                self.against
            );
        }
        let how = match self.gain <= -NOTHING {
            true => format!("would cost {} more time", percent(-self.gain)),
            false => "makes no difference to the time".to_string(),
        };
        format!(
            "Cache slots would gain nothing: the best partition found was tried, and {} {how} ({misses}).",
            lower(&what)
        )
    }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(wall_ns: f64) -> SlotAdvice {
        let data = |name: &str, role: &str| SlotData {
            name: name.to_string(),
            role: role.to_string(),
            ..SlotData::default()
        };
        let misses = Change {
            before: 5000,
            after: 3000,
        };
        SlotAdvice {
            cache: "L2".to_string(),
            against: "random".to_string(),
            against_ns: 1e9,
            wall_ns,
            misses,
            data: vec![data("p", "protect"), data("a", "confine"), data("colidx", "confine")],
            ..SlotAdvice::default()
        }
        .finish()
    }

    #[test]
    fn the_verdict_says_what_is_gained() {
        let good = advice(0.8e9);
        assert!(good.gains());
        assert_eq!(
            good.verdict,
            "Protecting `p` and confining `a` and `colidx` by cache slots would save 20.0% of the run time: 800 ms \
             instead of 1.00 s under `random` (L2 misses: 5000 become 3000)."
        );
        let (same, worse) = (advice(0.995e9), advice(1.1e9));
        assert!(!same.gains() && !worse.gains());
        assert!(same.verdict.contains("gain nothing") && same.verdict.contains("no difference"));
        assert!(
            worse.verdict.contains("would cost 10.0% more time"),
            "{}",
            worse.verdict
        );
        let none = SlotAdvice {
            why_not: "nearly all misses are first uses".to_string(),
            ..SlotAdvice::default()
        };
        let none = none.finish();
        assert_eq!(
            none.verdict,
            "Cache slots would gain nothing: nearly all misses are first uses."
        );
    }
}
