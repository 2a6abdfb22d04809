//! Writes the made-up reference streams that the benchmarks measure.
//!
//! `synthetic KIND REFERENCES THREADS own|shared TRACE [RAW]`
//!
//! KIND is `hot`, `mixed` or `random`. The references are dealt to the threads in turn; each thread
//! has data of its own, or all work on the same. RAW gets the same references for simulators that do
//! not read traces: 8 bytes each, little-endian, the address with bit 0 set for a write.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use trace::synthetic::{Kind, Stream};
use trace::{Header, Op, Process, Ref, Thread, Writer};

const USAGE: &str = "usage: synthetic hot|mixed|random REFERENCES THREADS own|shared TRACE [RAW]";
/// References that a thread makes before the next has its turn in the recorded order.
const TURN: usize = 1000;
/// Between the data of one thread and of the next.
const APART: u64 = 1 << 32;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, references, threads, sharing, trace, raw @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or(USAGE)?;
    let references: usize = references.parse()?;
    let threads: u32 = threads.parse()?;
    let apart = match sharing.as_str() {
        "own" => APART,
        "shared" => 0,
        _ => return Err(USAGE.into()),
    };

    let header = Header {
        program: format!("synthetic {}", kind.name()),
        origin: "synthetic".into(),
        page_bytes: 4096,
        counts_instructions: true,
        ..Header::default()
    };
    let mut writer = Writer::create(trace, &header)?;
    let process = writer.process(Process::default());
    let mut streams = Vec::new();
    for number in 0..threads {
        let thread = writer.thread(Thread {
            process,
            number: number.into(),
            ..Thread::default()
        });
        streams.push((thread, Stream::new(kind, 1 + u64::from(number), &mut writer)));
    }
    let mut raw = match raw {
        [] => None,
        [path, ..] => Some(BufWriter::new(File::create(path)?)),
    };

    let mut left = references;
    let mut batch: Vec<Ref> = Vec::with_capacity(TURN);
    while left > 0 {
        for (thread, stream) in &mut streams {
            batch.clear();
            batch.extend(stream.by_ref().take(TURN.min(left)));
            left -= batch.len();
            for reference in &mut batch {
                reference.addr += apart * u64::from(*thread);
            }
            writer.refs(*thread, &batch)?;
            if let Some(raw) = &mut raw {
                for reference in &batch {
                    let word = reference.addr | u64::from(reference.op == Op::Write);
                    raw.write_all(&word.to_le_bytes())?;
                }
            }
        }
    }
    writer.finish()?;
    if let Some(mut raw) = raw {
        raw.flush()?;
    }
    Ok(())
}
