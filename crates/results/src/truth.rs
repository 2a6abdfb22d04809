//! Predictions compared with the clock: pairs of programs before and after a change.

use serde::{Deserialize, Serialize};

/// The output of `truth --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Truth {
    pub about: TruthAbout,
    pub pairs: Vec<TruthPair>,
    /// Pairs that could not be run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<TruthFailed>,
    /// Null if no pair provides a range.
    pub range: Option<TruthRange>,
}

/// Machine, date and settings with which the pairs were measured and predicted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthAbout {
    /// The day of the measurement, in UTC; empty if unknown.
    pub date: String,
    pub processor: String,
    pub cpus: u32,
    pub kernel: String,
    /// The first line of the C compiler's version text.
    pub compiler: String,
    /// The machine that predictions are for.
    pub machine: String,
    /// How often each side was measured.
    pub rounds: u32,
    /// Other processes that were running at the start (the load of the last minute).
    pub load: f64,
}

/// One change of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthPair {
    pub name: String,
    /// The kind of change.
    pub kind: String,
    /// `ours`, `library` or `foreign`.
    pub whose: String,
    /// The language, the library or the program.
    pub of: String,
    /// `build`: models may be built with it; `held`: it only tests them.
    pub half: String,
    pub measured: TruthMeasured,
    /// The ratio in other measurements of the same pair (`--again`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<f64>,
    /// Null where nothing was to be predicted.
    pub predicted: Option<TruthPredicted>,
    /// True if the prediction is on the same side of 1 as the measurement. Null: the measured interval holds 1, or
    /// nothing is predicted.
    pub sign_right: Option<bool>,
    /// The larger of the measured and the predicted ratio over the other.
    pub off: Option<f64>,
    /// Why the prediction misses, if the reason is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub explained: String,
    /// If the prediction misses: the changes of one figure of the machine with which it is within 20%, the likeliest
    /// first. Absent: none was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiments: Option<Vec<TruthExperiment>>,
    /// The machine that it is predicted on, as it was while the pair was measured. Absent: it was probed before, or is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<TruthBeside>,
}

/// The part of a machine that others leave to this process, which changes within minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthBeside {
    /// Of the outermost cache.
    pub last_level_bytes: u64,
    pub last_level_ns: f64,
    /// Gigabytes (10^9 bytes) a second that other programs fetched into it; 0: none, or not measured.
    pub others_gbps: f64,
    pub memory_ns: f64,
    pub instructions_per_clock: f64,
    /// Gigabytes (10^9 bytes) a second that all cpus together read of a node. This and all below: 0 if not measured.
    pub memory_gbps: f64,
    /// Nanoseconds between two lines that come to a core from a third level or memory.
    pub line_ns: f64,
    /// The same between two lines from memory, on small pages and on huge ones.
    pub memory_line_ns: f64,
    pub huge_memory_line_ns: f64,
    /// Nanoseconds of a walk for a small page, and for a huge one.
    pub page_walk_ns: f64,
    pub huge_page_walk_ns: f64,
}

/// Time before the change over time after it, by the clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthMeasured {
    /// The median of the rounds.
    pub ratio: f64,
    /// The interval that holds the median with 95%, from six rounds on; with fewer rounds their least and most.
    pub least: f64,
    pub most: f64,
    /// Medians, without the start-up.
    pub before_ns: f64,
    pub after_ns: f64,
    /// How many rounds these figures leave out, since other work had a part of the core meanwhile (`core_share`).
    #[serde(skip_serializing_if = "crate::profile::is_zero")]
    pub left_out: u32,
    /// How many of the rounds that count had only a part of the core: all of them count if fewer than half had all of it.
    #[serde(skip_serializing_if = "crate::profile::is_zero")]
    pub shared: u32,
    /// All rounds, in the order in which they were run, start-up included.
    pub rounds: Vec<TruthRound>,
}

/// One round: both sides once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthRound {
    pub before_ns: f64,
    pub after_ns: f64,
    /// The least pace of straight code right before and after the two runs, as a share of the fastest that was seen: a
    /// core that has another busy thread is slower. Absent: nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_share: Option<f64>,
}

/// The same ratio, by simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthPredicted {
    pub ratio: f64,
    /// Without the start-up.
    pub before_ns: f64,
    pub after_ns: f64,
    pub before_references: u64,
    pub after_references: u64,
}

/// A prediction with one figure of the machine changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthExperiment {
    /// The figure and its change, such as "half of the last level".
    pub changed: String,
    pub ratio: f64,
    /// Without the start-up.
    pub before_ns: f64,
    pub after_ns: f64,
}

/// A pair that could not be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthFailed {
    pub name: String,
    pub why: String,
}

/// How far predictions are off: a ratio `p` is measured as `p^least` to `p^most`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TruthRange {
    pub least: f64,
    pub most: f64,
    /// The pairs that it comes from.
    pub pairs: u32,
    /// The pairs that test it, and in how many of them the measured interval overlaps it.
    pub held: u32,
    pub held_within: u32,
}

impl TruthPair {
    /// A ratio that is off by no more is predicted well.
    pub const NEAR: f64 = 1.2;

    /// Returns true if the ratio is within this factor of the measured one.
    pub fn is_within(&self, times: f64) -> bool {
        self.off.is_some_and(|off| off <= times)
    }

    /// How far the other measurements are off this one: the larger of each two ratios over the other.
    pub fn off_again(&self) -> impl Iterator<Item = f64> {
        let ratio = self.measured.ratio;
        self.again.iter().map(move |again| (ratio / again).max(again / ratio))
    }
}

impl Truth {
    /// Takes the ratios of another measurement in, pair by pair. Pairs that it does not have stay without; the same rounds say nothing of
    /// themselves, and are left out.
    ///
    /// Errors: it is of another processor, or has no other measurement of any pair.
    pub fn measured_again(&mut self, other: &Truth) -> Result<(), String> {
        let of = &other.about.processor;
        if *of != self.about.processor {
            return Err(format!("it is of another processor ({of}), and left out"));
        }
        let mut met = false;
        for pair in &mut self.pairs {
            let known = other.pairs.iter().find(|known| known.name == pair.name);
            let known = known.filter(|known| known.measured.rounds != pair.measured.rounds);
            let ratio = known.map(|known| known.measured.ratio);
            let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
            met |= ratio.is_some();
            pair.again.extend(ratio);
        }
        match met {
            true => Ok(()),
            false => Err("it has no other measurement of these pairs, and is left out".to_string()),
        }
    }
}
