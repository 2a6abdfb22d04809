//! DynamoRIO's drmemtrace, after post-processing (`drrun -t drmemtrace -offline`, then a first
//! analysis or `drraw2trace`; the files `trace/drmemtrace.*.trace.{gz,zip}`).
//!
//! A record (`trace_entry_t` in `clients/drcachesim/common/trace_entry.h`) is 12 bytes: type (2),
//! size (2) and address (8). The first record of a file is a header. Traces of 64-bit programs are
//! read: a file, of one thread or of several interleaved, or a folder of files, each of a thread or of a core.
//!
//! Instructions become fetches and give the data references after them their program counter. Prefetches of data, for
//! reading or for writing, become prefetches; those of instructions, cache flushes, instruction encodings and most
//! markers are skipped. The kernel's work for the program is left out and counted. Windows, and the end of a filtered
//! part, become events. The header notes parts that the recorder left out, and unknown records ([`crate::Gaps`]).

mod folder;
mod kind;
mod names;
mod program;
mod source;
mod tally;

pub use folder::Folder;
pub use names::belongs;

use super::packed::Input;
use crate::error::TraceError;
use crate::model::{Header, Process};
use crate::writer::Writer;
use program::Program;
use source::Source;

/// Reads one file. `left_out` are the members of its archive that are no part of the trace.
pub fn read(
    input: Input,
    left_out: Vec<String>,
    process: Process,
    header: &mut Header,
    writer: &mut Writer,
) -> Result<(), TraceError> {
    let mut program = Program::new(process);
    Source::alone(input).take(None, &mut program, writer)?;
    finish(program, left_out, header);
    Ok(())
}

/// Reads all files of a folder.
pub fn read_folder(
    folder: Folder,
    process: Process,
    header: &mut Header,
    writer: &mut Writer,
) -> Result<(), TraceError> {
    let mut program = Program::new(process);
    for files in &folder.windows {
        source::merge(files, &mut program, writer)?;
    }
    finish(program, folder.others, header);
    Ok(())
}

fn finish(program: Program, left_out: Vec<String>, header: &mut Header) {
    if let Some(bytes) = program.page_bytes {
        header.page_bytes = bytes;
    }
    program.tally.finish(left_out, header);
}
