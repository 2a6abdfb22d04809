//! Traces of other tools, read as streams in constant memory.
//!
//! Each format has a file here; there are two entry points: [`file()`], from a file to a trace, or [`read`], from
//! anything readable to a [`Writer`].

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::destination::Destination;
use crate::error::TraceError;
use crate::model::{Header, Process};
use crate::writer::{Options, Summary, Writer};

mod archive;
mod champsim;
mod din;
mod drmemtrace;
mod lackey;
mod lines;
mod packed;
mod records;
mod text;

/// The formats that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `<thread> <r|w|m|i> <hex address> <bytes>`, `<thread> begin <hex hint>...`, `<thread> end`, `b <n>`, `#`.
    Text,
    /// The output of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// Dinero's `din`: `<label> <hex address>`.
    Din,
    /// ChampSim's records of 64 bytes, or of 96 (CloudSuite).
    Champsim,
    /// DynamoRIO's offline traces after its own post-processing.
    Drmemtrace,
}

impl Format {
    pub const ALL: [Format; 5] = [
        Format::Text,
        Format::Lackey,
        Format::Din,
        Format::Champsim,
        Format::Drmemtrace,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Lackey => "lackey",
            Format::Din => "din",
            Format::Champsim => "champsim",
            Format::Drmemtrace => "drmemtrace",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let known: Vec<_> = Format::ALL.map(Format::name).into();
            format!("`{name}` is not a format that can be imported: {}", known.join(", "))
        })
    }
}

/// The outcome of an import.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub summary: Summary,
    /// The header of the new trace, which lists its missing parts.
    pub header: Header,
}

/// The input of an import.
enum From {
    One(packed::Opened),
    /// One file for each thread.
    Folder(drmemtrace::Folder),
}

/// Imports a file as a new trace. It may be compressed by gzip, xz or zstd, or be a zip archive; a trace of drmemtrace
/// may be a folder. The trace gets its name when it is complete ([`Destination`]); if the import fails, an older file
/// keeps that name.
pub fn file(format: Format, input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<Imported, TraceError> {
    let (input, output) = (input.as_ref(), output.as_ref());
    let from = match format {
        Format::Drmemtrace if input.is_dir() => From::Folder(drmemtrace::Folder::find(input)?),
        Format::Drmemtrace => From::One(packed::open_file(format.name(), input, drmemtrace::belongs)?),
        _ => From::One(packed::open_file(format.name(), input, |_| true)?),
    };
    if same(input, output) {
        let what = format!("{} is the file to import; name another for the trace", output.display());
        return Err(TraceError::Refused(what));
    }
    let name = input.display().to_string();
    let unwritable = |source| TraceError::Open {
        path: output.to_path_buf(),
        source,
    };
    let destination = Destination::begin(output).map_err(unwritable)?;
    let out = destination.file().map_err(unwritable)?;
    let done = Writer::new(out, &header(format, &name), Options::default()).and_then(|mut writer| {
        let header = read_from(format, from, &name, &mut writer)?;
        let summary = writer.finish()?;
        Ok(Imported { summary, header })
    });
    match done {
        Ok(imported) => destination
            .keep()
            .map(|()| imported)
            .map_err(|source| TraceError::Name {
                path: output.to_path_buf(),
                source,
            }),
        Err(error) => {
            destination.discard();
            Err(error)
        }
    }
}

/// True if both names refer to one file.
fn same(a: &Path, b: &Path) -> bool {
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Imports from `input`, called `name` in messages, into `writer`. Input compressed by gzip, xz or zstd is recognised.
/// The writer's header is replaced by the format's.
pub fn read(
    format: Format,
    input: impl Read + Send + 'static,
    name: &str,
    writer: &mut Writer,
) -> Result<(), TraceError> {
    let from = From::One(packed::Opened {
        input: Box::new(input),
        left_out: Vec::new(),
    });
    read_from(format, from, name, writer).map(|_| ())
}

/// Returns the header that the format gives.
fn read_from(format: Format, from: From, name: &str, writer: &mut Writer) -> Result<Header, TraceError> {
    let mut header = header(format, name);
    let process = Process {
        program: name.to_string(),
        ..Process::default()
    };
    match from {
        From::Folder(folder) => drmemtrace::read_folder(folder, process, &mut header, writer),
        From::One(packed::Opened { input, left_out }) => {
            let input = packed::open(format.name(), input)?;
            match format {
                Format::Text => text::read(input, process, &mut header, writer),
                Format::Lackey => lackey::read(input, process, &mut header, writer),
                Format::Din => din::read(input, process, &mut header, writer),
                Format::Champsim => champsim::read(input, process, &mut header, writer),
                Format::Drmemtrace => drmemtrace::read(input, left_out, process, &mut header, writer),
            }
        }
    }?;
    writer.header(&header);
    Ok(header)
}

fn header(format: Format, name: &str) -> Header {
    Header {
        program: name.to_string(),
        origin: format!("import {}", format.name()),
        page_bytes: 4096,
        ..Header::default()
    }
}
