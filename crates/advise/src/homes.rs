//! Which data is remote on a machine with several nodes, why, and what would bring it near: placing it where it is used,
//! spreading it, moving or copying it while the program runs, or keeping the program on one node.
//!
//! Every remedy is simulated in full, contention and all, with what a page that moves costs on Linux. Of those that move
//! pages it is asked over the stream of misses, too, what they gain in the second half, when most pages have moved.

use std::cmp::Reverse;

use machine::Machine;
use policy::FORETOLD;
use results::{HomesAdvice, HomesRemedy, Outcome, RemoteReason, RemoteStructure, percent, time};
use sim::{Config, Detail, LINUX, PolicySpec, SimError, misses};
use trace::Trace;

use crate::names::{home_of, with_home};
use crate::settings::Settings;
use crate::words::{NOTHING, saved};

/// Times between scans are an eighth of the run where the kernel's second is too long for it.
const SCANS: u64 = 8;
/// The kernel's shortest time between scans, and with how many of them a run is simulated with it as it is.
const SCAN_NS: u64 = 1_000_000_000;

/// `None` where there is one node only, or nothing to be asked of `outcomes`.
pub fn advice(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    outcomes: &[Outcome],
    structures: Vec<RemoteStructure>,
) -> Result<Option<HomesAdvice>, SimError> {
    if config.machine.memory.all_nodes() < 2 || home_of(&base.policy).is_none() {
        return Ok(None);
    }
    let mut advice = HomesAdvice {
        against: base.policy.clone(),
        remote_share: part(base.time_ns.remote_stall, base.time_ns.worked()),
        local_percent: base.memory.local_percent,
        structures,
        ..HomesAdvice::default()
    };
    if advice.remote_share >= NOTHING {
        advice.remedies = remedies(trace, settings, config, base, outcomes, &advice.structures)?;
    }
    advice.verdict = verdict(&advice, base);
    if advice.remote_share < NOTHING {
        advice.verdict += &on_one_node(trace.threads().len() as u32, &config.machine).unwrap_or_default();
    }
    Ok(Some(advice))
}

/// Threads take the cpus in their order, and the first ones are those of node 0: where that makes all local, it is said.
fn on_one_node(threads: u32, machine: &Machine) -> Option<String> {
    let nodes = machine.memory.nodes;
    if nodes < 2 || threads < 2 || threads > machine.cpus / nodes {
        return None;
    }
    // As many cpus as there are threads, or as the machine's caches allow; else one of each node.
    let spread = (1..machine.cpus / nodes).map(|each| each * nodes);
    let mut spread = spread.filter(|cpus| machine.with_cpus(*cpus).is_ok());
    let cpus = spread.clone().find(|cpus| *cpus >= threads).or_else(|| spread.next())?;
    Some(format!(
        " All {threads} threads are on the cpus of node 0 here, where Linux would spread them: ask again with `--cpus {cpus}`."
    ))
}

fn part(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => part as f64 / all as f64,
    }
}

