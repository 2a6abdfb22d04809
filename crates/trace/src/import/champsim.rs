//! ChampSim's traces: one record for each instruction, usually compressed by xz or gzip.
//!
//! There are two formats (`input_instr` and `cloudsuite_instr` in its `inc/trace_instruction.h`), and a file does not
//! state its format. ChampSim's user states it; here the first records decide.
//!
//! | `input_instr` | `cloudsuite_instr` | what |
//! | --- | --- | --- |
//! | 0 to 7 | 0 to 7 | program counter |
//! | 8, 9 | 8, 9 | whether it is a branch, whether it was taken |
//! | 10, 11 | 10 to 13 | registers written |
//! | 12 to 15 | 14 to 17 | registers read |
//! | 16 to 31 | 24 to 55 | two, or four, addresses written, 0 for none |
//! | 32 to 63 | 56 to 87 | four addresses read, 0 for none |
//! | | 88, 89 | the address space |
//!
//! The rest of the 64 and 96 bytes is padding.
//!
//! Sizes are not recorded: every reference is assumed to touch the one byte at its address, that is, one cache line, as
//! in ChampSim. An instruction reads before it writes. Fetches do not become references, because the instructions'
//! lengths are not recorded either. Each address space is a process with one thread; without one there is one process.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::ops::Range;

use super::packed::{Input, fill};
use super::records::Records;
use crate::block::u64_at;
use crate::error::{Place, TraceError};
use crate::model::{Event, Header, Op, Process, Ref, Site, Thread, ThreadId};
use crate::writer::Writer;

const FORMAT: &str = "champsim";

/// How records of a format are laid out.
struct Layout {
    written: Range<usize>,
    read: Range<usize>,
    space: Option<usize>,
}

const INPUT_BYTES: usize = 64;
const INPUT: Layout = Layout {
    written: 16..32,
    read: 32..64,
    space: None,
};

const CLOUDSUITE_BYTES: usize = 96;
const CLOUDSUITE: Layout = Layout {
    written: 24..56,
    read: 56..88,
    space: Some(88),
};

/// Bytes at the beginning that decide the format: over a thousand records of either, and a whole number of both.
const TELLING: usize = 2 * 3 * 64 * 192;

/// Consecutive instructions are hardly ever farther apart, and code and data hardly ever nearer.
const NEAR: u64 = 1 << 20;

pub fn read(mut input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    header.counts_instructions = true;
    header.has_pcs = true;
    let mut first = vec![0; TELLING];
    let mut got = 0;
    while got < first.len() {
        let place = Place {
            line: None,
            offset: got as u64,
        };
        match fill(FORMAT, place, &mut input, &mut first[got..])? {
            0 => break,
            more => got += more,
        }
    }
    first.truncate(got);
    let cloudsuite = is_cloudsuite(&first, got < TELLING)?;
    let input = Box::new(Cursor::new(first).chain(input));
    let mut import = Import {
        process,
        spaces: HashMap::new(),
    };
    match cloudsuite {
        true => import.read(Records::<CLOUDSUITE_BYTES>::new(FORMAT, input), &CLOUDSUITE, writer),
        false => import.read(Records::<INPUT_BYTES>::new(FORMAT, input), &INPUT, writer),
    }
}

/// True if a file that begins with these bytes has the longer records. `is_all`: these bytes are the whole file.
///
/// Read in the wrong format, most records have a data address as program counter, or none. The padding decides nothing:
/// some writers do not clear it.
fn is_cloudsuite(first: &[u8], is_all: bool) -> Result<bool, TraceError> {
    let input = Fit::new(first, INPUT_BYTES);
    let cloudsuite = Fit::new(first, CLOUDSUITE_BYTES);
    // A record that is cut off at the end counts as wrong, too.
    let (input_wrong, wrong) = match is_all {
        true => (input.wrong + input.cut, cloudsuite.wrong + cloudsuite.cut),
        false => (input.wrong, cloudsuite.wrong),
    };
    if input_wrong == 0 && wrong == 0 {
        // All records are valid in both: then code decides, because it continues near its last address.
        return Ok(input.near * 2 < input.records && cloudsuite.near * 2 > cloudsuite.records);
    }
    // Compares the fractions of wrong records exactly.
    let fits_better = wrong * input.records.max(1) < input_wrong * cloudsuite.records.max(1);
    if cloudsuite.records > 0 && cloudsuite.wrong * FEW <= cloudsuite.records && fits_better {
        return Ok(true);
    }
    if input.records >= FEW && input.nowhere * 2 > input.records {
        return Err(TraceError::Import {
            format: FORMAT,
            at: Place { line: None, offset: 0 },
            what: format!(
                "{} of the first {} records of {INPUT_BYTES} bytes have no program counter, and {} of {} of {CLOUDSUITE_BYTES} bytes: \
                 these are no instructions; write the trace again by a tracer of ChampSim's",
                input.nowhere, input.records, cloudsuite.nowhere, cloudsuite.records
            ),
        });
    }
    Ok(false)
}

