//! Observations and actions, as JSON lines.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::error::RegionsError;

/// The version of the log's format.
pub const VERSION: u32 = 1;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub enum Entry {
    Begins(Begins),
    Observed(Observed),
    /// A decision over the lines before; a dry run does not carry it out.
    Acts(Action),
    /// An action was not carried out.
    Failed {
        process: u32,
        why: String,
    },
}

/// The facts that decisions are built of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begins {
    pub version: u32,
    pub source: String,
    pub domains: Vec<LoggedDomain>,
    pub preferred: Option<String>,
    /// A program says how much of its work it has done.
    pub progress: bool,
    /// Actions are carried out.
    pub acts: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoggedDomain {
    pub cpus: Vec<u32>,
    pub bytes: Option<u64>,
}

/// An interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// Nanoseconds since the beginning.
    pub at: u64,
    pub processes: Vec<Seen>,
    /// Units of work done so far, as the program says.
    pub units: Option<f64>,
}

/// A process in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub process: u32,
    /// Tells it from a later one of the same number.
    pub began: u64,
    pub name: String,
    /// Its working set in bytes; absent if it was not asked for, or not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Cpus that it would have kept busy, in thousandths.
    pub busy: u32,
    /// Processor time.
    pub cpu_ns: u64,
    /// The instructions that it carried out in user mode; absent if not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Cpus that it may use in each domain.
    pub cpus: Vec<u32>,
    /// The domain in which its threads were seen most often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u32>,
    /// The reason why it must be left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// Instructions, and the processor time in which they were counted: the counter may be another's for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub instructions: u64,
    pub ns: u64,
}

/// A process gets domains, or is free again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    pub process: u32,
    /// Absent if it may run again wherever it could before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
    pub why: String,
}

/// The place of entries; none if no log is wanted.
pub struct Log {
    to: Option<Box<dyn Write + Send>>,
}

impl Log {
    pub fn new(to: Option<Box<dyn Write + Send>>) -> Log {
        Log { to }
    }

    pub fn write(&mut self, entry: &Entry) -> Result<(), RegionsError> {
        let Some(to) = &mut self.to else { return Ok(()) };
        let line = serde_json::to_vec(entry).map_err(io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            to.write_all(&line)
        });
        written.map_err(RegionsError::Log)
    }

    /// Makes all entries visible to others.
    pub fn flush(&mut self) -> Result<(), RegionsError> {
        self.to.as_mut().map_or(Ok(()), Write::flush).map_err(RegionsError::Log)
    }
}
