//! The gain of a partition of the outermost cache.
//!
//! From the curves of the baseline's run, [`policy::slots::propose()`] makes plans; those that may gain something are
//! simulated, and the one that gains most is reported. The reported gain was simulated, not read from a curve.

mod named;

use std::sync::Arc;

use machine::{HugeData, Machine};

use policy::slots::{Nothing, Pair, Part, Plan, Proposal, Role, on_huge_pages, propose};
use policy::{Kind, Name};
use results::{Cache, Change, Outcome, SlotAdvice, SlotData, Structure, bytes, count, percent, time};
use sim::{Config, CurveOutcome, CurvesOutcome, Detail, PolicySpec, SimError, Simulated};
use trace::Trace;

use crate::huge;
use crate::names::{candidates, outcome_of};
use crate::settings::{Policies, Settings};
use crate::words::{NOTHING, list, saved};
use named::measured;

/// A plan is preferred to earlier ones if it saves this much more of the time.
const BETTER: f64 = 0.005;

/// The input of the proposal's simulation.
pub struct Partition<'a> {
    trace: &'a Trace,
    settings: &'a Settings<'a>,
    config: &'a Config,
    baseline: &'a Name,
    wall: u64,
    /// The data structures in the baseline's run.
    structures: &'a [Structure],
    /// How many misses of the outermost cache make a difference to the time.
    matters: f64,
}

/// A proposal and its result.
struct Tried {
    proposal: Proposal,
    run: Simulated,
    /// The times of the baseline and of this one with data on huge pages, if there would be any.
    on_huge: Option<Pair>,
}

impl Tried {
    /// The time by which plans are compared.
    fn wall(&self) -> u64 {
        self.on_huge
            .map_or(self.run.outcome.time_ns.wall, |on_huge| on_huge.colored)
    }
}

