//! Writing a trace.
//!
//! References and events are buffered by thread (references that come in runs are encoded at once) and written as
//! chunks; tables are written just before the first chunk that may need them, so that a file that ends early can still
//! be read up to there.

mod loan;
mod runs;
mod tables;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::block::Kind;
use crate::chunk::{Coder, Encoded};
use crate::error::TraceError;
use crate::limits;
use crate::model::{Event, Header, Ref, ThreadId, Timed};
use crate::order::Run;
use crate::register::Register;
use crate::sink::{Job, Pipe, Sink, Spare};

/// How a trace is written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Encode, compress and write on a separate thread.
    pub background: bool,
    /// zstd level.
    pub level: i32,
    /// References that all threads' buffers hold together before the longest are written.
    pub buffered_refs: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            background: false,
            level: 1,
            buffered_refs: limits::BUFFERED_REFS,
        }
    }
}

/// The totals of a finished trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub references: u64,
    pub events: u64,
    /// 0 unless the header says that instructions are counted.
    pub instructions: u64,
    pub threads: u64,
    pub sites: u64,
    pub chunks: u64,
    pub bytes: u64,
    pub bytes_per_reference: f64,
}

/// References and events of a thread that are not in a chunk yet.
#[derive(Default)]
struct Buffer {
    refs: Vec<Ref>,
    events: Vec<Timed>,
    event_bytes: usize,
    /// Bytes of the wide references that are not in a chunk yet.
    wide: usize,
    /// References in the thread's chunks so far.
    first: u64,
    /// How many references `refs` had when it was lent out.
    lent: Option<usize>,
    /// Holds the references instead, if they come in runs.
    coder: Option<Box<Coder>>,
    /// The coder's weight in [`Writer::buffered`].
    weight: usize,
    /// True if they last came in runs.
    by_runs: bool,
}

impl Buffer {
    /// References that are not in a chunk yet.
    fn len(&self) -> usize {
        self.refs.len() + self.coder.as_ref().map_or(0, |coder| coder.encoded.refs)
    }

    /// How many of these references fit into the chunk, which has this much room, and whether it is then full.
    fn fitting(&mut self, refs: &[Ref], room: usize) -> (usize, bool) {
        let most = room.min(refs.len());
        for (at, r) in refs[..most].iter().enumerate() {
            if r.size > limits::WIDE {
                let wide = self.wide + usize::from(r.size);
                if wide > limits::WIDE_BYTES {
                    return (at, true);
                }
                self.wide = wide;
            }
        }
        (most, most == room)
    }
}

/// Writes a trace.
///
/// The methods that name things (processes, threads, sites, stacks, tables) cannot fail; if one exceeds the limits of
/// the format, the next call of [`Writer::refs`], [`Writer::event`] or [`Writer::finish`] reports that. A writer that
/// is dropped without [`Writer::finish`] writes its buffers, as far as possible.
pub struct Writer {
    pipe: Pipe,
    options: Options,
    buffers: Vec<Buffer>,
    /// References in all buffers.
    buffered: usize,
    /// An empty buffer to use next.
    spare: Option<Vec<Ref>>,
    /// The same for references that come in runs.
    encoded: Option<Encoded>,
    coder: Option<Box<Coder>>,
    register: Register,
    /// Entries that the tables gained since they were last written.
    waiting: usize,
    order: Vec<Run>,
    /// Chunks written since the schedule was last written.
    unscheduled: u32,
    next_order: u64,
    open: bool,
}

/// Entries of tables that wait for the next chunk.
const WAITING: usize = 4096;
/// Chunks after which the schedule is written.
const SCHEDULE_EVERY: u32 = 64;

impl Writer {
    /// Creates (or overwrites) a file.
    pub fn create(path: impl AsRef<Path>, header: &Header) -> Result<Writer, TraceError> {
        Writer::create_with(path, header, Options::default())
    }

    pub fn create_with(path: impl AsRef<Path>, header: &Header, options: Options) -> Result<Writer, TraceError> {
        let path = path.as_ref();
        let file = File::create(path).map_err(|source| TraceError::Open {
            path: path.to_path_buf(),
            source,
        })?;
        Writer::new(file, header, options)
    }

