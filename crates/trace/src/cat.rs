//! All threads' references and events in the order in which they were recorded.

use crate::error::TraceError;
use crate::model::{Event, Ref, ThreadId, Timed};
use crate::order::{OrderStream, Run};
use crate::reader::Trace;
use crate::stream::{Batch, Chunks};

/// One reference or event.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Ref { thread: ThreadId, reference: Ref },
    Event { thread: ThreadId, order: u64, event: Event },
}

/// Yields a trace item by item. At most 32 threads' chunks are in memory at once; a thread that returns after that is
/// decoded again from the beginning of its chunk.
pub struct Cat {
    trace: Trace,
    order: OrderStream,
    run: Run,
    places: Vec<Place>,
    open: Vec<Open>,
    turn: u64,
    failed: bool,
}

/// A thread's position: chunk, reference and event in it.
#[derive(Clone, Copy, Default)]
struct Place {
    chunk: usize,
    reference: usize,
    event: usize,
}

/// A thread's chunk in memory.
struct Open {
    thread: ThreadId,
    used: u64,
    /// The chunk that `batch` holds.
    chunk: usize,
    loaded: bool,
    chunks: Chunks,
    batch: Batch,
}

const OPEN: usize = 32;

impl Cat {
    pub(crate) fn new(trace: Trace) -> Cat {
        let order = trace.order();
        let places = vec![Place::default(); trace.threads().len()];
        let run = Run {
            thread: 0,
            refs: 0,
            events: 0,
        };
        Cat {
            trace,
            order,
            run,
            places,
            open: Vec::new(),
            turn: 0,
            failed: false,
        }
    }

    fn advance(&mut self) -> Result<Option<Item>, TraceError> {
        loop {
            while self.run.refs == 0 && self.run.events == 0 {
                match self.order.next() {
                    Some(run) => self.run = run?,
                    None => return Ok(None),
                }
                self.turn += 1;
            }
            if let Some(item) = self.take()? {
                return Ok(Some(item));
            }
            // A salvaged thread may hold less than the schedule says.
            self.run.refs = 0;
            self.run.events = 0;
        }
    }

    /// The next item of the current thread.
    fn take(&mut self) -> Result<Option<Item>, TraceError> {
        let thread = self.run.thread;
        loop {
            let slot = self.slot(thread);
            let place = &mut self.places[thread as usize];
            let open = &mut self.open[slot];
            open.used = self.turn;
            if !open.loaded || open.chunk != place.chunk {
                open.chunks.seek(place.chunk);
                if !open.chunks.next(&mut open.batch)? {
                    return Ok(None);
                }
                let chunk = open.chunks.position() - 1;
                if chunk != place.chunk {
                    *place = Place {
                        chunk,
                        ..Place::default()
                    };
                }
                open.chunk = chunk;
                open.loaded = true;
            }
            if let Some(Timed { at, order, event }) = open.batch.events.get(place.event)
                && *at as usize <= place.reference
            {
                place.event += 1;
                self.run.events = self.run.events.saturating_sub(1);
                return Ok(Some(Item::Event {
                    thread,
                    order: *order,
                    event: event.clone(),
                }));
            }
            if let Some(&reference) = open.batch.refs.get(place.reference) {
                place.reference += 1;
                self.run.refs = self.run.refs.saturating_sub(1);
                return Ok(Some(Item::Ref { thread, reference }));
            }
            *place = Place {
                chunk: place.chunk + 1,
                ..Place::default()
            };
        }
    }

    /// The slot in which the thread is open; opens it in place of the least recently used one.
    fn slot(&mut self, thread: ThreadId) -> usize {
        if let Some(slot) = self.open.iter().position(|o| o.thread == thread) {
            return slot;
        }
        let fresh = Open {
            thread,
            used: self.turn,
            chunk: 0,
            loaded: false,
            chunks: Chunks::new(self.trace.clone(), thread),
            batch: Batch::default(),
        };
        if self.open.len() < OPEN {
            self.open.push(fresh);
            return self.open.len() - 1;
        }
        let oldest = (0..OPEN).min_by_key(|&slot| self.open[slot].used).unwrap_or(0);
        self.open[oldest] = fresh;
        oldest
    }
}

impl Iterator for Cat {
    type Item = Result<Item, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.advance();
        self.failed = item.is_err();
        item.transpose()
    }
}