impl<'a> Partition<'a> {
    /// `config` belongs to the outcomes, one of which is the baseline's.
    pub fn new(
        trace: &'a Trace,
        settings: &'a Settings<'a>,
        config: &'a Config,
        baseline: &'a Name,
        outcomes: &'a [Outcome],
    ) -> Partition<'a> {
        let base = outcome_of(outcomes, baseline);
        Partition {
            trace,
            settings,
            config,
            baseline,
            wall: base.map_or(0, |base| base.time_ns.wall),
            structures: base.and_then(|base| base.structures.as_deref()).unwrap_or_default(),
            matters: base.map_or(0.0, worth),
        }
    }

    /// Makes plans and tries them; returns the advice on the best, and its outcome.
    pub fn advise(&self, curves: &CurvesOutcome) -> Result<(SlotAdvice, Option<Outcome>), SimError> {
        let outer = self.config.machine.caches.last();
        let mut advice = SlotAdvice {
            against: self.baseline.to_string(),
            against_ns: self.wall,
            wall_ns: self.wall,
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
                return Ok((finished(advice), None));
            }
        };
        let most = proposals.iter().map(|proposal| proposal.saves).max().unwrap_or(0);
        let promising = |proposal: &Proposal| proposal.saves as f64 >= self.matters;
        let proposals: Vec<Proposal> = proposals.into_iter().filter(promising).collect();
        if proposals.is_empty() {
            advice.why_not = format!(
                "by what each structure would miss in a part of {}, the best partition saves {} of {} misses",
                advice.cache,
                count(most.max(0) as u64),
                count(curves.misses)
            );
            return Ok((finished(advice), None));
        }
        let Some(best) = self.best(proposals)? else {
            return Ok((finished(advice), None));
        };
        let outcome = &best.run.outcome;
        advice.policy.clone_from(&outcome.policy);
        advice.wall_ns = outcome.time_ns.wall;
        advice.misses.after = outcome.caches.last().map_or(0, |outer| outer.misses);
        let Some(after) = &best.run.curves else {
            advice.why_not = tried(&advice, "");
            return Ok((finished(advice), Some(best.run.outcome)));
        };
        let data = |part: &Part| {
            let before: &CurveOutcome = kept[part.at];
            let same = |other: &&CurveOutcome| {
                (&other.what.name, other.what.kind, other.sizes) == (&before.what.name, before.what.kind, before.sizes)
            };
            let after = after.structures.iter().find(same);
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
        if let Some(on_huge) = best.on_huge {
            let huge = sim::huge_page_bytes(self.config.machine.page_bytes);
            let parts = best.proposal.parts.iter();
            let lost = parts.map(|part| on_huge_pages(measured[part.at].bytes, huge)).sum();
            let small = Pair {
                plain: self.wall,
                colored: advice.wall_ns,
            };
            let lost = huge::weighed(small, on_huge, lost);
            (advice.against_ns, advice.wall_ns) = (lost.against_ns, lost.wall_ns);
            advice.huge_pages = Some(lost);
        }
        let mut advice = finished(advice);
        let plan = Plan {
            about: self.about(&advice),
            ..best.proposal.plan
        };
        advice.plan = plan.write();
        Ok((advice, Some(best.run.outcome)))
    }

    /// Simulates the proposals; returns the fastest, the first among equally good ones.
    fn best(&self, proposals: Vec<Proposal>) -> Result<Option<Tried>, SimError> {
        let spec = |proposal: &Proposal| self.spec(proposal);
        let config = Config {
            policies: proposals.iter().map(spec).collect(),
            detail: Detail::default(),
            detail_for: None,
            classes: self.settings.every(),
            ..self.config.clone()
        };
        let runs = self.settings.simulate(self.trace, &config)?;
        let on_huge = self.on_huge(&proposals, &runs)?;
        let tried = proposals.into_iter().zip(runs).zip(on_huge);
        let mut tried: Vec<Tried> = tried
            .map(|((proposal, run), on_huge)| Tried { proposal, run, on_huge })
            .collect();
        let best_by = |wall: &dyn Fn(&Tried) -> u64| {
            let better = |best: usize, at: usize| {
                let less = wall(&tried[best]) as f64 - wall(&tried[at]) as f64;
                if less > BETTER * self.wall as f64 { at } else { best }
            };
            (0..tried.len()).reduce(better)
        };
        let on_small = |tried: &Tried| tried.run.outcome.time_ns.wall;
        let gains = |&at: &usize| {
            tried[at]
                .on_huge
                .is_none_or(|times| saved(times.plain, times.colored) >= NOTHING)
        };
        // If no plan gains on huge pages, the report is on the plan that gains on small ones.
        let best = best_by(&Tried::wall).filter(gains).or_else(|| best_by(&on_small));
        let Some(mut best) = best.map(|best| tried.swap_remove(best)) else {
            return Ok(None);
        };
        best.run.outcome.policy += " (proposed)";
        if saved(self.wall, best.run.outcome.time_ns.wall) < NOTHING && !self.settings.every() {
            return Ok(Some(best));
        }
        // Once more, for the result of each structure.
        let config = Config {
            policies: vec![spec(&best.proposal)],
            detail: Detail {
                curves: true,
                exact: self.settings.exact,
                ..Detail::default()
            },
            classes: self.config.classes,
            ..config
        };
        let again = self.settings.simulate(self.trace, &config)?;
        if let Some(again) = again.into_iter().next() {
            best.run.outcome = Outcome {
                policy: best.run.outcome.policy,
                ..again.outcome
            };
            best.run.curves = again.curves;
        }
        Ok(Some(best))
    }

    fn spec(&self, proposal: &Proposal) -> PolicySpec {
        let slots = Name::first(&[Kind::Color], |traits| traits.slots);
        PolicySpec {
            name: self.baseline.recolored(&slots),
            sets: self.sets(),
            plan: Some(Arc::new(proposal.plan.clone())),
        }
    }

    /// The times on huge pages of proposals that gain something on small ones, if data would be on huge pages.
    fn on_huge(&self, proposals: &[Proposal], runs: &[Simulated]) -> Result<Vec<Option<Pair>>, SimError> {
        let none = vec![None; proposals.len()];
        let gain = |run: &Simulated| saved(self.wall, run.outcome.time_ns.wall);
        if runs.iter().all(|run| gain(run) < NOTHING) {
            return Ok(none);
        }
        let baseline = PolicySpec {
            name: self.baseline.clone(),
            sets: self.sets(),
            plan: None,
        };
        let specs = std::iter::once(baseline).chain(proposals.iter().map(|proposal| self.spec(proposal)));
        let walls = huge::walls(self.trace, self.settings, self.config, self.structures, specs.collect())?;
        let Some([plain, colored @ ..]) = walls.as_deref() else {
            return Ok(none);
        };
        let pair = |&colored: &u64| Pair { plain: *plain, colored };
        Ok(colored.iter().map(|colored| Some(pair(colored))).collect())
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
                bytes(advice.color_bytes),
            ),
            advice.verdict.clone(),
        ]
    }
}

