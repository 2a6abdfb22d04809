//! The lower half of the writer: encodes, compresses and appends blocks, here or on a separate thread, which keeps the
//! caller's processor free.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::block::{BlockHead, FILE_HEAD, Kind, file_head};
use crate::chunk::{Encoded, Encoder};
use crate::error::TraceError;
use crate::limits;
use crate::model::{Event, Ref, Site, ThreadId, Timed};
use crate::order::{self, Run};
use crate::table::encode_sites;

/// Something to append.
pub enum Job {
    Json(Kind, Vec<u8>),
    /// Sites that follow those written so far.
    Sites(Vec<Site>),
    Chunk {
        thread: ThreadId,
        first: u64,
        refs: Vec<Ref>,
        events: Vec<Timed>,
    },
    /// A chunk whose references are encoded.
    Encoded {
        thread: ThreadId,
        first: u64,
        encoded: Encoded,
        events: Vec<Timed>,
    },
    Order(Vec<Run>),
    /// Passes everything to the operating system.
    Flush,
    /// Index and footer.
    Finish,
}

/// A buffer for reuse.
pub enum Spare {
    Refs(Vec<Ref>),
    Encoded(Encoded),
}

/// The amount that has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Written {
    pub refs: u64,
    pub events: u64,
    pub instructions: u64,
    pub chunks: u64,
    pub bytes: u64,
}

/// Appends to a file or anything else that can be written to.
pub struct Sink {
    out: Box<dyn Write + Send>,
    written: Written,
    zstd: zstd::bulk::Compressor<'static>,
    sites: Vec<Site>,
    encoder: Encoder,
    raw: Vec<u8>,
    packed: Vec<u8>,
    /// Offset and header of every block, as the index block will hold them.
    index: Vec<u8>,
    blocks: u32,
    failed: bool,
}

impl Sink {
    pub fn new(out: Box<dyn Write + Send>, level: i32) -> Result<Sink, TraceError> {
        let zstd = zstd::bulk::Compressor::new(level).map_err(|source| TraceError::Write {
            source,
            references: 0,
            bytes: 0,
        })?;
        let mut sink = Sink {
            out,
            written: Written::default(),
            zstd,
            sites: Vec::new(),
            encoder: Encoder::default(),
            raw: Vec::new(),
            packed: Vec::new(),
            index: Vec::new(),
            blocks: 0,
            failed: false,
        };
        sink.out
            .write_all(&file_head())
            .map_err(|source| sink.failure(source))?;
        sink.written.bytes = FILE_HEAD;
        Ok(sink)
    }

    fn failure(&self, source: std::io::Error) -> TraceError {
        TraceError::Write {
            source,
            references: self.written.refs,
            bytes: self.written.bytes,
        }
    }

    /// Appends one job's blocks. Returns a buffer for reuse.
    fn apply(&mut self, job: Job) -> Result<Option<Spare>, TraceError> {
        if self.failed {
            return Ok(None);
        }
        let done = self.append(job);
        self.failed = done.is_err();
        done
    }

    fn append(&mut self, job: Job) -> Result<Option<Spare>, TraceError> {
        self.raw.clear();
        match job {
            Job::Json(kind, json) => {
                self.raw = json;
                self.block(BlockHead::new(kind))?;
            }
            Job::Sites(sites) => {
                for part in sites.chunks(limits::SITES_PER_BLOCK) {
                    self.raw.clear();
                    encode_sites(part, &mut self.raw);
                    let head = BlockHead {
                        id: self.sites.len() as u32,
                        count: part.len() as u32,
                        ..BlockHead::new(Kind::Sites)
                    };
                    self.block(head)?;
                    self.sites.extend_from_slice(part);
                }
            }
            Job::Chunk {
                thread,
                first,
                mut refs,
                events,
            } => {
                let counted = self.encoder.encode(&refs, &events, &self.sites, &mut self.raw)?;
                self.chunk(thread, first, refs.len(), counted, &events)?;
                refs.clear();
                return Ok(Some(Spare::Refs(refs)));
            }
            Job::Encoded {
                thread,
                first,
                mut encoded,
                events,
            } => {
                encoded.payload(&events, &self.sites, &mut self.raw)?;
                self.chunk(thread, first, encoded.refs, encoded.instructions, &events)?;
                encoded.clear();
                return Ok(Some(Spare::Encoded(encoded)));
            }
            Job::Order(runs) => {
                order::encode(&runs, &mut self.raw);
                self.block(order::head(runs.len()))?;
            }
            Job::Flush => self.out.flush().map_err(|source| self.failure(source))?,
            Job::Finish => self.finish()?,
        }
        Ok(None)
    }

    /// Appends the chunk whose payload is `self.raw`; its references count `counted` instructions.
    fn chunk(
        &mut self,
        thread: ThreadId,
        first: u64,
        refs: usize,
        counted: u64,
        events: &[Timed],
    ) -> Result<(), TraceError> {
        let head = BlockHead {
            id: thread,
            count: refs as u32,
            first,
            sum: instructions(counted, events),
            events: events.len() as u32,
            ..BlockHead::new(Kind::Chunk)
        };
        self.block(head)?;
        self.written.refs += refs as u64;
        self.written.events += events.len() as u64;
        self.written.instructions += head.sum;
        self.written.chunks += 1;
        Ok(())
    }

