//! Opening a trace: its tables and the positions of its chunks, not its references.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::block::{FILE_HEAD, Kind, check_file_head};
use crate::cat::Cat;
use crate::dependence::Dependence;
use crate::error::{Damage, TraceError, within};
use crate::limits;
use crate::model::{
    Array, Header, Location, Misprediction, Module, Pace, Process, Site, Stack, Symbol, Thread, ThreadId,
};
use crate::order::OrderStream;
use crate::scan::{self, Scanned};
use crate::source::{Entry, Room, Source};
use crate::stream::ThreadStream;
use crate::table::{Tables, decode_sites};

/// A trace, open for reading. Clones share everything.
#[derive(Clone)]
pub struct Trace {
    pub(crate) source: Arc<Source>,
    pub(crate) tables: Arc<Loaded>,
}

/// The data that [`Trace::open`] has read.
pub(crate) struct Loaded {
    pub header: Header,
    pub sites: Vec<Site>,
    pub tables: Tables,
    /// The chunks of all threads, thread after thread, each thread's in order.
    chunks: Vec<Entry>,
    /// The index in `chunks` at which each thread's begin, and the index at which the last thread's end.
    starts: Vec<usize>,
    order: Vec<Entry>,
    damage: Vec<Damage>,
    /// Blocks of a salvaged trace that were found damaged on reading, by position.
    skipped: Mutex<BTreeMap<u64, Damage>>,
    refs: u64,
    events: u64,
    instructions: u64,
    pub salvage: bool,
}

impl Loaded {
    /// A block that was to be read is damaged.
    pub(crate) fn skip(&self, damage: Damage) {
        let mut skipped = self.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        skipped.insert(damage.offset, damage);
    }
}

