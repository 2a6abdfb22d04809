//! The part of `advise` about cache slots: what a partition of the outermost cache would gain.
//!
//! From the curves that the baseline's run left, [`policy::slots::propose()`] makes plans; each is simulated, and the one
//! that gains most is told. What is told was simulated, not read off a curve.

use std::path::Path;
use std::sync::Arc;

use policy::slots::{Measured, Nothing, Part, Plan, Proposal, Role, Site, Symbol, What, propose};
use report::{Change, SlotAdvice, SlotData};
use sim::structures::{Description, StructureKind};
use sim::{Config, CurveOutcome, CurvesOutcome, Detail, Outcome, PolicySpec};

use super::model::SLOTS;
use super::simulate;
use crate::failure::Failure;

/// A plan is preferred to those before it if it saves so much more of the time.
const BETTER: f64 = 0.005;

/// What the proposal is simulated from.
pub struct Partition<'a> {
    file: &'a Path,
    trace: &'a trace::Trace,
    config: &'a Config,
    baseline: &'a str,
    wall: u64,
}

/// A proposal and what came of it.
struct Tried {
    proposal: Proposal,
    outcome: Outcome,
}

impl<'a> Partition<'a> {
    /// `config` is that of the outcomes, one of which is the baseline's.
    pub fn new(
        file: &'a Path,
        trace: &'a trace::Trace,
        config: &'a Config,
        baseline: &'a str,
        outcomes: &[Outcome],
    ) -> Partition<'a> {
        let base = outcomes.iter().find(|outcome| outcome.policy == baseline);
        Partition {
            file,
            trace,
            config,
            baseline,
            wall: base.map_or(0, |base| base.time_ns.wall),
        }
    }

    /// Makes plans, tries them, and tells of the best; its outcome is added to the others, and it is written where that is wanted and
    /// something is gained.
    pub fn advise(&self, curves: &CurvesOutcome, outcomes: &mut Vec<Outcome>) -> Result<SlotAdvice, Failure> {
        let outer = self.config.machine.caches.last();
        let mut advice = SlotAdvice {
            against: self.baseline.to_string(),
            against_ns: self.wall as f64,
            wall_ns: self.wall as f64,
            cache: outer.map_or_else(String::new, |cache| cache.name.clone()),
            bytes: curves.caches.color_bytes * u64::from(curves.caches.colors),
            color_bytes: curves.caches.color_bytes,
            misses: Change {
                before: curves.misses,
                after: curves.misses,
            },
            ..SlotAdvice::default()
        };
        let (kept, measured): (Vec<_>, Vec<_>) = curves.structures.iter().filter_map(measured).unzip();
        let proposals = match propose(&curves.caches, curves.misses, &measured) {
            Ok(proposals) => proposals,
            Err(nothing) => {
                advice.why_not = why(nothing, &advice.cache);
                return Ok(advice.finish());
            }
        };
        let best = self.best(proposals)?;
        let policy = best.outcome.policy.clone();
        let after = best.outcome.curves.as_ref();
        advice.wall_ns = best.outcome.time_ns.wall as f64;
        advice.misses.after = after.map_or(curves.misses, |after| after.misses);
        advice.policy.clone_from(&policy);
        let data = |part: &Part| {
            let before: &CurveOutcome = kept[part.at];
            let same = |other: &&CurveOutcome| {
                (&other.what.name, other.what.kind, other.sizes) == (&before.what.name, before.what.kind, before.sizes)
            };
            let after = after.and_then(|after| after.structures.iter().find(same));
            SlotData {
                name: measured[part.at].name.clone(),
                role: match part.role {
                    Role::Protect => "protect",
                    Role::Confine => "confine",
                }
                .to_string(),
                slot_bytes: u64::from(part.colors) * curves.caches.color_bytes,
                misses: Change {
                    before: before.misses,
                    after: after.map_or(0, |after| after.misses),
                },
                cold: before.cold,
                why: part.why.clone(),
            }
        };
        advice.data = best.proposal.parts.iter().map(data).collect();
        let mut advice = advice.finish();
        let plan = Plan {
            about: self.about(&advice),
            ..best.proposal.plan
        };
        advice.plan = plan.write();
        outcomes.push(best.outcome);
        Ok(advice)
    }

    /// Simulates the proposals; the one that takes least time, the first among those that are as good.
    fn best(&self, proposals: Vec<Proposal>) -> Result<Tried, Failure> {
        let spec = |proposal: &Proposal| PolicySpec {
            name: self.policy(),
            sets: self.sets(),
            plan: Some(Arc::new(proposal.plan.clone())),
        };
        let detail = Detail {
            curves: true,
            ..Detail::default()
        };
        let config = Config {
            policies: proposals.iter().map(spec).collect(),
            detail,
            detail_for: (proposals.len() > 1).then_some(0),
            ..self.config.clone()
        };
        let outcomes = simulate::simulate(self.file, self.trace, &config)?;
        let mut tried = proposals
            .into_iter()
            .zip(outcomes)
            .map(|(proposal, outcome)| Tried { proposal, outcome });
        let mut best = tried.next().ok_or_else(|| Failure::work("no partition was proposed"))?;
        for other in tried {
            let saved = best.outcome.time_ns.wall as f64 - other.outcome.time_ns.wall as f64;
            if saved > BETTER * self.wall as f64 {
                best = other;
            }
        }
        if best.outcome.curves.is_none() {
            // Another than the first: what became of each structure is not known yet.
            let config = Config {
                policies: vec![spec(&best.proposal)],
                detail_for: None,
                ..config
            };
            let again = simulate::simulate(self.file, self.trace, &config)?;
            best.outcome = again.into_iter().next().unwrap_or(best.outcome);
        }
        best.outcome.policy = format!("{} (proposed)", best.outcome.policy);
        Ok(best)
    }

    /// The baseline with its colors given by slots.
    fn policy(&self) -> String {
        let baseline = self.baseline.parse::<policy::Name>();
        let recolored = baseline.and_then(|name| name.recolored(SLOTS));
        recolored.map_or_else(|_| SLOTS.to_string(), |name| name.to_string())
    }

    fn sets(&self) -> Vec<String> {
        self.config
            .policies
            .first()
            .map_or_else(Vec::new, |spec| spec.sets.clone())
    }

    fn about(&self, advice: &SlotAdvice) -> Vec<String> {
        let header = self.trace.header();
        let command = std::iter::once(&header.program).chain(&header.arguments);
        let command = command.map(String::as_str).collect::<Vec<_>>().join(" ");
        vec![
            format!(
                "Cache slots for {command}, proposed by `domicile advise` for {} ({}, colors of {}).",
                self.config.machine.name,
                advice.cache,
                report::bytes(advice.color_bytes),
            ),
            advice.verdict.clone(),
        ]
    }
}

