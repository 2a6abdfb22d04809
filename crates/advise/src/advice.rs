//! One program on one machine: everything that is said of it, put together.

use std::cmp::Reverse;

use machine::Machine;
use policy::{Kind, Name};
use results::{Advice, Collision, Facts, Outcome, SourceLine, Structure};
use sim::{Detail, PolicySpec, SimError, Simulated};
use trace::Trace;

use crate::causes::{causes, gains};
use crate::names::{candidates, outcome_of};
use crate::settings::{Policies, Settings};
use crate::slots::Partition;
use crate::{cdpc, cdpc_in_words, facts, homes, samples, shares, sharing, slots_in_words, verdict, work};

/// Structures and collisions that an advice names.
const MOST: usize = 10;

/// Lines with fewer false sharing misses than this are not named: threads that start and end have some.
const FEW: u64 = 10;

/// Lines with false sharing that are looked at.
const COLLISIONS: usize = 1000;

/// Lines of the source that are kept, the worst: all that count, where a program of many libraries has tens of thousands.
const SOURCE_LINES: usize = 1000;

/// What is said of a program without marks.
const UNMARKED: &str = "the trace has no marked work items, so what another order of the work would gain is not known: put \
                        DOMICILE_WORK_BEGIN(count, hints) and DOMICILE_WORK_END() of domicile-trace.h around pieces of work \
                        that can be done in any order, and record again";

/// What is simulated of a trace, and for which of the policies it is reported closely.
pub struct Plan {
    pub policies: Vec<PolicySpec>,
    pub baseline: Name,
    /// Where all that can make a difference is looked at, and not what somebody named.
    pub all: bool,
    pub marked: bool,
}

impl Plan {
    pub fn new(trace: &Trace, machine: &Machine, settings: &Settings) -> Result<Plan, SimError> {
        let marked = trace.work_items()? > 0;
        let of_slots = |plan: bool| Ok::<_, SimError>(plan || trace.data_sets()? > 0);
        let (usual, policies, all) = match &settings.policies {
            Policies::All { sets, plan } => {
                let candidates = candidates(machine, marked, of_slots(plan.is_some())?);
                let spec = |name: Name| PolicySpec {
                    plan: plan.clone().filter(|_| name.is(|traits| traits.slots)),
                    name,
                    sets: sets.clone(),
                };
                (
                    candidates.baseline,
                    candidates.names.into_iter().map(spec).collect(),
                    true,
                )
            }
            Policies::These(policies) => (candidates(machine, marked, true).baseline, policies.clone(), false),
        };
        // Where what a usual kernel does is not among them, the first that does not order work stands for it.
        let named = |name: &&PolicySpec| name.name == usual;
        let plain = |name: &&PolicySpec| name.name.of(Kind::Order).is_none();
        let baseline = policies.iter().find(named).or(policies.iter().find(plain));
        let baseline = baseline.or(policies.first()).map(|policy| policy.name.clone());
        Ok(Plan {
            baseline: baseline.unwrap_or(usual),
            policies,
            all,
            marked,
        })
    }
}

pub fn advise(trace: &Trace, machine: &Machine, settings: &Settings) -> Result<Advice, SimError> {
    trace.header().gaps.as_ref().map_or(Ok(()), crate::gaps::refused)?;
    let plan = Plan::new(trace, machine, settings)?;
    let detail = Detail {
        structures: true,
        source_lines: SOURCE_LINES,
        false_sharing: COLLISIONS,
        curves: plan.all,
        causes: true,
        remote: plan.all && machine.memory.all_nodes() > 1,
        sharing: plan.all && trace.threads().len() > 1 && machine.divided_cache().is_some(),
        ..Detail::default()
    };
    let mut config = settings.config(machine, plan.policies, detail);
    config.detail_for = config.policies.iter().position(|policy| policy.name == plan.baseline);
    let mut runs = settings.simulate(trace, &config)?;
    let curves = runs.iter_mut().find_map(|run| run.curves.take());
    let evidence = runs.iter_mut().find_map(|run| run.evidence.take());
    let remote = runs.iter_mut().find_map(|run| run.remote.take());
    let shared = runs.iter_mut().find_map(|run| run.sharing.take());
    let samples = samples::in_words(evidence.as_ref(), curves.as_ref());
    let mut outcomes: Vec<Outcome> = runs.into_iter().map(|run: Simulated| run.outcome).collect();
    let slots = match curves {
        Some(curves) => {
            let partition = Partition::new(trace, settings, &config, &plan.baseline, &outcomes);
            let (advice, outcome) = partition.advise(&curves)?;
            outcomes.extend(outcome);
            Some(advice)
        }
        None => None,
    };
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
    if !plan.marked {
        notes.push(UNMARKED.to_string());
    }
    let slots_of = outcomes.iter().filter_map(|outcome| outcome.slots.as_ref());
    notes.extend(slots_of.filter(|slots| slots.refusals > 0).map(slots_in_words));
    notes.extend(samples);
    let cdpc_of = outcomes.iter().find_map(|outcome| outcome.cdpc.as_ref());
    notes.extend(cdpc_of.filter(|cdpc| cdpc.malformed_summaries > 0).map(cdpc_in_words));
    let names: Vec<Name> = config.policies.iter().map(|policy| policy.name.clone()).collect();
    let mut advice = advice_of(machine, facts, &plan.baseline, &names, outcomes, notes);
    advice.slots = slots;
    if let Some((evidence, base)) = evidence.zip(advice.base()) {
        let mut found = causes(&evidence, machine, base);
        gains(trace, settings, &config, base, &mut found)?;
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
    advice.broke.clone_from(&settings.broke);
    advice.verdict = verdict::verdict(&advice);
    advice.program.clone_from(&trace.header().program);
    advice.arguments.clone_from(&trace.header().arguments);
    Ok(advice)
}

/// An advice from outcomes that are there already; `baseline` is the policy of one of them, `names` are what was simulated.
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

/// The data structures that miss under a policy, those that cost most first. Of the baseline an advice names the first ten.
pub fn worst_structures(outcome: &Outcome) -> Vec<Structure> {
    let mut structures = outcome.structures.clone().unwrap_or_default();
    structures.sort_by_key(|structure| Reverse((structure.stall_ns, structure.nearest().misses)));
    structures.retain(|structure| structure.nearest().misses > 0);
    structures
}

/// The lines of the source that miss under a policy, those that cost most first. Of the baseline an advice names the first ten.
pub fn worst_source_lines(outcome: &Outcome) -> Vec<SourceLine> {
    let mut lines = outcome.source_lines.clone().unwrap_or_default();
    lines.retain(|line| line.nearest().misses > 0);
    lines
}

/// The lines with false sharing under a policy, those with most of it first. Of the baseline an advice names the first ten.
pub fn worst_lines(outcome: &Outcome) -> Vec<Collision> {
    let mut lines = outcome.false_sharing.clone().unwrap_or_default();
    lines.retain(|collision| collision.misses >= FEW);
    lines.sort_by_key(|collision| Reverse(collision.misses));
    lines
}

/// Policy `cdpc` without a hint is a static policy that is there already: it is left out, and why is said where it could
/// have been expected to do something.
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