fn remedies(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    outcomes: &[Outcome],
    structures: &[RemoteStructure],
) -> Result<Vec<HomesRemedy>, SimError> {
    let named = |home: &str| PolicySpec::new(&with_home(&base.policy, home));
    let moving = [named("migrate"), named("replicate"), named("migrate-replicate")];
    let balancing = Balancing::of(base);
    let mut policies = vec![named(FORETOLD)];
    policies.extend(moving.clone());
    policies.push(PolicySpec {
        sets: balancing.sets.clone(),
        ..named("kernel-balancing")
    });
    let further = Config {
        policies,
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        costs: LINUX,
        ..config.clone()
    };
    let runs = settings.simulate(trace, &further)?;
    let later = later(trace, &further, &moving, base)?;
    let interleaved = with_home(&base.policy, "interleave");
    let interleaved = outcomes.iter().find(|outcome| outcome.policy == interleaved);
    let bound = bound(trace, settings, &further, base)?;
    let mut all: Vec<HomesRemedy> = Vec::new();
    let mut put = |outcome: &Outcome, name: &str, how: String| {
        let at = moving.iter().position(|spec| spec.name == outcome.policy);
        all.push(HomesRemedy {
            name: name.to_string(),
            policy: outcome.policy.clone(),
            wall_ns: outcome.time_ns.wall,
            gain: saved(base.time_ns.wall, outcome.time_ns.wall),
            later_gain: at.and_then(|at| later.get(at).copied()),
            local_percent: outcome.memory.local_percent,
            migrations: outcome.memory.migrations,
            replications: outcome.memory.replications,
            how,
        });
    };
    for run in &runs {
        let outcome = &run.outcome;
        let (name, how) = match home_of(&outcome.policy).as_deref() {
            Some(FORETOLD) => ("each page where it is used most", touch_there(structures)),
            Some("migrate") => ("move pages", "domicile run --policy migrate -- PROGRAM".to_string()),
            Some("replicate") => (
                "copies of what is read by several nodes",
                "in the program: data that is handed over with domicile_replicated_create() of domicile.h has a copy on each node"
                    .to_string(),
            ),
            Some("migrate-replicate") => (
                "move pages and copy them",
                "domicile run --policy migrate -- PROGRAM moves pages; copies are made only of what the program hands over \
                 with domicile_replicated_create()"
                    .to_string(),
            ),
            _ => ("the kernel's balancing", balancing.how.clone()),
        };
        put(outcome, name, how);
    }
    if let Some(outcome) = interleaved {
        put(
            outcome,
            "pages in turn over all nodes",
            "numactl --interleave=all PROGRAM".to_string(),
        );
    }
    if let Some(outcome) = &bound {
        let node = config.machine.cpus / config.machine.memory.nodes;
        put(
            outcome,
            "the whole program on one node",
            format!("numactl --cpunodebind=0 --membind=0 PROGRAM: on the {node} cpus of a node"),
        );
    }
    all.sort_by_key(|remedy| remedy.wall_ns);
    Ok(all)
}

/// The line that touches what others use, where there is one.
fn touch_there(structures: &[RemoteStructure]) -> String {
    let bind = "bind each part to its users' node (mbind(2), numa_tonode_memory(3))";
    let misplaced = |structure: &&RemoteStructure| of(structure, RemoteReason::FirstTouch) > 0;
    let worst = structures
        .iter()
        .filter(misplaced)
        .max_by_key(|structure| of(structure, RemoteReason::FirstTouch));
    match worst.and_then(|structure| Some((structure, structure.first_touches.first()?))) {
        Some((structure, touch)) => format!(
            "let those threads touch {} first that use it ({touch} does, in thread {}), or {bind}; the best that placing pages once \
             can do",
            structure.name, touch.thread
        ),
        None => format!("{bind}; the best that placing pages once can do"),
    }
}

fn of(structure: &RemoteStructure, reason: RemoteReason) -> u64 {
    let of = structure.reasons.iter().find(|of| of.reason == reason);
    of.map_or(0, |of| of.remote)
}

/// The part of the time of the second half of the misses that each of the policies saves.
fn later(trace: &Trace, config: &Config, moving: &[PolicySpec], base: &Outcome) -> Result<Vec<f64>, SimError> {
    let stream = misses::record(trace, config, &|_| {})?;
    let half = stream.misses.len() / 2;
    let (Some(middle), Some(last)) = (stream.misses.get(half), stream.misses.last()) else {
        return Ok(Vec::new());
    };
    let mut policies = vec![PolicySpec::new(misses::FIRST_TOUCH)];
    policies.extend(moving.iter().cloned());
    let waits = misses::waits_from(
        &stream,
        &Config {
            policies,
            ..config.clone()
        },
        half,
    )?;
    let cpus = base.per_cpu.iter().filter(|cpu| cpu.time_ns.busy > 0).count().max(1) as f64;
    let span = last.now_ns().saturating_sub(middle.now_ns()) as f64 * cpus;
    let gain = |after: &u64| match span > 0.0 {
        true => (waits[0] as f64 - *after as f64) / span,
        false => 0.0,
    };
    Ok(waits[1..].iter().map(gain).collect())
}