    /// Writes to anything. Blocks are written whole, so `out` needs no buffer.
    pub fn new(out: impl Write + Send + 'static, header: &Header, options: Options) -> Result<Writer, TraceError> {
        let sink = Sink::new(Box::new(out), options.level)?;
        let mut pipe = if options.background {
            Pipe::background(sink)?
        } else {
            Pipe::Here(Box::new(sink))
        };
        let json = serde_json::to_vec(header).map_err(|e| TraceError::Refused(format!("the header: {e}")))?;
        if json.len() > limits::TABLE_BYTES {
            return Err(TraceError::Refused("the header takes over 16 MiB".into()));
        }
        pipe.submit(Job::Json(Kind::Header, json))?;
        Ok(Writer {
            pipe,
            options,
            buffers: Vec::new(),
            buffered: 0,
            spare: None,
            encoded: None,
            coder: None,
            register: Register::default(),
            waiting: 0,
            order: Vec::new(),
            unscheduled: 0,
            next_order: 0,
            open: true,
        })
    }

    /// Adds references of a thread, in its order.
    pub fn refs(&mut self, thread: ThreadId, mut refs: &[Ref]) -> Result<(), TraceError> {
        self.run(thread, refs.len() as u64, 0)?;
        if self.buffers[thread as usize].by_runs {
            refs = self.among_runs(thread, refs)?;
        }
        while !refs.is_empty() {
            let buffer = &mut self.buffers[thread as usize];
            if buffer.refs.capacity() == 0
                && let Some(spare) = self.spare.take()
            {
                buffer.refs = spare;
            }
            let (now, full) = buffer.fitting(refs, limits::CHUNK_REFS - buffer.refs.len());
            let (now, later) = refs.split_at(now);
            buffer.refs.extend_from_slice(now);
            self.buffered += now.len();
            refs = later;
            if full {
                self.chunk(thread)?;
            } else if self.buffered > self.options.buffered_refs {
                self.relieve()?;
            }
        }
        Ok(())
    }

    /// Adds one reference of a thread.
    #[inline]
    pub fn push(&mut self, thread: ThreadId, r: Ref) -> Result<(), TraceError> {
        self.refs(thread, std::slice::from_ref(&r))
    }

    /// Adds an event of a thread, after the references given so far.
    pub fn event(&mut self, thread: ThreadId, event: Event) -> Result<(), TraceError> {
        self.run(thread, 0, 1)?;
        let bytes = self.event_bytes(&event)?;
        let order = self.next_order;
        self.next_order += 1;
        let buffer = &mut self.buffers[thread as usize];
        let at = buffer.len() as u32;
        buffer.events.push(Timed { at, order, event });
        buffer.event_bytes += bytes;
        // An event weighs about as much as four references.
        self.buffered += 4;
        if buffer.events.len() == limits::CHUNK_EVENTS || buffer.event_bytes > limits::CHUNK_EVENT_BYTES / 2 {
            self.chunk(thread)?;
        } else if self.buffered > self.options.buffered_refs {
            self.relieve()?;
        }
        Ok(())
    }

    /// Checks the names in an event; returns the bytes that it may take in a chunk.
    fn event_bytes(&self, event: &Event) -> Result<usize, TraceError> {
        let fault = match event {
            Event::Alloc { stack, .. } | Event::Called { stack } if *stack as usize >= self.register.stacks() => {
                "a stack that was not added"
            }
            Event::Spawn { child } | Event::Join { child } if *child as usize >= self.buffers.len() => {
                "a thread that was not added"
            }
            Event::DataThread { thread, .. } if *thread as usize >= self.buffers.len() => "a thread that was not added",
            Event::Phase { name } if name.len() > limits::NAME_BYTES => "a name of over 64 KiB",
            Event::WorkBegin { hints } if hints.len() > limits::HINTS => "over 4096 hints",
            Event::Phase { name } => return Ok(40 + name.len()),
            Event::Summary { text } if text.len() <= limits::SUMMARY_BYTES => return Ok(40 + text.len()),
            Event::Summary { .. } => "a summary of over 1 MiB",
            Event::WorkBegin { hints } => return Ok(40 + hints.len() * 10),
            _ => return Ok(40),
        };
        Err(TraceError::Refused(format!("an event names {fault}")))
    }

    /// Checks that the thread can receive references and events.
    fn check(&self, thread: ThreadId) -> Result<(), TraceError> {
        self.register.check()?;
        let Some(buffer) = self.buffers.get(thread as usize) else {
            return Err(TraceError::Refused(format!("thread {thread} has not been added")));
        };
        if buffer.lent.is_some() {
            return Err(TraceError::Refused(format!(
                "the buffer of thread {thread} is lent out"
            )));
        }
        Ok(())
    }

    /// Notes in the serial schedule which thread continues.
    fn run(&mut self, thread: ThreadId, refs: u64, events: u64) -> Result<(), TraceError> {
        self.check(thread)?;
        match self.order.last_mut() {
            Some(run) if run.thread == thread => {
                run.refs += refs;
                run.events += events;
            }
            _ => {
                if self.order.len() == limits::ORDER_RUNS {
                    self.schedule()?;
                }
                self.order.push(Run { thread, refs, events });
            }
        }
        Ok(())
    }

