//! Policy `order`: the work items that a program marked, replayed in the order that the policy gives.
//!
//! README.md, "Work in another order", specifies the new order exactly. [`Reordered::new`] finds the items (their marks
//! are events, so the references need not be decoded), asks the policy's code for their order, and decides how to get
//! at them: from the trace, a bucket at a time, or if they are too scattered for that, from a temporary file. The
//! simulation knows nothing of it: it gets streams, as always. Memory grows with the items (about 24 bytes for each)
//! and not with the references.

mod gather;
mod input;
mod interchange;
mod marks;
mod plan;
mod recorded;
mod spill;
mod streams;
#[cfg(test)]
mod tests;
mod tile;

use std::collections::HashSet;
use std::sync::Arc;

use machine::{Kind, Machine};
use policy::WorkOrder;
use policy::order::{BinsError, DefaultBlock, HINTS_MAX, Limit, Shape, Tour, default_block};
use results::Work;
use trace::{Event, Trace};

pub use input::ReorderedInput;
pub use interchange::Interchange;
pub use streams::{changed_streams, reordered_streams};

use crate::config::{Config, Order};
use crate::error::SimError;
use crate::input::Input;
use crate::structures::{StructureId, Structures};
use crate::tracing::TraceInput;
use gather::Room;
use plan::{Plan, PlanCounts, Planner, Rules};
use spill::{SCATTERED, Spilled};

/// References between two items that are taken for the loop around them: the marks themselves, the next
/// hints and the loop's counting, compiled without optimisation.
const GAP: u64 = 256;
/// The same where the trace has instruction fetches too.
const GAP_WITH_FETCHES: u64 = 1024;

/// The largest ticket of a trace whose work can be dealt to workers.
const TICKETS: u64 = u64::MAX / 2;

/// References and events that buckets of all streams may hold together: 64 MiB each.
const ROOM: Room = Room {
    refs: 4 << 20,
    events: 1 << 20,
};
/// However many streams there are, each gets this.
const LEAST_ROOM: Room = Room {
    refs: 1 << 16,
    events: 1 << 14,
};

/// The results of a look at the marks before anything is decided.
#[derive(Clone, Copy, Debug, Default)]
struct Marked {
    items: u64,
    /// The most hints that an item has.
    hints: usize,
    /// A ticket that comes after all others.
    ticket: u64,
}

impl Marked {
    fn event(&mut self, event: &Event) {
        match event {
            Event::WorkBegin { hints } => {
                self.items += 1;
                self.hints = self.hints.max(hints.len());
            }
            Event::Post { ticket } | Event::Wait { ticket } => {
                self.ticket = self.ticket.max(ticket.saturating_add(1));
            }
            _ => {}
        }
    }
}

/// A trace with its work in another order.
pub struct Reordered {
    trace: Trace,
    plan: Plan,
    spilled: Option<Spilled>,
    room: Room,
    outcome: Work,
}

impl Reordered {
    /// Puts a trace's work in order. Fails where no work is marked.
    pub fn new(trace: &Trace, order: &WorkOrder, config: &Config) -> Result<Arc<Reordered>, SimError> {
        Reordered::within(trace, order, config, room(trace.threads().len()), SCATTERED)
    }

    fn within(
        trace: &Trace,
        order: &WorkOrder,
        config: &Config,
        room: Room,
        scattered: u64,
    ) -> Result<Arc<Reordered>, SimError> {
        let threads = 0..trace.threads().len() as u32;
        let mut marked = Marked::default();
        for thread in threads.clone() {
            trace.each_event(thread, |_, event| marked.event(event))?;
        }
        let decision = Decision::new(order, marked, config, threads.len(), trace.header().has_fetches)?;
        let mut planner = Planner::new(decision.rules.clone());
        for thread in threads {
            let mut failed = None;
            planner.thread::<SimError>(trace.thread_references(thread), |take| {
                trace.each_event(thread, |before, event| {
                    if failed.is_none() {
                        failed = take(before, event).err();
                    }
                })?;
                failed.map_or(Ok(()), Err)
            })?;
        }
        let plan = planner.finish();
        let outcome = decision.outcome(plan.counts);
        Reordered::by(trace, plan, outcome, room, scattered)
    }

    /// Puts a trace's work in the order of a change.
    pub fn changed(trace: &Trace, spawned: &[bool], order: &Changed) -> Result<Arc<Reordered>, SimError> {
        let (plan, outcome) = order.plan(&mut TraceInput::new(trace, spawned))?;
        Reordered::by(trace, plan, outcome, room(trace.threads().len()), SCATTERED)
    }

    fn by(trace: &Trace, plan: Plan, outcome: Work, room: Room, scattered: u64) -> Result<Arc<Reordered>, SimError> {
        Ok(Arc::new(Reordered {
            trace: trace.clone(),
            outcome,
            spilled: spill::spill(trace, &plan, room, scattered)?,
            plan,
            room,
        }))
    }

    /// The findings and decisions.
    pub fn outcome(&self) -> &Work {
        &self.outcome
    }
}

/// The limits of buckets for each of `threads` streams.
fn room(threads: usize) -> Room {
    let share = |all: u64, least: u64| (all / threads.max(1) as u64).max(least);
    Room {
        refs: share(ROOM.refs, LEAST_ROOM.refs),
        events: share(ROOM.events, LEAST_ROOM.events),
    }
}

/// Work in the order of a change of the program.
pub enum Changed {
    Tiled(Tile),
    Interchanged(Interchange),
}

