//! A trace whose work is in another order, as input of a run.
//!
//! Each stream is put together by a thread of the host, a batch ahead of the simulation.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use trace::{Batch, Dependence, Event, Misprediction, Pace, Ref, Timed, Trace};

use super::Reordered;
use super::gather::{Reader, append, bucket, gather};
use super::marks::At;
use super::plan::Part;
use crate::detail::Names;
use crate::engine::Traits;
use crate::error::SimError;
use crate::input::{Input, Run, ThreadAbout};
use crate::tracing::TraceInput;

/// References from which on a batch is handed over.
const BATCH: usize = 1 << 16;

pub struct ReorderedInput {
    reordered: Arc<Reordered>,
    /// Gives the trace's data besides the streams.
    plain: TraceInput,
    about: Vec<ThreadAbout>,
    ahead: Vec<Option<ReadAhead>>,
}

impl ReorderedInput {
    pub fn new(reordered: &Arc<Reordered>, spawned: &[bool]) -> ReorderedInput {
        let plain = TraceInput::new(&reordered.trace, spawned);
        let mut about = plain.threads().to_vec();
        for worker in &reordered.plan.streams[about.len()..] {
            let space = about.get(worker.source as usize).map_or(0, |about| about.space);
            about.push(ThreadAbout { space, spawned: false });
        }
        ReorderedInput {
            reordered: Arc::clone(reordered),
            plain,
            ahead: about.iter().map(|_| None).collect(),
            about,
        }
    }
}

impl Input for ReorderedInput {
    fn traits(&self) -> Traits {
        self.plain.traits()
    }

    fn threads(&self) -> &[ThreadAbout] {
        &self.about
    }

    fn next(&mut self, thread: u32, batch: &mut Batch) -> Result<bool, SimError> {
        let slot = &mut self.ahead[thread as usize];
        let ahead = match slot {
            Some(ahead) => ahead,
            None => slot.insert(ReadAhead::start(&self.reordered, thread)?),
        };
        let more = ahead.next(batch)?;
        if !more {
            *slot = None;
        }
        Ok(more)
    }

    fn next_run(&mut self) -> Result<Option<Run>, SimError> {
        // Streams are as long as they were, and are taken in the same portions.
        self.plain.next_run()
    }

    fn dependences(&self) -> &[Dependence] {
        self.plain.dependences()
    }

    fn paces(&self) -> &[Pace] {
        self.plain.paces()
    }

    fn mispredictions(&self) -> &[Misprediction] {
        self.plain.mispredictions()
    }

    fn is_whole(&self) -> bool {
        self.plain.is_whole()
    }

    fn of_references(&self) -> Option<u64> {
        self.plain.of_references()
    }

    fn warmed(&self) -> bool {
        self.plain.warmed()
    }

    fn names(&self) -> Names<'_> {
        self.plain.names()
    }
}

/// A stream that another thread of the host puts together.
struct ReadAhead {
    full: Option<Receiver<Result<Batch, SimError>>>,
    empty: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    fn start(reordered: &Arc<Reordered>, stream: u32) -> Result<ReadAhead, SimError> {
        // A batch is made while another is simulated, and the two change hands: large ones are not piled up.
        let (give, full) = sync_channel(0);
        let (empty, take) = sync_channel(1);
        let reordered = Arc::clone(reordered);
        let work = move || {
            let mut maker = Maker {
                trace: &reordered.trace,
                stack: Stack::of(&reordered, stream),
                batch: Batch::default(),
                give: &give,
                take: &take,
            };
            if let Err(Stop::Failed(error)) = maker.stream(&reordered, stream) {
                // The thread that waits for the stream may have gone.
                let _ = give.send(Err(error));
            }
        };
        let thread = std::thread::Builder::new().name("work-order".into()).spawn(work);
        Ok(ReadAhead {
            full: Some(full),
            empty: Some(empty),
            thread: Some(thread.map_err(|error| SimError::Host(error.to_string()))?),
        })
    }

