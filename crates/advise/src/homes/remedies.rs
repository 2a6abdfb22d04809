//! Remedies that would bring remote data near, each simulated.

use std::collections::HashMap;

use machine::Machine;
use policy::{Kind, Later, Name};
use results::allocators::is_library_source;
use results::{HomesRemedy, Outcome, RemoteReason, RemoteStructure, StructureKind};
use sim::{Config, Detail, LINUX, PolicySpec, SimError, misses};
use trace::Trace;

use super::pace::{self, Pace};
use crate::names::outcome_of;
use crate::settings::Settings;
use crate::words::saved;

/// The remedy in which its users fill the data.
pub const FORETOLD: &str = "each page where it is used most";

/// The request.
pub struct Remedies<'a> {
    pub trace: &'a Trace,
    pub settings: &'a Settings<'a>,
    pub config: &'a Config,
    /// The run of today, its policy, and the other simulated runs.
    pub base: &'a Outcome,
    pub name: &'a Name,
    pub outcomes: &'a [Outcome],
    /// The data that is remote.
    pub structures: &'a [RemoteStructure],
}

impl Remedies<'_> {
    /// The fastest first.
    pub fn simulated(&self) -> Result<Vec<HomesRemedy>, SimError> {
        let (machine, base) = (&self.config.machine, self.base);
        let home = |later: Later| Name::first(&[Kind::Home], |traits| traits.later == later);
        let paced = |later: Later| {
            let pace = match later {
                Later::Stays => Pace::default(),
                Later::Foretold => Pace {
                    conditions: "simulated with the program's beginning as it is".to_string(),
                    ..Pace::default()
                },
                Later::Moves | Later::MovesOrCopied => pace::moving(&home(later), machine, &LINUX, base),
                Later::Copied => pace::handed_over(&home(later), machine, &LINUX, base),
                Later::Balanced => pace::balancing(&home(later), base),
            };
            (later, pace)
        };
        let asked = [
            Later::Foretold,
            Later::Moves,
            Later::Copied,
            Later::MovesOrCopied,
            Later::Balanced,
        ];
        let paces = asked.map(paced);
        let spec = |(later, pace): &(Later, Pace)| PolicySpec {
            sets: pace.sets.clone(),
            ..PolicySpec::new(self.name.with(&home(*later)))
        };
        let further = Config {
            policies: paces.iter().map(spec).collect(),
            detail: Detail::default(),
            detail_for: None,
            classes: false,
            costs: LINUX,
            ..self.config.clone()
        };
        let runs = self.settings.simulate(self.trace, &further)?;
        let interleaved = self.name.with(&Name::first(&[Kind::Home], |traits| traits.interleaves));
        let later = self.later(&further, &interleaved)?;
        let mut all = Vec::new();
        for ((run, spec), (home, pace)) in runs.iter().zip(&further.policies).zip(&paces) {
            // A copy that is written at once has only moved a page.
            let memory = &run.outcome.memory;
            if *home == Later::Copied && 2 * memory.collapses > memory.replications {
                continue;
            }
            let (name, how) = self.words(*home);
            let later_gain = later.get(&spec.name).copied();
            all.push(HomesRemedy {
                later_gain,
                ..remedy(base, &run.outcome, name, how, pace.clone())
            });
        }
        if let Some(outcome) = outcome_of(self.outcomes, &interleaved) {
            let how = "numactl --interleave=all PROGRAM".to_string();
            all.push(HomesRemedy {
                later_gain: later.get(&interleaved).copied(),
                ..remedy(base, outcome, "pages in turn over all nodes", how, Pace::default())
            });
        }
        if let Some(outcome) = self.bound(&further)? {
            let cpus = crate::words::many(u64::from(machine.cpus / machine.memory.nodes), "cpu");
            let how = "numactl --cpunodebind=0 --membind=0 PROGRAM".to_string();
            let pace = Pace {
                conditions: format!("simulated on {cpus} of a node"),
                ..Pace::default()
            };
            all.push(remedy(base, &outcome, "the whole program on one node", how, pace));
        }
        all.sort_by_key(|remedy| remedy.wall_ns);
        Ok(all)
    }

    /// The name of a remedy, and how to apply it.
    fn words(&self, home: Later) -> (&'static str, String) {
        const RUN: &str = "domicile run --policy migrate -- PROGRAM";
        const HAND_OVER: &str = "in the program, hand that data over by domicile_replicated_create() of domicile.h";
        const BALANCE: &str = "sysctl -w kernel.numa_balancing=1";
        match home {
            Later::Foretold => (FORETOLD, touch_there(self.structures)),
            Later::Moves => ("move pages", RUN.to_string()),
            Later::Copied => ("copies of what is read by several nodes", HAND_OVER.to_string()),
            Later::MovesOrCopied => (
                "move pages and copy them",
                format!("{RUN} moves pages; for copies, {HAND_OVER}"),
            ),
            Later::Balanced | Later::Stays => ("the kernel's balancing", BALANCE.to_string()),
        }
    }

    /// By policy, the part of the time of the second half of the misses that it saves over first touch.
    fn later(&self, further: &Config, interleaved: &Name) -> Result<HashMap<Name, f64>, SimError> {
        let stream = misses::record(self.trace, further, &|_| {})?;
        let half = stream.misses.len() / 2;
        let (Some(middle), Some(last)) = (stream.misses.get(half), stream.misses.last()) else {
            return Ok(HashMap::new());
        };
        // The kernel sees which pages are touched again, and a stream of misses does not show that.
        let asked = further
            .policies
            .iter()
            .filter(|spec| !spec.name.is(|traits| traits.later == Later::Balanced));
        let first_touch = Name::default_of(Kind::Home);
        let mut policies = vec![PolicySpec::new(first_touch), PolicySpec::new(interleaved.clone())];
        policies.extend(asked.cloned());
        let config = Config {
            policies,
            ..further.clone()
        };
        let waits = misses::waits_from(&stream, &config, half)?;
        let busy = |cpu: &&results::Cpu| cpu.time_ns.busy > 0;
        let cpus = self.base.per_cpu.iter().filter(busy).count().max(1) as f64;
        let span = last.now_ns().saturating_sub(middle.now_ns()) as f64 * cpus;
        let gain = |after: u64| match span > 0.0 {
            true => (waits[0] as f64 - after as f64) / span,
            false => 0.0,
        };
        let names = config.policies.iter().map(|spec| spec.name.clone());
        Ok(names
            .zip(&waits)
            .skip(1)
            .map(|(name, &after)| (name, gain(after)))
            .collect())
    }

    /// The program on the cpus and the memory of one node; `None` if a single node is no valid machine, or has too
    /// little memory.
    fn bound(&self, config: &Config) -> Result<Option<Outcome>, SimError> {
        let mut node: Machine = config.machine.clone();
        node.cpus /= node.memory.nodes;
        node.memory.nodes = 1;
        node.memory.distances.clear();
        node.memory.tiers.clear();
        if node.cpus == 0 || node.check().is_err() {
            return Ok(None);
        }
        let config = Config {
            policies: vec![PolicySpec::new(self.name.clone())],
            machine: node,
            ..config.clone()
        };
        match self.settings.simulate(self.trace, &config) {
            Err(SimError::OutOfFrames { .. }) => Ok(None),
            runs => Ok(runs?.into_iter().next().map(|run| run.outcome)),
        }
    }
}