/// A structure as a plan can name it.
fn measured(curve: &CurveOutcome) -> Option<(&CurveOutcome, Measured)> {
    let (name, what) = named(&curve.what, curve.sizes)?;
    let measured = Measured {
        name,
        what,
        bytes: curve.what.bytes,
        accesses: curve.accesses,
        misses: curve.misses,
        cold: curve.cold,
        alone: curve.alone.clone(),
    };
    Some((curve, measured))
}

fn named(of: &Description, sizes: Option<(u64, u64)>) -> Option<(String, What)> {
    match (of.kind, sizes) {
        (StructureKind::Symbol, _) => {
            let mut symbol = Symbol::parse(&of.name);
            let place = of.file.as_ref().zip(of.line);
            symbol.place = place.map(|(file, line)| (base(file).to_string(), line));
            let name = symbol.to_string();
            let module = None;
            Some((name, What::Symbol { symbol, module }))
        }
        (StructureKind::Heap, Some((at_least, at_most))) => {
            let site = Site::parse(&of.name)?;
            let what = What::Site {
                site,
                at_least,
                at_most,
            };
            // Blocks of other sizes have the same name.
            let name = match (at_most, of.blocks) {
                (u64::MAX, _) => of.name.clone(),
                (_, 1) => format!("{} of {}", of.name, report::bytes(of.bytes)),
                _ => format!("{} up to {}", of.name, report::bytes(at_most)),
            };
            Some((name, what))
        }
        _ => None,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn why(nothing: Nothing, cache: &str) -> String {
    match nothing {
        Nothing::Quiet => format!("no variable or allocation site with a name is missed often in {cache}"),
        Nothing::Cold => format!("nearly all misses of {cache} are first uses of a line, which no partition saves"),
        Nothing::NoReuse => format!("what is reused is in {cache} already, or is reused too late for any part of it"),
    }
}