    fn next(&mut self, batch: &mut Batch) -> Result<bool, SimError> {
        let Some(Ok(next)) = self.full.as_ref().map(Receiver::recv) else {
            batch.refs.clear();
            batch.events.clear();
            // The other thread has gone: it has sent all, or it has failed without a word.
            return match self.thread.take().map(JoinHandle::join) {
                Some(Err(_)) => Err(SimError::Host("the one that puts work in order has failed".to_string())),
                _ => Ok(false),
            };
        };
        let used = std::mem::replace(batch, next?);
        if let Some(empty) = &self.empty {
            // If its receiver is gone, its memory is freed.
            let _ = empty.try_send(used);
        }
        Ok(true)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Closing the channels ends the other thread.
        self.full.take();
        self.empty.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Why a stream is not put together any further.
enum Stop {
    Failed(SimError),
    /// The rest is not needed.
    Unwanted,
}

impl From<SimError> for Stop {
    fn from(error: SimError) -> Stop {
        Stop::Failed(error)
    }
}

/// Bytes from the recorded stack to a worker's, times the worker's number: more than there are addresses.
const APART: u64 = 1 << 48;

/// A worker calls on a stack of its own, while the recorded thread had only one.
struct Stack {
    low: u64,
    bytes: u64,
    up: u64,
}

impl Stack {
    /// If the trace does not give the thread's stack, workers share it.
    fn of(reordered: &Reordered, stream: u32) -> Option<Stack> {
        let threads = reordered.trace.threads();
        let worker = (stream as usize + 1)
            .checked_sub(threads.len())
            .filter(|worker| *worker > 0)?;
        let source = reordered.plan.streams[stream as usize].source;
        let (low, high) = threads.get(source as usize)?.stack?;
        Some(Stack {
            low,
            bytes: high.saturating_sub(low),
            up: APART.wrapping_mul(worker as u64),
        })
    }

    fn relocate(&self, refs: &mut [Ref]) {
        for r in refs {
            if r.addr.wrapping_sub(self.low) < self.bytes {
                r.addr = r.addr.wrapping_add(self.up);
            }
        }
    }
}

/// Puts a stream together, batch by batch.
struct Maker<'a> {
    trace: &'a Trace,
    stack: Option<Stack>,
    batch: Batch,
    give: &'a SyncSender<Result<Batch, SimError>>,
    take: &'a Receiver<Batch>,
}

impl Maker<'_> {
    fn stream(&mut self, reordered: &Reordered, number: u32) -> Result<(), Stop> {
        let stream = &reordered.plan.streams[number as usize];
        let source = &reordered.plan.sources[stream.source as usize];
        let mut reader = Reader::new(self.trace, stream.source)?;
        let mut next_bucket = reordered
            .spilled
            .as_ref()
            .map(|spilled| (&spilled.trace, spilled.first[number as usize]));
        for part in &stream.parts {
            match *part {
                Part::Span { from, to } => self.span(&mut reader, from, to)?,
                Part::Event(ref event) => self.event(event),
                Part::Segments { mut first, mut count } => {
                    while count > 0 {
                        let taken = bucket(source, first, count, reordered.room);
                        let order = &source.order[first..first + taken];
                        match (taken, &mut next_bucket) {
                            (1, _) => {
                                let (from, to) = source.segment(order[0]);
                                self.span(&mut reader, from, to)?;
                            }
                            (_, None) => gather(source, order, &mut reader, false, &mut self.batch)?,
                            (_, Some((spilled, number))) => {
                                let mut reader = Reader::new(spilled, *number)?;
                                *number += 1;
                                gather(source, order, &mut reader, true, &mut self.batch)?;
                            }
                        }
                        self.hand_over(BATCH)?;
                        first += taken;
                        count -= taken;
                    }
                }
            }
        }
        self.hand_over(0)
    }

    fn span(&mut self, reader: &mut Reader, mut from: At, to: At) -> Result<(), Stop> {
        while from < to {
            // Long spans are passed on piece by piece without being copied; the rest around them is copied.
            let end = reader.end_of_piece(from).min(to);
            if end.refs - from.refs >= BATCH as u64 / 2 {
                self.hand_over(0)?;
                if let Some(end) = reader.whole(from, to, &mut self.batch)? {
                    from = end;
                    self.hand_over(0)?;
                    continue;
                }
            }
            append(reader, from, end, &mut self.batch)?;
            from = end;
            self.hand_over(BATCH)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) {
        self.batch.events.push(Timed {
            at: self.batch.refs.len() as u32,
            order: 0,
            event: event.clone(),
        });
    }

    /// Gives the batch away if it has `least` references, or any content at all if that is 0.
    fn hand_over(&mut self, least: usize) -> Result<(), Stop> {
        let Batch { refs, events } = &self.batch;
        let many = refs.len() + events.len();
        if many == 0 || many < least {
            return Ok(());
        }
        let mut full = std::mem::take(&mut self.batch);
        if let Some(stack) = &self.stack {
            stack.relocate(&mut full.refs);
        }
        self.give.send(Ok(full)).map_err(|_| Stop::Unwanted)?;
        self.batch = self.take.recv().map_err(|_| Stop::Unwanted)?;
        self.batch.refs.clear();
        self.batch.events.clear();
        Ok(())
    }
}