fn remedy(base: &Outcome, outcome: &Outcome, name: &str, how: String, pace: Pace) -> HomesRemedy {
    HomesRemedy {
        name: name.to_string(),
        policy: outcome.policy.clone(),
        settings: pace.sets,
        wall_ns: outcome.time_ns.wall,
        gain: saved(base.time_ns.wall, outcome.time_ns.wall),
        later_gain: None,
        local_percent: outcome.memory.local_percent,
        migrations: outcome.memory.migrations,
        replications: outcome.memory.replications,
        how,
        conditions: pace.conditions,
    }
}

/// The line that touches data of other threads first, if there is one.
fn touch_there(structures: &[RemoteStructure]) -> String {
    let bind = "bind each part to its users' node (mbind(2), numa_tonode_memory(3))";
    // Only its own thread touches a stack, and no line of the program fills files and the allocator's memory.
    let misplaced = |structure: &&RemoteStructure| {
        let own = matches!(
            structure.kind,
            StructureKind::Symbol | StructureKind::Heap | StructureKind::Array
        );
        own && structure.file.as_deref().is_none_or(|file| !is_library_source(file))
            && of(structure, RemoteReason::FirstTouch) > 0
    };
    let worst = structures
        .iter()
        .filter(misplaced)
        .max_by_key(|structure| of(structure, RemoteReason::FirstTouch));
    match worst.and_then(|structure| Some((structure, structure.first_touches.first()?))) {
        Some((structure, touch)) => format!(
            "fill {} in the threads that use it (thread {} does, at {}), or {bind}",
            results::short(&structure.name),
            touch.thread,
            touch.source
        ),
        None => bind.to_string(),
    }
}

fn of(structure: &RemoteStructure, reason: RemoteReason) -> u64 {
    let of = structure.reasons.iter().find(|of| of.reason == reason);
    of.map_or(0, |of| of.remote)
}
