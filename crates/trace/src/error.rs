//! Errors of traces, with messages that tell the reader what to do next.

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use thiserror::Error;

/// An error of reading, writing or importing a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },

    /// It is complete, but has the wrong name; the source says where it is.
    #[error("cannot give the trace its name {}: {source}", path.display())]
    Name { path: PathBuf, source: io::Error },

    #[error("cannot read the trace at byte {offset}: {source}")]
    Read { offset: u64, source: io::Error },

    /// The file is something else.
    #[error("not a Domicile trace: {what}; use `domicile import` for traces of other tools")]
    NotATrace { what: String },

    #[error(
        "this trace has format version {found}, this program reads versions up to {known}; use the program that wrote it"
    )]
    Version { found: u16, known: u16 },

    /// The bytes at `offset` violate the format.
    #[error("the trace is damaged at byte {offset}: {what}; record or import it again")]
    Damaged { offset: u64, what: String },

    /// It ends before its first reference, or nothing was recorded.
    #[error("there is no reference in it to simulate{}; record the program again", cut.as_ref().map_or_else(String::new, |cut| format!(": {cut}")))]
    Empty { cut: Option<String> },

    /// A well-formed file that asks for more than this program is willing to hold.
    #[error("the trace asks for too much at byte {offset}: {what} {found}, at most {allowed} are allowed")]
    TooLarge {
        offset: u64,
        what: &'static str,
        found: u64,
        allowed: u64,
    },

    /// The disk is full, the pipe is closed ...
    #[error("cannot write the trace: {source}; {}", what_is_there(*.references, *.bytes))]
    Write {
        source: io::Error,
        references: u64,
        bytes: u64,
    },

    /// A caller of the writer violated its rules.
    #[error("cannot add to the trace: {0}")]
    Refused(String),

    /// The trace is whole, but does not hold the requested data.
    #[error("no advice can be given on this trace: {0}")]
    Unfit(String),

    /// A file of another tool violates its format.
    #[error("{format}, {at}: {what}")]
    Import {
        format: &'static str,
        at: Place,
        what: String,
    },
}

impl TraceError {
    /// The same failure, for later calls: it still reports what could be written before.
    pub(crate) fn once_more(&self) -> TraceError {
        match self {
            TraceError::Write {
                source,
                references,
                bytes,
            } => TraceError::Write {
                source: match source.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => io::Error::new(source.kind(), source.to_string()),
                },
                references: *references,
                bytes: *bytes,
            },
            TraceError::Refused(why) => TraceError::Refused(why.clone()),
            other => TraceError::Refused(other.to_string()),
        }
    }
}

fn what_is_there(references: u64, bytes: u64) -> String {
    match references {
        0 => "no reference could be written".to_string(),
        _ => format!("the first {references} references ({bytes} bytes) are kept and can be read"),
    }
}

/// The place in an imported file: binary formats have no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: Option<u64>,
    pub offset: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} (byte {})", self.offset),
            None => write!(f, "byte {}", self.offset),
        }
    }
}

/// A loss in a trace: from byte `offset` on, or, when damaged blocks are skipped, there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    pub offset: u64,
    pub what: String,
}

impl TraceError {
    pub(crate) fn damaged(offset: u64, what: impl Into<String>) -> TraceError {
        TraceError::Damaged {
            offset,
            what: what.into(),
        }
    }

    /// As a note of the loss.
    pub(crate) fn to_damage(&self, at: u64) -> Damage {
        match self {
            TraceError::Damaged { offset, what } => Damage {
                offset: *offset,
                what: what.clone(),
            },
            other => Damage {
                offset: at,
                what: other.to_string(),
            },
        }
    }
}

/// Refuses a length that a file claims, before anything is allocated for it.
pub(crate) fn within(offset: u64, what: &'static str, found: u64, allowed: u64) -> Result<(), TraceError> {
    if found <= allowed {
        Ok(())
    } else {
        Err(TraceError::TooLarge {
            offset,
            what,
            found,
            allowed,
        })
    }
}
