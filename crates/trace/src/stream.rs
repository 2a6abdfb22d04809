//! The references of one thread, chunk by chunk.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::chunk::Decoder;
use crate::error::{Damage, TraceError};
use crate::limits;
use crate::model::{Event, Ref, ThreadId, Timed};
use crate::reader::Trace;
use crate::source::{Entry, Room};

/// A piece of a thread's stream. `events[k]` happened before `refs[events[k].at]`, or after all of
/// them when `at` is `refs.len()`. There may be events and no references.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub refs: Vec<Ref>,
    pub events: Vec<Timed>,
}

/// Reads a thread's references from first to last, in constant memory.
pub struct ThreadStream {
    from: From,
}

enum From {
    Here(Box<Chunks>),
    ReadAhead(ReadAhead),
}

impl ThreadStream {
    pub(crate) fn new(trace: Trace, thread: ThreadId) -> ThreadStream {
        ThreadStream {
            from: From::Here(Box::new(Chunks::new(trace, thread))),
        }
    }

    /// Replaces what `batch` holds by the next piece; `false` at the end. The batch keeps its
    /// memory from call to call, so use the same one again.
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        match &mut self.from {
            From::Here(chunks) => chunks.next(batch),
            From::ReadAhead(ahead) => ahead.next(batch),
        }
    }

    /// Continues on a separate thread, up to `depth` pieces (of up to 1 MiB) ahead.
    pub fn ahead(self, depth: usize) -> ThreadStream {
        match self.from {
            From::Here(chunks) => ThreadStream {
                from: ReadAhead::start(*chunks, depth.clamp(1, 64)),
            },
            ahead @ From::ReadAhead(_) => ThreadStream { from: ahead },
        }
    }

    /// Continues at the piece of that number (as [`Trace::pieces`] counts them), forwards or back; beyond the last is
    /// the end. A stream that runs ahead ignores this.
    pub fn seek(&mut self, piece: usize) {
        if let From::Here(chunks) = &mut self.from {
            chunks.seek(piece);
        }
    }

    /// Continues in another thread's stream, at the piece of that number: one stream for many threads takes the memory
    /// of one. A stream that runs ahead ignores this.
    pub fn turn(&mut self, thread: ThreadId, piece: usize) {
        if let From::Here(chunks) = &mut self.from {
            chunks.thread = thread;
            chunks.seek(piece);
        }
    }

    /// The number of the next piece.
    pub fn position(&self) -> usize {
        match &self.from {
            From::Here(chunks) => chunks.position(),
            From::ReadAhead(ahead) => ahead.position,
        }
    }

    /// The parts of a salvaged trace that were found missing so far.
    pub fn skipped(&self) -> &[Damage] {
        match &self.from {
            From::Here(chunks) => &chunks.skipped,
            From::ReadAhead(ahead) => &ahead.skipped,
        }
    }

    /// Bytes of memory that the stream keeps, without its caller's batch.
    pub fn memory(&self) -> usize {
        match &self.from {
            From::Here(chunks) => chunks.room.memory(),
            From::ReadAhead(_) => 0,
        }
    }
}

/// The chunks of a thread, decoded one after the other.
pub(crate) struct Chunks {
    trace: Trace,
    thread: ThreadId,
    next: usize,
    room: Room,
    decoder: Decoder,
    skipped: Vec<Damage>,
}

impl Chunks {
    pub(crate) fn new(trace: Trace, thread: ThreadId) -> Chunks {
        Chunks {
            trace,
            thread,
            next: 0,
            room: Room::default(),
            decoder: Decoder::default(),
            skipped: Vec::new(),
        }
    }

    /// The number of the next chunk.
    pub(crate) fn position(&self) -> usize {
        self.next
    }

    pub(crate) fn seek(&mut self, chunk: usize) {
        self.next = chunk;
    }

