//! ChampSim's traces: one record of 64 bytes for each instruction (`input_instr` in its
//! `inc/trace_instruction.h`), usually compressed by xz or gzip.
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 7 | program counter |
//! | 8, 9 | whether it is a branch, whether it was taken |
//! | 10, 11 | registers written |
//! | 12 to 15 | registers read |
//! | 16 to 31 | two addresses written, 0 for none |
//! | 32 to 63 | four addresses read, 0 for none |
//!
//! Sizes are not recorded: every reference is taken to touch the one byte at its address, that is,
//! one cache line, as it does in ChampSim. An instruction reads before it writes. Fetches are not
//! made into references, because the instructions' lengths are not recorded either.

use super::packed::Input;
use super::records::Records;
use crate::block::u64_at;
use crate::error::TraceError;
use crate::model::{Event, Header, Op, Process, Ref, Site, Thread};
use crate::writer::Writer;

pub fn read(input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    header.counts_instructions = true;
    header.has_pcs = true;
    let process = writer.process(process);
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let mut records = Records::<64>::new("champsim", input);
    // Instructions since the last reference.
    let mut idle = 0u64;
    while let Some(record) = records.next()? {
        if record[8] > 1 || record[9] > 1 {
            return Err(records.error(format!(
                "not an instruction record: its branch bytes are {} and {}, they can only be 0 and 1",
                record[8], record[9]
            )));
        }
        let pc = u64_at(&record, 0);
        idle += 1;
        let reads = (32..64).step_by(8).map(|at| (Op::Read, at));
        let writes = (16..32).step_by(8).map(|at| (Op::Write, at));
        for (op, at) in reads.chain(writes) {
            let addr = u64_at(&record, at);
            if addr == 0 {
                continue;
            }
            let insns = match u8::try_from(idle) {
                Ok(few) => few,
                Err(_) => {
                    writer.event(thread, Event::Work { instructions: idle - 1 })?;
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
    if idle > 0 {
        writer.event(thread, Event::Work { instructions: idle })?;
    }
    Ok(())
}