/// The program on the cpus and the memory of one node; `None` where a node alone is no machine that can be described.
fn bound(trace: &Trace, settings: &Settings, config: &Config, base: &Outcome) -> Result<Option<Outcome>, SimError> {
    let mut node: Machine = config.machine.clone();
    node.cpus /= node.memory.nodes;
    node.memory.nodes = 1;
    node.memory.distances.clear();
    node.memory.tiers.clear();
    if node.cpus == 0 || node.check().is_err() {
        return Ok(None);
    }
    let config = Config {
        policies: vec![PolicySpec::new(&base.policy)],
        machine: node,
        ..config.clone()
    };
    let runs = settings.simulate(trace, &config)?;
    Ok(runs.into_iter().next().map(|run| run.outcome))
}

/// How Linux's balancing is simulated.
struct Balancing {
    sets: Vec<String>,
    how: String,
}

impl Balancing {
    fn of(base: &Outcome) -> Balancing {
        const SWITCH: &str = "sysctl -w kernel.numa_balancing=1";
        let wall = base.time_ns.wall;
        if wall >= SCANS * SCAN_NS {
            return Balancing {
                sets: Vec::new(),
                how: SWITCH.to_string(),
            };
        }
        let scan = (wall / SCANS / 1000).max(1);
        let set = |name: &str, value: u64| format!("kernel-balancing.{name}={value}");
        Balancing {
            sets: vec![
                set("delay", scan),
                set("scan-min", scan),
                set("scan-max", 60 * scan),
                set("scan-rate", 0),
                set("tick", (scan / 250).max(1)),
            ],
            how: format!(
                "{SWITCH}; simulated with {} between scans in place of a second: the kernel's own would come too late for a \
                 run of {}, and this is what a longer run would see",
                time(scan * 1000),
                time(wall)
            ),
        }
    }
}

/// What is remote and why; what helps most, and whether that lasts.
fn verdict(advice: &HomesAdvice, base: &Outcome) -> String {
    if advice.remote_share < NOTHING {
        return format!(
            "Waiting for other nodes' memory is {} of the time that cpus work: where pages lie hardly matters.",
            percent(advice.remote_share)
        );
    }
    let mut text = format!(
        "{} of the time that cpus work they wait for other nodes' memory and caches; {:.0}% of what memory serves is local.",
        percent(advice.remote_share),
        advice.local_percent
    );
    if let Some(worst) = advice.structures.first() {
        text += &format!(" Most remote is {}", worst.name);
        if let Some(main) = worst.reasons.first() {
            text += &format!(": {}", main.reason);
            if let Some(touch) = worst
                .first_touches
                .first()
                .filter(|_| main.reason == RemoteReason::FirstTouch)
            {
                text += &format!(" ({touch}, thread {} on node {})", touch.thread, touch.node);
            }
        }
        text += ".";
    }
    // Remedies are compared with what can be done today on their side: the best, and the best that changes no program.
    let best = advice.remedies.iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    match best.filter(|best| best.gain >= NOTHING) {
        None => text += " None of the simulated remedies gains anything.",
        Some(best) => {
            text += &format!(
                " {}: saves {} of the run time ({} in place of {}): {}.",
                capital(&best.name),
                percent(best.gain),
                time(best.wall_ns),
                time(base.time_ns.wall),
                best.how
            );
            if let Some(later) = best.later_gain {
                text += &format!(" In the second half of the misses it saves {}.", percent(later));
            }
        }
    }
    let lasting = advice.remedies.iter().filter(|remedy| {
        let later = remedy.later_gain.unwrap_or(0.0);
        remedy.gain < NOTHING && later >= NOTHING
    });
    if let Some(lasting) = lasting.max_by_key(|remedy| Reverse(remedy.wall_ns)) {
        text += &format!(
            " {} costs as much as it saves in so short a run, and would save {} of a longer one, by its second half.",
            capital(&lasting.name),
            percent(lasting.later_gain.unwrap_or_default())
        );
    }
    text
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