/// One of this many records may be wrong.
const FEW: u64 = 8;

/// How well bytes fit records of a length.
#[derive(Default)]
struct Fit {
    records: u64,
    /// Those that no instruction has.
    wrong: u64,
    /// Those of them without a program counter.
    nowhere: u64,
    /// Those whose program counter is near that of the record before.
    near: u64,
    /// 1 if a part of a record follows them.
    cut: u64,
}

impl Fit {
    fn new(bytes: &[u8], length: usize) -> Fit {
        let records = bytes.chunks_exact(length);
        let mut fit = Fit {
            cut: u64::from(!records.remainder().is_empty()),
            ..Fit::default()
        };
        let mut before = None;
        for record in records {
            let pc = u64_at(record, 0);
            fit.records += 1;
            fit.wrong += u64::from(pc == 0 || record[8] > 1 || record[9] > 1);
            fit.nowhere += u64::from(pc == 0);
            fit.near += u64::from(before.is_none_or(|before: u64| before.abs_diff(pc) < NEAR));
            before = Some(pc);
        }
        fit
    }
}

struct Import {
    process: Process,
    spaces: HashMap<u16, ThreadId>,
}

impl Import {
    fn read<const N: usize>(
        &mut self,
        mut records: Records<N>,
        layout: &Layout,
        writer: &mut Writer,
    ) -> Result<(), TraceError> {
        // The thread of the previous record, and its instructions since its last reference.
        let mut now: Option<(u16, ThreadId)> = None;
        let mut idle = 0u64;
        while let Some(record) = records.next()? {
            if record[8] > 1 || record[9] > 1 {
                return Err(records.error(format!(
                    "not an instruction record of {N} bytes: its branch bytes are {} and {}, they can only be 0 and 1",
                    record[8], record[9]
                )));
            }
            let pc = u64_at(&record, 0);
            let space = layout
                .space
                .map_or(0, |at| u16::from_le_bytes([record[at], record[at + 1]]));
            let thread = match now {
                Some((known, thread)) if known == space => thread,
                before => {
                    if let Some((_, thread)) = before {
                        work(thread, std::mem::take(&mut idle), writer)?;
                    }
                    self.thread(space, writer)
                }
            };
            now = Some((space, thread));
            idle += 1;
            let reads = layout.read.clone().step_by(8).map(|at| (Op::Read, at));
            let writes = layout.written.clone().step_by(8).map(|at| (Op::Write, at));
            for (op, at) in reads.chain(writes) {
                let addr = u64_at(&record, at);
                if addr == 0 {
                    continue;
                }
                let insns = match u8::try_from(idle) {
                    Ok(few) => few,
                    Err(_) => {
                        work(thread, idle - 1, writer)?;
                        1
                    }
                };
                idle = 0;
                let site = writer.site(Site { pc, op, size: 1 });
                writer.push(
                    thread,
                    Ref {
                        addr,
                        site,
                        insns,
                        op,
                        size: 1,
                    },
                )?;
            }
        }
        let thread = now.map_or_else(|| self.thread(0, writer), |(_, thread)| thread);
        work(thread, idle, writer)
    }

    fn thread(&mut self, space: u16, writer: &mut Writer) -> ThreadId {
        let process = &self.process;
        *self.spaces.entry(space).or_insert_with(|| {
            let pid = u32::from(space);
            let process = writer.process(Process { pid, ..process.clone() });
            writer.thread(Thread {
                process,
                number: u64::from(space),
                ..Thread::default()
            })
        })
    }
}

fn work(thread: ThreadId, instructions: u64, writer: &mut Writer) -> Result<(), TraceError> {
    match instructions {
        0 => Ok(()),
        _ => writer.event(thread, Event::Work { instructions }),
    }
}
