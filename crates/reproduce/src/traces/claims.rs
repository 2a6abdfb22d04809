//! What the paper concludes of its traces, held against what came out.

use std::rc::Rc;

use serde::Deserialize;

use super::streams::{Replayed, Run};
use super::{Bar, Traces, rows};
use crate::paper::Item;
use crate::reproduce::Reproduction;

/// Percent of a run's time, or points of a local share, that are nothing.
const NOTHING: f64 = 0.05;

/// A conclusion of the paper. Runs are in percent of the first bar's, local shares in percent of the misses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Claim {
    /// A bar's run is shorter than that of each of some others.
    Faster {
        says: String,
        workloads: Vec<String>,
        of: String,
        others: Vec<String>,
    },
    /// No bar's run is shorter than another's by more than so many points.
    Unbeaten {
        says: String,
        workloads: Vec<String>,
        of: String,
        others: Vec<String>,
        points: f64,
    },
    /// Runs of some bars are all within so many points.
    Flat {
        says: String,
        workloads: Vec<String>,
        bars: Vec<String>,
        points: f64,
    },
    /// From each bar to the next, stall does not fall and overhead does not rise.
    Trade {
        says: String,
        workloads: Vec<String>,
        bars: Vec<String>,
    },
    /// A bar's local share is at most so many points below another's, and no more above it.
    SameLocal {
        says: String,
        workloads: Vec<String>,
        of: String,
        over: String,
        points: f64,
    },
    /// A bar's local share is at most so many points below another's.
    Gentle {
        says: String,
        workloads: Vec<String>,
        of: String,
        over: String,
        points: f64,
    },
    /// A bar's local share is more than so many points below another's in one workload, and not in another.
    Inconsistent {
        says: String,
        workloads: Vec<String>,
        of: String,
        over: String,
        points: f64,
    },
    /// A bar gains more over another, in points, than it does in another item.
    GainsMore {
        says: String,
        workloads: Vec<String>,
        of: String,
        over: String,
        than: String,
    },
    /// A curve's rows fall at a column, in their order.
    Falls {
        says: String,
        column: String,
        rows: Vec<String>,
    },
    /// At a column a workload's second row is farthest below its first of all workloads, and another's is nearest.
    Apart {
        says: String,
        column: String,
        most: String,
        least: String,
    },
}

/// A conclusion, and whether it holds here.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    pub held: bool,
    pub text: String,
}

impl Claim {
    pub(super) fn check(&self, traces: &Traces, columns: &[String]) -> Result<(), String> {
        let workload = |name: &String| match traces.workloads.contains(name) {
            true => Ok(()),
            false => Err(format!("`{name}` is no workload of the item")),
        };
        let bar = |name: &String| traces.bar(name).map(|_| ()).ok_or(format!("`{name}` is no bar"));
        let column = |name: &String| match columns.contains(name) {
            true => Ok(()),
            false => Err(format!("`{name}` is no column")),
        };
        self.workloads().iter().try_for_each(workload)?;
        self.bars().into_iter().try_for_each(bar)?;
        match (self, traces.curve) {
            (
                Claim::Falls {
                    column: at,
                    rows: names,
                    ..
                },
                Some(curve),
            ) => {
                column(at)?;
                let known: Vec<String> = traces.workloads.iter().flat_map(|name| rows(curve, name)).collect();
                match names.iter().find(|name| !known.contains(name)) {
                    Some(name) => Err(format!("`{name}` is no row of the curve")),
                    None => Ok(()),
                }
            }
            (
                Claim::Apart {
                    column: at,
                    most,
                    least,
                    ..
                },
                Some(curve),
            ) => {
                column(at)?;
                workload(most)?;
                workload(least)?;
                match rows(curve, most).len() {
                    2 => Ok(()),
                    _ => Err("the curve has one row".to_string()),
                }
            }
            (Claim::Falls { .. } | Claim::Apart { .. }, None) => Err("a claim is of a curve".to_string()),
            _ => Ok(()),
        }
    }

    fn says(&self) -> &str {
        match self {
            Claim::Faster { says, .. }
            | Claim::Unbeaten { says, .. }
            | Claim::Flat { says, .. }
            | Claim::Trade { says, .. }
            | Claim::SameLocal { says, .. }
            | Claim::Gentle { says, .. }
            | Claim::Inconsistent { says, .. }
            | Claim::GainsMore { says, .. }
            | Claim::Falls { says, .. }
            | Claim::Apart { says, .. } => says,
        }
    }

