//! The recorded program: its threads and processes, assembled from one file or from many.

use std::collections::HashMap;

use super::kind::{Kind, VERSION, filetype, marker};
use super::tally::{Strange, Tally};
use crate::block::u64_at;
use crate::error::TraceError;
use crate::limits;
use crate::model::{Event, Op, Process, Ref, Site, Thread, ThreadId};
use crate::writer::Writer;

/// Versions of the format are small numbers.
const VERSION_BOUND: u64 = 1000;

/// The first address of the kernel's half, on all supported processors.
const KERNEL_HALF: u64 = 1 << 63;

/// A record: its type, its size, and an address, a number or the lengths of instructions.
#[derive(Clone, Copy)]
pub struct Record {
    pub kind: u16,
    pub size: u16,
    pub value: u64,
}

impl Record {
    pub fn new(bytes: [u8; 12]) -> Record {
        Record {
            kind: u16::from_le_bytes([bytes[0], bytes[1]]),
            size: u16::from_le_bytes([bytes[2], bytes[3]]),
            value: u64_at(&bytes, 4),
        }
    }

    /// True if it can be the first of a file.
    pub fn begins(&self) -> bool {
        Kind::of(self.kind) == Kind::Header && self.value < VERSION_BOUND
    }

    /// True if it names the thread of the records after it.
    pub fn is_thread(&self) -> bool {
        Kind::of(self.kind) == Kind::Thread
    }

    pub fn is_marker(&self, kind: u16) -> bool {
        Kind::of(self.kind) == Kind::Marker && self.size == kind
    }
}

/// Why a record is refused.
pub enum Fault {
    /// It is wrong itself.
    Record(String),
    Trace(TraceError),
}

impl From<TraceError> for Fault {
    fn from(error: TraceError) -> Fault {
        Fault::Trace(error)
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Fault {
        Fault::Record(what)
    }
}

/// The state of reading one file.
#[derive(Default)]
pub struct Stream {
    /// Threads of the same number are the same thread if this is equal.
    space: usize,
    /// True if a later file continues the same thread.
    goes_on: bool,
    /// The window of the file, if its folder shows it.
    window: Option<u64>,
    file_type: u64,
    /// The thread of the present records.
    now: Option<usize>,
    /// The process named last.
    pid: u64,
    /// True while the kernel works for no thread: it switches between threads, or serves a device.
    switches: bool,
    interrupts: u32,
    /// True if filtering has ended, for all threads of a file of one core, and the current window.
    counts: bool,
    reached: Option<u64>,
}

impl Stream {
    pub fn new(space: usize, goes_on: bool, window: Option<u64>) -> Stream {
        Stream {
            space,
            goes_on,
            window,
            ..Stream::default()
        }
    }
}

/// A thread of the program.
#[derive(Default)]
struct Doer {
    tid: u64,
    pid: u64,
    /// Its number in the trace, once it has done something.
    id: Option<ThreadId>,
    pc: u64,
    /// The address of the instruction after the last one.
    after: u64,
    window: Option<u64>,
    /// The first window in which its stream contains the end of its filtering.
    counted: Option<u32>,
    /// True if the kernel works for it.
    in_call: bool,
    /// True if, by its address and not by markers, its last instruction was the kernel's.
    in_kernel: bool,
}

impl Doer {
    fn index(&self) -> u32 {
        self.window.unwrap_or(0) as u32
    }

    /// True if it stands for a core that has nothing to run.
    fn is_idle(&self) -> bool {
        self.tid as u32 == u32::MAX
    }
}

pub struct Program {
    about: Process,
    doers: Vec<Doer>,
    /// Those that live, by space and number.
    alive: HashMap<(usize, u64), usize>,
    processes: HashMap<u64, u32>,
    pub tally: Tally,
    pub page_bytes: Option<u64>,
}

impl Program {
    pub fn new(about: Process) -> Program {
        Program {
            about,
            doers: Vec::new(),
            alive: HashMap::new(),
            processes: HashMap::new(),
            tally: Tally::default(),
            page_bytes: None,
        }
    }

