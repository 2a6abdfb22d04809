//! One program on one machine: all parts of its advice, put together.

use std::cmp::Reverse;
use std::sync::Arc;

use machine::Machine;
use policy::{Kind, Name};
use results::{Advice, Collision, Facts, HugePagesLost, Outcome, Profile, SourceLine, Structure};
use sim::{Config, Detail, PolicySpec, SimError, Simulated};
use trace::Trace;

use crate::avoided::avoided;
use crate::causes::{causes, gains};
use crate::matters::Matters;
use crate::names::{candidates, candidates_of, outcome_of};
use crate::native;
use crate::range;
use crate::settings::{Policies, Settings};
use crate::slots::Partition;
use crate::words::NOTHING;
use crate::{
    basis, cdpc, cdpc_in_words, facts, faults, homes, huge, regions, samples, shares, sharing, slots_in_words, todo,
    verdict, work,
};

/// Structures and collisions that an advice names.
const MOST: usize = 10;

/// Lines with fewer false sharing misses than this are not named: threads that start and end have some.
const FEW: u64 = 10;

/// How many lines with false sharing are examined.
const COLLISIONS: usize = 1000;

/// How many source lines are kept, the worst: all important ones, although a program of many libraries has tens of
/// thousands.
const SOURCE_LINES: usize = 1000;

/// The simulations of a trace.
struct Plan<'a> {
    machine: &'a Machine,
    settings: &'a Settings<'a>,
    /// The first simulations; they include the baseline, which is examined in detail.
    first: Vec<PolicySpec>,
    baseline: Name,
    /// True if everything that can make a difference is examined, rather than policies that the user named.
    all: bool,
    marked: bool,
    /// True if cache slots are described.
    described: bool,
}

impl<'a> Plan<'a> {
    fn new(trace: &Trace, machine: &'a Machine, settings: &'a Settings) -> Result<Plan<'a>, SimError> {
        let marked = trace.work_items()? > 0;
        let given = |plan: &Option<Arc<policy::slots::Plan>>| plan.is_some();
        let described =
            matches!(&settings.policies, Policies::All { plan, .. } if given(plan)) || trace.data_sets()? > 0;
        let usual = candidates(machine, marked, described);
        let mut plan = Plan {
            machine,
            settings,
            first: Vec::new(),
            baseline: usual.baseline.clone(),
            all: true,
            marked,
            described,
        };
        match &settings.policies {
            Policies::All { every: true, .. } => plan.first = plan.specs(usual.names),
            Policies::All { .. } => plan.first = plan.specs(vec![usual.baseline]),
            Policies::These(policies) => {
                plan.all = false;
                plan.first = policies.clone();
                // If a usual kernel's policy is not among them, the first that does not order work represents it.
                let named = |name: &&PolicySpec| name.name == usual.baseline;
                let plain = |name: &&PolicySpec| name.name.of(Kind::Order).is_none();
                let baseline = policies.iter().find(named).or(policies.iter().find(plain));
                let baseline = baseline.or(policies.first()).map(|policy| policy.name.clone());
                plan.baseline = baseline.unwrap_or(usual.baseline);
            }
        }
        Ok(plan)
    }

    fn specs(&self, names: Vec<Name>) -> Vec<PolicySpec> {
        let Policies::All { sets, plan, .. } = &self.settings.policies else {
            return Vec::new();
        };
        let spec = |name: Name| PolicySpec {
            plan: plan.clone().filter(|_| name.is(|traits| traits.slots)),
            name,
            sets: sets.clone(),
        };
        names.into_iter().map(spec).collect()
    }

    /// True if page colors may have an effect.
    fn with_colors(&self) -> bool {
        self.machine.color_count() > 1 && self.settings.no_colors.is_none()
    }

    /// The matters that could make a difference, as the baseline's run shows, and the further simulations for them.
    fn further(&self, base: &Outcome) -> (Matters, Vec<PolicySpec>) {
        let matters = match self.settings.every() {
            true => Matters::ALL,
            false => Matters::of(self.machine, self.with_colors(), base),
        };
        if !self.all {
            return (matters, Vec::new());
        }
        // Slots that the user or the program describes are simulated, whatever they gain.
        let colors = matters.colors || self.described && self.with_colors();
        let mut candidates = candidates_of(self.machine, self.marked, self.described, [colors, matters.homes]);
        let known = |name: &Name| self.first.iter().any(|spec| spec.name == *name);
        candidates.names.retain(|name| !known(name));
        (matters, self.specs(candidates.names))
    }
}