    fn workloads(&self) -> &[String] {
        match self {
            Claim::Faster { workloads, .. }
            | Claim::Unbeaten { workloads, .. }
            | Claim::Flat { workloads, .. }
            | Claim::Trade { workloads, .. }
            | Claim::SameLocal { workloads, .. }
            | Claim::Gentle { workloads, .. }
            | Claim::Inconsistent { workloads, .. }
            | Claim::GainsMore { workloads, .. } => workloads,
            Claim::Falls { .. } | Claim::Apart { .. } => &[],
        }
    }

    fn bars(&self) -> Vec<&String> {
        match self {
            Claim::Faster { of, others, .. } | Claim::Unbeaten { of, others, .. } => {
                others.iter().chain([of]).collect()
            }
            Claim::Flat { bars, .. } | Claim::Trade { bars, .. } => bars.iter().collect(),
            Claim::SameLocal { of, over, .. }
            | Claim::Gentle { of, over, .. }
            | Claim::Inconsistent { of, over, .. }
            | Claim::GainsMore { of, over, .. } => vec![of, over],
            Claim::Falls { .. } | Claim::Apart { .. } => Vec::new(),
        }
    }
}

/// The bars of an item over one workload's stream.
pub(super) struct Stand<'a> {
    pub traces: &'a Traces,
    pub replayed: Rc<Replayed>,
}

impl Stand<'_> {
    fn run(&self, name: &str) -> Option<&Run> {
        self.replayed.run(self.traces, self.traces.bar(name)?).ok()
    }

    /// In percent of the first bar's.
    fn normal(&self, name: &str) -> Option<f64> {
        let baseline: &Bar = self.traces.baseline()?;
        let whole = self.replayed.run(self.traces, baseline).ok()?.time();
        Some(100.0 * self.run(name)?.time() as f64 / whole as f64)
    }

    fn local(&self, name: &str) -> Option<f64> {
        Some(self.run(name)?.local_percent())
    }

    fn named(&self, names: &[String], value: impl Fn(&str) -> Option<f64>) -> Option<Vec<f64>> {
        names.iter().map(|name| value(name)).collect()
    }
}

/// What can be said of a claim about bars with one workload; nothing where a bar is missing.
pub(super) fn of_workload(claim: &Claim, stand: &Stand) -> Option<(bool, String)> {
    let listed = |names: &[String], values: &[f64]| {
        let each = names
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name} {value:.1}"));
        each.collect::<Vec<_>>().join(", ")
    };
    Some(match claim {
        Claim::Faster { of, others, .. } | Claim::Unbeaten { of, others, .. } => {
            let ours = stand.normal(of)?;
            let theirs = stand.named(others, |name| stand.normal(name))?;
            let best = theirs.iter().copied().fold(f64::MAX, f64::min);
            let held = match claim {
                Claim::Unbeaten { points, .. } => ours <= best + points,
                _ => ours < best - NOTHING,
            };
            (held, format!("{of} {ours:.1}; {}", listed(others, &theirs)))
        }
        Claim::Flat { bars, points, .. } => {
            let runs = stand.named(bars, |name| stand.normal(name))?;
            let most = runs.iter().copied().fold(f64::MIN, f64::max);
            let least = runs.iter().copied().fold(f64::MAX, f64::min);
            (most - least <= *points, listed(bars, &runs))
        }
        Claim::Trade { bars, .. } => {
            let stalls = stand.named(bars, |name| Some(stand.run(name)?.stall() as f64 / 1e6))?;
            let overheads = stand.named(bars, |name| Some(stand.run(name)?.overhead as f64 / 1e6))?;
            let held = stalls.is_sorted() && overheads.iter().rev().is_sorted();
            let text = format!(
                "stall in ms: {}; overhead: {}",
                listed(bars, &stalls),
                listed(bars, &overheads)
            );
            (held, text)
        }
        Claim::SameLocal { of, over, points, .. } => {
            let (ours, theirs) = (stand.local(of)?, stand.local(over)?);
            ((ours - theirs).abs() <= *points, local(of, ours, over, theirs))
        }
        Claim::Gentle { of, over, points, .. } | Claim::Inconsistent { of, over, points, .. } => {
            let (ours, theirs) = (stand.local(of)?, stand.local(over)?);
            (theirs - ours <= *points, local(of, ours, over, theirs))
        }
        Claim::GainsMore { .. } | Claim::Falls { .. } | Claim::Apart { .. } => return None,
    })
}

fn local(of: &str, ours: f64, over: &str, theirs: f64) -> String {
    format!("local: {of} {ours:.1}, {over} {theirs:.1} percent")
}

/// Whether a measure is inconsistent: it fell short in some workloads, and not in others.
pub(super) fn inconsistent(each: &[bool]) -> bool {
    each.contains(&true) && each.contains(&false)
}