    pub fn take(&mut self, record: Record, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        let Record { kind, size, value } = record;
        match Kind::of(kind) {
            Kind::Data(op) => {
                let size = if op == Op::Prefetch { 1 } else { size };
                self.data(op, value, size, stream, writer)?;
            }
            Kind::Fetch => self.fetch(value, size, stream, writer)?,
            Kind::Bundle => {
                let lengths = value.to_le_bytes();
                let Some(lengths) = lengths.get(..usize::from(size)) else {
                    return Err(format!("a bundle of {size} instructions, 8 are the most").into());
                };
                for &length in lengths {
                    let after = self.now(stream)?.after;
                    self.fetch(after, u16::from(length), stream, writer)?;
                }
            }
            Kind::MaybeFetch => match self.now(stream)?.pc == value {
                true => drop(self.comes(value, stream)?),
                false => self.fetch(value, size, stream, writer)?,
            },
            Kind::Round => drop(self.comes(value, stream)?),
            Kind::Thread => stream.now = Some(self.thread(value, stream)?),
            Kind::Pid => {
                stream.pid = value;
                self.now(stream)?.pid = value;
            }
            Kind::Exit => {
                stream.now = Some(self.thread(value, stream)?);
                self.exit(stream, writer)?;
            }
            Kind::Header => self.begin(value, stream)?,
            Kind::Marker => self.marker(size, value, stream, writer)?,
            Kind::Passed => {}
            Kind::Unknown => self.tally.strange(Strange::Record(kind))?,
        }
        Ok(())
    }

    /// A file begins, or another within one: nothing about the previous one holds. If a file is of one core, it is only
    /// the beginning of another thread's part.
    fn begin(&mut self, version: u64, stream: &mut Stream) -> Result<(), Fault> {
        if stream.file_type & filetype::CORE_SHARDED == 0 {
            *stream = Stream::new(stream.space, stream.goes_on, stream.window);
        }
        if version > VERSION {
            self.tally.strange(Strange::Version(version))?;
        }
        Ok(())
    }

    fn marker(&mut self, kind: u16, value: u64, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        match kind {
            marker::FILETYPE => {
                stream.file_type = value;
                if value & filetype::CORE_SHARDED != 0 {
                    stream.space = 0;
                }
                self.tally.file_type(value)?;
            }
            marker::WINDOW_ID => {
                stream.window = None;
                self.window(value, stream, writer)?;
            }
            marker::PAGE_SIZE if value.is_power_of_two() => self.page_bytes = Some(value),
            marker::FILTER_ENDPOINT => {
                stream.counts = stream.file_type & filetype::CORE_SHARDED != 0;
                self.tally.counts_from_here();
                self.count(stream, writer)?;
            }
            marker::SYSCALL_TRACE_START => self.now(stream)?.in_call = true,
            marker::SYSCALL_TRACE_END => self.now(stream)?.in_call = false,
            marker::CONTEXT_SWITCH_START => stream.switches = true,
            marker::CONTEXT_SWITCH_END => stream.switches = false,
            marker::HARDWARE_EVENT => stream.interrupts = stream.interrupts.saturating_add(1),
            marker::HARDWARE_CONTEXT_RETURN => stream.interrupts = stream.interrupts.saturating_sub(1),
            0..=marker::LAST => {}
            other => self.tally.strange(Strange::Marker(other))?,
        }
        Ok(())
    }

    /// The thread of the present records is in a window. Each buffer of the recorder repeats that.
    fn window(&mut self, number: u64, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        let doer = self.now(stream)?;
        if doer.window == Some(number) || doer.is_idle() {
            return Ok(());
        }
        doer.window = Some(number);
        if stream.reached < Some(number) {
            // Each begins filtered.
            stream.reached = Some(number);
            stream.counts = false;
        }
        let index = number as u32;
        self.tally.window(index);
        let thread = self.id(stream, writer)?;
        Ok(writer.event(thread, Event::Window { index })?)
    }

    /// The work of the thread of the present records is counted from here on: filtering has ended.
    fn count(&mut self, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        let doer = self.now(stream)?;
        let index = doer.index();
        if doer.counted == Some(index) || doer.is_idle() {
            return Ok(());
        }
        doer.counted = Some(index);
        let thread = self.id(stream, writer)?;
        Ok(writer.event(thread, Event::Counted { index })?)
    }

    /// True if, by the markers, the kernel works.
    fn is_told_kernel(&mut self, stream: &mut Stream) -> Result<bool, Fault> {
        Ok(stream.switches || stream.interrupts > 0 || self.now(stream)?.in_call)
    }

