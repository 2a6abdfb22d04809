//! The `din` format of Mark Hill's Dinero III, which Dinero IV and many others read and write.
//!
//! ```text
//! 2 0 this is a fetch at address 0
//! 0 1000
//! 1 0x70f60888
//! ```
//!
//! A line is a label (0 read, 1 write, 2 instruction fetch) and a hexadecimal address; the rest of the line is a
//! comment. The format has no sizes: every reference is of 4 bytes, a word of the machines of its time. Labels 3 (a
//! record of unknown kind) and 4 (flush the cache) are escape records, not references, and are skipped.

use super::lines::{Lines, field, hexadecimal, shown};
use super::packed::Input;
use crate::error::TraceError;
use crate::model::{Header, Op, Process, Ref, Site, Thread};
use crate::writer::Writer;

const BYTES: u16 = 4;

pub fn read(input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    let process = writer.process(process);
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let mut lines = Lines::new("din", input);
    let sites = [Op::Read, Op::Write, Op::Fetch].map(|op| (op, writer.site(Site { pc: 0, op, size: BYTES })));
    while let Some(line) = lines.next()? {
        let mut rest = line;
        let label = field(&mut rest);
        let kind = match label {
            b"" => continue,
            b"0" => Some(0),
            b"1" => Some(1),
            b"2" => Some(2),
            b"3" | b"4" => None,
            other => {
                let what = format!(
                    "the label must be 0 (read), 1 (write), 2 (fetch), 3 or 4, not {}",
                    shown(other)
                );
                return Err(lines.error(what));
            }
        };
        let place = field(&mut rest);
        let Some(addr) = hexadecimal(place) else {
            let what = format!(
                "the address must be hexadecimal, of up to 64 bits, not {}",
                shown(place)
            );
            return Err(lines.error(what));
        };
        if let Some(kind) = kind {
            let (op, site): (Op, u32) = sites[kind];
            header.has_fetches |= op == Op::Fetch;
            writer.push(
                thread,
                Ref {
                    addr,
                    site,
                    insns: 0,
                    op,
                    size: BYTES,
                },
            )?;
        }
    }
    Ok(())
}