impl Reproduction<'_> {
    /// What can be said of a claim with the workloads that were asked for; nothing where one is missing that it needs.
    pub(super) fn conclusions(
        &mut self,
        item: &Item,
        traces: &Traces,
        claim: &Claim,
        wanted: &[&String],
    ) -> Vec<Conclusion> {
        let says = claim.says();
        let workloads: Vec<&String> = claim.workloads().iter().filter(|name| wanted.contains(name)).collect();
        let mut stand = |name: &str, traces: &'_ Traces| self.replayed(name, &traces.machine).ok();
        match claim {
            Claim::Falls {
                column, rows: names, ..
            } => {
                let values = names.iter().map(|name| self.curve_at(item, traces, name, column));
                let Some(values) = values.collect::<Option<Vec<f64>>>() else {
                    return Vec::new();
                };
                let each: Vec<String> = names
                    .iter()
                    .zip(&values)
                    .map(|(name, value)| format!("{name} {value:.1}"))
                    .collect();
                vec![Conclusion {
                    held: values.windows(2).all(|pair| pair[0] > pair[1]),
                    text: format!("{says}: at {column}: {}", each.join(", ")),
                }]
            }
            Claim::Apart {
                column, most, least, ..
            } => {
                let Some(curve) = traces.curve else { return Vec::new() };
                let apart = traces.workloads.iter().map(|name| {
                    let rows = rows(curve, name);
                    let [by, other] = [0, 1].map(|row| self.curve_at(item, traces, &rows[row], column));
                    Some((name, by? - other?))
                });
                let Some(mut apart) = apart.collect::<Option<Vec<(&String, f64)>>>() else {
                    return Vec::new();
                };
                apart.sort_by(|a, b| b.1.total_cmp(&a.1));
                let each: Vec<String> = apart.iter().map(|(name, gap)| format!("{name} {gap:.1}")).collect();
                vec![Conclusion {
                    held: apart.first().is_some_and(|(name, _)| *name == most)
                        && apart.last().is_some_and(|(name, _)| *name == least),
                    text: format!(
                        "{says}: apart at {column} percent of the pages, in points: {}",
                        each.join(", ")
                    ),
                }]
            }
            Claim::GainsMore { of, over, than, .. } => {
                let items = &self.paper.items;
                let Some(other) = items.iter().find(|item| item.name == *than) else {
                    return Vec::new();
                };
                let Some(others) = other.traces.clone() else {
                    return Vec::new();
                };
                let mut all = Vec::new();
                for name in workloads {
                    let mut gain = |traces: &Traces| {
                        let replayed = self.replayed(name, &traces.machine).ok()?;
                        let stand = Stand { traces, replayed };
                        Some(stand.normal(over)? - stand.normal(of)?)
                    };
                    if let (Some(here), Some(there)) = (gain(traces), gain(&others)) {
                        all.push(Conclusion {
                            held: here > there,
                            text: format!("{says}: {name}: {here:.1} points, in {than} {there:.1}"),
                        });
                    }
                }
                all
            }
            Claim::Inconsistent { .. } => {
                let mut each = Vec::new();
                let mut texts = Vec::new();
                for name in workloads {
                    let Some(replayed) = stand(name, traces) else { continue };
                    if let Some((near, text)) = of_workload(claim, &Stand { traces, replayed }) {
                        each.push(near);
                        texts.push(format!("{name}: {text}"));
                    }
                }
                match each.len() {
                    0 | 1 => Vec::new(),
                    _ => vec![Conclusion {
                        held: inconsistent(&each),
                        text: format!("{says}: {}", texts.join("; ")),
                    }],
                }
            }
            _ => {
                let mut all = Vec::new();
                for name in workloads {
                    let Some(replayed) = stand(name, traces) else { continue };
                    if let Some((held, text)) = of_workload(claim, &Stand { traces, replayed }) {
                        all.push(Conclusion {
                            held,
                            text: format!("{says}: {name}: {text}"),
                        });
                    }
                }
                all
            }
        }
    }

    /// A curve's value in a row, by the row's name.
    fn curve_at(&mut self, item: &Item, traces: &Traces, row: &str, column: &str) -> Option<f64> {
        let curve = traces.curve?;
        let name = traces
            .workloads
            .iter()
            .find(|name| rows(curve, name).contains(&row.to_string()))?;
        if !self.options.only.is_empty() && !self.options.only.contains(name) {
            return None;
        }
        let at = rows(curve, name).iter().position(|other| other == row)?;
        item.columns.contains(&column.to_string()).then_some(())?;
        self.replayed(name, &traces.machine).ok()?.at(curve, at, column).ok()
    }
}

#[cfg(test)]
mod tests;