fn why(nothing: Nothing, cache: &str) -> String {
    match nothing {
        Nothing::Quiet => format!("no variable or allocation site with a name is missed often in {cache}"),
        Nothing::Cold => format!("nearly all misses of {cache} are first uses of a line, which no partition saves"),
        Nothing::NoReuse => format!("what is reused is in {cache} already, or is reused too late for any part of it"),
    }
}

/// How many misses of the outermost cache take half of the time that makes a difference: half, because a curve assumes
/// a part of the cache for only its data.
fn worth(base: &Outcome) -> f64 {
    // First uses stay, and those of a stream wait less.
    let again = |outer: &Cache| {
        let misses = outer.misses.saturating_sub(outer.cold.unwrap_or(0));
        let waited = outer.stall_ns.miss.saturating_sub(outer.stall_ns.cold.unwrap_or(0));
        (misses > 0).then(|| waited as f64 / misses as f64)
    };
    let each = base.caches.last().and_then(again).unwrap_or(0.0);
    NOTHING / 2.0 * base.time_ns.worked() as f64 / each.max(f64::MIN_POSITIVE)
}

/// A separate advice: the baseline's run provides the curves, and only partitions are simulated.
pub fn partition(trace: &Trace, machine: &Machine, settings: &Settings) -> Result<Option<SlotAdvice>, SimError> {
    if sim::slot_caches(machine).is_none() {
        return Ok(None);
    }
    let policies = match &settings.policies {
        Policies::All { sets, .. } => vec![PolicySpec {
            name: candidates(machine, false, false).baseline,
            sets: sets.clone(),
            plan: None,
        }],
        Policies::These(policies) => policies.iter().take(1).cloned().collect(),
    };
    let Some(baseline) = policies.first().map(|policy| policy.name.clone()) else {
        return Ok(None);
    };
    let detail = Detail {
        curves: true,
        // Large structures may be on huge pages.
        structures: machine.memory.huge_pages != HugeData::Never,
        ..Detail::default()
    };
    let config = settings.config(machine, policies, detail);
    let runs = settings.simulate(trace, &config)?;
    let Some(curves) = runs.first().and_then(|run| run.curves.clone()) else {
        return Ok(None);
    };
    let outcomes: Vec<Outcome> = runs.into_iter().map(|run| run.outcome).collect();
    let partition = Partition::new(trace, settings, &config, &baseline, &outcomes);
    Ok(Some(partition.advise(&curves)?.0))
}

/// True if a proposed partition is worthwhile.
pub fn gains(advice: &SlotAdvice) -> bool {
    !advice.data.is_empty() && advice.gain >= NOTHING && advice.huge_pages.is_none_or(|lost| !lost.refused)
}

/// Fills in the parts that follow from the rest.
fn finished(mut advice: SlotAdvice) -> SlotAdvice {
    advice.gain = saved(advice.against_ns, advice.wall_ns);
    if let Some(lost) = advice.huge_pages.filter(|lost| !huge::gains(lost)) {
        advice.why_not = format!("where data is on huge pages, {}", huge::in_words(&lost));
    }
    advice.verdict = in_words(&advice);
    advice
}

