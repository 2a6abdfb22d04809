//! DynamoRIO's drmemtrace, after post-processing (`drrun -t drmemtrace -offline`, then a first
//! analysis or `drraw2trace`; the files `trace/drmemtrace.*.trace.{gz,zip}`).
//!
//! A record (`trace_entry_t` in `clients/drcachesim/common/trace_entry.h`) is 12 bytes: type (2),
//! size (2) and address (8). The first record of a file is a header. Traces of 64-bit programs are
//! read, of one thread or of several interleaved.
//!
//! Instructions become fetches and give the data references after them their program counter.
//! Prefetches of data, for reading or for writing, become prefetches; those of instructions, cache flushes,
//! instruction encodings and markers are passed over, all but the marker
//! of representative windows.

use std::collections::HashMap;

use super::packed::Input;
use super::records::Records;
use crate::block::u64_at;
use crate::error::TraceError;
use crate::limits;
use crate::model::{Event, Header, Op, Process, Ref, Site, Thread, ThreadId};
use crate::writer::Writer;

/// Types of records, by DynamoRIO's names.
mod kind {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    /// Prefetches of data: `PREFETCH`, `PREFETCHT0` to `T2`, `PREFETCHNTA`, `PREFETCH_READ`, `PREFETCH_WRITE`.
    pub const PREFETCH: u16 = 2;
    pub const PREFETCH_WRITE: u16 = 8;
    pub const INSTR: u16 = 10;
    pub const INSTR_RETURN: u16 = 16;
    pub const INSTR_BUNDLE: u16 = 17;
    pub const THREAD: u16 = 22;
    pub const THREAD_EXIT: u16 = 23;
    pub const PID: u16 = 24;
    pub const HEADER: u16 = 25;
    pub const MARKER: u16 = 28;
    /// One more round of a repeated string instruction: executed, not fetched, not counted.
    pub const INSTR_NO_FETCH: u16 = 29;
    pub const INSTR_SYSENTER: u16 = 31;
    pub const INSTR_TAKEN_JUMP: u16 = 48;
    pub const INSTR_UNTAKEN_JUMP: u16 = 49;
    /// Far more types than there are: what lies beyond is not a record.
    pub const BOUND: u16 = 256;
}

/// Kinds of markers, and bits of the file type.
const MARKER_FILETYPE: u16 = 9;
const MARKER_WINDOW_ID: u16 = 14;
const MARKER_PAGE_SIZE: u16 = 18;
const FILETYPE_32_BIT: u64 = 0x10 | 0x20;

/// Versions of the format are small numbers.
const VERSION_BOUND: u64 = 1000;