pub fn advise(trace: &Trace, machine: &Machine, settings: &Settings) -> Result<Advice, SimError> {
    trace.header().gaps.as_ref().map_or(Ok(()), crate::gaps::refused)?;
    let plan = Plan::new(trace, machine, settings)?;
    let detail = Detail {
        structures: true,
        source_lines: SOURCE_LINES,
        false_sharing: COLLISIONS,
        curves: plan.all && plan.with_colors(),
        causes: true,
        timeline: true,
        profile: true,
        remote: plan.all && machine.memory.all_nodes() > 1,
        sharing: plan.all && trace.threads().len() > 1 && machine.divided_cache_for(trace.threads().len()).is_some(),
        ..Detail::default()
    };
    let mut config = settings.config(machine, plan.first.clone(), detail);
    config.detail_for = config.policies.iter().position(|policy| policy.name == plan.baseline);
    let mut runs = settings.simulate(trace, &config)?;
    let native = native::compared(trace, settings, &mut config, &plan.baseline, &mut runs)?;
    let machine = &config.machine.clone();
    let curves = runs.iter_mut().find_map(|run| run.curves.take());
    let evidence = runs.iter_mut().find_map(|run| run.evidence.take());
    let remote = runs.iter_mut().find_map(|run| run.remote.take());
    let shared = runs.iter_mut().find_map(|run| run.sharing.take());
    let timeline = runs.iter_mut().find_map(|run| run.outcome.timeline.take());
    let profile = runs.iter_mut().find_map(|run| run.outcome.profile.take());
    let samples = samples::in_words(evidence.as_ref(), curves.as_ref());
    let mut outcomes: Vec<Outcome> = runs.into_iter().map(|run: Simulated| run.outcome).collect();
    let mut slots = None;
    if let Some(base) = &outcome_of(&outcomes, &plan.baseline).cloned() {
        let (matters, further) = plan.further(base);
        // The baseline's run classed the misses; the effects of another order of work and of slots are also reported by
        // class.
        let plain = |policies: &[PolicySpec]| Config {
            classes: plan.marked || plan.described,
            ..settings.config(machine, policies.to_vec(), Detail::default())
        };
        // Hints about data that one thread uses together come after the colors without hints: if those have no effect,
        // neither do hints.
        let alone = trace.threads().len() == 1 && !plan.described;
        let (hinted, further): (Vec<_>, Vec<_>) = further
            .into_iter()
            .partition(|spec| alone && spec.name.is(|traits| traits.hints));
        for (specs, needed) in [(further, false), (hinted, true)] {
            let moved = |outcome: &Outcome| basis::gain(base, outcome).abs() >= NOTHING;
            if specs.is_empty() || needed && !outcomes.iter().any(moved) {
                continue;
            }
            let runs = settings.simulate(trace, &plain(&specs))?;
            outcomes.extend(runs.into_iter().map(|run| run.outcome));
            config.policies.extend(specs);
        }
        if let Some(curves) = curves.filter(|_| matters.slots) {
            let partition = Partition::new(trace, settings, &config, &plan.baseline, &outcomes);
            let (advice, outcome) = partition.advise(&curves)?;
            outcomes.extend(outcome);
            slots = Some(advice);
        }
    }
    let mut notes = Vec::new();
    if plan.all {
        notes.extend(without_hints(&mut outcomes, trace.threads().len()));
    }
    let facts = facts::of_trace(trace, machine, &outcomes);
    notes.extend(facts::estimates(
        trace,
        machine,
        &facts,
        settings.machine_basis.as_deref(),
    ));
    let slots_of = outcomes.iter().filter_map(|outcome| outcome.slots.as_ref());
    notes.extend(slots_of.filter(|slots| slots.refusals > 0).map(slots_in_words));
    notes.extend(samples);
    let cdpc_of = outcomes.iter().find_map(|outcome| outcome.cdpc.as_ref());
    notes.extend(cdpc_of.filter(|cdpc| cdpc.malformed_summaries > 0).map(cdpc_in_words));
    let names: Vec<Name> = config.policies.iter().map(|policy| policy.name.clone()).collect();
    let mut advice = advice_of(machine, facts, &plan.baseline, &names, outcomes, notes);
    for (policy, lost) in huge::weigh(trace, settings, &config, &advice)? {
        weighed(&mut advice, policy, lost);
    }
    advice.slots = slots;
    advice.timeline = timeline;
    advice.profile = profile;
    if let Some((evidence, base)) = evidence.zip(advice.base()) {
        let mut found = causes(&evidence, machine, plan.with_colors(), base);
        let colors = best_colors(&advice, base);
        gains(trace, settings, &config, base, &evidence, colors, &mut found)?;
        advice.causes = found;
    }
    if let Some((structures, base)) = remote.zip(advice.base()) {
        let found = homes::advice(trace, settings, &config, base, &advice.policies, structures)?;
        advice.homes = found;
    }
    if let Some((shared, base)) = shared.zip(advice.base()) {
        let found = sharing::advice(trace, settings, &config, base, &shared)?;
        advice.sharing = found;
    }
    if let Some(base) = advice
        .base()
        .filter(|base| plan.all && Matters::of(machine, true, base).slots)
    {
        let found = regions::advice(trace, settings, &config, base)?;
        advice.regions = found;
    }
    advice.program.clone_from(&trace.header().program);
    advice.arguments.clone_from(&trace.header().arguments);
    advice.broke.clone_from(&settings.broke);
    advice.machine.basis.clone_from(&settings.machine_is);
    advice.native = native;
    advice.truth = settings.truth.filter(|_| machine.name == range::MEASURED);
    advice.verdict = verdict::verdict(&advice);
    let huge_pages = match plan.all {
        true => faults::huge_pages(trace, settings, &config, &advice)?,
        false => None,
    };
    let has_ranges = machine.core.is_some() || machine.name == range::MEASURED;
    advice.todo = todo::todo(&advice, huge_pages, has_ranges);
    advice.otherwise = todo::otherwise(&advice, settings);
    avoided(trace, settings, &config, &mut advice)?;
    if let Some(profile) = &mut advice.profile {
        profile.keep(Profile::KEPT);
    }
    Ok(advice)
}

