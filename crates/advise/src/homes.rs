//! Remote data on a machine with several nodes, its reason, and the remedies: placing it where it is used,
//! spreading it, moving or copying it while the program runs, or keeping the program on one node.
//!
//! Every remedy is simulated in full, including contention, with the cost of moving a page on Linux. Most are also
//! simulated over the stream of misses, for their gain in the second half, when most pages have moved and the start-up
//! is over.

mod pace;
mod remedies;
mod verdict;

use machine::Machine;
use policy::Kind;
use results::{HomesAdvice, Outcome};
use sim::{Config, OtherNodes, SimError};
use trace::Trace;

use crate::settings::Settings;
use crate::words::NOTHING;
pub use remedies::FORETOLD;
use remedies::Remedies;

/// `None` if there is only one node, or `outcomes` show nothing to improve.
pub fn advice(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    outcomes: &[Outcome],
    found: OtherNodes,
) -> Result<Option<HomesAdvice>, SimError> {
    let name = config.detailed().map(|policy| &policy.name);
    let Some(name) = name.filter(|name| name.of(Kind::Home).is_some() && config.machine.memory.all_nodes() > 1) else {
        return Ok(None);
    };
    let mut advice = HomesAdvice {
        against: base.policy.clone(),
        remote_share: part(base.time_ns.remote_stall, base.time_ns.worked()),
        local_percent: base.memory.local_percent,
        structures: found.structures,
        traffic: found.traffic,
        ..HomesAdvice::default()
    };
    if advice.remote_share >= NOTHING {
        let asked = Remedies {
            trace,
            settings,
            config,
            base,
            name,
            outcomes,
            structures: &advice.structures,
        };
        advice.remedies = asked.simulated()?;
    }
    advice.verdict = verdict::of(&advice, base);
    if advice.remote_share < NOTHING {
        advice.on_one_node = on_one_node(trace.threads().len() as u32, &config.machine).unwrap_or_default();
        if !advice.on_one_node.is_empty() {
            advice.verdict += &format!(" {}", advice.on_one_node);
        }
    }
    Ok(Some(advice))
}

/// Threads take the cpus in order, and the first cpus are those of node 0: a note if that makes all accesses local.
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
        "All {threads} threads are on the cpus of node 0 here, where Linux would spread them: ask again with `--cpus {cpus}`."
    ))
}

fn part(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => part as f64 / all as f64,
    }
}
