//! A run under first touch whose misses are written down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use machine::Machine;
use policy::{Action, BestHomes, Interest, Kind, MissLevel, Name, Observation, Page, Placement, Policy, Touch, World};
use trace::Trace;

use crate::candidate::{Named, Progress};
use crate::config::{Config, Detail};
use crate::error::SimError;
use crate::frames::Frames;
use crate::homes;
use crate::input::Streams;
use crate::scheduling::Scheduling;
use crate::simulate;

use super::stream::{FirstTouch, MissStream};

/// Simulates a trace under first touch and writes down the misses of the outermost cache and of the TLB. Policies of
/// `config`, and its requested reports, do not matter.
pub fn record(trace: &Trace, config: &Config, progress: Progress) -> Result<MissStream, SimError> {
    let scribe = Scribe::default();
    let run = simulate::simulate_trace_with(trace, &plain(config), named(&scribe)?, progress)?;
    Ok(scribe.stream(run.outcome))
}

/// The same for [`replay`](super::replay): processes share the pages of files that no process writes to, and threads go
/// to the next cpu if the configuration says so. Also returns by how many pages that reduces them.
///
/// Errors: a policy of `config` cannot be replayed ([`is_replayable`]); the trace holds windows of a run.
pub fn record_to_replay(trace: &Trace, config: &Config, progress: Progress) -> Result<(MissStream, usize), SimError> {
    config
        .policies
        .iter()
        .try_for_each(|policy| is_replayable(&policy.name))?;
    let every_ns = match config.schedule {
        Scheduling::Next { every_ns } => Some(every_ns),
        _ => None,
    };
    // A stream is recorded where threads stay, and they are moved afterwards; a scheduler is at work as it is recorded.
    let recorded = Config {
        schedule: if every_ns.is_some() {
            Scheduling::Stay
        } else {
            config.schedule
        },
        ..config.clone()
    };
    let mut stream = record(trace, &recorded, progress)?;
    if stream.run.windows.is_some() {
        return Err(SimError::MissesOfWindows);
    }
    let shared = stream.share_files(trace.modules(), config.machine.page_bytes);
    if let Some(every_ns) = every_ns {
        stream.move_threads(config.machine.cpus, every_ns);
    }
    Ok((stream, shared))
}

/// Errors: a part of the policy chooses something else than homes, or depends on data that a stream of misses does not
/// have.
pub fn is_replayable(policy: &Name) -> Result<(), SimError> {
    let said = policy.of(Kind::Home).filter(|entry| entry.traits.summaries);
    if let Some(said) = said {
        return Err(SimError::NotSaid {
            policy: said.name.to_string(),
        });
    }
    let other = [Kind::Color, Kind::Order].map(|kind| policy.of(kind));
    match other.into_iter().flatten().next() {
        Some(other) => Err(SimError::NoHomes {
            policy: other.name.to_string(),
        }),
        None => Ok(()),
    }
}

/// The same as [`record`] of streams in memory.
pub fn record_refs(streams: &Streams, config: &Config) -> Result<MissStream, SimError> {
    let scribe = Scribe::default();
    let mut runs = simulate::simulate_with(streams, &plain(config), vec![named(&scribe)?])?;
    Ok(scribe.stream(runs.remove(0).outcome))
}

fn named(scribe: &Scribe) -> Result<Named, SimError> {
    let first_touch = Name::default_of(Kind::Home);
    Ok((first_touch.to_string(), scribe.policy(&first_touch)?))
}

/// Nothing but totals, cpu by cpu.
pub fn plain(config: &Config) -> Config {
    Config {
        policies: Vec::new(),
        detail: Detail::default(),
        detail_for: None,
        classes: false,
        ..config.clone()
    }
}

/// The node of each page whose cpus miss on it most; with as many, the lowest.
pub fn best_homes(stream: &MissStream, machine: &Machine) -> BestHomes {
    let world = homes::world(machine, &Frames::new(machine, 1));
    let nodes = world.nodes as usize;
    let mut misses = vec![0u32; stream.pages.len() * nodes];
    for miss in &stream.misses {
        if miss.level() == MissLevel::Cache {
            let count = &mut misses[miss.page() as usize * nodes + world.node_of(miss.cpu()) as usize];
            *count = count.saturating_add(1);
        }
    }
    let best = |counts: &[u32]| {
        let most = counts.iter().max()?;
        (*most > 0).then(|| counts.iter().position(|count| count == most))?
    };
    let pages = stream.pages.iter().zip(misses.chunks(nodes));
    let homes: HashMap<Page, u32> = pages
        .filter_map(|(touch, counts)| Some((touch.page, best(counts)? as u32)))
        .collect();
    BestHomes::new(homes)
}

/// Keeps the events that its policy is told.
#[derive(Clone, Default)]
pub struct Scribe(Arc<Mutex<MissStream>>);

impl Scribe {
    /// First touch, with the colors that another part of the name chooses, which records the events that it is told. A
    /// part that wants hints gets none.
    pub fn policy(&self, name: &Name) -> Result<Box<dyn Policy>, SimError> {
        let places = policy::build(name, &[])?;
        Ok(Box::new(Listener {
            scribe: self.clone(),
            places,
        }))
    }

    /// Its record of a run that has ended.
    pub fn stream(self, run: results::Outcome) -> MissStream {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stream = std::mem::take(&mut *written);
        stream.run = run;
        stream
    }
}

struct Listener {
    scribe: Scribe,
    /// The places of pages: a color left open would be the same for all, and their lines would conflict.
    places: Box<dyn Policy>,
}

impl Policy for Listener {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        let mut written = self.scribe.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.touch(FirstTouch {
            page: touch.page,
            thread: touch.thread,
            cpu: touch.cpu,
            write: touch.write,
        });
        self.places.place(touch, world)
    }

    fn interest(&self) -> Interest {
        Interest {
            cache_misses: 1,
            tlb_misses: 1,
            ..Interest::NONE
        }
    }

    fn observe(&mut self, observation: &Observation, world: &World, _actions: &mut Vec<Action>) {
        let Observation::Miss(miss) = observation else { return };
        let mut written = self.scribe.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.miss(world.now_ns, miss);
    }
}