    pub(crate) fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        while let Some(&entry) = self.trace.chunks(self.thread).get(self.next) {
            self.next += 1;
            match self.decode(entry, batch) {
                Ok(()) => return Ok(true),
                Err(error) if self.trace.tables.salvage && !matches!(error, TraceError::Read { .. }) => {
                    let damage = error.to_damage(entry.offset);
                    self.trace.tables.skip(damage.clone());
                    self.skipped.push(damage);
                }
                Err(error) => {
                    // An error is the end: later pieces would not fit the earlier ones.
                    self.next = usize::MAX;
                    batch.refs.clear();
                    batch.events.clear();
                    return Err(error);
                }
            }
        }
        batch.refs.clear();
        batch.events.clear();
        Ok(false)
    }

    fn decode(&mut self, entry: Entry, batch: &mut Batch) -> Result<(), TraceError> {
        let damaged = |what: &str| TraceError::damaged(entry.offset, what);
        let tables = &self.trace.tables;
        self.trace.source.payload(entry, limits::CHUNK_BYTES, &mut self.room)?;
        self.decoder
            .decode(&self.room.raw, &tables.sites, &mut batch.refs, &mut batch.events)
            .map_err(damaged)?;
        if batch.refs.len() != entry.head.count as usize {
            return Err(damaged("a chunk holds more or less than its header says"));
        }
        self.check_events(entry, &batch.events)
    }

    /// The events of a chunk, without its references.
    pub(crate) fn events(&mut self, entry: Entry, events: &mut Vec<Timed>) -> Result<(), TraceError> {
        self.trace.source.payload(entry, limits::CHUNK_BYTES, &mut self.room)?;
        Decoder::events(&self.room.raw, events).map_err(|what| TraceError::damaged(entry.offset, what))?;
        self.check_events(entry, events)
    }

    fn check_events(&self, entry: Entry, events: &[Timed]) -> Result<(), TraceError> {
        let damaged = |what: &str| TraceError::damaged(entry.offset, what);
        if events.len() != entry.head.events as usize {
            return Err(damaged("a chunk holds more or less than its header says"));
        }
        let tables = &self.trace.tables;
        let (threads, stacks) = (tables.tables.threads.len(), tables.tables.stacks.len());
        let known = |timed: &Timed| match &timed.event {
            Event::Alloc { stack, .. } | Event::Called { stack } => (*stack as usize) < stacks,
            Event::Spawn { child } | Event::Join { child } => (*child as usize) < threads,
            _ => true,
        };
        if events.iter().all(known) {
            Ok(())
        } else {
            Err(damaged(
                "an event names a stack or a thread that the tables do not have",
            ))
        }
    }
}

/// A message from the other thread: no batch at the end.
struct Piece {
    batch: Option<Batch>,
    /// Number of the piece after it.
    position: usize,
    skipped: Vec<Damage>,
}

/// A stream that another thread decodes.
pub(crate) struct ReadAhead {
    full: Option<Receiver<Result<Piece, TraceError>>>,
    empty: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<()>>,
    position: usize,
    skipped: Vec<Damage>,
}

impl ReadAhead {
    /// If no thread can be started, the stream stays as it is.
    fn start(chunks: Chunks, depth: usize) -> From {
        let position = chunks.position();
        let (give, full) = sync_channel(depth);
        let (empty, take) = sync_channel::<Batch>(depth);
        let lent = Arc::new(Mutex::new(Some(chunks)));
        let borrowed = Arc::clone(&lent);
        let work = move || {
            let Some(mut chunks) = borrowed.lock().ok().and_then(|mut slot| slot.take()) else {
                return;
            };
            loop {
                let mut batch = take.try_recv().unwrap_or_default();
                let piece = match chunks.next(&mut batch) {
                    Ok(more) => Ok(Piece {
                        batch: more.then_some(batch),
                        position: chunks.position(),
                        skipped: std::mem::take(&mut chunks.skipped),
                    }),
                    Err(error) => Err(error),
                };
                let last = !matches!(piece, Ok(Piece { batch: Some(_), .. }));
                if give.send(piece).is_err() || last {
                    return;
                }
            }
        };
        match std::thread::Builder::new().name("trace-reader".into()).spawn(work) {
            Ok(thread) => From::ReadAhead(ReadAhead {
                full: Some(full),
                empty: Some(empty),
                thread: Some(thread),
                position,
                skipped: Vec::new(),
            }),
            Err(_) => match lent.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(chunks) => From::Here(Box::new(chunks)),
                None => From::ReadAhead(ReadAhead {
                    full: None,
                    empty: None,
                    thread: None,
                    position,
                    skipped: Vec::new(),
                }),
            },
        }
    }

    fn next(&mut self, batch: &mut Batch) -> Result<bool, TraceError> {
        let piece = match self.full.as_ref().map(Receiver::recv) {
            Some(Ok(piece)) => piece,
            // The other thread has ended: it has sent the end, or it has panicked.
            _ => match self.thread.take().map(JoinHandle::join) {
                Some(Err(_)) => Err(TraceError::Refused("the thread that reads the trace has failed".into())),
                _ => Ok(Piece {
                    batch: None,
                    position: self.position,
                    skipped: Vec::new(),
                }),
            },
        };
        let piece = piece?;
        self.skipped.extend(piece.skipped);
        self.position = piece.position;
        let Some(next) = piece.batch else {
            batch.refs.clear();
            batch.events.clear();
            return Ok(false);
        };
        let used = std::mem::replace(batch, next);
        if let Some(empty) = &self.empty {
            // If there is no room, its memory is freed.
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
