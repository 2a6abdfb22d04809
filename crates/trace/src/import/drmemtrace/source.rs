//! Files of records, merged in the order of their timestamps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use super::kind::marker;
use super::names::belongs;
use super::program::{Fault, Program, Record, Stream};
use crate::error::TraceError;
use crate::import::packed::{self, Input, Opened};
use crate::import::records::Records;
use crate::writer::Writer;

pub const FORMAT: &str = "drmemtrace";

/// How many records are buffered of a file that is read alone, and of one of many that are open at the same time.
const ALONE: usize = 1 << 12;
const TOGETHER: usize = 1 << 9;

/// By this record a file has named its thread and its first time.
const FIRST: usize = 64;

/// A file of records, as its first records describe it.
pub struct Described {
    path: PathBuf,
    /// The thread that it begins with.
    pub tid: Option<u64>,
    time: u64,
    pub window: Option<u64>,
    pub space: usize,
    pub goes_on: bool,
    /// Names of an archive's members that are not read.
    pub left_out: Vec<String>,
}

impl Described {
    /// `None`: the file does not begin like a trace.
    pub fn new(path: &Path) -> Result<Option<Described>, TraceError> {
        let (mut records, left_out) = open(path)?;
        let mut described = Described {
            path: path.to_path_buf(),
            tid: None,
            time: 0,
            window: None,
            space: 0,
            goes_on: false,
            left_out,
        };
        for at in 0..FIRST {
            let Some(record) = records.next()?.map(Record::new) else {
                return Ok((at > 0).then_some(described));
            };
            if at == 0 && !record.begins() {
                return Ok(None);
            }
            if let Some(tid) = record.thread() {
                described.tid.get_or_insert(tid);
            }
            if let Some(time) = record.time() {
                described.time = time;
                break;
            }
        }
        Ok(Some(described))
    }

    fn open(&self) -> Result<Source, TraceError> {
        let (records, _) = open(&self.path)?;
        Ok(Source::new(records, Stream::new(self.space, self.goes_on, self.window)))
    }

    /// Adds the file's name to an error.
    fn named(&self, error: TraceError) -> TraceError {
        named(&self.path, error)
    }
}

fn open(path: &Path) -> Result<(Records<12>, Vec<String>), TraceError> {
    let Opened { input, left_out } = packed::open_file(FORMAT, path, belongs)?;
    let input = packed::open(FORMAT, input)?;
    Ok((Records::with_buffer(FORMAT, input, TOGETHER), left_out))
}

/// Adds the name of one of several files to an error.
pub fn named(path: &Path, error: TraceError) -> TraceError {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    match error {
        TraceError::Import { format, at, what } => TraceError::Import {
            format,
            at,
            what: format!("in `{name}`: {what}"),
        },
        error => error,
    }
}

/// A file that is open.
pub struct Source {
    records: Records<12>,
    stream: Stream,
    begun: bool,
}

impl Source {
    pub fn alone(input: Input) -> Source {
        Source::new(Records::with_buffer(FORMAT, input, ALONE), Stream::default())
    }

    fn new(records: Records<12>, stream: Stream) -> Source {
        Source {
            records,
            stream,
            begun: false,
        }
    }

    /// Takes records up to a time later than `until`, which is returned, or to the end.
    pub fn take(
        &mut self,
        until: Option<u64>,
        program: &mut Program,
        writer: &mut Writer,
    ) -> Result<Option<u64>, TraceError> {
        while let Some(record) = self.records.next()?.map(Record::new) {
            if !self.begun && !record.begins() {
                return Err(self.records.error(
                    "no header of a 64-bit trace; a raw trace must go through `drraw2trace -indir DIR` first, and 32-bit traces \
                     are not read",
                ));
            }
            self.begun = true;
            program
                .take(record, &mut self.stream, writer)
                .map_err(|fault| match fault {
                    Fault::Record(what) => self.records.error(what),
                    Fault::Trace(error) => error,
                })?;
            if let Some(until) = until
                && let Some(time) = record.time()
                && time > until
            {
                return Ok(Some(time));
            }
        }
        match self.begun {
            true => Ok(None),
            false => Err(self
                .records
                .error("the file is empty; process the raw trace again by `drraw2trace -indir DIR`")),
        }
    }
}

impl Record {
    fn thread(&self) -> Option<u64> {
        self.is_thread().then_some(self.value)
    }

    /// A timestamp. The placeholder on cores that begin idle does not count.
    fn time(&self) -> Option<u64> {
        (self.is_marker(marker::TIMESTAMP) && self.value != u64::MAX).then_some(self.value)
    }
}

/// Reads all files, always continuing with the one whose time is earliest. A file is open from its first time to its
/// end, so as many are open as threads lived at once.
pub fn merge(files: &[Described], program: &mut Program, writer: &mut Writer) -> Result<(), TraceError> {
    let mut sources: Vec<Option<Source>> = files.iter().map(|_| None).collect();
    let begins = files
        .iter()
        .enumerate()
        .map(|(number, file)| Reverse((file.time, number)));
    let mut next: BinaryHeap<_> = begins.collect();
    while let Some(Reverse((_, number))) = next.pop() {
        let file = &files[number];
        let named = |error| file.named(error);
        let source = match &mut sources[number] {
            Some(source) => source,
            none => none.insert(file.open().map_err(named)?),
        };
        let until = next.peek().map(|Reverse((time, _))| *time);
        match source.take(until, program, writer).map_err(named)? {
            Some(time) => next.push(Reverse((time, number))),
            None => sources[number] = None,
        }
    }
    Ok(())
}
