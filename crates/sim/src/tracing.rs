//! A trace as input: each thread's stream, decoded ahead on another thread of the host.

use trace::{OrderStream, ThreadStream, Trace};

use crate::detail::Names;
use crate::engine::Traits;
use crate::error::SimError;
use crate::input::{Batch, Input, Run, ThreadAbout};
use crate::structures::Tables;

/// Batches that are decoded ahead of the simulation, over all threads of the trace: a bound on
/// memory (a batch is about 1 MiB).
const AHEAD: usize = 32;

pub struct TraceInput {
    trace: Trace,
    about: Vec<ThreadAbout>,
    streams: Vec<Option<ThreadStream>>,
    ahead: usize,
    order: OrderStream,
}

impl TraceInput {
    /// `spawned`: [`Trace::spawned`], asked once for all runs over the trace.
    pub fn new(trace: &Trace, spawned: &[bool]) -> Self {
        let about = |(thread, spawned): (&trace::Thread, &bool)| ThreadAbout {
            space: thread.process,
            spawned: *spawned,
        };
        let threads = trace.threads().len();
        TraceInput {
            about: trace.threads().iter().zip(spawned).map(about).collect(),
            streams: (0..threads).map(|_| None).collect(),
            ahead: (AHEAD / threads.max(1)).clamp(1, 4),
            order: trace.order(),
            trace: trace.clone(),
        }
    }
}

impl Input for TraceInput {
    fn traits(&self) -> Traits {
        Traits {
            counts_instructions: self.trace.header().counts_instructions,
            has_fetches: self.trace.header().has_fetches,
        }
    }

    fn threads(&self) -> &[ThreadAbout] {
        &self.about
    }

    fn next(&mut self, thread: u32, batch: &mut Batch) -> Result<bool, SimError> {
        // A stream is opened when its thread begins and closed when it ends, so that a trace of
        // many short threads does not hold them all open.
        let slot = &mut self.streams[thread as usize];
        let stream = match slot {
            Some(stream) => stream,
            None => slot.insert(self.trace.thread(thread)?.ahead(self.ahead)),
        };
        let more = stream.next(batch)?;
        if !more {
            *slot = None;
        }
        Ok(more)
    }

    fn next_run(&mut self) -> Result<Option<Run>, SimError> {
        let run = self.order.next().transpose()?;
        Ok(run.map(|run| Run {
            thread: run.thread,
            items: run.refs + run.events,
        }))
    }

    fn names(&self) -> Names<'_> {
        Names {
            tables: Tables {
                processes: self.trace.processes(),
                threads: self.trace.threads(),
                modules: self.trace.modules(),
                symbols: self.trace.symbols(),
                arrays: self.trace.arrays(),
                stacks: self.trace.stacks(),
                locations: self.trace.locations(),
            },
            sites: self.trace.sites(),
        }
    }
}
