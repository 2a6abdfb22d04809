//! The output of Valgrind's lackey: `valgrind --tool=lackey --trace-mem=yes --log-file=FILE PROG`.
//!
//! ```text
//! ==123== Lackey, an example Valgrind tool
//! I  04000a40,3
//!  L 1ffeffe7e0,8
//!  S 1ffeffe7d8,8
//!  M 0421c7cc,4
//! ```
//!
//! `I` is an instruction fetch, `L`, `S` and `M` are the loads, stores and modifies of the
//! instruction before them, which gives them their program counter. Every `I` is one instruction.
//! Lackey does not distinguish threads: the trace has one.

use super::lines::{Lines, decimal, hexadecimal, shown};
use super::packed::Input;
use crate::error::TraceError;
use crate::model::{Header, Op, Process, Ref, Site, Thread};
use crate::writer::Writer;

pub fn read(input: Input, process: Process, header: &mut Header, writer: &mut Writer) -> Result<(), TraceError> {
    let process = writer.process(process);
    header.counts_instructions = true;
    header.has_pcs = true;
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let mut lines = Lines::new("lackey", input);
    let mut pc = 0;
    while let Some(line) = lines.next()? {
        if line.is_empty() || line.starts_with(b"==") || line.starts_with(b"--") {
            continue;
        }
        let (op, addr, size) = match parse(line) {
            Ok(parsed) => parsed,
            Err(what) => return Err(lines.error(what)),
        };
        if op == Op::Fetch {
            pc = addr;
            header.has_fetches = true;
        }
        let site = writer.site(Site { pc, op, size });
        writer.push(
            thread,
            Ref {
                addr,
                site,
                insns: u8::from(op == Op::Fetch),
                op,
                size,
            },
        )?;
    }
    Ok(())
}

fn parse(line: &[u8]) -> Result<(Op, u64, u16), String> {
    let Some((name, rest)) = line.split_at_checked(3) else {
        return Err(unknown(line));
    };
    let op = match name {
        b"I  " => Op::Fetch,
        b" L " => Op::Read,
        b" S " => Op::Write,
        b" M " => Op::Modify,
        _ => return Err(unknown(line)),
    };
    let comma = memchr::memchr(b',', rest).ok_or_else(|| unknown(line))?;
    let (place, bytes) = (&rest[..comma], &rest[comma + 1..]);
    let addr = hexadecimal(place).ok_or_else(|| {
        format!(
            "the address must be hexadecimal, of up to 64 bits, not {}",
            shown(place)
        )
    })?;
    let size = decimal(bytes).and_then(|n| u16::try_from(n).ok()).filter(|&n| n > 0);
    let size = size.ok_or_else(|| format!("the number of bytes must be from 1 to 65535, not {}", shown(bytes)))?;
    Ok((op, addr, size))
}

fn unknown(line: &[u8]) -> String {
    format!(
        "{} is not a line of lackey's; if the program printed it, run lackey with --log-file=FILE and import that",
        shown(line)
    )
}
