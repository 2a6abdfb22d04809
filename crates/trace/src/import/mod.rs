//! Traces of other tools, read as streams in constant memory.
//!
//! Each format has a file here, and one way in: [`file`], from a file to a trace, or [`read`], from
//! anything that can be read to a [`Writer`].

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::error::TraceError;
use crate::model::{Header, Process};
use crate::writer::{Summary, Writer};

mod champsim;
mod din;
mod drmemtrace;
mod lackey;
mod lines;
mod packed;
mod text;

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `<thread> <r|w|m|i> <hex address> <bytes>`, `b <n>`, `#`.
    Text,
    /// What `valgrind --tool=lackey --trace-mem=yes` prints.
    Lackey,
    /// Dinero's `din`: `<label> <hex address>`.
    Din,
    /// ChampSim's records of 64 bytes.
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

/// Imports a file as a new trace. Where the import fails, no trace is left behind.
pub fn file(format: Format, input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<Summary, TraceError> {
    let (input, output) = (input.as_ref(), output.as_ref());
    let open = |source| TraceError::Open {
        path: input.to_path_buf(),
        source,
    };
    let from = File::open(input).map_err(open)?;
    if from.metadata().map_err(open)?.is_dir() {
        return Err(open(std::io::ErrorKind::IsADirectory.into()));
    }
    let name = input.display().to_string();
    let mut writer = Writer::create(output, &header(format, &name))?;
    let read = read(format, from, &name, &mut writer);
    let done = match read {
        Ok(()) => writer.finish(),
        Err(error) => {
            drop(writer);
            Err(error)
        }
    };
    if done.is_err() {
        // The error that matters is the import's; if the rest cannot be removed it stays.
        let _ = std::fs::remove_file(output);
    }
    done
}

/// Imports from `input`, which people know as `name`, into `writer`. Compressed input (gzip, xz) is
/// recognised. The writer's header is replaced by one that says what the format tells.
pub fn read(
    format: Format,
    input: impl Read + Send + 'static,
    name: &str,
    writer: &mut Writer,
) -> Result<(), TraceError> {
    let mut header = header(format, name);
    let process = writer.process(Process {
        program: name.to_string(),
        ..Process::default()
    });
    let input = packed::open(format.name(), Box::new(input))?;
    match format {
        Format::Text => text::read(input, process, &mut header, writer),
        Format::Lackey => lackey::read(input, process, &mut header, writer),
        Format::Din => din::read(input, process, &mut header, writer),
        Format::Champsim => champsim::read(input, process, &mut header, writer),
        Format::Drmemtrace => drmemtrace::read(input, process, &mut header, writer),
    }?;
    writer.header(&header);
    Ok(())
}

fn header(format: Format, name: &str) -> Header {
    Header {
        program: name.to_string(),
        origin: format!("import {}", format.name()),
        page_bytes: 4096,
        ..Header::default()
    }
}