    /// Writes the schedule so far. As long as there is only one thread there is nothing to write.
    fn schedule(&mut self) -> Result<(), TraceError> {
        self.unscheduled = 0;
        if self.order.is_empty() || self.buffers.len() == 1 {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.order);
        self.submit(Job::Order(runs))
    }

    /// Writes out the thread's buffer.
    fn chunk(&mut self, thread: ThreadId) -> Result<(), TraceError> {
        self.tables()?;
        let buffer = &mut self.buffers[thread as usize];
        if buffer.len() == 0 && buffer.events.is_empty() {
            return Ok(());
        }
        let coder = buffer.coder.take();
        let refs = std::mem::take(&mut buffer.refs);
        let events = std::mem::take(&mut buffer.events);
        (buffer.event_bytes, buffer.wide) = (0, 0);
        let first = buffer.first;
        let held = refs.len() + std::mem::take(&mut buffer.weight) + 4 * events.len();
        buffer.first += (refs.len() + coder.as_ref().map_or(0, |coder| coder.encoded.refs)) as u64;
        self.buffered -= held;
        let job = match coder {
            Some(coder) => Job::Encoded {
                thread,
                first,
                encoded: self.uncode(coder),
                events,
            },
            None => Job::Chunk {
                thread,
                first,
                refs,
                events,
            },
        };
        self.submit(job)?;
        // A crash may lose the schedule of the last chunks, not that of the whole run.
        self.unscheduled += 1;
        if self.unscheduled >= SCHEDULE_EVERY {
            self.schedule()
        } else {
            Ok(())
        }
    }

    /// All buffers together are too long: writes the longer ones, at least half of all.
    fn relieve(&mut self) -> Result<(), TraceError> {
        let fair = self.buffered / (2 * self.buffers.len());
        for thread in 0..self.buffers.len() {
            let buffer = &self.buffers[thread];
            if buffer.lent.is_none() && buffer.refs.len() + buffer.weight + 4 * buffer.events.len() >= fair.max(1) {
                self.chunk(thread as ThreadId)?;
            }
        }
        // Only buffers in use may keep memory.
        (self.spare, self.encoded, self.coder) = (None, None, None);
        Ok(())
    }

    fn tables(&mut self) -> Result<(), TraceError> {
        self.waiting = 0;
        let mut jobs = Vec::new();
        self.register.blocks(&mut jobs)?;
        jobs.into_iter().try_for_each(|job| self.submit(job))
    }

    fn submit(&mut self, job: Job) -> Result<(), TraceError> {
        match self.pipe.submit(job) {
            Ok(Some(Spare::Refs(refs))) => self.spare = Some(refs),
            Ok(Some(Spare::Encoded(encoded))) => self.encoded = Some(encoded),
            Ok(None) => {}
            Err(failure) => {
                // The file cannot continue after a gap: everything else is refused.
                self.register.fail(&failure);
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Writes all buffers; the trace can be read up to here whatever happens next.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.register.check()?;
        if let Some(thread) = self.buffers.iter().position(|b| b.lent.is_some()) {
            return Err(TraceError::Refused(format!(
                "the buffer of thread {thread} is lent out"
            )));
        }
        self.tables()?;
        for thread in 0..self.buffers.len() {
            self.chunk(thread as ThreadId)?;
        }
        self.schedule()?;
        self.submit(Job::Flush)
    }

    /// References given so far, buffered ones included.
    pub fn references(&self) -> u64 {
        self.buffers.iter().map(|b| b.first + b.len() as u64).sum()
    }

    /// References that are in chunks, as far as this thread knows.
    pub fn written_references(&self) -> u64 {
        self.pipe.written().refs
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.pipe.written().bytes
    }

    /// Writes the rest, the index and the footer.
    pub fn finish(mut self) -> Result<Summary, TraceError> {
        self.end()
    }

    fn end(&mut self) -> Result<Summary, TraceError> {
        self.open = false;
        let ended = self.flush().and_then(|()| self.submit(Job::Finish));
        let closed = self.pipe.close();
        ended?;
        let written = closed?;
        Ok(Summary {
            references: written.refs,
            events: written.events,
            instructions: written.instructions,
            threads: self.buffers.len() as u64,
            sites: self.register.sites() as u64,
            chunks: written.chunks,
            bytes: written.bytes,
            bytes_per_reference: if written.refs == 0 {
                0.0
            } else {
                written.bytes as f64 / written.refs as f64
            },
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.open {
            // There is no caller left to report a failure to; the written part stays readable.
            let _ = self.end();
        }
    }
}
