//! Streams in memory with their work in another order.

use policy::WorkOrder;
use trace::Event;

use super::marks::At;
use super::plan::{Part, Plan, Planner};
use super::{Changed, Decision, Marked};
use crate::config::Config;
use crate::error::SimError;
use crate::input::{Item, Streams};

/// A copy of the streams, in the order that the policy gives. Fails where no work is marked.
pub fn reordered_streams(
    streams: &Streams,
    order: &WorkOrder,
    config: &Config,
) -> Result<(Streams, results::Work), SimError> {
    let mut marked = Marked::default();
    for item in streams.threads.iter().flatten() {
        if let Item::Event(event) = item {
            marked.event(event);
        }
    }
    let threads = streams.threads.len();
    let decision = Decision::new(order, marked, config, threads, streams.traits.has_fetches)?;
    let mut planner = Planner::new(decision.rules.clone());
    for items in &streams.threads {
        let refs = items.iter().filter(|item| matches!(item, Item::Ref(_))).count() as u64;
        planner.thread::<SimError>(refs, |take| each_event(items, take))?;
    }
    let plan = planner.finish();
    Ok((in_order(streams, &plan), decision.outcome(plan.counts)))
}

/// The same in the order of a change of the program.
pub fn changed_streams(streams: &Streams, order: &Changed) -> Result<(Streams, results::Work), SimError> {
    let (plan, outcome) = order.plan(&mut streams.input())?;
    Ok((in_order(streams, &plan), outcome))
}

fn in_order(streams: &Streams, plan: &Plan) -> Streams {
    let threads = streams.threads.len();
    let mut reordered = Streams {
        threads: Vec::new(),
        ..streams.clone()
    };
    for stream in &plan.streams {
        let items = &streams.threads[stream.source as usize];
        let source = &plan.sources[stream.source as usize];
        let between = |(from, to): (At, At)| &items[(from.refs + from.events) as usize..(to.refs + to.events) as usize];
        let mut made: Vec<Item> = Vec::new();
        for part in &stream.parts {
            match part {
                Part::Span { from, to } => made.extend_from_slice(between((*from, *to))),
                Part::Event(event) => made.push(Item::Event(event.clone())),
                Part::Segments { first, count } => {
                    for &segment in &source.order[*first..*first + *count] {
                        made.extend_from_slice(between(source.segment(segment)));
                    }
                }
            }
        }
        reordered.threads.push(made);
    }
    reordered.spaces.resize(plan.streams.len().max(streams.spaces.len()), 0);
    for (stream, worker) in plan.streams.iter().enumerate().skip(threads) {
        reordered.spaces[stream] = reordered.spaces[worker.source as usize];
    }
    reordered
}

fn each_event(items: &[Item], take: &mut dyn FnMut(u64, &Event) -> Result<(), SimError>) -> Result<(), SimError> {
    let mut refs = 0;
    for item in items {
        match item {
            Item::Ref(_) => refs += 1,
            Item::Event(event) => take(refs, event)?,
        }
    }
    Ok(())
}