fn in_words(advice: &SlotAdvice) -> String {
    if advice.data.is_empty() {
        return format!("Cache slots would gain nothing: {}.", advice.why_not);
    }
    let named = |role: &str| {
        let of = advice.data.iter().filter(|data| data.role == role);
        let names: Vec<_> = of.map(|data| format!("`{}`", results::short(&data.name))).collect();
        list(&names)
    };
    let (protect, confine) = (named("protect"), named("confine"));
    let what = match (protect.is_empty(), confine.is_empty()) {
        (false, false) => format!("Protecting {protect} and confining {confine} by cache slots"),
        (false, true) => format!("Protecting {protect} by cache slots"),
        _ => format!("Confining {confine} by cache slots"),
    };
    if advice.huge_pages.is_some_and(|lost| lost.refused) {
        return format!("{what} is refused: {}.", advice.why_not);
    }
    if advice.gain < NOTHING {
        return format!("Cache slots would gain nothing: {}.", tried(advice, &lower(&what)));
    }
    let lost = advice.huge_pages.filter(|lost| lost.bytes > 0);
    let lost = lost.map_or(String::new(), |lost| {
        format!(" That is where data is on huge pages: {}.", huge::in_words(&lost))
    });
    format!(
        "{what} would save {} of the run time: {} instead of {} under `{}` ({}).{lost}",
        percent(advice.gain),
        time(advice.wall_ns),
        time(advice.against_ns),
        advice.against,
        misses(advice)
    )
}

/// The outcome of the best partition, which does `what`, if it gains nothing.
fn tried(advice: &SlotAdvice, what: &str) -> String {
    let gain = saved(advice.against_ns, advice.wall_ns);
    let how = match gain <= -NOTHING {
        true => format!("would cost {} more time", percent(-gain)),
        false => "makes no difference to the time".to_string(),
    };
    let what = if what.is_empty() { "it" } else { what };
    format!(
        "the best partition found was tried, and {what} {how} ({})",
        misses(advice)
    )
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn misses(advice: &SlotAdvice) -> String {
    let [before, after] = [advice.misses.before, advice.misses.after].map(count);
    format!("{} misses: {before} become {after}", advice.cache)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(wall_ns: u64) -> SlotAdvice {
        let data = |name: &str, role: &str| SlotData {
            name: name.to_string(),
            role: role.to_string(),
            ..SlotData::default()
        };
        let misses = Change {
            before: 5000,
            after: 3000,
        };
        finished(SlotAdvice {
            cache: "L2".to_string(),
            against: "random".to_string(),
            against_ns: 1_000_000_000,
            wall_ns,
            misses,
            data: vec![data("p", "protect"), data("a", "confine"), data("colidx", "confine")],
            ..SlotAdvice::default()
        })
    }

    #[test]
    fn the_verdict_says_what_is_gained() {
        let good = advice(800_000_000);
        assert!(gains(&good));
        assert_eq!(
            good.verdict,
            "Protecting `p` and confining `a` and `colidx` by cache slots would save 20.0% of the run time: 800 ms \
             instead of 1.00 s under `random` (L2 misses: 5000 become 3000)."
        );
        let (same, worse) = (advice(995_000_000), advice(1_100_000_000));
        assert!(!gains(&same) && !gains(&worse));
        assert_eq!(
            tried(&same, ""),
            "the best partition found was tried, and it makes no difference to the time (L2 misses: 5000 become 3000)"
        );
        assert!(
            worse
                .verdict
                .contains("gain nothing: the best partition found was tried, and protecting `p`")
        );
        assert!(worse.verdict.contains("would cost 10.0% more time"));
        let none = SlotAdvice {
            why_not: "nearly all misses are first uses".to_string(),
            ..SlotAdvice::default()
        };
        let none = finished(none);
        assert_eq!(
            none.verdict,
            "Cache slots would gain nothing: nearly all misses are first uses."
        );
    }
}