impl Trace {
    /// Opens a file. An unfinished one (a crash, a full disk) is read up to its last whole block, and [`Trace::damage`]
    /// says what is missing. Any other damage is an error, here or when the damaged chunk is read.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        Trace::load(file(path.as_ref())?, false)
    }

    /// Opens a file and recovers as much as possible: damaged blocks are skipped, wherever they are.
    pub fn salvage(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        Trace::load(file(path.as_ref())?, true)
    }

    /// Reads a trace that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Trace, TraceError> {
        Trace::load(Source::Bytes(bytes), false)
    }

    /// [`Trace::salvage`] of a trace that is in memory.
    pub fn salvage_bytes(bytes: Vec<u8>) -> Result<Trace, TraceError> {
        Trace::load(Source::Bytes(bytes), true)
    }

    fn load(source: Source, salvage: bool) -> Result<Trace, TraceError> {
        let mut head = [0u8; FILE_HEAD as usize];
        let got = source.read(0, &mut head)?;
        check_file_head(&head[..got])?;
        let Scanned { blocks, damage } = scan::blocks(&source, salvage)?;
        let mut loaded = Loaded {
            header: Header::default(),
            sites: Vec::new(),
            tables: Tables::default(),
            chunks: Vec::new(),
            starts: Vec::new(),
            order: Vec::new(),
            damage,
            skipped: Mutex::default(),
            refs: 0,
            events: 0,
            instructions: 0,
            salvage,
        };
        loaded.assemble(&source, &blocks)?;
        Ok(Trace {
            source: Arc::new(source),
            tables: Arc::new(loaded),
        })
    }

    pub fn header(&self) -> &Header {
        &self.tables.header
    }

    pub fn processes(&self) -> &[Process] {
        &self.tables.tables.processes
    }

    pub fn threads(&self) -> &[Thread] {
        &self.tables.tables.threads
    }

    pub fn sites(&self) -> &[Site] {
        &self.tables.sites
    }

    pub fn stacks(&self) -> &[Stack] {
        &self.tables.tables.stacks
    }

    pub fn modules(&self) -> &[Module] {
        &self.tables.tables.modules
    }

    pub fn symbols(&self) -> &[Symbol] {
        &self.tables.tables.symbols
    }

    pub fn locations(&self) -> &[Location] {
        &self.tables.tables.locations
    }

    /// How long instructions take without misses, for sites for which that is known; other sites wait for almost
    /// nothing, or it is unknown.
    pub fn paces(&self) -> &[Pace] {
        &self.tables.tables.paces
    }

    /// Branches that a processor mispredicts, by the reference after them; other sites have none, or it is unknown.
    pub fn mispredictions(&self) -> &[Misprediction] {
        &self.tables.tables.mispredictions
    }

    pub fn arrays(&self) -> &[Array] {
        &self.tables.tables.arrays
    }

    /// The sites whose addresses come from loads, in ascending order; `None` if that is unknown.
    pub fn dependences(&self) -> Option<&[Dependence]> {
        self.tables.tables.dependences.as_deref()
    }

    /// References of all threads.
    pub fn references(&self) -> u64 {
        self.tables.refs
    }

    /// References of one thread; 0 for one that does not exist.
    pub fn thread_references(&self, thread: ThreadId) -> u64 {
        self.chunks(thread).iter().map(|c| u64::from(c.head.count)).sum()
    }

    pub fn events(&self) -> u64 {
        self.tables.events
    }

    /// Instructions of all threads, where the trace counts them.
    pub fn instructions(&self) -> Option<u64> {
        self.header().counts_instructions.then_some(self.tables.instructions)
    }

    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.source.len()
    }

    /// The parts that are known to be missing; empty for a whole trace.
    pub fn damage(&self) -> &[Damage] {
        &self.tables.damage
    }

    /// [`Trace::damage`], and everything that was found missing while a salvaged trace was read so far.
    pub fn lost(&self) -> Vec<Damage> {
        let mut lost = self.tables.damage.clone();
        let skipped = self.tables.skipped.lock().unwrap_or_else(PoisonError::into_inner);
        lost.extend(skipped.values().cloned());
        lost.sort_by_key(|damage| damage.offset);
        lost.dedup();
        lost
    }

    /// The same in sentences.
    pub fn lost_in_words(&self) -> impl Iterator<Item = String> {
        let each = self.lost().into_iter().map(|damage| match self.tables.salvage {
            true => format!(
                "the trace is damaged at byte {}, and that part is left out: {}",
                damage.offset, damage.what
            ),
            false => format!("the trace ends early, at byte {}: {}", damage.offset, damage.what),
        });
        each.chain(self.lost_its_end().map(|what| format!("the lost part held {what}")))
    }

    /// The same in one clause: the first damage, and how much more there is.
    pub fn lost_in_a_clause(&self) -> Option<String> {
        let first = self.lost_in_words().next()?;
        let further = match self.lost().len() {
            0 | 1 => String::new(),
            2 => "; one further part is damaged".to_string(),
            places => format!("; {} further parts are damaged", places - 1),
        };
        let end = self.lost_its_end().map(|what| format!("; it held {what}"));
        Some(format!("{first}{further}{}", end.unwrap_or_default()))
    }

    /// The contents of the tables that a recording ends with, if they are missing, as they are in a file that was cut. The
    /// dependences are written last; a recording without program counters has names alone.
    fn lost_its_end(&self) -> Option<&'static str> {
        let recorded = !self.damage().is_empty() && self.header().origin.starts_with(Header::RECORDED);
        match self.header().has_pcs {
            _ if !recorded => None,
            true => self.dependences().is_none().then_some(
                "names, the pace of code and which loads wait for one another, so that simulated times may be much too short",
            ),
            false => self.modules().is_empty().then_some("the names of code and data"),
        }
    }

    /// Refuses a trace that holds nothing to simulate.
    ///
    /// Errors: [`TraceError::Empty`].
    pub fn check_references(&self) -> Result<(), TraceError> {
        match self.references() {
            0 => Err(TraceError::Empty {
                cut: self.lost_in_words().next(),
            }),
            _ => Ok(()),
        }
    }

    /// The references and events of a thread.
    pub fn thread(&self, thread: ThreadId) -> Result<ThreadStream, TraceError> {
        if thread as usize >= self.threads().len() {
            let known = self.threads().len();
            return Err(TraceError::Refused(format!(
                "there is no thread {thread}, the trace has {known}"
            )));
        }
        Ok(ThreadStream::new(self.clone(), thread))
    }

    /// The serial schedule: the sequence of the threads' references and events.
    pub fn order(&self) -> OrderStream {
        let totals = (0..self.threads().len() as ThreadId).map(|thread| {
            let chunks = self.chunks(thread);
            let refs = chunks.iter().map(|c| u64::from(c.head.count)).sum();
            let events = chunks.iter().map(|c| u64::from(c.head.events)).sum();
            (refs, events)
        });
        OrderStream::new(
            Arc::clone(&self.source),
            self.tables.order.clone(),
            totals.collect(),
            self.tables.salvage,
        )
    }

    /// Everything, in the order in which it was recorded.
    pub fn cat(&self) -> Cat {
        Cat::new(self.clone())
    }

    pub(crate) fn chunks(&self, thread: ThreadId) -> &[Entry] {
        let Loaded { chunks, starts, .. } = &*self.tables;
        match (starts.get(thread as usize), starts.get(thread as usize + 1)) {
            (Some(&from), Some(&to)) => &chunks[from..to],
            _ => &[],
        }
    }
}