    /// An instruction at `pc` comes: returns whether it is the kernel's. A trace may begin within the kernel, before
    /// any marker; then its addresses decide.
    fn comes(&mut self, pc: u64, stream: &mut Stream) -> Result<bool, Fault> {
        let told = self.is_told_kernel(stream)?;
        let doer = self.now(stream)?;
        doer.in_kernel = !told && pc >= KERNEL_HALF;
        if told || doer.in_kernel {
            return Ok(true);
        }
        doer.pc = pc;
        Ok(false)
    }

    fn fetch(&mut self, pc: u64, size: u16, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        self.now(stream)?.after = pc.wrapping_add(u64::from(size));
        // Without a size it only states the instruction of the following data.
        if self.comes(pc, stream)? {
            self.tally.fetched_in_kernel(u64::from(size > 0));
            return Ok(());
        }
        if size == 0 {
            return Ok(());
        }
        self.tally.fetched();
        self.reference(Op::Fetch, pc, size, 1, stream, writer)
    }

    fn data(&mut self, op: Op, addr: u64, size: u16, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        if size == 0 {
            // Touches nothing.
            return Ok(());
        }
        if self.is_told_kernel(stream)? || self.now(stream)?.in_kernel {
            self.tally.touched_in_kernel();
            return Ok(());
        }
        self.tally.touched();
        self.reference(op, addr, size, 0, stream, writer)
    }

    fn reference(
        &mut self,
        op: Op,
        addr: u64,
        size: u16,
        insns: u8,
        stream: &mut Stream,
        writer: &mut Writer,
    ) -> Result<(), Fault> {
        let thread = self.id(stream, writer)?;
        if let Some(window) = stream.window {
            self.window(window, stream, writer)?;
        }
        if stream.counts {
            self.count(stream, writer)?;
        }
        let pc = self.now(stream)?.pc;
        let site = writer.site(Site { pc, op, size });
        let reference = Ref {
            addr,
            site,
            insns,
            op,
            size,
        };
        Ok(writer.push(thread, reference)?)
    }

    /// The thread has ended. If a file of a later window continues it, its stream continues.
    fn exit(&mut self, stream: &mut Stream, writer: &mut Writer) -> Result<(), Fault> {
        let doer = self.now(stream)?;
        let (space, tid, idle) = (stream.space, doer.tid, doer.is_idle());
        doer.in_call = false;
        if stream.goes_on || idle {
            return Ok(());
        }
        // The system may give another thread its number.
        self.alive.remove(&(space, tid));
        let thread = self.id(stream, writer)?;
        Ok(writer.event(thread, Event::Exit)?)
    }

    /// The thread of that number, which may be new.
    fn thread(&mut self, tid: u64, stream: &Stream) -> Result<usize, Fault> {
        if let Some(known) = self.alive.get(&(stream.space, tid)) {
            return Ok(*known);
        }
        if self.doers.len() >= limits::THREADS {
            return Err(format!("more than {} threads", limits::THREADS).into());
        }
        let number = self.doers.len();
        self.doers.push(Doer {
            tid,
            pid: stream.pid,
            ..Doer::default()
        });
        self.alive.insert((stream.space, tid), number);
        Ok(number)
    }

    /// The thread of the present records.
    #[inline]
    fn now(&mut self, stream: &mut Stream) -> Result<&mut Doer, Fault> {
        let number = match stream.now {
            Some(number) => number,
            None => {
                let number = self.thread(0, stream)?;
                stream.now = Some(number);
                number
            }
        };
        Ok(&mut self.doers[number])
    }

    /// Its number in the trace. It enters the tables at its first action: by then its process is known.
    fn id(&mut self, stream: &mut Stream, writer: &mut Writer) -> Result<ThreadId, Fault> {
        let doer = self.now(stream)?;
        if let Some(id) = doer.id {
            return Ok(id);
        }
        let (pid, tid) = (doer.pid, doer.tid);
        let about = &self.about;
        let process = *(self.processes.entry(pid)).or_insert_with(|| {
            writer.process(Process {
                pid: pid as u32,
                ..about.clone()
            })
        });
        let id = writer.thread(Thread {
            process,
            number: tid,
            ..Thread::default()
        });
        self.now(stream)?.id = Some(id);
        Ok(id)
    }
}