    /// Index and footer: the footer says where the index is.
    fn finish(&mut self) -> Result<(), TraceError> {
        self.raw = std::mem::take(&mut self.index);
        let at = self.written.bytes;
        self.block(BlockHead {
            count: self.blocks,
            ..BlockHead::new(Kind::Index)
        })?;
        self.raw.clear();
        self.block(BlockHead {
            first: at,
            ..BlockHead::new(Kind::Footer)
        })?;
        self.out.flush().map_err(|source| self.failure(source))
    }

    /// Appends a block whose payload is `self.raw`.
    fn block(&mut self, mut head: BlockHead) -> Result<(), TraceError> {
        head.raw = u32::try_from(self.raw.len())
            .map_err(|_| TraceError::Refused("a block of over 4 GiB: the trace is too long".into()))?;
        self.packed.clear();
        if self.raw.len() >= 16 {
            self.packed.reserve(zstd::zstd_safe::compress_bound(self.raw.len()));
            self.zstd
                .compress_to_buffer(&self.raw, &mut self.packed)
                .map_err(|source| self.failure(source))?;
        }
        head.compressed = !self.packed.is_empty() && self.packed.len() < self.raw.len();
        let payload = if head.compressed { &self.packed } else { &self.raw };
        head.stored = payload.len() as u32;
        head.crc = crc32fast::hash(payload);
        let bytes = head.to_bytes();
        let wrote = self.out.write_all(&bytes).and_then(|()| self.out.write_all(payload));
        wrote.map_err(|source| self.failure(source))?;
        self.index.extend_from_slice(&self.written.bytes.to_le_bytes());
        self.index.extend_from_slice(&bytes);
        self.blocks += 1;
        self.written.bytes += (bytes.len() + payload.len()) as u64;
        Ok(())
    }
}

/// Instructions of a chunk, of which its references count `counted`.
fn instructions(counted: u64, events: &[Timed]) -> u64 {
    let idle = events.iter().map(|timed| match timed.event {
        Event::Work { instructions } => instructions,
        _ => 0,
    });
    idle.fold(counted, u64::saturating_add)
}

/// A sink, here or on its own thread.
pub enum Pipe {
    Here(Box<Sink>),
    There {
        jobs: Option<SyncSender<Job>>,
        spare: Receiver<Spare>,
        shared: Arc<Shared>,
        thread: Option<JoinHandle<()>>,
    },
}

/// The state of a sink on another thread that the writer can see.
#[derive(Default)]
pub struct Shared {
    failure: Mutex<Option<TraceError>>,
    written: Mutex<Written>,
}

/// Chunks in flight to the other thread: enough to bridge a slow write, few enough to keep memory small (1 MiB each).
const IN_FLIGHT: usize = 8;

impl Pipe {
    pub fn background(sink: Sink) -> Result<Pipe, TraceError> {
        let (jobs, incoming) = sync_channel(IN_FLIGHT);
        let (give_back, spare) = sync_channel(IN_FLIGHT);
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("trace-writer".into())
            .spawn(move || drain(sink, &incoming, &give_back, &seen))
            .map_err(|source| TraceError::Write {
                source,
                references: 0,
                bytes: 0,
            })?;
        Ok(Pipe::There {
            jobs: Some(jobs),
            spare,
            shared,
            thread: Some(thread),
        })
    }

    /// Appends, now or soon. Also reports a failure of an earlier job. Returns an empty buffer if there is one.
    pub fn submit(&mut self, job: Job) -> Result<Option<Spare>, TraceError> {
        match self {
            Pipe::Here(sink) => sink.apply(job),
            Pipe::There {
                jobs, spare, shared, ..
            } => {
                let sent = jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
                if let Some(failure) = lock(&shared.failure).take() {
                    return Err(failure);
                }
                if !sent {
                    return Err(TraceError::Refused("the thread that writes the trace has ended".into()));
                }
                Ok(spare.try_recv().ok())
            }
        }
    }

    /// Waits until all is written.
    pub fn close(&mut self) -> Result<Written, TraceError> {
        match self {
            Pipe::Here(sink) => Ok(sink.written),
            Pipe::There {
                jobs, shared, thread, ..
            } => {
                drop(jobs.take());
                if thread.take().is_some_and(|t| t.join().is_err()) {
                    return Err(TraceError::Refused(
                        "the thread that writes the trace has failed".into(),
                    ));
                }
                match lock(&shared.failure).take() {
                    Some(failure) => Err(failure),
                    None => Ok(*lock(&shared.written)),
                }
            }
        }
    }

    /// The amount written so far; it lags behind the submitted blocks if another thread writes.
    pub fn written(&self) -> Written {
        match self {
            Pipe::Here(sink) => sink.written,
            Pipe::There { shared, .. } => *lock(&shared.written),
        }
    }
}

fn drain(mut sink: Sink, jobs: &Receiver<Job>, give_back: &SyncSender<Spare>, shared: &Shared) {
    while let Ok(job) = jobs.recv() {
        match sink.apply(job) {
            Ok(Some(spare)) => match give_back.try_send(spare) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            },
            Ok(None) => {}
            Err(failure) => *lock(&shared.failure) = Some(failure),
        }
        *lock(&shared.written) = sink.written;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