fn file(path: &Path) -> Result<Source, TraceError> {
    let open = |source| TraceError::Open {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(open)?;
    let about = file.metadata().map_err(open)?;
    if !about.is_file() {
        return Err(TraceError::NotATrace {
            what: format!("{} is not a regular file", path.display()),
        });
    }
    Ok(Source::File(file, about.len()))
}

impl Loaded {
    fn assemble(&mut self, source: &Source, blocks: &[Entry]) -> Result<(), TraceError> {
        let mut memory = Room::default();
        let mut header = None;
        let is_table = |entry: &&Entry| matches!(entry.head.kind, Kind::Header | Kind::Tables | Kind::Sites);
        let stored: u64 = blocks
            .iter()
            .filter(is_table)
            .map(|entry| u64::from(entry.head.stored))
            .sum();
        let allowed = limits::TABLE_BYTES as u64 + limits::TABLES_PER_STORED * stored;
        let allowed = allowed.min(limits::TABLES_BYTES);
        let mut room = allowed;
        for &entry in blocks {
            let offset = entry.offset;
            let taken = match entry.head.kind {
                Kind::Chunk | Kind::Order | Kind::Index | Kind::Footer => continue,
                Kind::Header | Kind::Tables | Kind::Sites => {
                    let size = u64::from(entry.head.raw);
                    within(offset, "bytes of tables", allowed - room + size, allowed).and_then(|()| {
                        room -= size;
                        source.payload(entry, limits::TABLE_BYTES, &mut memory)?;
                        self.table(entry, &memory.raw, &mut header)
                    })
                }
            };
            self.tolerate(taken, offset)?;
        }
        self.header = match (self.tables.header.take(), header) {
            (Some(last), _) => last,
            (None, Some(first)) => first,
            (None, None) if self.salvage => Header::default(),
            (None, None) => return Err(TraceError::damaged(FILE_HEAD, "the header block is missing")),
        };
        self.tables
            .check()
            .and_then(|()| self.tables.check_sites(self.sites.len(), self.salvage))
            .map_err(|what| TraceError::damaged(FILE_HEAD, what))?;
        // How many references of each thread the previous chunks hold.
        let mut so_far = vec![0; self.tables.threads.len()];
        for &entry in blocks {
            match entry.head.kind {
                Kind::Chunk => {
                    let placed = self.place(entry, &mut so_far);
                    self.tolerate(placed, entry.offset)?;
                }
                Kind::Order => self.order.push(entry),
                _ => {}
            }
        }
        // One list for all: a list for each of a million threads would take five times the memory.
        self.chunks.sort_by_key(|entry| entry.head.id);
        self.chunks.shrink_to_fit();
        let threads = 0..=so_far.len() as ThreadId;
        let start = |thread| self.chunks.partition_point(|entry| entry.head.id < thread);
        self.starts = threads.map(start).collect();
        Ok(())
    }

    /// Adds a block of tables.
    fn table(&mut self, entry: Entry, raw: &[u8], header: &mut Option<Header>) -> Result<(), TraceError> {
        let Entry { offset, head } = entry;
        let json = |e: serde_json::Error| TraceError::damaged(offset, format!("a table cannot be read: {e}"));
        match head.kind {
            Kind::Header => *header = Some(serde_json::from_slice(raw).map_err(json)?),
            Kind::Tables => {
                let more: Tables = serde_json::from_slice(raw).map_err(json)?;
                self.tables
                    .append(more)
                    .map_err(|what| TraceError::damaged(offset, what))?;
            }
            _ => {
                if head.id as usize != self.sites.len() {
                    return Err(TraceError::damaged(
                        offset,
                        "a block of sites is missing before this one, and references that need it are lost",
                    ));
                }
                decode_sites(raw, head.count as usize, offset, &mut self.sites)?;
            }
        }
        Ok(())
    }

    /// Gives a chunk to its thread.
    fn place(&mut self, entry: Entry, so_far: &mut [u64]) -> Result<(), TraceError> {
        let Entry { offset, head } = entry;
        let Some(so_far) = so_far.get_mut(head.id as usize) else {
            return Err(TraceError::damaged(
                offset,
                format!("a chunk of thread {}, which is unknown", head.id),
            ));
        };
        within(
            offset,
            "references in a chunk",
            u64::from(head.count),
            limits::CHUNK_REFS as u64,
        )?;
        within(
            offset,
            "events in a chunk",
            u64::from(head.events),
            limits::CHUNK_EVENTS as u64,
        )?;
        if head.first != *so_far && !self.salvage {
            return Err(TraceError::damaged(
                offset,
                format!("a chunk is missing before this one of thread {}", head.id),
            ));
        }
        *so_far = head.first.saturating_add(head.count.into());
        self.chunks.push(entry);
        self.refs += u64::from(head.count);
        self.events += u64::from(head.events);
        self.instructions = self.instructions.saturating_add(head.sum);
        Ok(())
    }

    /// Damage ends the reading, or is noted when salvaging.
    fn tolerate(&mut self, outcome: Result<(), TraceError>, offset: u64) -> Result<(), TraceError> {
        match outcome {
            Err(error) if self.salvage && !matches!(error, TraceError::Read { .. }) => {
                self.damage.push(error.to_damage(offset));
                Ok(())
            }
            other => other,
        }
    }
}
