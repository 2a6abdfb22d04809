//! The paper's conclusions from its traces, compared with the results.

mod bars;
mod curves;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::measure::Node;
use super::{Traces, rows};
use crate::claims::{Conclusion, Verdict};
use crate::paper::Item;
use crate::reproduce::Reproduction;

/// A conclusion of the paper, as its file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Claim {
    pub says: String,
    /// The workloads that it is about; claims about curves have none, because their rows name them.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Why it does not hold, by workload, or under [`ALL`].
    #[serde(default)]
    pub otherwise: BTreeMap<String, String>,
    #[serde(flatten)]
    pub kind: Kind,
}

/// The claim. Runs are in percent of the first bar's, local shares in percent of the misses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// A bar's run is shorter than that of each of some others.
    Faster { of: String, others: Vec<String> },
    /// No bar's run is shorter than another's by more than this many points.
    Unbeaten {
        of: String,
        others: Vec<String>,
        points: f64,
    },
    /// Runs of some bars all lie within this many points.
    Flat { bars: Vec<String>, points: f64 },
    /// From each bar to the next, stall does not fall and overhead does not rise.
    Trade { bars: Vec<String> },
    /// A bar's local share is at most this many points below another's, and no more above it.
    SameLocal { of: String, over: String, points: f64 },
    /// A bar's local share is at most this many points below another's.
    Gentle { of: String, over: String, points: f64 },
    /// A bar's local share is more than this many points below another's in one workload, and not in another.
    Inconsistent { of: String, over: String, points: f64 },
    /// A bar's misses of this node wait less, on average, than another's.
    Sooner { of: String, over: String, node: Node },
    /// A bar gains more over another, in points, than it does in another item.
    GainsMore { of: String, over: String, than: String },
    /// A curve's rows fall at a column, in their order.
    Falls { column: String, rows: Vec<String> },
    /// At a column a workload's second row is farthest below its first of all workloads, and another's is nearest.
    Apart {
        column: String,
        most: String,
        least: String,
    },
}

/// Stands for a workload in a claim that is about all of them.
const ALL: &str = "all";

/// The outcome of a claim in one recording.
struct Judged {
    /// Its workload; empty if it is about all.
    of: String,
    held: bool,
    text: String,
}

impl Claim {
    pub(super) fn check(&self, traces: &Traces, columns: &[String]) -> Result<(), String> {
        let workload = |name: &String| match traces.workloads.contains(name) {
            true => Ok(()),
            false => Err(format!("`{name}` is no workload of the item")),
        };
        let bar = |name: &String| traces.bar(name).map(|_| ()).ok_or(format!("`{name}` is no bar"));
        self.workloads.iter().try_for_each(workload)?;
        let why = self.otherwise.keys().filter(|name| *name != ALL);
        why.into_iter().try_for_each(workload)?;
        self.kind.bars().into_iter().try_for_each(bar)?;
        let (Kind::Falls { column, .. } | Kind::Apart { column, .. }) = &self.kind else {
            return Ok(());
        };
        let curve = traces.curve.ok_or("a claim is of a curve")?;
        if !columns.contains(column) {
            return Err(format!("`{column}` is no column"));
        }
        match &self.kind {
            Kind::Apart { most, least, .. } => {
                workload(most)?;
                workload(least)?;
                match rows(curve, most).len() {
                    2 => Ok(()),
                    _ => Err("the curve has one row".to_string()),
                }
            }
            Kind::Falls { rows: names, .. } => {
                let known: Vec<String> = traces.workloads.iter().flat_map(|name| rows(curve, name)).collect();
                match names.iter().find(|name| !known.contains(name)) {
                    Some(name) => Err(format!("`{name}` is no row of the curve")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

impl Kind {
    fn bars(&self) -> Vec<&String> {
        match self {
            Kind::Faster { of, others } | Kind::Unbeaten { of, others, .. } => others.iter().chain([of]).collect(),
            Kind::Flat { bars, .. } | Kind::Trade { bars } => bars.iter().collect(),
            Kind::SameLocal { of, over, .. }
            | Kind::Sooner { of, over, .. }
            | Kind::Gentle { of, over, .. }
            | Kind::Inconsistent { of, over, .. }
            | Kind::GainsMore { of, over, .. } => vec![of, over],
            Kind::Falls { .. } | Kind::Apart { .. } => Vec::new(),
        }
    }
}

impl Reproduction<'_> {
    /// The conclusions on a claim that the requested workloads allow, over all of their recordings; none if a needed
    /// one is missing.
    pub(super) fn conclusions(
        &mut self,
        item: &Item,
        traces: &Traces,
        claim: &Claim,
        wanted: &[&String],
    ) -> Vec<Conclusion> {
        let each = claim.workloads.iter().filter(|name| wanted.contains(name));
        let each = each.map(|name| self.recordings_there(name));
        let recordings = match claim.kind {
            // It is about all of them at once.
            Kind::Inconsistent { .. } => each.min().unwrap_or(1),
            Kind::Falls { .. } | Kind::Apart { .. } => {
                let all = traces.workloads.iter().map(|name| self.recordings_there(name));
                all.min().unwrap_or(1)
            }
            _ => each.max().unwrap_or(1),
        };
        let mut judged: Vec<(Judged, Vec<bool>)> = Vec::new();
        for recording in 1..=recordings {
            let in_this = match (&claim.kind, traces.curve) {
                (Kind::Falls { .. } | Kind::Apart { .. }, Some(curve)) => {
                    let one = self.of_curves(item, traces, claim, curve, recording);
                    one.into_iter().collect()
                }
                _ => self.of_bars(traces, claim, wanted, recording),
            };
            for one in in_this {
                match judged.iter_mut().find(|(first, _)| first.of == one.of) {
                    Some((_, held)) => held.push(one.held),
                    None => {
                        let held = vec![one.held];
                        judged.push((one, held));
                    }
                }
            }
        }
        let concluded = |(first, each): (Judged, Vec<bool>)| {
            let held = each.iter().filter(|&&held| held).count();
            let verdict = Verdict::of(held, each.len());
            let of = if first.of.is_empty() { ALL } else { &first.of };
            let why = match claim.otherwise.get(of) {
                Some(why) if verdict != Verdict::Held => format!(". {why}"),
                _ => String::new(),
            };
            Conclusion {
                verdict,
                once: each.len() == 1,
                text: match each.len() {
                    1 => format!("{}: {}{why}", claim.says, first.text),
                    many => format!("{}: {} (the first of {many} recordings){why}", claim.says, first.text),
                },
            }
        };
        judged.into_iter().map(concluded).collect()
    }
}

fn listed(names: &[String], values: &[f64]) -> String {
    let each = names.iter().zip(values);
    let each = each.map(|(name, value)| format!("{name} {value:.1}"));
    each.collect::<Vec<_>>().join(", ")
}