pub fn read(input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    header.counts_instructions = true;
    header.has_fetches = true;
    header.has_pcs = true;
    let mut records = Records::<12>::new("drmemtrace", input);
    let mut import = Import {
        program: process,
        ..Import::default()
    };
    let mut first = true;
    while let Some(record) = records.next()? {
        let kind = u16::from_le_bytes([record[0], record[1]]);
        let size = u16::from_le_bytes([record[2], record[3]]);
        let value = u64_at(&record, 4);
        if first && (kind != kind::HEADER || value >= VERSION_BOUND) {
            return Err(records.error(
                "no header of a 64-bit trace; a raw trace must go through `drraw2trace -indir DIR` first, and 32-bit traces are not read",
            ));
        }
        first = false;
        match kind {
            kind::READ => import.data(Op::Read, value, size, writer)?,
            kind::WRITE => import.data(Op::Write, value, size, writer)?,
            kind::PREFETCH..=kind::PREFETCH_WRITE => import.data(Op::Prefetch, value, 1, writer)?,
            kind::INSTR..=kind::INSTR_RETURN
            | kind::INSTR_SYSENTER
            | kind::INSTR_TAKEN_JUMP
            | kind::INSTR_UNTAKEN_JUMP => import.fetch(value, size, writer)?,
            kind::INSTR_BUNDLE => {
                let lengths = &record[4..];
                let Some(lengths) = lengths.get(..usize::from(size)) else {
                    return Err(records.error(format!("a bundle of {size} instructions, 8 are the most")));
                };
                for &length in lengths {
                    import.fetch(import.now.after, u16::from(length), writer)?;
                }
            }
            kind::INSTR_NO_FETCH => import.now.pc = value,
            kind::THREAD => import.switch(value),
            kind::PID => {
                import.pids.insert(import.now.tid, value as u32);
            }
            kind::THREAD_EXIT => {
                import.switch(value);
                let thread = import.thread(writer)?;
                writer.event(thread, Event::Exit)?;
            }
            kind::MARKER => match size {
                MARKER_FILETYPE if value & FILETYPE_32_BIT != 0 => {
                    return Err(records.error("this is the trace of a 32-bit program; only 64-bit ones are read"));
                }
                MARKER_PAGE_SIZE if value.is_power_of_two() => header.page_bytes = value,
                MARKER_WINDOW_ID if import.now.window != Some(value) => {
                    import.now.window = Some(value);
                    let thread = import.thread(writer)?;
                    writer.event(thread, Event::Window { index: value as u32 })?;
                }
                _ => {}
            },
            other if other >= kind::BOUND => return Err(records.error(format!("{other} is not a type of record"))),
            _ => {}
        }
        if import.places.len() > limits::THREADS || import.pids.len() > limits::THREADS {
            return Err(records.error(format!("more than {} threads", limits::THREADS)));
        }
    }
    Ok(())
}

/// What goes on from record to record, for each thread.
#[derive(Clone, Copy, Default)]
struct At {
    tid: u64,
    thread: Option<ThreadId>,
    pc: u64,
    /// Where the instruction after the last one begins.
    after: u64,
    window: Option<u64>,
}

#[derive(Default)]
struct Import {
    program: Process,
    now: At,
    /// The threads that are not `now`.
    places: HashMap<u64, At>,
    pids: HashMap<u64, u32>,
    processes: HashMap<u32, u32>,
}

impl Import {
    fn switch(&mut self, tid: u64) {
        if tid != self.now.tid {
            let next = self.places.remove(&tid).unwrap_or(At { tid, ..At::default() });
            let before = std::mem::replace(&mut self.now, next);
            self.places.insert(before.tid, before);
        }
    }

    /// The thread of the present records. It enters the tables when it first does something: by
    /// then its process is known.
    fn thread(&mut self, writer: &mut Writer) -> Result<ThreadId, TraceError> {
        if let Some(thread) = self.now.thread {
            return Ok(thread);
        }
        let pid = self.pids.get(&self.now.tid).copied().unwrap_or(0);
        let program = &self.program;
        let process =
            *(self.processes.entry(pid)).or_insert_with(|| writer.process(Process { pid, ..program.clone() }));
        let thread = writer.thread(Thread {
            process,
            number: self.now.tid,
            ..Thread::default()
        });
        self.now.thread = Some(thread);
        Ok(thread)
    }

    fn fetch(&mut self, pc: u64, size: u16, writer: &mut Writer) -> Result<(), TraceError> {
        self.now.pc = pc;
        self.now.after = pc.wrapping_add(u64::from(size));
        self.reference(Op::Fetch, pc, size, 1, writer)
    }

    fn data(&mut self, op: Op, addr: u64, size: u16, writer: &mut Writer) -> Result<(), TraceError> {
        self.reference(op, addr, size, 0, writer)
    }

    fn reference(&mut self, op: Op, addr: u64, size: u16, insns: u8, writer: &mut Writer) -> Result<(), TraceError> {
        let thread = self.thread(writer)?;
        if size == 0 {
            // Touches nothing.
            return Ok(());
        }
        let site = writer.site(Site {
            pc: self.now.pc,
            op,
            size,
        });
        writer.push(
            thread,
            Ref {
                addr,
                site,
                insns,
                op,
                size,
            },
        )
    }
}