/// Adds the loss of huge pages under a policy; a policy that gains nothing with that loss is removed from the advice.
fn weighed(advice: &mut Advice, policy: String, lost: HugePagesLost) {
    let gains = huge::gains(&lost);
    match advice.cdpc.as_mut().filter(|cdpc| cdpc.policy == policy) {
        Some(cdpc) => {
            cdpc.huge_pages = Some(lost);
            cdpc::weighed(cdpc);
        }
        None if gains => {}
        // Slots that the program or a plan describes have no separate part in an advice.
        None => {
            let not = if lost.refused { "is refused" } else { "gains nothing" };
            let words = huge::in_words(&lost);
            advice
                .notes
                .push(format!("`{policy}` {not} where data is on huge pages: {words}"));
        }
    }
    if !gains {
        advice.refused.push(policy);
    }
}

/// The policy of colors that gains most, and its gain.
fn best_colors<'a>(advice: &'a Advice, base: &Outcome) -> Option<(&'a str, f64)> {
    let gain = |outcome: &'a Outcome| (outcome.policy.as_str(), basis::gain(base, outcome));
    let same_order = advice.policies.iter().filter(|outcome| outcome.order == base.order);
    let not_refused = same_order.filter(|outcome| !advice.refused.contains(&outcome.policy));
    let best = not_refused.map(gain).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (best.1 >= NOTHING).then_some(best)
}

/// An advice from existing outcomes; `baseline` is the policy of one of them, `names` are the simulated policies.
pub fn advice_of(
    machine: &Machine,
    trace: Facts,
    baseline: &Name,
    names: &[Name],
    mut policies: Vec<Outcome>,
    notes: Vec<String>,
) -> Advice {
    policies.sort_by_key(|outcome| outcome.time_ns.wall);
    let base = outcome_of(&policies, baseline)
        .or(policies.iter().find(|outcome| outcome.order.is_none()))
        .or(policies.first());
    let mut structures = base.map_or_else(Vec::new, worst_structures);
    structures.truncate(MOST);
    let mut source_lines = base.map_or_else(Vec::new, worst_source_lines);
    source_lines.truncate(MOST);
    let mut false_sharing = base.map_or_else(Vec::new, worst_lines);
    false_sharing.truncate(MOST);
    let mut advice = Advice {
        baseline: base.map_or_else(String::new, |base| base.policy.clone()),
        shares: base.map_or_else(Vec::new, shares::shares),
        served: base.map_or_else(Vec::new, shares::served),
        structures,
        source_lines,
        false_sharing,
        machine: facts::of_machine(machine),
        trace,
        work: work::advice(&policies, names),
        cdpc: base.and_then(|base| cdpc::advice(&policies, base, baseline)),
        policies,
        notes,
        ..Advice::default()
    };
    advice.verdict = verdict::verdict(&advice);
    advice
}

/// The data structures that miss under a policy, the costliest first. An advice names the baseline's first ten.
pub fn worst_structures(outcome: &Outcome) -> Vec<Structure> {
    let mut structures = outcome.structures.clone().unwrap_or_default();
    structures.sort_by_key(|structure| Reverse((structure.stall_ns, structure.nearest().misses)));
    structures.retain(|structure| structure.nearest().misses > 0);
    structures
}

/// The source lines that miss under a policy, the costliest first. An advice names the baseline's first ten.
pub fn worst_source_lines(outcome: &Outcome) -> Vec<SourceLine> {
    let mut lines = outcome.source_lines.clone().unwrap_or_default();
    lines.retain(|line| line.nearest().misses > 0);
    lines
}

/// The lines with false sharing under a policy, the worst first. An advice names the baseline's first ten.
pub fn worst_lines(outcome: &Outcome) -> Vec<Collision> {
    let mut lines = outcome.false_sharing.clone().unwrap_or_default();
    lines.retain(|collision| collision.misses >= FEW);
    lines.sort_by_key(|collision| Reverse(collision.misses));
    lines
}

/// Without a hint, policy `cdpc` equals a static policy that was simulated anyway: it is removed, with a reason if it
/// could have been expected to have an effect.
fn without_hints(outcomes: &mut Vec<Outcome>, threads: usize) -> Option<String> {
    let none = |outcome: &Outcome| outcome.cdpc.as_ref().is_some_and(|cdpc| cdpc.pages == 0);
    if !outcomes.iter().any(none) {
        return None;
    }
    outcomes.retain(|outcome| !none(outcome));
    (threads > 1).then(|| {
        "no hints for page coloring can be made: the compiler said nothing of parallel loops, and the trace shows no array of \
         several pages"
            .to_string()
    })
}
