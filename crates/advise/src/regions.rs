//! Regions of a program: whether it would gain if threads moved to the cache of their data, and processes to emptier
//! ones.

use policy::Name;
use results::{Outcome, RegionsAdvice, RegionsVerdict, bytes, nanoseconds, percent};
use sim::{Config, Detail, Order, PolicySpec, SimError};
use trace::Trace;

use crate::settings::Settings;
use crate::words::{NOTHING, saved};

/// A run has this many regioning periods, each with this many scans: times of seconds would be longer than the run.
const PERIODS: u64 = 40;
const LOOKS: u64 = 4;

/// `None` if the machine has no choice of caches, all data fits into one, or nothing would gain.
pub fn advice(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
) -> Result<Option<RegionsAdvice>, SimError> {
    let machine = &config.machine;
    let Some(cache) = machine.divided_cache() else {
        return Ok(None);
    };
    let data = base.memory.pages.saturating_mul(machine.page_bytes);
    let Some(baseline) = config
        .detailed()
        .filter(|_| config.order == Order::Clock && data > cache.bytes)
    else {
        return Ok(None);
    };
    let Ok(followed) = "regions".parse::<Name>() else {
        return Ok(None);
    };
    let run = |more: &str| -> Result<Option<Outcome>, SimError> {
        let us = base.time_ns.wall / 1000;
        let times = [
            format!("regions.period={}", (us / PERIODS).max(1)),
            format!("regions.scan={}", (us / PERIODS / LOOKS).max(1)),
            "regions.share=100".to_string(),
        ];
        let more = (!more.is_empty()).then(|| format!("regions.{more}"));
        let spec = PolicySpec {
            name: baseline.name.with(&followed),
            sets: baseline.sets.iter().cloned().chain(times).chain(more).collect(),
            plan: baseline.plan.clone(),
        };
        let config = Config {
            policies: vec![spec],
            detail: Detail::default(),
            detail_for: None,
            classes: false,
            ..config.clone()
        };
        Ok(settings
            .simulate(trace, &config)?
            .into_iter()
            .next()
            .map(|run| run.outcome))
    };
    let Some(ours) = run("")? else { return Ok(None) };
    let Some(regions) = ours.regions.clone() else {
        return Ok(None);
    };
    let gain = saved(base.time_ns.wall, ours.time_ns.wall);
    let spread = regions
        .processes
        .iter()
        .any(|process| process.verdict == RegionsVerdict::Pays);
    let several = regions.processes.len() > 1;
    let partition = match several {
        true => run("partition=fair")?.map_or(0.0, |outcome| saved(base.time_ns.wall, outcome.time_ns.wall)),
        false => 0.0,
    };
    let mut advice = RegionsAdvice {
        wall_ns: ours.time_ns.wall,
        unify: if spread { gain } else { 0.0 },
        balance: if several && !spread { gain } else { 0.0 },
        partition,
        regions,
        lines: Vec::new(),
    };
    let most = advice.unify.max(advice.balance).max(advice.partition);
    if most < NOTHING {
        return Ok(None);
    }
    advice.lines = lines(&advice, &machine.name);
    Ok(Some(advice))
}

/// The regions, their users, and the policy that would gain.
fn lines(advice: &RegionsAdvice, machine: &str) -> Vec<String> {
    let regions = &advice.regions;
    let local = regions
        .regions
        .iter()
        .filter(|region| region.kind == "local" && region.pages > 1);
    let sizes: Vec<u64> = local.map(|region| region.working_set_bytes).collect();
    let loads = regions
        .moments
        .iter()
        .map(|moment| moment.load_bytes.iter().sum::<u64>());
    let loads: Vec<u64> = loads.filter(|load| *load > 0).collect();
    let in_use = match (loads.iter().min(), loads.iter().max()) {
        (Some(least), Some(most)) if bytes(*least) == bytes(*most) => format!("{} all the time", bytes(*most)),
        (Some(least), Some(most)) => format!("{} to {}", bytes(*least), bytes(*most)),
        _ => "nothing that was seen".to_string(),
    };
    let found = match (sizes.iter().min(), sizes.iter().max()) {
        (Some(least), Some(most)) if bytes(*least) == bytes(*most) => format!("{} of {}", sizes.len(), bytes(*most)),
        (Some(least), Some(most)) => format!("{} of {} to {}", sizes.len(), bytes(*least), bytes(*most)),
        _ => "none that take turns".to_string(),
    };
    let users = regions.processes.iter().map(|process| {
        let used = match process.stay_ns {
            Some(stay) => format!("changes from one to another each {}", nanoseconds(stay as f64)),
            None => "stays where it is".to_string(),
        };
        format!(
            "process {} ({} in use) {used}",
            process.process,
            bytes(process.working_set_bytes)
        )
    });
    vec![
        format!("Regions: {found}; in use: {in_use}."),
        format!("Users: {}.", users.collect::<Vec<_>>().join("; ")),
        format!(
            "On {machine} ({} {} of {}) {}.",
            regions.caches,
            regions.cache,
            bytes(regions.cache_bytes),
            would(advice)
        ),
    ]
}

/// The saving of each way.
fn would(advice: &RegionsAdvice) -> String {
    let ways = [
        (
            advice.unify,
            "threads that go to the cache of their region (unification)",
        ),
        (advice.balance, "processes on the emptier caches (balancing)"),
        (advice.partition, "caches of its own for each process (partitioning)"),
    ];
    let gains = |gain: &f64| *gain >= NOTHING;
    let would = ways.iter().filter(|(gain, _)| gains(gain));
    let would: Vec<String> = would
        .map(|(gain, way)| format!("{way} would save {} of the time", percent(*gain)))
        .collect();
    let nothing: Vec<&str> = ways
        .iter()
        .zip(["unification", "balancing", "partitioning"])
        .filter(|((gain, _), _)| !gains(gain))
        .map(|(_, name)| name)
        .collect();
    match nothing.is_empty() {
        true => would.join(", "),
        false => format!("{}; {}: nothing", would.join(", "), nothing.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gains_nothing_is_named_after_what_does() {
        let advice = RegionsAdvice {
            unify: 0.61,
            ..RegionsAdvice::default()
        };
        assert_eq!(
            would(&advice),
            "threads that go to the cache of their region (unification) would save 61.0% of the time; balancing, partitioning: nothing"
        );
    }
}
