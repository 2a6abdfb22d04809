//! Claims about policies: their runs and local shares in each workload.

use std::rc::Rc;

use super::{Claim, Judged, Kind, listed};
use crate::reproduce::Reproduction;
use crate::traces::streams::{Replayed, Run};
use crate::traces::{Bar, Traces};

/// Percent of a run's time that do not count within one recording; the spread over recordings shows what is
/// significant.
const NOTHING: f64 = 0.05;

/// The least percentage by which misses of one recording count as shorter.
const SHORTER: f64 = 1.0;

/// The bars of an item over one workload's stream.
struct Stand<'a> {
    traces: &'a Traces,
    replayed: Rc<Replayed>,
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

    /// The truth of a claim in this workload, with its figures; none if a bar is missing.
    fn holds(&self, kind: &Kind) -> Option<(bool, String)> {
        Some(match kind {
            Kind::Faster { of, others } | Kind::Unbeaten { of, others, .. } => {
                let ours = self.normal(of)?;
                let theirs = self.named(others, |name| self.normal(name))?;
                let best = theirs.iter().copied().fold(f64::MAX, f64::min);
                let held = match kind {
                    Kind::Unbeaten { points, .. } => ours <= best + points,
                    _ => ours < best - NOTHING,
                };
                (held, format!("{of} {ours:.1}; {}", listed(others, &theirs)))
            }
            Kind::Flat { bars, points } => {
                let runs = self.named(bars, |name| self.normal(name))?;
                let most = runs.iter().copied().fold(f64::MIN, f64::max);
                let least = runs.iter().copied().fold(f64::MAX, f64::min);
                (most - least <= *points, listed(bars, &runs))
            }
            Kind::Trade { bars } => {
                let stalls = self.named(bars, |name| Some(self.run(name)?.stall() as f64 / 1e6))?;
                let overheads = self.named(bars, |name| Some(self.run(name)?.overhead as f64 / 1e6))?;
                let held = stalls.is_sorted() && overheads.iter().rev().is_sorted();
                let (stalls, overheads) = (listed(bars, &stalls), listed(bars, &overheads));
                (held, format!("stall in ms: {stalls}; overhead: {overheads}"))
            }
            Kind::SameLocal { of, over, points }
            | Kind::Gentle { of, over, points }
            | Kind::Inconsistent { of, over, points } => {
                let (ours, theirs) = (self.local(of)?, self.local(over)?);
                let held = match kind {
                    Kind::SameLocal { .. } => (ours - theirs).abs() <= *points,
                    _ => theirs - ours <= *points,
                };
                (held, format!("local: {of} {ours:.1}, {over} {theirs:.1} percent"))
            }
            Kind::Sooner { of, over, node } => {
                let (ours, theirs) = (self.run(of)?.latency_ns(*node)?, self.run(over)?.latency_ns(*node)?);
                let held = ours < theirs * (1.0 - SHORTER / 100.0);
                (held, format!("{of} {ours:.0} ns, {over} {theirs:.0} ns"))
            }
            Kind::GainsMore { .. } | Kind::Falls { .. } | Kind::Apart { .. } => return None,
        })
    }
}

/// Returns true if a measure is inconsistent: it fell short in some workloads, and not in others.
fn inconsistent(each: &[bool]) -> bool {
    each.contains(&true) && each.contains(&false)
}

impl Reproduction<'_> {
    /// The outcome of a claim about bars in a recording: for each workload, or for all together.
    pub(super) fn of_bars(
        &mut self,
        traces: &Traces,
        claim: &Claim,
        wanted: &[&String],
        recording: usize,
    ) -> Vec<Judged> {
        let workloads = claim.workloads.iter().filter(|name| wanted.contains(name));
        let each = workloads.filter_map(|name| {
            let (held, text) = match &claim.kind {
                Kind::GainsMore { of, over, than } => self.gains_more(traces, name, recording, [of, over], than),
                kind => self.stand(name, recording, traces)?.holds(kind),
            }?;
            Some(Judged {
                of: name.clone(),
                held,
                text: format!("{name}: {text}"),
            })
        });
        let each: Vec<Judged> = each.collect();
        match claim.kind {
            Kind::Inconsistent { .. } if each.len() < 2 => Vec::new(),
            Kind::Inconsistent { .. } => {
                let (held, texts): (Vec<bool>, Vec<String>) = each.into_iter().map(|one| (one.held, one.text)).unzip();
                vec![Judged {
                    of: String::new(),
                    held: inconsistent(&held),
                    text: texts.join("; "),
                }]
            }
            _ => each,
        }
    }

    fn stand<'a>(&mut self, workload: &str, recording: usize, traces: &'a Traces) -> Option<Stand<'a>> {
        let replayed = self.replayed(workload, recording, traces).ok()?;
        Some(Stand { traces, replayed })
    }

    /// Returns true if a bar gains more over another here than in another item.
    fn gains_more(
        &mut self,
        here: &Traces,
        workload: &str,
        recording: usize,
        [of, over]: [&str; 2],
        than: &str,
    ) -> Option<(bool, String)> {
        let there = self.paper.items.iter().find(|item| item.name == than)?.traces.clone()?;
        let mut gain = |traces: &Traces| {
            let stand = self.stand(workload, recording, traces)?;
            Some(stand.normal(over)? - stand.normal(of)?)
        };
        let (here, there) = (gain(here)?, gain(&there)?);
        Some((here > there, format!("{here:.1} points, in {than} {there:.1}")))
    }
}

#[cfg(test)]
mod tests;