/// Work in the order in which it uses blocks of `bytes` of some data.
pub struct Tile {
    pub data: HashSet<StructureId>,
    /// The names of the input's addresses.
    pub structures: Structures,
    pub bytes: u64,
}

impl Changed {
    fn plan(&self, input: &mut dyn Input) -> Result<(Plan, Work), SimError> {
        let (block, reason) = match self {
            Changed::Tiled(Tile { bytes, .. }) => (*bytes, format!("the change tiles by {bytes} bytes")),
            Changed::Interchanged(_) => (1, "the change interchanges loops".to_string()),
        };
        // Items come with the numbers of their blocks.
        let shape = Shape::new(&[1]).map_err(|error| SimError::Order(error.to_string()))?;
        let decision = Decision {
            rules: Rules {
                shape,
                tour: Tour::FirstFork,
                gap: 0,
                workers: 1,
                ticket: 0,
            },
            block,
            limit: "set",
            reason,
        };
        let mut planner = Planner::new(decision.rules.clone());
        match self {
            Changed::Tiled(tile) => {
                for items in tile::find(input, &tile.data, tile.structures.clone(), tile.bytes)? {
                    planner.items(&items)?;
                }
            }
            Changed::Interchanged(interchange) => {
                for sweeps in interchange.find(input)? {
                    planner.sweeps(&sweeps)?;
                }
            }
        }
        let plan = planner.finish();
        let outcome = decision.outcome(plan.counts);
        Ok((plan, outcome))
    }
}

/// The policy's parameters, with the values left open filled in.
struct Decision {
    rules: Rules,
    block: u64,
    limit: &'static str,
    reason: String,
}

impl Decision {
    fn new(
        order: &WorkOrder,
        marked: Marked,
        config: &Config,
        threads: usize,
        has_fetches: bool,
    ) -> Result<Decision, SimError> {
        if marked.items == 0 {
            return Err(SimError::NoWork);
        }
        let machine = &config.machine;
        let workers = match order.workers {
            0 => machine.cpus,
            workers => workers,
        };
        check_workers(workers, marked.ticket, machine, config.order, threads)?;
        let hints = match order.hints {
            0 => marked.hints.clamp(1, HINTS_MAX),
            hints => hints,
        };
        let (block, limit, reason) = match order.block {
            0 => {
                let DefaultBlock { bytes, limit, reason } =
                    default_block(cache_bytes(machine, workers), tlb_reach(machine), hints);
                let limit = match limit {
                    Limit::Cache => "cache",
                    Limit::TlbReach => "tlb-reach",
                };
                (bytes, limit, reason)
            }
            bytes => (bytes, "set", format!("order.block is set to {bytes}")),
        };
        let shape = Shape::new(&vec![block; hints]).and_then(|shape| if order.fold { shape.fold() } else { Ok(shape) });
        Ok(Decision {
            rules: Rules {
                shape: shape.map_err(|error| SimError::Order(error.to_string()))?,
                tour: order.tour,
                gap: match (order.gap, has_fetches) {
                    (0, false) => GAP,
                    (0, true) => GAP_WITH_FETCHES,
                    (gap, _) => gap,
                },
                workers,
                ticket: marked.ticket,
            },
            block,
            limit,
            reason,
        })
    }

    fn outcome(&self, counts: PlanCounts) -> Work {
        Work {
            items: counts.items,
            fixed: counts.fixed,
            moved: counts.moved,
            runs: counts.runs,
            bins: counts.bins,
            hints: self.rules.shape.hints() as u32,
            block: self.block,
            limit: self.limit.to_string(),
            reason: self.reason.clone(),
            tour: match self.rules.tour {
                Tour::FirstFork => "first-fork",
                Tour::Nearest => "nearest",
                Tour::Hilbert => "hilbert",
            }
            .to_string(),
            workers: self.rules.workers,
        }
    }
}

fn check_workers(workers: u32, ticket: u64, machine: &Machine, order: Order, threads: usize) -> Result<(), SimError> {
    let refuse = |what: String| Err(SimError::Order(format!("order.workers is {workers}, but {what}")));
    if workers > machine.cpus {
        return refuse(format!(
            "the machine's cpus are {}; use `--cpus {workers}`",
            machine.cpus
        ));
    }
    if workers > 1 && threads > 1 {
        return refuse(format!(
            "the trace has {threads} threads, and work can be dealt to workers only where there is one; leave \
             order.workers at 1, so that each thread keeps its own work"
        ));
    }
    if workers > 1 && order == Order::Recorded {
        return refuse("in recorded order there is only one at a time; use `--order clock`".to_string());
    }
    // Each worker takes two more for each run.
    if workers > 1 && ticket > TICKETS {
        return refuse(format!(
            "the trace has a ticket {}, which leaves none for the workers to wait by",
            ticket - 1
        ));
    }
    Ok(())
}

/// One worker's share of the last cache for data.
fn cache_bytes(machine: &Machine, workers: u32) -> u64 {
    let data = machine
        .caches
        .iter()
        .rev()
        .find(|cache| cache.kind != Kind::Instruction);
    data.map_or(0, |cache| {
        cache.bytes / u64::from(cache.cpus_per_instance.min(workers).max(1))
    })
}

fn tlb_reach(machine: &Machine) -> Option<u64> {
    let tlb = machine.tlb.as_ref()?;
    Some(u64::from(tlb.entries.saturating_sub(tlb.wired)) * machine.page_bytes)
}

impl From<BinsError> for SimError {
    fn from(error: BinsError) -> SimError {
        SimError::Order(format!("the work cannot be put in order: {error}"))
    }
}
